"""Round trips: stores of any arrays, whole and in shards, score tables in any order, plain JSON."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from saliency_assay.runtime.provenance import fingerprint, plain, seed_of
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.storage.shards import open_stores
from saliency_assay.storage.zarr_store import open_store, write

TYPES = ("bool", "uint8", "int64", "float32", "float64", "int32", "float16", "uint16")
TRAILING = st.lists(st.integers(1, 5), max_size=3).map(tuple)


@st.composite
def contents(draw: st.DrawFn) -> dict[str, np.ndarray]:
    """One to three arrays of one length, any type and any values, NaN and infinity among them; whole zeros, too."""
    length = draw(st.integers(0, 9))
    content = {}
    for name in draw(
        st.sets(st.sampled_from(["map", "mask", "image", "label_class"]), min_size=1, max_size=3)
    ):
        kind, shape = draw(st.sampled_from(TYPES)), (length, *draw(TRAILING))
        content[name] = np.zeros(shape, kind) if draw(st.booleans()) else draw(arrays(kind, shape))
    return content


def cut(content: dict[str, np.ndarray], size: int) -> Iterator[dict[str, np.ndarray]]:
    length = len(next(iter(content.values())))
    for start in range(0, max(1, length), size):
        yield {name: array[start : start + size] for name, array in content.items()}


def assert_holds(opened: zarr_store.Store, content: dict[str, np.ndarray], rows: np.ndarray) -> None:
    assert set(opened.names) == set(content)
    for name, array in content.items():
        assert opened[name].shape == array.shape
        assert opened[name].dtype == array.dtype
        for read, expected in ((opened[name][:], array), (opened[name][rows], array[rows])):
            assert read.tobytes() == np.ascontiguousarray(expected).tobytes()  # NaN to NaN, −0 to −0


@settings(max_examples=25)
@given(
    content=contents(),
    size=st.integers(1, 10),
    other=st.integers(1, 10),
    chunk=st.integers(1, 400),
    data=st.data(),
)
def test_any_arrays_come_back(
    content: dict[str, np.ndarray], size: int, other: int, chunk: int, data: st.DataObject, tmp_path: Path
) -> None:
    length = len(next(iter(content.values())))
    rows = np.array(
        data.draw(st.lists(st.integers(0, length - 1), max_size=5)) if length else [], dtype=np.int64
    )
    path, again = tmp_path / "a.zarr.zip", tmp_path / "b.zarr.zip"
    with mock.patch.object(zarr_store, "CHUNK_BYTES", chunk):
        write(path, cut(content, size), kind="maps", attributes={"model": "m"})
        write(again, cut(content, other), kind="maps", attributes={"model": "m"})
    assert path.read_bytes() == again.read_bytes()  # however it was cut
    with open_store(path, kind="maps", expect={"model": "m"}) as opened:
        assert len(opened) == length
        assert_holds(opened, content, rows)
    assert {file.name for file in tmp_path.iterdir()} == {"a.zarr.zip", "b.zarr.zip"}


@settings(max_examples=10)
@given(content=contents(), parts=st.integers(2, 4), data=st.data())
def test_shards_are_the_whole(
    content: dict[str, np.ndarray], parts: int, data: st.DataObject, tmp_path: Path
) -> None:
    length = len(next(iter(content.values())))
    assume(length >= parts)
    ends = [length * number // parts for number in range(parts + 1)]
    paths = []
    for number in range(parts):
        here = {name: array[ends[number] : ends[number + 1]] for name, array in content.items()}
        paths.append(tmp_path / f"part{number}.zarr.zip")
        attributes = {"shard": [number + 1, parts], "offset": ends[number]}
        write(paths[-1], [here], kind="maps", attributes=attributes)
    rows = np.array(data.draw(st.lists(st.integers(0, length - 1), max_size=5)), dtype=np.int64)
    with open_stores(paths, kind="maps") as opened:
        assert_holds(opened, content, rows)
    with pytest.raises(zarr_store.StoreError, match="found shard 2 of"):
        open_stores(paths[::-1] if parts == 2 else [paths[1], paths[0], *paths[2:]], kind="maps")


# ---- score tables


def what_is_scored(row: tuple[Any, ...]) -> tuple[Any, ...]:
    *keys, _ = row
    return tuple(keys)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
ROWS = st.lists(
    st.tuples(*(TEXT for _ in range(3)), st.integers(0, 2**63 - 1), *(TEXT for _ in range(3)),
              st.integers(-1, 5), st.floats()),
    min_size=1, max_size=8, unique_by=what_is_scored,
)  # fmt: skip


@settings(max_examples=25)
@given(rows=ROWS)
def test_any_scores_come_back(rows: list[tuple[Any, ...]], tmp_path: Path) -> None:
    table = pd.DataFrame(rows, columns=list(score_tables.COLUMNS))
    path = tmp_path / "scores.parquet"
    score_tables.write(path, table)
    for compact in (False, True):
        scores = score_tables.read([path], compact=compact)
        assert sorted(map(repr, scores.astype(object).itertuples(index=False, name=None))) == sorted(
            map(repr, table.astype(object).itertuples(index=False, name=None))
        )
    with pytest.raises(score_tables.ScoreError, match="found two scores of"):
        score_tables.read([path, path])
    assert [file.name for file in tmp_path.iterdir()] == ["scores.parquet"]


# ---- provenance

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


class Color(Enum):
    RED = "red"


@dataclass(frozen=True)
class Holder:
    value: Any


def disguised(value: Any, draw: st.DataObject) -> Any:
    """The same in types that Snakemake does not track: numpy's scalars, tuples."""
    if isinstance(value, bool):
        return np.bool_(value) if draw.draw(st.booleans()) else value
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return np.int64(value) if draw.draw(st.booleans()) else value
    if isinstance(value, float):
        return np.float64(value) if draw.draw(st.booleans()) else value
    if isinstance(value, list):
        return tuple(disguised(entry, draw) for entry in value)
    if isinstance(value, dict):
        return dict(reversed([(key, disguised(entry, draw)) for key, entry in value.items()]))
    return value


@given(value=JSON, draw=st.data())
def test_plain_is_json_whatever_it_came_as(value: Any, draw: st.DataObject) -> None:
    assert plain(value) == value
    other = disguised(value, draw)
    assert json.loads(json.dumps(plain(other))) == value
    assert plain(other) == value
    assert fingerprint(other) == fingerprint(value)
    assert plain(Holder({"a": (Color.RED, Path("b"))})) == {"value": {"a": ["red", "b"]}}


@given(one=st.tuples(st.integers(0, 9), TEXT, TEXT), two=st.tuples(st.integers(0, 9), TEXT, TEXT))
def test_seeds_differ_where_names_do(one: tuple[int, str, str], two: tuple[int, str, str]) -> None:
    """Names are not run together: ("ab", "c") is another step than ("a", "bc")."""
    assert 0 <= seed_of(*one) < 2**63
    assert (seed_of(*one) == seed_of(*two)) == (one == two)


def test_fingerprints_follow_the_order_of_lists() -> None:
    assert fingerprint([1, 2]) != fingerprint([2, 1])


@given(value=st.complex_numbers() | st.sets(st.integers(), min_size=1) | st.binary())
def test_what_has_no_plain_form_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match=r"no plain JSON form for (complex|set|bytes)$"):
        plain({"a": [value]})

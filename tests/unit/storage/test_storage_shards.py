"""Stores of the shards of a set, read as one."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saliency_assay.runtime.provenance import fingerprint
from saliency_assay.storage import zarr_store
from saliency_assay.storage.shards import grouped, open_stores
from saliency_assay.storage.zarr_store import StoreError, open_store, rows_of, same

SIZES = (6, 6, 3, 8)
ENDS = np.cumsum(SIZES)
COUNT = int(ENDS[-1])
MADE = {"model": "abc", "data": "def", "provenance": {"code": "c", "parameters": {"samples": 3}}}
RNG = np.random.default_rng(0)
ARRAYS = {
    "map": RNG.normal(size=(COUNT, 2, 4, 5)).astype(np.float32),
    "mask": RNG.random((COUNT, 3, 3)) < 0.4,
    "color": RNG.integers(0, 256, (COUNT, 3), dtype=np.uint8),
    "image": np.arange(COUNT) * 3 + 1,
}


def write(path: Path, start: int, end: int, **changes: Any) -> None:
    block = {name: array[start:end] for name, array in ARRAYS.items()}
    attributes = {**MADE, **changes.pop("attributes", {})}
    zarr_store.write(path, [{**block, **changes}], kind="maps", attributes=attributes)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with four shards, of several chunks each, and the whole."""
    folder = tmp_path_factory.mktemp("shards")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zarr_store, "CHUNK_BYTES", 2 * 2 * 4 * 5 * 4)
        for number, (size, end) in enumerate(zip(SIZES, ENDS.tolist(), strict=True), 1):
            place = {"shard": (number, 4), "offset": end - size}
            write(folder / f"m.shard{number}of4.zarr.zip", end - size, end, attributes=place)
        write(folder / "m.zarr.zip", 0, COUNT, attributes={"shard": (1, 1), "offset": 0})
    return folder


@pytest.fixture
def paths(stored: Path, tmp_path: Path) -> list[Path]:
    """The four shards, one's own."""
    return [
        Path(shutil.copy(stored / name, tmp_path))
        for name in (f"m.shard{number}of4.zarr.zip" for number in range(1, 5))
    ]


@pytest.fixture(scope="module")
def store(stored: Path) -> Iterator[Any]:
    """The four shards, opened as one."""
    with open_stores(sorted(stored.glob("m.shard*")), kind="maps") as store:
        yield store


@pytest.fixture
def whole(stored: Path) -> Path:
    return stored / "m.zarr.zip"


INDICES = {
    "all": slice(None),
    "over several": slice(5, 20),
    "from the end": slice(-9, -1),
    "nothing": slice(7, 7),
    "in steps": slice(1, None, 4),
    "backwards": slice(None, None, -1),
    "last of a shard": 5,
    "last": -1,
    "twice": np.array([14, 2, 14]),
    "from both ends": np.array([-1, 0, -COUNT, -9]),
    "chosen": np.arange(COUNT) % 5 == 1,
}


@pytest.mark.parametrize("index", INDICES.values(), ids=list(INDICES))
def test_shards_are_indexed_as_one_array(store: Any, index: Any) -> None:
    for name, array in ARRAYS.items():
        rows, expected = store[name][index], array[index]
        assert isinstance(rows, np.ndarray)
        assert (rows.dtype, rows.shape) == (expected.dtype, np.shape(expected))
        np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("index", [COUNT, -COUNT - 1, np.array([0, COUNT])], ids=str)
def test_what_is_not_there_is_refused(store: Any, index: Any) -> None:
    with pytest.raises(IndexError, match=str(COUNT)):
        store["map"][index]


def test_shards_are_a_store(store: Any, whole: Path) -> None:
    with open_store(whole, kind="maps") as one:
        assert len(store) == len(one) == COUNT
        assert (store.names, list(store)) == (one.names, list(one))
        for name in one.names:
            assert (store[name].shape, store[name].dtype) == (one[name].shape, one[name].dtype)
            assert len(store[name]) == COUNT
        pairs = zip(store.blocks("map", "image", size=7), one.blocks("map", "image", size=7), strict=True)
        for mine, expected in pairs:
            assert mine.keys() == expected.keys()
            for name in mine:
                np.testing.assert_array_equal(mine[name], expected[name])
        chosen = np.array([20, 3, 7, 14])
        selection = store["map"].at(chosen)
        np.testing.assert_array_equal(selection[1:3], ARRAYS["map"][[3, 7]])
        np.testing.assert_array_equal(np.concatenate(list(selection.blocks(3))), ARRAYS["map"][chosen])
        np.testing.assert_array_equal(
            store["mask"].packed_rows(slice(4, 9)), one["mask"].packed_rows(slice(4, 9))
        )
        np.testing.assert_array_equal(same("image", store, one), ARRAYS["image"])
        assert rows_of("image", np.array([61, 1, 19]), store).tolist() == [20, 0, 6]
        with pytest.raises(StoreError, match="no array 'maps'; found: color, image, map, mask"):
            store["maps"]


def test_attributes_are_those_of_all(paths: list[Path]) -> None:
    with open_stores(paths, kind="maps", expect={"model": "abc"}) as store:
        digest = store.attributes.pop("digest")
        assert store.attributes == {**MADE, "kind": "maps", "length": COUNT}
    digests = []
    for path in paths:
        with open_store(path, kind="maps") as shard:
            digests.append(shard.attributes["digest"])
    assert digest == fingerprint(digests)
    changed = {"map": ARRAYS["map"][6:12] + 1}
    write(paths[1], 6, 12, **changed, attributes={"shard": (2, 4), "offset": 6})
    with open_stores(paths, kind="maps") as store:
        assert store.attributes["digest"] != digest


def test_only_the_shards_of_the_rows_are_read(paths: list[Path]) -> None:
    with open_stores(paths, kind="maps") as store:
        array = store["map"]
        for shard in (0, 2, 3):
            array._shards[shard]._array = None  # type: ignore[attr-defined]
        np.testing.assert_array_equal(array[7:10], ARRAYS["map"][7:10])
        np.testing.assert_array_equal(array[np.array([11, 6])], ARRAYS["map"][[11, 6]])


def test_what_was_opened_is_closed(paths: list[Path]) -> None:
    with open_stores(paths, kind="maps") as store:
        array = store["color"]
    with pytest.raises(ValueError, match="closed"):
        array[15]


def test_one_store_is_itself(whole: Path, tmp_path: Path) -> None:
    with open_stores([whole], kind="maps") as store:
        assert type(store) is zarr_store.Store
        assert len(bytes.fromhex(store.attributes["digest"])) == 32
    plain = tmp_path / "plain.zarr.zip"
    write(plain, 0, COUNT)  # a store that does not say so is no shard
    with open_stores([plain], kind="maps") as store:
        assert len(store) == COUNT


THIRD = {"shard": (3, 4), "offset": 12}
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "another split": ({"attributes": {"shard": (3, 5)}}, "found shard 3 of 5, expected 3 of 4"),
    "another place": ({"attributes": {"offset": 256}}, "offset is 256, expected 12"),
    "another model": ({"attributes": {"model": "xyz"}}, "model is 'xyz', expected 'abc'"),
    "another device": ({"attributes": {"device": "cuda"}}, "device is 'cuda', expected None"),
    "another parameter": (
        {"attributes": {"provenance": {"code": "c", "parameters": {"samples": 4}}}},
        "provenance.parameters.samples is 4, expected 3",
    ),
    "one array more": ({"more": np.zeros(3)}, "arrays.more is 'float64[]', expected None"),
    "another shape": (
        {"map": np.zeros((3, 1, 4, 5), dtype=np.float32)},
        "arrays.map is 'float32[1, 4, 5]', expected 'float32[2, 4, 5]'",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_shard_that_does_not_belong_is_refused(paths: list[Path], fault: str) -> None:
    changes, message = FAULTS[fault]
    attributes = {**THIRD, **changes.get("attributes", {})}
    write(paths[2], 12, 15, **{**changes, "attributes": attributes})
    with pytest.raises(StoreError) as error:
        open_stores(paths, kind="maps")
    assert str(error.value).startswith(f"{paths[2]}: {message}")


def test_shards_that_are_not_all_there_or_not_in_order_are_refused(paths: list[Path]) -> None:
    first, second, third, last = paths
    for stores, message in {
        (): "maps: found no store, expected at least one path",
        (second,): f"{second}: found shard 2 of 4, expected 1 of 1",
        (first, second, third): f"{first}: found shard 1 of 4, expected 1 of 3",
        (first, third, second, last): f"{third}: found shard 3 of 4, expected 2 of 4",
        (first, second, second, last): f"{second}: found shard 2 of 4, expected 3 of 4",
    }.items():
        with pytest.raises(StoreError, match=f"^{message}"):
            open_stores(stores, kind="maps")
    third.unlink()
    with pytest.raises(StoreError, match=f"^{third}: no such store"):
        open_stores(paths, kind="maps")


def test_each_shard_must_be_what_is_expected(paths: list[Path]) -> None:
    with pytest.raises(StoreError, match=r"shard1of4.zarr.zip: data is 'def', expected 'new'$"):
        open_stores(paths, kind="maps", expect={"data": "new"})
    write(paths[3], 15, 23, attributes={"shard": (4, 4), "offset": 15, "data": "new"})
    with pytest.raises(StoreError, match=r"shard4of4.zarr.zip: data is 'new', expected 'def'$"):
        open_stores(paths, kind="maps", expect={"data": "def"})


def test_paths_are_grouped_in_their_order() -> None:
    assert grouped(["a", "b", "c", "d"], 2) == [[Path("a"), Path("b")], [Path("c"), Path("d")]]
    assert grouped(["a", "b"], 2) == [[Path("a")], [Path("b")]]
    assert grouped([], 0) == []
    for groups in (0, 3):
        with pytest.raises(ValueError, match=rf"^paths: found 4, expected a multiple of {groups}"):
            grouped(["a", "b", "c", "d"], groups)

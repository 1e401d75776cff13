from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from saliency_assay import store
from saliency_assay.store import StoreError, open_store, write


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "map": rng.normal(size=(50, 2, 7, 5)).astype(np.float32),
        "mask": rng.random((50, 7, 5)) < 0.3,
        "image": np.arange(50) * 3,
    }


def blocks_of(arrays: dict[str, np.ndarray], size: int) -> Iterator[dict[str, np.ndarray]]:
    for start in range(0, 50, size):
        yield {name: array[start : start + size] for name, array in arrays.items()}


@pytest.fixture
def path(tmp_path: Path, arrays: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "CHUNK_BYTES", 3 * 2 * 7 * 5 * 4)  # three maps a chunk
    target = tmp_path / "maps.zarr.zip"
    write(target, blocks_of(arrays, 8), kind="maps", attributes={"model": "abc"})
    return target


def test_what_is_written_is_read(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with open_store(path, kind="maps", expect={"model": "abc"}) as found:
        assert len(found) == 50
        assert found.names == ["image", "map", "mask"]
        for name, array in arrays.items():
            assert found[name].shape == array.shape
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name][:], array)
            np.testing.assert_array_equal(found[name][np.array([44, 3, 3])], array[[44, 3, 3]])
            np.testing.assert_array_equal(found[name].at(np.array([9, 2, 40]))[1:], array[[2, 40]])
            np.testing.assert_array_equal(found[name][4], array[4])


def test_blocks_cover_all_items_in_order(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with open_store(path, kind="maps") as found:
        parts = list(found.blocks("map", "mask", size=7))
    assert [len(part["mask"]) for part in parts] == [7] * 7 + [1]
    np.testing.assert_array_equal(np.concatenate([part["map"] for part in parts]), arrays["map"])


def test_blocks_of_a_selection_cover_it_in_order(path: Path, arrays: dict[str, np.ndarray]) -> None:
    chosen = np.arange(49, 9, -1)
    with open_store(path, kind="maps") as found:
        parts = list(found["mask"].at(chosen).blocks(7))
    assert [len(part) for part in parts] == [7] * 5 + [5]
    np.testing.assert_array_equal(np.concatenate(parts), arrays["mask"][chosen])


def test_versions_are_those_of_libraries_that_are_loaded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "LIBRARIES", {"numpy": "numpy", "no_such_module": "no-such-library"})
    write(path, [{"image": np.arange(3)}], kind="maps", attributes={})
    with open_store(path, kind="maps") as found:
        assert found.attributes["libraries"] == {"numpy": np.__version__}


def test_equal_content_gives_equal_bytes_however_it_was_cut(
    path: Path, arrays: dict[str, np.ndarray]
) -> None:
    other = path.with_name("other.zarr.zip")
    write(other, blocks_of(arrays, 50), kind="maps", attributes={"model": "abc"})
    assert other.read_bytes() == path.read_bytes()


def test_the_digest_follows_the_content(path: Path, arrays: dict[str, np.ndarray]) -> None:
    changed = {**arrays, "mask": ~arrays["mask"]}
    write(path.with_name("other.zarr.zip"), blocks_of(changed, 9), kind="maps", attributes={"model": "abc"})
    with (
        open_store(path, kind="maps") as one,
        open_store(path.with_name("other.zarr.zip"), kind="maps") as two,
    ):
        assert one.attributes["digest"] != two.attributes["digest"]


def test_booleans_take_a_bit_each(tmp_path: Path) -> None:
    mask = np.random.default_rng(0).random((64, 32, 32)) < 0.5
    target = tmp_path / "mask.zarr.zip"
    write(target, [{"mask": mask}], kind="data", attributes={})
    assert mask.size / 8 <= target.stat().st_size < mask.size / 8 + 3000


def test_a_failure_leaves_the_old_file_and_nothing_else(path: Path, arrays: dict[str, np.ndarray]) -> None:
    before = path.read_bytes()

    def broken() -> Iterator[dict[str, np.ndarray]]:
        yield next(blocks_of(arrays, 8))
        raise RuntimeError("the disk is on fire")

    with pytest.raises(RuntimeError, match="on fire"):
        write(path, broken(), kind="maps", attributes={})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_block_that_does_not_fit_is_refused(path: Path, arrays: dict[str, np.ndarray]) -> None:
    parts = [{"map": arrays["map"]}, {"map": arrays["map"][:, :1]}]
    with pytest.raises(StoreError, match=r"after 50 items does not fit the first: .*\[50, 1, 7, 5\]"):
        write(path, parts, kind="maps", attributes={})


def test_no_block_is_refused(path: Path) -> None:
    with pytest.raises(StoreError, match="nothing to write"):
        write(path, [], kind="maps", attributes={})


@pytest.mark.parametrize("kept", [0, 10, 5000, -1])
def test_a_truncated_store_is_refused(path: Path, kept: int) -> None:
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(StoreError, match=r"maps\.zarr\.zip: truncated, or not a Zarr store"):
        open_store(path, kind="maps")


def test_another_kind_or_run_is_refused(path: Path) -> None:
    with pytest.raises(StoreError, match="kind is 'maps', expected 'data'"):
        open_store(path, kind="data")
    with pytest.raises(StoreError, match="model is 'abc', expected 'xyz'"):
        open_store(path, kind="maps", expect={"model": "xyz"})


def test_a_missing_store_or_array_is_named(path: Path) -> None:
    with pytest.raises(StoreError, match=r"nowhere\.zarr\.zip: no such store"):
        open_store(path.with_name("nowhere.zarr.zip"), kind="maps")
    with (
        open_store(path, kind="maps") as found,
        pytest.raises(StoreError, match="no array 'maps'; found: image, map"),
    ):
        found["maps"]


def test_beside_adds_the_matching_parts(arrays: dict[str, np.ndarray]) -> None:
    target = np.arange(50) + 100
    parts = list(store.beside(blocks_of(arrays, 8), target=target))
    assert parts[1]["target"].tolist() == list(range(108, 116))
    assert len(parts[-1]["target"]) == len(parts[-1]["map"]) == 2


def test_rows_are_found_by_value(path: Path) -> None:
    with open_store(path, kind="maps") as found:
        assert store.rows_of("image", np.array([9, 0, 147]), found).tolist() == [3, 0, 49]
        with pytest.raises(StoreError, match=r"'image' lacks 1 \(and 1 more\)"):
            store.rows_of("image", np.array([0, 1, 2]), found)


def test_same_refuses_stores_of_other_images(path: Path, arrays: dict[str, np.ndarray]) -> None:
    other = path.with_name("other.zarr.zip")
    write(other, blocks_of({**arrays, "image": np.arange(50)}, 8), kind="maps", attributes={})
    with open_store(path, kind="maps") as one, open_store(other, kind="maps") as two:
        assert store.same("image", one, one).tolist() == arrays["image"].tolist()
        with pytest.raises(
            StoreError, match=r"other\.zarr\.zip: 'image' differs from that of .*maps\.zarr\.zip"
        ):
            store.same("image", one, two)

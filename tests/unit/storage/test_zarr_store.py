import json
import os
import re
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from saliency_assay.runtime.environment import loaded_versions
from saliency_assay.storage import zarr_store
from saliency_assay.storage.zarr_store import StoreError, open_store, write


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
    monkeypatch.setattr(zarr_store, "CHUNK_BYTES", 3 * 2 * 7 * 5 * 4)  # three maps a chunk
    target = tmp_path / "maps.zarr.zip"
    write(target, blocks_of(arrays, 8), kind="maps", attributes={"model": "abc"})
    return target


def test_what_is_written_is_read(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with open_store(path, kind="maps", expect={"model": "abc"}) as store:
        assert len(store) == 50
        assert store.names == ["image", "map", "mask"]
        for name, array in arrays.items():
            assert store[name].shape == array.shape
            assert store[name].dtype == array.dtype
            np.testing.assert_array_equal(store[name][:], array)
            np.testing.assert_array_equal(store[name][np.array([44, 3, 3])], array[[44, 3, 3]])
            np.testing.assert_array_equal(store[name].at(np.array([9, 2, 40]))[1:], array[[2, 40]])
            np.testing.assert_array_equal(store[name][4], array[4])


def packed_bits(array: np.ndarray) -> np.ndarray:
    """Rows of bits, the first item in the highest."""
    return np.packbits(array.reshape(len(array), -1), axis=1)


@pytest.fixture
def bytes_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Bytes in three chunks of six rows and one of two, the second all zeros; masks alike."""
    monkeypatch.setattr(zarr_store, "CHUNK_BYTES", 6 * 3 * 4 * 5)
    rng = np.random.default_rng(2)
    image = rng.integers(0, 256, (20, 3, 4, 5), dtype=np.uint8)
    image[6:12] = 0
    mask = rng.random((20, 7, 60)) < 0.5  # 53 bytes a row
    mask[6:12] = False
    target = tmp_path / "bytes.zarr.zip"
    write(target, [{"image": image, "mask": mask, "split": image[:, 0, 0, 0]}], kind="data", attributes={})
    np.savez(tmp_path / "bytes.npz", image=image, mask=mask)
    return target


def test_bytes_lie_uncompressed_and_every_chunk_is_there(bytes_path: Path) -> None:
    with zipfile.ZipFile(bytes_path) as archive:
        sizes = {member.filename: member.file_size for member in archive.infolist()}
    chunks = {name: size for name, size in sizes.items() if "/c/" in name}
    assert chunks == {
        **{f"image/c/{chunk}/0/0/0": 360 for chunk in range(4)},
        **{f"mask/c/{chunk}/0": 318 for chunk in range(4)},
        "split/c/0": 20,  # less than a chunk: one of its own length
    }


INDICES: list[object] = [
    slice(None), slice(3, 9), slice(5, 7), slice(17, 99), slice(8, 2), slice(19, None, -3), slice(-3, None),
    0, -1, np.int64(13), [], [7], [12, 11, 13, 14, 14, -1, 0, 19], np.array([5, 6, 7, 8, 11, 12, 18]),
    np.array([3, 2], dtype=np.uint8),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_any_rows_are_read(bytes_path: Path, index: object) -> None:
    at = np.array(index, dtype=np.int64) if isinstance(index, list) else index
    expected = np.load(bytes_path.with_name("bytes.npz"))
    with open_store(bytes_path, kind="data") as store:
        for name in ("image", "mask"):
            rows = store[name][at]
            assert rows.dtype == expected[name].dtype
            np.testing.assert_array_equal(rows, expected[name][at])
        if not isinstance(index, int | np.integer):
            packed = store["mask"].packed_rows(at)
            assert packed.dtype == np.uint8
            np.testing.assert_array_equal(packed, packed_bits(expected["mask"])[at])


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_any_rows_of_floating_point_images_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: object
) -> None:
    monkeypatch.setattr(zarr_store, "CHUNK_BYTES", 6 * 20 * 4)
    image = np.random.default_rng(2).random((20, 1, 4, 5), dtype=np.float32)
    write(tmp_path / "floats.zarr.zip", [{"image": image}], kind="data", attributes={})
    at = np.array(index, dtype=np.int64) if isinstance(index, list) else index
    with zipfile.ZipFile(tmp_path / "floats.zarr.zip") as archive:
        assert archive.getinfo("image/c/0/0/0/0").file_size == 6 * 20 * 4  # uncompressed
    with open_store(tmp_path / "floats.zarr.zip", kind="data") as store:
        np.testing.assert_array_equal(store["image"][at], image[at])


def test_a_row_costs_its_own_bytes(bytes_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    original = os.preadv

    def preadv(file: int, buffers: list[memoryview], offset: int) -> int:
        read.append(len(buffers[0]))
        return original(file, buffers, offset)

    monkeypatch.setattr(os, "preadv", preadv)
    with open_store(bytes_path, kind="data") as store:
        store["image"][np.array([3, 0, 1, 2, 14, 16, 17, 18])]
    assert [size for size in read if size > 4] == [60, 180, 60, 120, 60]  # 18 begins a chunk


def test_rows_are_read_by_many_threads_at_once(bytes_path: Path) -> None:
    expected = np.load(bytes_path.with_name("bytes.npz"))["image"]
    rng = np.random.default_rng(0)
    parts = [rng.integers(0, 20, 9) for _ in range(200)]
    with open_store(bytes_path, kind="data") as store, ThreadPoolExecutor(4) as pool:
        array = store["image"]
        for part, rows in zip(parts, pool.map(array.__getitem__, parts), strict=True):
            np.testing.assert_array_equal(rows, expected[part])


def test_a_row_that_does_not_exist_is_named(bytes_path: Path) -> None:
    with open_store(bytes_path, kind="data") as store:
        for row in (20, -21):
            with pytest.raises(IndexError, match=f"^image: row {row}, of 20"):
                store["image"][np.array([3, row])]


def test_only_booleans_are_packed(bytes_path: Path) -> None:
    with (
        open_store(bytes_path, kind="data") as store,
        pytest.raises(StoreError, match=r"^image: found uint8, expected bool"),
    ):
        store["image"].packed_rows(slice(3))


def test_a_store_that_is_cut_while_it_is_read(bytes_path: Path) -> None:
    with open_store(bytes_path, kind="data") as store:
        with bytes_path.open("r+b") as file:
            file.truncate(200)
        with pytest.raises(StoreError, match=rf"^{bytes_path}: truncated.* \(image/c/3/0/0/0 is incomplete"):
            store["image"][np.array([19])]


def test_damage_to_a_chunk_is_reported_when_the_chunk_is_read_whole(bytes_path: Path) -> None:
    content = bytearray(bytes_path.read_bytes())
    with zipfile.ZipFile(bytes_path) as archive:
        place = archive.getinfo("image/c/3/0/0/0").header_offset
    content[place + 30 + len("image/c/3/0/0/0") + 70] ^= 1
    bytes_path.write_bytes(content)
    with open_store(bytes_path, kind="data") as store:
        assert store["image"][:18].shape == (18, 3, 4, 5)
        with pytest.raises(StoreError, match=r"image/c/3/0/0/0 is damaged: CRC-32 [0-9a-f]{8}, expected"):
            store["image"][:]


def test_a_closed_store_is_not_read(bytes_path: Path) -> None:
    with open_store(bytes_path, kind="data") as store:
        array = store["image"]
    with pytest.raises(ValueError, match=f"^{bytes_path}: closed"):
        array[:]


def test_blocks_cover_all_items_in_order(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with open_store(path, kind="maps") as store:
        parts = list(store.blocks("map", "mask", size=7))
    assert [len(part["mask"]) for part in parts] == [7] * 7 + [1]
    np.testing.assert_array_equal(np.concatenate([part["map"] for part in parts]), arrays["map"])
    chosen = np.arange(49, 9, -1)
    with open_store(path, kind="maps") as store:
        selected = list(store["mask"].at(chosen).blocks(7))
    assert [len(part) for part in selected] == [7] * 5 + [5]
    np.testing.assert_array_equal(np.concatenate(selected), arrays["mask"][chosen])


def test_the_versions_of_loaded_packages_are_recorded(path: Path) -> None:
    write(path, [{"image": np.arange(3)}], kind="maps", attributes={})
    with open_store(path, kind="maps") as store:
        libraries = store.attributes["libraries"]
    assert libraries == loaded_versions()
    assert libraries["numpy"] == np.__version__


def test_the_digest_follows_the_content(path: Path, arrays: dict[str, np.ndarray]) -> None:
    changed = {**arrays, "mask": ~arrays["mask"]}
    write(path.with_name("other.zarr.zip"), blocks_of(changed, 9), kind="maps", attributes={"model": "abc"})
    with (
        open_store(path, kind="maps") as one,
        open_store(path.with_name("other.zarr.zip"), kind="maps") as two,
    ):
        assert one.attributes["digest"] != two.attributes["digest"]


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
    with pytest.raises(StoreError, match=r"after 50 items does not match the first: .*\[50, 1, 7, 5\]"):
        write(path, parts, kind="maps", attributes={})


def test_no_block_is_refused(path: Path) -> None:
    with pytest.raises(StoreError, match="found no block to write"):
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
        open_store(path, kind="maps") as store,
        pytest.raises(StoreError, match="no array 'maps'; found: image, map"),
    ):
        store["maps"]


def test_beside_adds_the_matching_parts(arrays: dict[str, np.ndarray]) -> None:
    target = np.arange(50) + 100
    parts = list(zarr_store.with_columns(blocks_of(arrays, 8), target=target))
    assert parts[1]["target"].tolist() == list(range(108, 116))
    assert len(parts[-1]["target"]) == len(parts[-1]["map"]) == 2


def test_rows_are_found_by_value(path: Path) -> None:
    with open_store(path, kind="maps") as store:
        assert zarr_store.rows_of("image", np.array([9, 0, 147]), store).tolist() == [3, 0, 49]
        with pytest.raises(StoreError, match=r"'image' does not contain 1 \(and 1 more\)"):
            zarr_store.rows_of("image", np.array([0, 1, 2]), store)


def test_same_refuses_stores_of_other_images(path: Path, arrays: dict[str, np.ndarray]) -> None:
    other = path.with_name("other.zarr.zip")
    write(other, blocks_of({**arrays, "image": np.arange(50)}, 8), kind="maps", attributes={})
    with open_store(path, kind="maps") as one, open_store(other, kind="maps") as two:
        assert zarr_store.same("image", one, one).tolist() == arrays["image"].tolist()
        with pytest.raises(
            StoreError, match=r"other\.zarr\.zip: 'image' differs from that in .*maps\.zarr\.zip"
        ):
            zarr_store.same("image", one, two)


def test_a_lost_chunk_is_not_read_as_zeros(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    lost = "map/c/7/0/0/0"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            if name != lost:
                archive.writestr(name, content)
    with pytest.raises(StoreError, match=rf"^{path}: truncated.*\({lost} is missing"):
        open_store(path, kind="maps")


@pytest.mark.parametrize("grid", ["regular", {"name": "rectangular"}])
def test_another_grid_of_chunks_is_refused(path: Path, grid: object) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    metadata = json.loads(members["map/zarr.json"])
    settings = {"configuration": metadata["chunk_grid"]["configuration"]}
    metadata["chunk_grid"] = {**grid, **settings} if isinstance(grid, dict) else grid
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**members, "map/zarr.json": json.dumps(metadata)}.items():
            archive.writestr(name, content)
    with pytest.raises(StoreError, match=r"map/zarr\.json: chunk_shape is null, expected complete items"):
        open_store(path, kind="maps")


def test_a_zip_that_another_program_made_is_read(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in reversed(members.items()):
            archive.writestr(name, content)
    rows = np.array([12, 11, 13, 14, 14, 0, 19])
    with open_store(path, kind="maps") as store:
        for name, array in arrays.items():
            np.testing.assert_array_equal(store[name][:], array)
            np.testing.assert_array_equal(store[name][rows], array[rows])
        np.testing.assert_array_equal(store["mask"].packed_rows(rows), packed_bits(arrays["mask"])[rows])


@pytest.mark.parametrize("format_of_file", ["1.0", "1.12"])
def test_newer_minor_formats_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_of_file: str
) -> None:
    monkeypatch.setattr(zarr_store, "FORMAT", format_of_file)
    target = tmp_path / "newer.zarr.zip"
    zarr_store.write(target, [{"number": np.arange(3)}], kind="numbers", attributes={})
    with zarr_store.open_store(target, kind="numbers") as store:
        assert store.attributes["format"] == format_of_file
        np.testing.assert_array_equal(store["number"][:], np.arange(3))


@pytest.mark.parametrize(
    ("format_of_file", "text"),
    [("2.0", "'2.0'"), ("0.9", "'0.9'"), ("1", "'1'"), ("1.x", "'1.x'"), ("11.0", "'11.0'"), (1.0, "1.0"),
     (None, "missing")],
)  # fmt: skip
def test_other_formats_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_of_file: object, text: str
) -> None:
    monkeypatch.setattr(zarr_store, "FORMAT", format_of_file)
    target = tmp_path / "other.zarr.zip"
    zarr_store.write(target, [{"number": np.arange(3)}], kind="numbers", attributes={})
    message = rf"^\S+/other\.zarr\.zip: format is {re.escape(text)}, expected 1\.x; "
    with pytest.raises(zarr_store.StoreError, match=message):
        zarr_store.open_store(target, kind="numbers")

"""Files of maps that another program computed: formats, order and selection of images, and faulty files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import ZipStore

from saliency_assay.data.splits import TEST, TRAIN
from saliency_assay.methods.stored_maps import read_maps
from saliency_assay.storage import text, zarr_store

COUNT, SIZE = 12, (3, 4, 6)
SPLIT = np.array([TRAIN, TEST, TEST] * 4, dtype=np.uint8)
TESTED = np.flatnonzero(SPLIT == TEST)
EXPLAINED = TESTED[[0, 2, 3, 5, 6]]
"""Selected test images."""
NAMES = np.array([f"class/{number:02}.png" for number in range(COUNT)])
MAPS = np.random.default_rng(0).normal(size=(COUNT, *SIZE)).astype(np.float32)
"""Map of each image of the set."""
SHUFFLED = np.random.default_rng(1).permutation(COUNT)


@pytest.fixture
def data(tmp_path: Path) -> Iterator[zarr_store.Store]:
    path = tmp_path / "data.zarr.zip"
    block = {
        "image": np.zeros((COUNT, *SIZE), np.uint8),
        "split": SPLIT,
        "file": text.encode(NAMES.tolist()),
    }
    zarr_store.write(path, [block], kind="data", attributes={})
    with zarr_store.open_store(path, kind="data") as opened:
        yield opened


def save(path: Path, **arrays: np.ndarray) -> Path:
    """Save arrays in the format of the name of a file."""
    if path.suffix == ".npy":
        np.save(path, arrays["maps"])
    elif path.suffix == ".npz":
        np.savez(path, **arrays)
    else:
        store = ZipStore(path, mode="w") if path.suffix == ".zip" else path
        group = zarr.open_group(store, mode="w")
        for name, array in arrays.items():
            data = array.astype(np.dtypes.StringDType()) if array.dtype.kind == "U" else array
            group.create_array(name, data=data, chunks=(5, *array.shape[1:]))
        if isinstance(store, ZipStore):
            store.close()
    return path


def read(path: Path, data: zarr_store.Store, indices: np.ndarray = EXPLAINED) -> np.ndarray:
    return np.concatenate([block["map"] for block in read_maps(path, data, indices, EXPLAINED)])


@pytest.mark.parametrize("images", [EXPLAINED, TESTED, np.arange(COUNT)], ids=["explained", "test", "all"])
@pytest.mark.parametrize("suffix", [".npz", ".npy", ".zarr", ".zarr.zip"])
def test_maps_without_names_are_in_the_order_of_the_set(
    suffix: str, images: np.ndarray, data: zarr_store.Store, tmp_path: Path
) -> None:
    path = save(tmp_path / f"maps{suffix}", maps=MAPS[images])
    np.testing.assert_array_equal(read(path, data), MAPS[EXPLAINED])


@pytest.mark.parametrize("suffix", [".npz", ".zarr", ".zarr.zip"])
@pytest.mark.parametrize(
    "order",
    [{"files": NAMES[SHUFFLED]}, {"images": SHUFFLED}],
    ids=["files", "images"],
)
def test_the_map_of_each_image_is_selected_by_file_name_or_index(
    suffix: str, order: dict[str, np.ndarray], data: zarr_store.Store, tmp_path: Path
) -> None:
    path = save(tmp_path / f"maps{suffix}", attributions=MAPS[SHUFFLED], **order)
    np.testing.assert_array_equal(read(path, data), MAPS[EXPLAINED])
    # Of a shard; and float64 maps of one value per pixel, without an axis of channels.
    save(path, maps=MAPS[SHUFFLED][:, 0].astype(np.float64), **order)
    np.testing.assert_array_equal(read(path, data, EXPLAINED[2:]), MAPS[EXPLAINED[2:], :1])


NAN = np.where(np.arange(COUNT)[:, None, None] == EXPLAINED[1], np.nan, MAPS[:, 0])


@pytest.mark.parametrize(
    ("arrays", "parts"),
    [
        ({"maps": MAPS[:4]}, ("4 maps", "5 (explained images), 8 (test images), 12 (images)", "files or images")),
        ({"maps": MAPS[:, :2]}, ("float32 [12, 2, 4, 6]", "[N, 4, 6] or [N, 1 or 3, 4, 6]")),
        ({"maps": MAPS.transpose(0, 1, 3, 2)}, ("[12, 3, 6, 4]", "[N, 4, 6]")),
        ({"maps": (255 * MAPS).astype(np.uint8)}, ("uint8 [12, 3, 4, 6]", "floats")),
        ({"maps": MAPS.astype(np.float64) * 1e300}, ("NaN or infinity", "finite")),
        ({"maps": NAN}, ("NaN or infinity", f"'{NAMES[EXPLAINED[1]]}'")),
        ({"a": MAPS, "b": MAPS}, ("arrays a, b", "expected maps")),
        ({"maps": MAPS[SHUFFLED], "filenames": NAMES[SHUFFLED]}, ("maps, filenames", "files or images")),
        ({"maps": MAPS, "files": NAMES, "images": SHUFFLED}, ("files and images", "one of them")),
        ({"maps": MAPS, "files": NAMES[:5]}, ("files", "[5]", "text [12]")),
        ({"maps": MAPS, "images": NAMES}, ("images", "<U12 [12]", "integers [12]")),
        ({"maps": MAPS, "images": np.zeros(COUNT, int)}, ("found 0 again", "each image once")),
        (
            {"maps": MAPS[:2], "files": np.array(["a.png", NAMES[EXPLAINED[0]]])},
            ("found 'a.png', …", f"4 are missing, first '{NAMES[EXPLAINED[1]]}'"),
        ),
    ],
)  # fmt: skip
def test_maps_that_do_not_fit_the_images_are_refused(
    arrays: dict[str, np.ndarray], parts: tuple[str, ...], data: zarr_store.Store, tmp_path: Path
) -> None:
    path = save(tmp_path / "maps.npz", **arrays)
    with pytest.raises(ValueError, match=r"maps\.npz") as error:
        read(path, data)
    assert "\n" not in str(error.value)
    assert [part for part in parts if part not in str(error.value)] == [], error.value


def test_values_that_are_not_finite_are_refused_only_where_they_are_used(
    data: zarr_store.Store, tmp_path: Path
) -> None:
    maps = MAPS.copy()
    maps[0] = np.nan  # a training image
    np.testing.assert_array_equal(read(save(tmp_path / "a.npy", maps=maps), data), MAPS[EXPLAINED])


def _with_objects(path: Path) -> None:
    np.savez(path, maps=np.array([{}], dtype=object))


def _without_a_chunk(path: Path) -> None:
    save(path, maps=MAPS)
    (path / "maps/c/1/0/0/0").unlink()


def _with_pickles(path: Path) -> None:
    import numcodecs

    array = zarr.create_array(path, shape=(2,), dtype="f4", zarr_format=2, filters=[numcodecs.Pickle()])
    assert array.shape == (2,)


@pytest.mark.parametrize(
    ("name", "write", "part"),
    [
        ("a.npz", _with_objects, "Object arrays"),
        ("a.npz", lambda path: path.write_text("maps"), "pickled"),
        ("a.npy", lambda path: path.touch(), "No data"),
        ("a.zarr.zip", lambda path: path.write_text("maps"), "zip"),
        ("a.zarr", lambda path: path.mkdir(), "No group"),
        ("a.zarr", _without_a_chunk, "2 of 3 chunks"),
        ("a.zarr", _with_pickles, "pickle"),
    ],
)
def test_a_file_that_is_damaged_or_could_run_code_is_refused(
    name: str, write: Any, part: str, data: zarr_store.Store, tmp_path: Path
) -> None:
    write(tmp_path / name)
    with pytest.raises(ValueError, match=f"{name}: found no arrays of numbers and text .*{part}"):
        read(tmp_path / name, data)


def test_file_names_need_a_set_that_has_them(tmp_path: Path) -> None:
    store = tmp_path / "data.zarr.zip"
    block = {"image": np.zeros((COUNT, *SIZE), np.uint8), "split": SPLIT}
    zarr_store.write(store, [block], kind="data", attributes={})
    path = save(tmp_path / "maps.npz", maps=MAPS, files=NAMES)
    with (
        zarr_store.open_store(store, kind="data") as data,
        pytest.raises(ValueError, match="the set has no file names; expected images"),
    ):
        read(path, data)


def test_file_names_may_be_bytes(data: zarr_store.Store, tmp_path: Path) -> None:
    path = save(tmp_path / "maps.npz", maps=MAPS[SHUFFLED], files=NAMES[SHUFFLED].astype("S"))
    np.testing.assert_array_equal(read(path, data), MAPS[EXPLAINED])

"""Files of a user's folder that are tracked by content, for each kind of data that reads files of fixed names."""

from pathlib import Path
from typing import Any

import pytest
from configurations import agrees

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import read
from saliency_assay.config.data import DataEntry, FolderData
from saliency_assay.config.errors import ConfigError
from saliency_assay.runtime.user_files import UserFiles

BATCHES = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin", "batches.meta.txt"]
MNIST = [f"{half}-{name}-ubyte" for half in ("train", "t10k") for name in ("images-idx3", "labels-idx1")]
STL10 = ["class_names.txt", "test_X.bin", "test_y.bin", "train_X.bin", "train_y.bin"]
READ = {
    "mnist": ("mnist", MNIST),
    "mnist, packed": ("mnist", [f"{name}.gz" for name in MNIST]),
    "cifar10": ("cifar10", BATCHES),
    "cifar10, unpacked": ("cifar10", [f"cifar-10-batches-bin/{name}" for name in BATCHES]),
    "stl10": ("stl10", STL10),
    "stl10, unpacked": ("stl10", [f"stl10_binary/{name}" for name in STL10]),
    "Tiny ImageNet": ("folder", ["val/val_annotations.txt"]),
}
BESIDE = [
    "readme.html",
    "unlabeled_X.bin",
    "stl10_binary/unlabeled_X.bin",
    "fold_indices.txt",
    "train/n01/1.JPEG",
]


@pytest.mark.parametrize("name", READ)
def test_the_files_that_a_kind_reads_count(name: str, tmp_path: Path) -> None:
    kind, files = READ[name]
    for file in (*files, *BESIDE):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    entry = FolderData(kind=kind, path=str(tmp_path))
    entry.complete("mine", CATALOG, UserFiles(tmp_path / "digests.json"))
    assert tracked(entry) == sorted(str(tmp_path / file) for file in files)


def tracked(entry: DataEntry) -> list[str]:
    return sorted(source.path for source in entry.sources if source.is_tracked)


def image_data(**keys: Any) -> DataEntry:
    content = {"data": {"mine": {"kind": "folder", **keys}}}
    return read(content, catalog=CATALOG, source="some.yaml").data["mine"]


def test_lists_of_images_and_boxes_count_and_have_masks(tmp_path: Path) -> None:
    images, boxes = tmp_path / "images.csv", tmp_path / "boxes.json"
    images.write_text("image,label\na.png,x\n")
    boxes.write_text("[]")
    plain, boxed = image_data(path=str(images)), image_data(path=str(images), masks=str(boxes))
    assert (tracked(plain), plain.has_masks) == ([str(images)], False)
    assert "masks" not in plain.parameters
    assert (tracked(boxed), boxed.has_masks) == (sorted([str(images), str(boxes)]), True)
    assert boxed.parameters["masks"] == str(boxes)
    images.write_text("image,label,mask\na.png,x,m.png\n")
    assert image_data(path=str(images)).has_masks
    folder = image_data(path=str(tmp_path), masks=str(tmp_path.parent))
    assert (tracked(folder), folder.has_masks) == ([], True)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"masks": "ROOT/no"}, "masks: found 'ROOT/no' … a folder of masks that exists"),
        ({"masks": "ROOT"}, "masks: found 'ROOT' … a folder of masks that exists, other"),
        ({"masks": "ROOT/list.txt"}, "masks: found 'ROOT/list.txt' … a folder of masks"),
        ({"path": "ROOT/no.csv"}, "path: found 'ROOT/no.csv' … a file that exists"),
        ({"path": "ROOT/list.csv", "masks": "ROOT"}, "masks: found 'ROOT' … none"),
        ({"path": "ROOT/list.csv", "test_folder": "val"}, "test_folder: found 'val' … only"),
        ({"path": "ROOT/bad.csv"}, "path: ROOT/bad.csv: line 1: found columns 'a, b' … image"),
    ],
)
def test_faults_of_paths(tmp_path: Path, keys: dict[str, str], expected: str) -> None:
    (tmp_path / "list.csv").write_text("image,label,mask\na.png,x,m.png\n")
    (tmp_path / "list.txt").write_text("image,label\n")
    (tmp_path / "bad.csv").write_text("a,b\n")
    keys = {key: value.replace("ROOT", str(tmp_path)) for key, value in {"path": "ROOT", **keys}.items()}
    with pytest.raises(ConfigError) as error:
        image_data(**keys)
    assert agrees(str(error.value).replace(str(tmp_path), "ROOT"), f"some.yaml: data.mine.{expected}")


def test_a_size_is_a_side_or_height_and_width(tmp_path: Path) -> None:
    assert image_data(path=str(tmp_path)).parameters["size"] == 224
    entry = image_data(path=str(tmp_path), size=[96, 128], fit="pad")
    assert (entry.parameters["size"], entry.parameters["fit"]) == ((96, 128), "pad")
    assert entry.has_bytes
    windowed = image_data(path=str(tmp_path), gray=True, window=[-50, 350.5])
    assert (windowed.parameters["window"], windowed.has_bytes) == ((-50, 350.5), False)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"size": 7}, "size: found 7, expected an integer from 8 to 1024, or two of them"),
        ({"size": [96, 128.0]}, "size: found [96, 128.0], expected"),
        ({"size": [96]}, "size: found [96], expected"),
        ({"size": [96, 1025]}, "size: found [96, 1025], expected"),
        ({"size": True}, "size: found true, expected"),
        ({"fit": "fill"}, "fit: found 'fill', valid: crop, pad, stretch"),
        ({"window": [0, 100]}, "gray: found false with window, expected true"),
        ({"window": [100, 100], "gray": True}, "window: found [100, 100], expected two numbers, the smaller"),
        ({"window": [0], "gray": True}, "window: found [0]"),
        ({"window": [0, "1"], "gray": True}, "window.1: found '1'"),
        ({"fit": "pad", "crop_share": 0.8}, "crop_share: found 0.8, expected none with fit: pad"),
    ],
)
def test_faults_of_sizes(tmp_path: Path, keys: dict[str, Any], expected: str) -> None:
    raw = {"data": {"mine": {"kind": "folder", "path": str(tmp_path), **keys}}}
    with pytest.raises(ConfigError) as error:
        read(raw, catalog=CATALOG, source="some.yaml")
    assert agrees(str(error.value), f"some.yaml: data.mine.{expected}")

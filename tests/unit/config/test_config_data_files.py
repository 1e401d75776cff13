"""Files of a user's folder that are tracked by content, for each kind of data that reads files of fixed names."""

from pathlib import Path

import pytest

from saliency_assay.catalog import CATALOG
from saliency_assay.config.data import read_data
from saliency_assay.config.settings import FolderData

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
    entry = read_data("mine", FolderData(kind=kind, path=str(tmp_path)), CATALOG)
    assert sorted(entry.files) == sorted(str(tmp_path / file) for file in files)

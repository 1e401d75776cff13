"""Readers held against files as their publishers write them, and against the readers of torchvision."""

import hashlib
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from publishers import (
    CIFAR10,
    CIFAR10_NAMES,
    STL10,
    STL10_NAMES,
    cifar10_records,
    mnist_idx,
    stl10_images,
)
from torchvision import datasets, models

from saliency_assay.data.readers.cifar10 import cifar10
from saliency_assay.data.readers.folder import folder
from saliency_assay.data.readers.mnist import mnist
from saliency_assay.data.readers.stl10 import stl10
from saliency_assay.data.splits import TEST, TRAIN
from saliency_assay.models.classifier import Blueprint, build
from saliency_assay.models.weights import load_initial


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def gathered(built: tuple[dict[str, tuple[str, ...]], Iterator[dict[str, Any]]]) -> dict[str, Any]:
    classes, blocks = built
    parts = list(blocks)
    return {"classes": classes["class"]} | {
        name: np.concatenate([part[name] for part in parts]) for name in parts[0]
    }


def read(reader: Callable[..., Any], path: Path, size: int) -> dict[str, Any]:
    return gathered(
        reader(path=str(path), size=size, images_per_class=0, generator=np.random.default_rng(0), block=3)
    )


def random_bytes(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def cifar10_files(count: int = 4) -> dict[str, bytes]:
    """All files in their archive's folder."""
    files = {"readme.html": b"<meta>", "batches.meta.txt": CIFAR10_NAMES}
    for number, name in enumerate((*(f"data_batch_{batch}" for batch in range(1, 6)), "test_batch")):
        labels = np.random.default_rng(number).integers(0, 10, count).tolist()
        files[f"{name}.bin"] = cifar10_records(random_bytes(count, 3072, seed=number), labels)
    return {f"cifar-10-batches-bin/{name}": content for name, content in files.items()}


def stl10_files() -> dict[str, bytes]:
    files = {"class_names.txt": STL10_NAMES, "fold_indices.txt": b"0 1 2\n", "unlabeled_X.bin": b"\0" * 9}
    for prefix, labels in (("train", [10, 1, 7, 3]), ("test", [2, 2, 9])):
        files[f"{prefix}_X.bin"] = stl10_images(random_bytes(len(labels), 3, 96, 96, seed=len(labels)))
        files[f"{prefix}_y.bin"] = bytes(labels)
    return {f"stl10_binary/{name}": content for name, content in files.items()}


def place(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


# --- files that are known byte for byte ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "published"),
    [
        (CIFAR10_NAMES, "728051cd483f366e254dddb25bead8b3"),  # a copy of the unpacked archive
        (STL10_NAMES, "6de44d022411c4d5cda4673b7f147c3f"),  # a git-annex key of the unpacked archive
    ],
    ids=["batches.meta.txt", "class_names.txt"],
)
def test_descriptions_are_the_publishers_byte_for_byte(content: bytes, published: str) -> None:
    assert md5(content) == published


# --- another reader of the same files -----------------------------------------------------------------------


def test_cifar10_is_read_as_torchvision_reads_its_python_version(tmp_path: Path) -> None:
    """Torchvision knows only that one: the same rows, labels and names, pickled as the data set's page says."""

    class Small(datasets.CIFAR10):
        """Torchvision's reader, which else knows the publisher's checksums only."""

        train_list = [[name, None] for name, _ in datasets.CIFAR10.train_list]  # noqa: RUF012
        test_list = [[name, None] for name, _ in datasets.CIFAR10.test_list]  # noqa: RUF012
        meta = {**datasets.CIFAR10.meta, "md5": None}  # noqa: RUF012

    files = cifar10_files()
    python: dict[str, object] = {"batches.meta": {"label_names": list(CIFAR10)}}
    for path, content in files.items():
        if path.endswith(".bin"):
            records = np.frombuffer(content, dtype=np.uint8).reshape(-1, 3073)
            batch = {"data": records[:, 1:], "labels": records[:, 0].tolist()}
            python[Path(path).stem] = batch
    place(tmp_path, {f"cifar-10-batches-py/{name}": pickle.dumps(value) for name, value in python.items()})
    arrays = read(cifar10, place(tmp_path, files), 32)
    for half, part in ((True, TRAIN), (False, TEST)):
        theirs, here = Small(tmp_path, train=half), arrays["split"] == part
        np.testing.assert_array_equal(arrays["image"][here], theirs.data.transpose(0, 3, 1, 2))
        assert arrays["label_class"][here].tolist() == theirs.targets
        assert list(arrays["classes"]) == theirs.classes == list(CIFAR10)


def test_stl10_is_read_as_torchvision_reads_it(tmp_path: Path) -> None:
    class Small(datasets.STL10):
        """The same."""

        train_list = [[name, None] for name, _ in datasets.STL10.train_list]  # noqa: RUF012
        test_list = [[name, None] for name, _ in datasets.STL10.test_list]  # noqa: RUF012

    arrays = read(stl10, place(tmp_path, stl10_files()), 96)
    for half, part in (("train", TRAIN), ("test", TEST)):
        theirs, here = Small(tmp_path, split=half), arrays["split"] == part
        np.testing.assert_array_equal(arrays["image"][here], theirs.data)
        np.testing.assert_array_equal(arrays["label_class"][here], theirs.labels)
        assert list(arrays["classes"]) == theirs.classes == list(STL10)


def test_mnist_is_read_as_torchvision_reads_it(tmp_path: Path) -> None:
    raw = tmp_path / "MNIST/raw"
    for prefix, count in (("train", 7), ("t10k", 4)):
        images, labels = random_bytes(count, 28, 28, seed=count), random_bytes(count, seed=count) % 10
        place(raw, {f"{prefix}-images-idx3-ubyte": mnist_idx(images)})
        place(raw, {f"{prefix}-labels-idx1-ubyte": mnist_idx(labels.astype(np.uint8))})
    arrays = read(mnist, raw, 28)
    for half, part in ((True, TRAIN), (False, TEST)):
        theirs, here = datasets.MNIST(tmp_path, train=half), arrays["split"] == part
        np.testing.assert_array_equal(arrays["image"][here][:, 0], theirs.data.numpy())
        assert arrays["label_class"][here].tolist() == theirs.targets.tolist()


def test_imagenets_folders_are_read_as_torchvision_reads_them(tmp_path: Path) -> None:
    """With a PNG named .JPEG, as n02105855_2933 is, a CMYK image and gray ones."""
    for number, wnid in enumerate(("n02105855", "n01440764", "n01443537")):
        for index, mode in enumerate(("RGB", "L", "CMYK", "RGB")):
            image = Image.fromarray(random_bytes(16, 16, 3, seed=10 * number + index)).convert(mode)
            for half, name in (("train", f"{wnid}_{9 - index}"), ("val", f"ILSVRC2012_val_{number}{index}")):
                path = tmp_path / half / wnid / f"{name}.JPEG"
                path.parent.mkdir(parents=True, exist_ok=True)
                image.save(path, "PNG" if index == 3 else "JPEG")
    arrays = gathered(
        folder(
            path=str(tmp_path), size=16, crop_share=1.0, images_per_class=0, test_images_per_class=0,
            test_folder="auto", test_share=0.1, generator=np.random.default_rng(0), block=5,
        )
    )  # fmt: skip
    for half, part in (("train", TRAIN), ("val", TEST)):
        theirs, here = datasets.ImageFolder(str(tmp_path / half)), arrays["split"] == part
        assert list(arrays["classes"]) == theirs.classes
        assert arrays["label_class"][here].tolist() == theirs.targets
        expected = np.stack([np.asarray(image).transpose(2, 0, 1) for image, _ in theirs])
        np.testing.assert_array_equal(arrays["image"][here], expected)


@pytest.mark.parametrize(("name", "zipped"), [("resnet18", False), ("resnet50", True)])
def test_weights_as_torchvision_saves_them(tmp_path: Path, name: str, zipped: bool) -> None:
    """Its own state dict with its version numbers, in the format of today and in that of its older files."""
    theirs = getattr(models, name)(weights=None)
    for _, buffer in theirs.named_buffers():
        if buffer.is_floating_point():
            buffer.uniform_(0.5, 1.5)
    torch.save(theirs.state_dict(), tmp_path / "w.pth", _use_new_zipfile_serialization=zipped)
    blueprint = Blueprint(name, f"saliency_assay.models.resnet:{name}", {}, "layer4", [])
    ours = build(
        blueprint, classes=1000, mean=[0.5] * 3, std=[0.25] * 3, generator=torch.Generator().manual_seed(1)
    )
    load_initial(ours, tmp_path / "w.pth", name, head_may_start_anew=False)
    images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        expected, logits = theirs.eval()(images), ours.network.eval()(images)
    assert expected.std() > 0
    torch.testing.assert_close(logits, expected)

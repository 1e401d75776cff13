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
    write_tar,
    write_zip,
)
from torchvision import datasets, models

from saliency_assay.data.bam.coco import Source, find_instances
from saliency_assay.data.bam.miniplaces import find_scenes
from saliency_assay.data.download.unpack import unpack
from saliency_assay.data.readers.cifar10 import cifar10
from saliency_assay.data.readers.folder import folder
from saliency_assay.data.readers.mnist import mnist
from saliency_assay.data.readers.stl10 import stl10
from saliency_assay.data.splits import TEST, TRAIN
from saliency_assay.models.classifier import Blueprint, build
from saliency_assay.models.weights import load_initial

PHOTO = b"\xff\xd8\xff\xe0 any JPEG"


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
    found = read(cifar10, place(tmp_path, files), 32)
    for half, part in ((True, TRAIN), (False, TEST)):
        theirs, here = Small(tmp_path, train=half), found["split"] == part
        np.testing.assert_array_equal(found["image"][here], theirs.data.transpose(0, 3, 1, 2))
        assert found["label_class"][here].tolist() == theirs.targets
        assert list(found["classes"]) == theirs.classes == list(CIFAR10)


def test_stl10_is_read_as_torchvision_reads_it(tmp_path: Path) -> None:
    class Small(datasets.STL10):
        """The same."""

        train_list = [[name, None] for name, _ in datasets.STL10.train_list]  # noqa: RUF012
        test_list = [[name, None] for name, _ in datasets.STL10.test_list]  # noqa: RUF012

    found = read(stl10, place(tmp_path, stl10_files()), 96)
    for half, part in (("train", TRAIN), ("test", TEST)):
        theirs, here = Small(tmp_path, split=half), found["split"] == part
        np.testing.assert_array_equal(found["image"][here], theirs.data)
        np.testing.assert_array_equal(found["label_class"][here], theirs.labels)
        assert list(found["classes"]) == theirs.classes == list(STL10)


def test_mnist_is_read_as_torchvision_reads_it(tmp_path: Path) -> None:
    raw = tmp_path / "MNIST/raw"
    for prefix, count in (("train", 7), ("t10k", 4)):
        images, labels = random_bytes(count, 28, 28, seed=count), random_bytes(count, seed=count) % 10
        place(raw, {f"{prefix}-images-idx3-ubyte": mnist_idx(images)})
        place(raw, {f"{prefix}-labels-idx1-ubyte": mnist_idx(labels.astype(np.uint8))})
    found = read(mnist, raw, 28)
    for half, part in ((True, TRAIN), (False, TEST)):
        theirs, here = datasets.MNIST(tmp_path, train=half), found["split"] == part
        np.testing.assert_array_equal(found["image"][here][:, 0], theirs.data.numpy())
        assert found["label_class"][here].tolist() == theirs.targets.tolist()


def test_imagenets_folders_are_read_as_torchvision_reads_them(tmp_path: Path) -> None:
    """With a PNG named .JPEG, as n02105855_2933 is, a CMYK image and gray ones."""
    for number, wnid in enumerate(("n02105855", "n01440764", "n01443537")):
        for index, mode in enumerate(("RGB", "L", "CMYK", "RGB")):
            image = Image.fromarray(random_bytes(16, 16, 3, seed=10 * number + index)).convert(mode)
            for half, name in (("train", f"{wnid}_{9 - index}"), ("val", f"ILSVRC2012_val_{number}{index}")):
                path = tmp_path / half / wnid / f"{name}.JPEG"
                path.parent.mkdir(parents=True, exist_ok=True)
                image.save(path, "PNG" if index == 3 else "JPEG")
    found = gathered(
        folder(
            path=str(tmp_path), size=16, crop_share=1.0, images_per_class=0, test_images_per_class=0,
            test_folder="auto", test_share=0.1, generator=np.random.default_rng(0), block=5,
        )
    )  # fmt: skip
    for half, part in (("train", TRAIN), ("val", TEST)):
        theirs, here = datasets.ImageFolder(str(tmp_path / half)), found["split"] == part
        assert list(found["classes"]) == theirs.classes
        assert found["label_class"][here].tolist() == theirs.targets
        expected = np.stack([np.asarray(image).transpose(2, 0, 1) for image, _ in theirs])
        np.testing.assert_array_equal(found["image"][here], expected)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "before 1.6"])
@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
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
        expected, found = theirs.eval()(images), ours.network.eval()(images)
    assert expected.std() > 0
    torch.testing.assert_close(found, expected)


# --- archives, with the names that their publishers give the members ----------------------------------------


def test_cifar10s_archive(tmp_path: Path) -> None:
    write_tar(tmp_path / "archive.tar.gz", "cifar-10-batches-bin", cifar10_files())
    unpack(tmp_path / "archive.tar.gz", tmp_path / "cifar10")
    assert len(read(cifar10, tmp_path / "cifar10", 32)["image"]) == 24


def test_stl10s_archive(tmp_path: Path) -> None:
    write_tar(tmp_path / "stl10_binary.tar.gz", "stl10_binary", stl10_files())
    unpack(tmp_path / "stl10_binary.tar.gz", tmp_path / "stl10")
    assert read(stl10, tmp_path / "stl10", 96)["label_class"].tolist() == [9, 0, 6, 2, 1, 1, 8]


def test_cocos_archives(tmp_path: Path) -> None:
    name = "000000000139.jpg"
    annotations = (
        b'{"info": {}, "licenses": [], "images": [{"license": 2, "file_name": "%s", "height": 30, "width": 40,'
        b' "id": 139}], "annotations": [{"segmentation": [[5.0, 5.0, 25.0, 5.0, 25.0, 20.0, 5.0, 20.0]], "area": 300.0,'
        b' "iscrowd": 0, "image_id": 139, "bbox": [5.0, 5.0, 20.0, 15.0], "category_id": 18, "id": 900100581904}],'
        b' "categories": [{"supercategory": "animal", "id": 18, "name": "dog"}]}'
    ) % name.encode()
    write_zip(
        tmp_path / "annotations_trainval2017.zip",
        "annotations",
        {"annotations/instances_val2017.json": annotations},
    )
    write_zip(tmp_path / "val2017.zip", "val2017", {f"val2017/{name}": PHOTO})
    for archive in ("annotations_trainval2017.zip", "val2017.zip"):
        unpack(tmp_path / archive, tmp_path / "coco")
    source = Source(tmp_path / "coco/annotations/instances_val2017.json", tmp_path / "coco/val2017")
    (instance,), _ = find_instances([source], ["dog"], min_area=1, limit=9)
    assert (instance.coco_image.read_bytes(), instance.annotation, instance.area) == (
        PHOTO,
        900100581904,
        300,
    )


def test_miniplaces_archive_beside_its_kits_lists(tmp_path: Path) -> None:
    names = ["train/b/bedroom/00000001.jpg", "train/b/bakery/shop/00000001.jpg", "val/00000001.jpg"]
    contents = [PHOTO + bytes([number]) for number in range(3)]  # equal images are one scene
    files = {f"images/{name}": content for name, content in zip(names, contents, strict=True)}
    write_tar(tmp_path / "data.tar.gz", "images", files)
    unpack(tmp_path / "data.tar.gz", tmp_path / "miniplaces")
    lists = {"categories": "/b/bakery/shop 10\n/b/bedroom 18\n", "train": f"{names[0]} 18\n{names[1]} 10\n"}
    for name, text in {**lists, "val": f"{names[2]} 10\n"}.items():
        (tmp_path / f"miniplaces/{name}.txt").write_text(text)
    scenes, *_ = find_scenes(tmp_path / "miniplaces", ["bakery", "bedroom"], limit=9)
    assert [(scene.category, scene.path.read_bytes()) for scene in scenes] == [
        ("bakery", contents[1]),
        ("bakery", contents[2]),
        ("bedroom", contents[0]),
    ]

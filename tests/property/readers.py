"""Every reader of files that come from outside: a small whole sample of what it reads, and how all of it is read."""

import gzip
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import invalidate_caches
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import yaml
from PIL import Image
from pycocotools import mask as rle

from saliency_assay.api.networks import load_model
from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import read as read_configuration
from saliency_assay.config.yaml_text import Loader, check_text
from saliency_assay.data.bam.coco import Source, cut_out, find_instances
from saliency_assay.data.bam.miniplaces import find_scenes, read_scene
from saliency_assay.data.readers.cifar10 import cifar10
from saliency_assay.data.readers.folder import folder
from saliency_assay.data.readers.mnist import mnist
from saliency_assay.data.readers.stl10 import stl10
from saliency_assay.models.classifier import Blueprint, build
from saliency_assay.models.weights import load_classifier, load_initial, normalization_of, save
from saliency_assay.registry.signatures import check_call
from saliency_assay.storage import score_tables
from saliency_assay.storage.zarr_store import open_store, write

sys.path.append(str(Path(__file__).resolve().parents[1]))  # as a program, only this folder is on it

from publishers import (
    CIFAR10_NAMES,
    STL10_NAMES,
    cifar10_records,
    mnist_idx,
    stl10_images,
)


@dataclass(frozen=True)
class Reader:
    """``make`` writes a whole sample to a folder, ``read`` reads it; ``mutated`` are the files that mutations change.

    What ``read`` returns of a file with a checksum, where ``checked``, must be the sample's or nothing.
    """

    make: Callable[[Path], None]
    read: Callable[[Path], object]
    mutated: tuple[str, ...]
    checked: bool = False


def photo(path: Path, size: tuple[int, int] = (40, 30), mode: str = "RGB", **options: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(len(path.name)).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).convert(mode).save(path, **options)


# ---- photographs and scenes


def make_coco(root: Path) -> None:
    for number in (1, 2, 3):
        photo(root / f"images/{number}.png")
    mask = np.zeros((30, 40), dtype=np.uint8, order="F")
    mask[5:20, 4:30] = 1
    packed = rle.encode(mask)
    runs = [int(run) for run in np.diff(np.flatnonzero(np.diff(mask.flatten("F"), prepend=2, append=2)))]
    outlines: list[object] = [
        [[3, 3, 30, 3, 30, 20.5, 3, 20], [32, 22, 38, 22, 38, 28]],
        {"size": [30, 40], "counts": runs},
        {"size": [30, 40], "counts": packed["counts"].decode()},
    ]
    content = {
        "info": {"description": "COCO 2017 Dataset", "year": 2017},
        "licenses": [{"url": "http://example.org/1", "id": 1, "name": "a license"}],
        "images": [
            {"license": 1, "file_name": f"{n}.png", "height": 30, "width": 40, "id": n} for n in (1, 2, 3)
        ],
        "annotations": [
            {
                "segmentation": outline,
                "area": 390.5,
                "iscrowd": 0,
                "image_id": n,
                "bbox": [4.0, 5.0, 26.0, 15.0],
                "category_id": 18,
                "id": 900_000_000_000 + n,
            }
            for n, outline in enumerate(outlines, 1)
        ],
        "categories": [
            {"supercategory": "animal", "id": 17, "name": "cat"},
            {"supercategory": "animal", "id": 18, "name": "dog"},
        ],
    }
    (root / "instances.json").write_text(json.dumps(content))


def read_coco(root: Path) -> object:
    source = Source(root / "instances.json", root / "images")
    instances, _ = find_instances([source], ["dog"], min_area=1, limit=9)
    pixels = [cut_out(instance) for instance in instances]
    assert all(image.shape[2] == 4 and image[..., 3].any() for image in pixels)
    return [image.tobytes() for image in pixels]


def make_miniplaces(root: Path) -> None:
    (root / "objects/train/b/bedroom").mkdir(parents=True)
    names = [f"train/{letter}/{name}/{n}.jpg" for letter, name in ("bb", "aa") for n in (1, 2)]
    names = [name.replace("/b/b/", "/b/bedroom/").replace("/a/a/", "/a/attic/") for name in names]
    for side, name in enumerate(names, 30):  # of a size each: images of equal content are one scene
        photo(root / "images" / name, size=(side, side))
    (root / "categories.txt").write_text("/b/bedroom 0\n/a/attic 1\n")
    (root / "train.txt").write_text("".join(f"{name} {int('attic' in name)}\n" for name in names))
    (root / "object_categories.txt").write_text("lamp 0\ndog 1\n")
    annotation = "<filename>1.jpg</filename>\n<folder>/b/bedroom</folder>\n<class>0</class>\n"
    annotation += (
        "<objects>\n\t<class>0</class>\n\t<polygon>\n\t\t<pt>\n\t\t\t<x>1</x>\n\t\t\t<y>5</y>\n\t\t</pt>\n"
    )
    annotation += "\t</polygon>\n\t<bndbox>\n\t\t<xmin>1</xmin>\n\t</bndbox>\n</objects>\n"
    (root / "objects/train/b/bedroom/1.xml").write_text(annotation)


def read_miniplaces(root: Path) -> object:
    scenes, _, _ = find_scenes(root, ["bedroom", "attic"], objects=("dog", "stop sign"), limit=5)
    return [read_scene(scene, 8).tobytes() for scene in scenes]


IMAGES = {
    "1.png": {},
    "2.png": {"mode": "P"},
    "3.jpg": {},
    "4.jpg": {"mode": "CMYK", "progressive": True},
    "5.tif": {"compression": "tiff_lzw"},
    "6.tif": {"compression": None},
    "7.tif": {"compression": "packbits", "mode": "LA"},
    "8.webp": {"lossless": True},
    "9.webp": {},
    "10.bmp": {},
    "11.ppm": {},
    "12.png": {"mode": "LA"},
    "13.tif": {"compression": "jpeg"},
}


def make_folder(root: Path) -> None:
    for name, options in IMAGES.items():
        photo(root / f"a/{name}", **options)
    photo(root / "a/14.png", mode="P", format="GIF")  # known by its content
    photo(root / "b/1.png")
    photo(root / "b/2.png")


def blocks(built: tuple[dict[str, tuple[str, ...]], Iterator[dict[str, np.ndarray]]]) -> object:
    """All that a data set has, its shapes and types checked."""
    names, parts = built
    built_parts = list(parts)
    for part in built_parts:
        image, split, label = part["image"], part["split"], part["label_class"]
        assert image.dtype == split.dtype == np.uint8
        assert image.shape[1] in (1, 3)
        assert len(image) == len(split) == len(label)
        assert 0 <= label.min() <= label.max() < len(names["class"])
    return [(name, array.tobytes()) for part in built_parts for name, array in part.items()]


def read_folder(root: Path, masks: str = "") -> object:
    return blocks(
        folder(
            path=str(root), masks=masks, size=8, crop_share=1.0, images_per_class=0, test_images_per_class=0,
            test_folder="auto", test_share=0.5, generator=np.random.default_rng(0),
        )
    )  # fmt: skip


def make_tiny(root: Path) -> None:
    lines = []
    for number, wnid in enumerate(("n01443537", "n01629819")):
        photo(root / f"train/{wnid}/images/{wnid}_0.JPEG")
        photo(root / f"val/images/val_{number}.JPEG")
        lines.append(f"val_{number}.JPEG\t{wnid}\t0\t32\t44\t62\n")
    (root / "val/val_annotations.txt").write_text("".join(lines))


MASKED = ("a/1.png", "a/2.png", "b/1.png", "b/2.png")


def make_masked(root: Path) -> None:
    """Images with a mask each: as a file, in a list of images, and as boxes in both formats."""
    boxes = [{"image": name, "x": 1, "y": 2, "width": 30, "height": 20.5} for name in MASKED]
    for name in MASKED:
        photo(root / f"images/{name}")
        photo(root / f"masks/{name}", mode="L")
    rows = [f"images/{name},{name[0]},masks/{name}\n" for name in MASKED]
    (root / "images.csv").write_text("".join(["image,label,mask\n", *rows]))
    (root / "boxes.json").write_text(json.dumps(boxes))
    pd.DataFrame(boxes).to_csv(root / "boxes.csv", index=False)


def read_masked(root: Path) -> object:
    return [read_folder(root / "images", str(root / "masks")), read_folder(root / "images.csv")]


def read_boxed(root: Path) -> object:
    return [read_folder(root / "images", str(root / f"boxes.{suffix}")) for suffix in ("csv", "json")]


# ---- files of pixels


def make_mnist(root: Path) -> None:
    rng = np.random.default_rng(0)
    for prefix, count in (("train", 4), ("t10k", 3)):
        pixels = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        images, labels = mnist_idx(pixels), mnist_idx(np.arange(count, dtype=np.uint8))
        if prefix == "train":
            (root / "train-images-idx3-ubyte").write_bytes(images)
            (root / "train-labels-idx1-ubyte").write_bytes(labels)
        else:
            (root / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(images, mtime=0))
            (root / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels, mtime=0))


def plain(build: Callable[..., object], size: int) -> Callable[[Path], object]:
    return lambda root: blocks(
        build(path=str(root), size=size, images_per_class=0, generator=np.random.default_rng(0))  # type: ignore[arg-type]
    )


BATCHES = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch")


def make_cifar(root: Path) -> None:
    rng = np.random.default_rng(0)
    for name in BATCHES:
        rows = rng.integers(0, 256, (2, 3072), dtype=np.uint8)
        (root / f"{name}.bin").write_bytes(cifar10_records(rows, [3, 4]))
    (root / "batches.meta.txt").write_bytes(CIFAR10_NAMES)


def make_stl10(root: Path) -> None:
    rng = np.random.default_rng(0)
    for prefix in ("train", "test"):
        images = rng.integers(0, 256, (2, 3, 96, 96), dtype=np.uint8)
        (root / f"{prefix}_X.bin").write_bytes(stl10_images(images))
        (root / f"{prefix}_y.bin").write_bytes(bytes([1, 10]))
    (root / "class_names.txt").write_bytes(STL10_NAMES)


# ---- stores, tables, weights


def make_store(root: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "map": rng.normal(size=(6, 1, 5, 5)).astype(np.float32),
        "mask": rng.random((6, 5, 5)) < 0.5,
        "image": rng.integers(0, 256, (6, 3, 5, 5), dtype=np.uint8),
        "target": np.arange(6),
    }
    write(root / "maps.zarr.zip", [arrays], kind="maps", attributes={"provenance": {"parameters": {}}})


def read_store(root: Path) -> object:
    with open_store(root / "maps.zarr.zip", kind="maps") as store:
        stored = {name: store[name][:] for name in store.names}
        rows = {name: store[name][np.array([2, 0])] for name in store.names}
    assert all(
        np.array_equal(array[[2, 0]], rows[name], equal_nan=array.dtype.kind == "f")
        for name, array in stored.items()
    )
    return {name: (array.shape, str(array.dtype), array.tobytes()) for name, array in stored.items()}


def make_scores(root: Path) -> None:
    keys = {"study": "s", "data": "d", "model": "m", "seed": 0, "metric": "x", "variant": ""}
    table = pd.DataFrame({"method": ["a"] * 20 + ["b"] * 20, "image": [*range(20)] * 2, **keys})
    table["score"] = np.linspace(0, 1, 40)
    score_tables.write(root / "scores.parquet", table)


def read_scores(root: Path) -> object:
    path = root / "scores.parquet"
    score_tables.combinations(path, ["method"], only=[("metric", "==", "x")])
    score_tables.read([path], compact=True)
    return len(score_tables.read([path]))


BLUEPRINT = Blueprint("resnet8", "saliency_assay.models.resnet:resnet8", {"width": 2}, "layer3", [])


def classifier(seed: int = 0) -> object:
    return build(
        BLUEPRINT, classes=3, mean=[0.5] * 3, std=[0.25] * 3, generator=torch.Generator().manual_seed(seed)
    )


def make_weights(root: Path) -> None:
    save(root / "weights.pt", classifier(), BLUEPRINT)  # type: ignore[arg-type]


def make_legacy(root: Path) -> None:
    state = classifier().network.state_dict()  # type: ignore[attr-defined]
    torch.save(state, root / "weights.pt", _use_new_zipfile_serialization=False)


def read_weights(root: Path) -> object:
    path, model = root / "weights.pt", classifier(1)
    normalization_of(path, 3)
    load_initial(model, path, "resnet8")  # type: ignore[arg-type]
    load_classifier(path, BLUEPRINT)
    load_model(path)
    return None


def read_legacy(root: Path) -> object:
    model = classifier(1)
    load_initial(model, root / "weights.pt", "resnet8")  # type: ignore[arg-type]
    return None


# ---- what a user writes


CONFIGURATION = """
seeds: [0, 1]
data:
  bam: {kind: synthetic, size: 32}
  digits: {kind: digits, max_explained_images: 20}
models:
  f_o: {architecture: resnet8, data: bam_os, trained_on: object, training: {epochs: 2, learning_rate: 0.1}}
  f_s: &f_s {architecture: resnet8, data: bam_os, trained_on: scene}
  d: {architecture: reliability_cnn, data: digits, trained_on: class}
methods:
  gradient: {}
  smooth: {method: smoothgrad, samples: 5}
metrics:
  aopc: {steps: 10}
studies:
  bam: {kind: bam, data: bam, object_model: f_o, scene_model: f_s}
  digits: {kind: fidelity, model: d, methods: [gradient], metrics: [aopc]}
reliability: {resamples: 100, level: 0.9}
"""


def make_configuration(root: Path) -> None:
    (root / "my.yaml").write_text(CONFIGURATION)


def read_my_configuration(root: Path) -> object:
    path = root / "my.yaml"
    check_text(path, str(path))
    return read_configuration(
        yaml.load(path.read_text(), Loader=Loader), catalog=CATALOG, source=str(path)
    ).results


def make_function(root: Path) -> None:
    (root / "fuzzed_bright.py").write_text(
        "import torch\n\n\ndef bright(model, images, targets, *, generator, level=0.5):\n"
        '    """Bright."""\n    return images * (images > level)\n'
    )


def read_function(root: Path) -> object:
    sys.path.insert(0, str(root))
    try:
        invalidate_caches()
        return check_call("fuzzed_bright:bright", {"level": 1}, positional=("model", "images", "targets"))
    except ValueError as error:
        raise ValueError(f"{root}: {error}") from error  # as the configuration names its own place
    finally:
        sys.path.remove(str(root))


def _names(folder: str, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in names)


IDX = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
READERS = {
    "coco": Reader(make_coco, read_coco, ("instances.json",)),
    "miniplaces": Reader(
        make_miniplaces,
        read_miniplaces,
        ("categories.txt", "train.txt", "object_categories.txt", "objects/train/b/bedroom/1.xml"),
    ),
    "images": Reader(make_folder, read_folder, _names("a", [*IMAGES, "14.png"])),
    "tiny_list": Reader(make_tiny, read_folder, ("val/val_annotations.txt",)),
    "image_list": Reader(make_masked, read_masked, ("images.csv",)),
    "masks": Reader(make_masked, read_masked, _names("masks", MASKED)),
    "boxes": Reader(make_masked, read_boxed, ("boxes.csv", "boxes.json")),
    "mnist": Reader(make_mnist, plain(mnist, 28), IDX),
    "cifar10": Reader(make_cifar, plain(cifar10, 32), ("data_batch_1.bin", "batches.meta.txt")),
    "stl10": Reader(make_stl10, plain(stl10, 96), ("train_X.bin", "train_y.bin", "class_names.txt")),
    "store": Reader(make_store, read_store, ("maps.zarr.zip",), checked=True),
    "scores": Reader(make_scores, read_scores, ("scores.parquet",)),
    "weights": Reader(make_weights, read_weights, ("weights.pt",)),
    "weights_legacy": Reader(make_legacy, read_legacy, ("weights.pt",)),
    "configuration": Reader(make_configuration, read_my_configuration, ("my.yaml",)),
    "function": Reader(make_function, read_function, ("fuzzed_bright.py",)),
}

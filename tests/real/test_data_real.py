import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from archives import SAFELY
from PIL import Image

from saliency_assay.data.bam.classes import OBJECTS, SCENES
from saliency_assay.data.bam.coco import Source, find_instances
from saliency_assay.data.bam.collection import collect_cutouts, collect_scenes
from saliency_assay.data.bam.compose import GRAY, SETS, compose, paste, tight_box
from saliency_assay.data.bam.miniplaces import find_scenes
from saliency_assay.data.bam.placement import (
    Collection,
    box_sides,
    canvas_side,
    collection_of,
    plan,
    side_range,
)
from saliency_assay.data.readers.folder import folder
from saliency_assay.data.readers.mnist import mnist
from saliency_assay.data.selection import explained_images
from saliency_assay.data.splits import TEST, TRAIN

SIZE = 64
SIDES = {"measure": "area", "smallest": 1 / 3, "largest": 1 / 2}


@pytest.fixture(scope="module")
def collection(real_data: Path, miniplaces: Path) -> Collection:
    sources = [
        Source(real_data / f"coco/annotations/instances_{half}2017.json", real_data / f"coco/{half}2017")
        for half in ("train", "val")
    ]
    instances, skipped = find_instances(sources, OBJECTS, min_area=1024, limit=1000)
    scenes, held, _ = find_scenes(miniplaces, SCENES, objects=OBJECTS, limit=30)
    assert min(sum(i.category == name for i in instances) for name in OBJECTS) >= 5
    assert skipped["kite"]["smaller than 1024 px²"] > 0
    assert held["track"] == {"beyond the limit": 370}
    least, _ = side_range(SIZE, **SIDES)
    cutouts = list(collect_cutouts(instances, OBJECTS, canvas=canvas_side(SIZE, **SIDES), least=least))
    places = list(collect_scenes(scenes, SCENES, size=SIZE))
    return collection_of(
        {name: np.concatenate([block[name] for block in cutouts]) for name in cutouts[0]},
        {name: np.concatenate([block[name] for block in places]) for name in places[0]},
        object_names=OBJECTS,
        scene_names=SCENES,
    )


@pytest.mark.parametrize("leak_free", [False, True])
def test_real_composites(collection: Collection, leak_free: bool) -> None:
    drawing = plan(
        collection,
        size=SIZE,
        images_per_pair=100,
        test_share=0.1,
        leak_free=leak_free,
        generator=np.random.default_rng(0),
        **SIDES,
    )
    assert (drawing.split == TEST).sum() == 1000
    tested = drawing.split == TEST
    coco_images = collection.coco_image[drawing.cutout]
    assert bool(set(coco_images[tested].tolist()) & set(coco_images[~tested].tolist())) != leak_free
    chosen = explained_images(drawing.split, [drawing.label_object, drawing.label_scene], 100)
    few = replace(
        drawing,
        **{
            name: getattr(drawing, name)[chosen]
            for name in ("cutout", "scene", "label_object", "label_scene", "split", "placement")
        },
    )
    images = {}
    for name in SETS:
        blocks = list(compose(few, collection, name, block=32))
        images[name] = {key: np.concatenate([block[key] for block in blocks]) for key in blocks[0]}
    os, none, og = (images[name]["image"] for name in SETS)
    mask = images["os"]["mask"][:, None]
    assert (np.where(mask, images["os"]["covered"], os) == none).all()
    assert (og == np.where(mask, os, GRAY)).all()
    longer = images["os"]["placement"][:, 2:].max(axis=1)
    assert longer.min() ** 2 >= SIZE**2 / 3
    assert longer.max() ** 2 < SIZE**2 / 2
    # An object fills a good part of its box, and differs from the scene that it covers.
    share = mask.sum(axis=(1, 2, 3)) / images["os"]["placement"][:, 2:].prod(axis=1)
    assert 0.5 < np.median(share) < 0.95
    assert share.min() > 0.1
    changed = (os != none).any(axis=1).sum(axis=(1, 2)) / mask.sum(axis=(1, 2, 3))
    assert changed.min() > 0.9


def test_the_visible_object_has_the_size_of_its_box(collection: Collection) -> None:
    for index in range(len(collection.label_object)):
        height, width = int(collection.heights[index]), int(collection.widths[index])
        cutout = collection.cutouts[index][:, :height, :width]
        for longer in range(37, 46):
            (tall,), (wide,) = box_sides(np.array([height]), np.array([width]), np.array([longer]))
            _, mask = paste(cutout, (0, 0, int(tall), int(wide)), SIZE)
            assert max(tight_box(mask)[2:]) >= longer - 2


def test_one_scene_of_the_publishers_annotations_holds_an_object(miniplaces: Path) -> None:
    files = [path.relative_to(miniplaces / "objects") for path in (miniplaces / "objects").rglob("*.xml")]
    listed = {line.split()[0] for line in (miniplaces / "train.txt").read_text().splitlines()}
    assert len(files) == 409
    seen = sum(path.with_suffix(".jpg").as_posix() in listed for path in files)
    scenes, skipped, left_out = find_scenes(miniplaces, SCENES, objects=OBJECTS, limit=1000)
    assert len(scenes) == 10 * 400 - 1
    assert skipped == {
        name: {"contains one of the objects": 1} if name == "runway" else {} for name in SCENES
    }
    assert left_out == {"images/train/r/runway/00000005.jpg": "contains truck"}
    # Names that many annotations hold are found in as many files as hold their number.
    assert seen == len(files)
    numbers = dict(line.split() for line in (miniplaces / "object_categories.txt").read_text().splitlines())
    for name, others in (("bed", ()), ("lamp", ("ceiling_lamp", "desk_lamp", "floor_lamp")), ("toilet", ())):
        tags = [f"<class>{numbers[other]}</class>" for other in others or (name,)]
        texts = [(miniplaces / "objects" / path).read_text().partition("<objects>")[2] for path in files]
        expected = sum(any(number in text for number in tags) for text in texts)
        assert expected == len(find_scenes(miniplaces, SCENES, objects=[name], limit=1000)[2])


# --- whole data sets, by class --------------------------------------------------------------------------------

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
ALL = {
    "crop_share": 1.0,
    "images_per_class": 0,
    "test_images_per_class": 0,
    "test_folder": "auto",
    "test_share": 0.1,
}


def gathered(blocks: Iterator[dict[str, Any]]) -> dict[str, Any]:
    parts = list(blocks)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def of_each_class(data: dict[str, Any], part: int) -> list[int]:
    return np.bincount(data["label_class"][data["split"] == part]).tolist()


def read_plainly(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).transpose(2, 0, 1)


def test_mnist(real_data: Path) -> None:
    files, generator = str(real_data / "mnist"), np.random.default_rng(0)
    _, blocks = mnist(path=files, size=28, images_per_class=0, generator=generator)
    data = gathered(blocks)
    trained, tested = data["split"] == TRAIN, data["split"] == TEST
    assert data["label_class"][trained][:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert data["label_class"][tested][:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert of_each_class(data, TRAIN) == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert of_each_class(data, TEST) == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    pixels = data["image"][trained] / 255  # mean and deviation as everyone normalizes with
    assert (round(pixels.mean(), 4), round(pixels.std(), 4)) == (0.1307, 0.3081)


def test_tiny_imagenet(real_data: Path, tmp_path: Path) -> None:
    with tarfile.open(real_data / "tiny_imagenet/tiny-imagenet-10classes.tar.xz") as archive:
        archive.extractall(tmp_path, **SAFELY)
    root = tmp_path / "tiny-imagenet-200"
    wnids = sorted((root / "wnids.txt").read_text().split())
    classes, blocks = folder(path=str(root), size=64, generator=np.random.default_rng(0), **ALL)
    data = gathered(blocks)
    assert classes == {"class": tuple(wnids)}
    assert (of_each_class(data, TRAIN), of_each_class(data, TEST)) == ([500] * 10, [50] * 10)
    listed = [line.split("\t") for line in (root / "val/val_annotations.txt").read_text().splitlines()]
    expected = sorted((wnid, name) for name, wnid, *_ in listed)
    tested = data["split"] == TEST
    assert [wnids[label] for label in data["label_class"][tested]] == [wnid for wnid, _ in expected]
    for image, (_, name) in zip(data["image"][tested], expected, strict=True):
        np.testing.assert_array_equal(image, read_plainly(root / "val/images" / name))
    gray = (data["image"] == data["image"][:, :1]).all(axis=(1, 2, 3))
    assert 0 < np.count_nonzero(gray) < 500
    # The training images alone are a folder of classes, too.
    few = {**ALL, "images_per_class": 20, "test_share": 0.25}
    _, blocks = folder(path=str(root / "train"), size=32, generator=np.random.default_rng(0), **few)
    data = gathered(blocks)
    assert (of_each_class(data, TRAIN), of_each_class(data, TEST)) == ([15] * 10, [5] * 10)


def test_cifar10(real_data: Path, tmp_path: Path) -> None:
    with tarfile.open(real_data / "cifar10/cifar10_jpg.tar.xz") as archive:
        first = (member for member in archive if member.isfile() and int(Path(member.name).stem) < 100)
        archive.extractall(tmp_path, members=first, **SAFELY)
    classes, blocks = folder(path=str(tmp_path), size=32, generator=np.random.default_rng(0), **ALL)
    data = gathered(blocks)
    assert classes == {"class": CIFAR10}
    assert of_each_class(data, TRAIN) == of_each_class(data, TEST) == [100] * 10
    np.testing.assert_array_equal(data["image"][205], read_plainly(tmp_path / "train/bird/0005.jpg"))
    mean = data["image"].mean(axis=(0, 2, 3)) / 255
    np.testing.assert_allclose(mean, [0.4914, 0.4822, 0.4465], atol=0.015)  # of the whole training set

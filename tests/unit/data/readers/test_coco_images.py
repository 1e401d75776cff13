"""COCO images of one class each, with the mask of its objects."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saliency_assay.data.readers.coco_images import coco_images
from saliency_assay.storage import text

SIDE = 40
CATEGORIES = [{"id": 3, "name": "cat"}, {"id": 5, "name": "dog"}, {"id": 8, "name": "kite"}]
CAT, DOG, KITE = 3, 5, 8


def square(left: int, top: int, side: int) -> list[list[int]]:
    return [[left, top, left + side, top, left + side, top + side, left, top + side]]


def objects(
    image: int, category: int, *squares: tuple[int, int, int], crowd: int = 0
) -> list[dict[str, Any]]:
    return [
        {"image_id": image, "category_id": category, "iscrowd": crowd, "segmentation": square(*each)}
        for each in squares
    ]


def write(root: Path, annotations: list[dict[str, Any]], *, copies: bool = False) -> list[tuple[str, str]]:
    """Write annotations, and the random images that they are of; ``copies`` are all equal."""
    (root / "photos").mkdir(parents=True)
    numbers = sorted({entry["image_id"] for entry in annotations})
    for number in numbers:
        pixels = np.random.default_rng(0 if copies else number).integers(
            0, 256, (SIDE, SIDE, 3), dtype=np.uint8
        )
        Image.fromarray(pixels).save(root / f"photos/{number}.png")
    content = {
        "images": [
            {"id": each, "file_name": f"{each}.png", "height": SIDE, "width": SIDE} for each in numbers
        ],
        "annotations": [{"id": number, **entry} for number, entry in enumerate(annotations)],
        "categories": CATEGORIES,
    }
    (root / "instances.json").write_text(json.dumps(content))
    return [(str(root / "instances.json"), str(root / "photos"))]


def read(
    coco: list[tuple[str, str]], classes: tuple[str, ...] = ("dog", "cat"), **options: Any
) -> dict[str, Any]:
    options = {"size": SIDE, "min_object_area": 16, **options}
    names, blocks = coco_images(
        coco=coco, classes=classes, generator=np.random.default_rng(0), block=2, **options
    )
    assert names == {"class": classes}
    parts = list(blocks)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def test_images_of_one_of_the_classes_with_the_mask_of_all_its_objects(tmp_path: Path) -> None:
    annotations = [
        *objects(4, DOG, (2, 3, 8), (20, 20, 10)),
        *objects(4, KITE, (30, 0, 5)),  # none of the classes
        *objects(7, DOG, (0, 0, 9)),
        *objects(7, CAT, (20, 20, 9)),  # two of the classes
        *objects(2, CAT, (10, 10, 6)),
        *objects(9, CAT, (10, 10, 3)),  # too small
        *objects(5, DOG, (1, 1, 6)),
        *objects(5, DOG, (20, 1, 12), crowd=1),
    ]
    data = read(write(tmp_path, annotations))
    assert text.decode(data["file"]) == ["photos/4.png", "photos/5.png", "photos/2.png"]
    assert data["label_class"].tolist() == [0, 0, 1]
    assert (data["split"] == 1).all()
    expected = np.zeros((3, SIDE, SIDE), dtype=bool)
    for image, (left, top, side) in (
        (0, (2, 3, 8)),
        (0, (20, 20, 10)),
        (1, (1, 1, 6)),
        (1, (20, 1, 12)),
        (2, (10, 10, 6)),
    ):
        expected[image, top : top + side, left : left + side] = True
    np.testing.assert_array_equal(data["mask"], expected)
    with Image.open(tmp_path / "photos/4.png") as image:
        np.testing.assert_array_equal(data["image"][0], np.asarray(image).transpose(2, 0, 1))


def test_masks_have_the_geometry_of_the_images(tmp_path: Path) -> None:
    data = read(write(tmp_path, objects(1, DOG, (0, 0, 20))), classes=("dog",), size=[10, 20], fit="stretch")
    assert data["image"].shape == (1, 3, 10, 20)
    expected = np.zeros((10, 20), dtype=bool)
    expected[:5, :10] = True
    np.testing.assert_array_equal(data["mask"][0], expected)


def test_copies_count_once_and_a_sample_is_in_order(tmp_path: Path) -> None:
    annotations = [entry for image in range(1, 7) for entry in objects(image, DOG, (0, 0, 8))]
    assert len(read(write(tmp_path / "copies", annotations, copies=True), classes=("dog",))["image"]) == 1
    files = text.decode(
        read(write(tmp_path / "all", annotations), classes=("dog",), images_per_class=3)["file"]
    )
    assert len(files) == 3
    assert files == sorted(files)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (("dog", "unicorn"), "unknown category 'unicorn'; valid: cat, dog, kite"),
        (("dog", "cat"), "no usable image of 'cat'; left out: no object of 100 px² or more 1"),
    ],
)
def test_a_class_without_images_is_an_error(tmp_path: Path, classes: tuple[str, ...], message: str) -> None:
    coco = write(tmp_path, [*objects(1, DOG, (0, 0, 20)), *objects(2, CAT, (0, 0, 5))])
    with pytest.raises(ValueError, match=message):
        read(coco, classes, min_object_area=100)


def test_a_missing_image_or_one_of_another_size_is_an_error(tmp_path: Path) -> None:
    coco = write(tmp_path, objects(1, DOG, (0, 0, 20)))
    Image.new("RGB", (SIDE, SIDE + 1)).save(tmp_path / "photos/1.png")
    with pytest.raises(ValueError, match="found 40 × 41 pixels, expected 40 × 40, as in its annotations"):
        read(coco, ("dog",))
    (tmp_path / "photos/1.png").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"1\.png: no such image file; .*annotations\[0\] refers to it"
    ):
        read(coco, ("dog",))

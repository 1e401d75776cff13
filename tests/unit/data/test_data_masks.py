from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saliency_assay.data.geometry import Geometry
from saliency_assay.data.image_lists import Box
from saliency_assay.data.masks import Masks, find_masks, read_mask

BOXES = "image,x,y,width,height\n"


def save(path: Path, values: Any, mode: str | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(np.asarray(values))
    if mode == "P":
        image.putpalette([255, 0, 0] * 256)
    image.save(path)
    return path


@pytest.mark.parametrize(("width", "height"), [(40, 30), (31, 57), (8, 9)])
@pytest.mark.parametrize("crop_share", [1.0, 0.875])
def test_masks_are_sampled_as_pillows_nearest_neighbor(
    tmp_path: Path, width: int, height: int, crop_share: float
) -> None:
    pixels = (np.random.default_rng(0).random((height, width)) < 0.4).astype(np.uint8) * 255
    geometry = Geometry(16, 16, crop_share=crop_share)
    crop = geometry.placement(width, height).crop
    masks = Masks("", "", complete=True, files={("a.jpg", ""): save(tmp_path / "a.png", pixels)})
    expected = Image.fromarray(pixels).resize((16, 16), Image.Resampling.NEAREST, box=crop)
    mask = masks.of(("a.jpg", ""), width, height, geometry)
    # Centers on the edge between two pixels of the file are apart: Pillow's sums round them to either side.
    rows, columns = (
        np.abs(centers - np.round(centers)) > 1e-6
        for centers in (np.linspace(crop[i], crop[i + 2], 33)[1::2] for i in (1, 0))
    )
    assert rows.any()
    assert columns.any()
    sure = np.ix_(rows, columns)
    np.testing.assert_array_equal(mask[sure], np.asarray(expected).astype(bool)[sure])


def test_boxes_equal_the_mask_of_their_pixels(tmp_path: Path) -> None:
    width, height, geometry = 50, 40, Geometry(16, 16, crop_share=0.8)
    boxes = [Box("", 3, 5, 20, 9), Box("", 30, 20, 20, 20)]
    pixels = np.zeros((height, width), dtype=np.uint8)
    for box in boxes:
        pixels[int(box.y) : int(box.y + box.height), int(box.x) : int(box.x + box.width)] = 1
    from_file = Masks("", "", complete=True, files={("a", ""): save(tmp_path / "a.png", pixels)})
    from_boxes = Masks("", "", complete=False, boxes={"a": boxes})
    np.testing.assert_array_equal(
        from_boxes.of(("a", ""), width, height, geometry), from_file.of(("a", ""), width, height, geometry)
    )


def test_masks_stay_on_the_object_of_the_image(tmp_path: Path) -> None:
    pixels = np.zeros((60, 90, 3), dtype=np.uint8)
    pixels[20:40, 30:48] = 255
    mask = Masks("", "", complete=True, files={("a", ""): save(tmp_path / "a.png", pixels[..., 0])})
    geometry = Geometry(30, 30)
    image = geometry.resized(Image.fromarray(pixels))
    np.testing.assert_array_equal(mask.of(("a", ""), 90, 60, geometry), image[0] > 127)


@pytest.mark.parametrize(
    ("values", "mode"),
    [
        (np.array([[0, 1], [0, 255]], np.uint8), None),
        (np.array([[0, 1], [0, 2]], np.uint8), "P"),
        (np.array([[False, True], [False, True]]), None),
        (np.array([[0, 300], [0, 256]], np.uint16), None),
        (np.array([[[0, 0, 0], [0, 0, 9]], [[0, 0, 0], [1, 0, 0]]], np.uint8), None),
        (np.array([[[0, 0, 0, 255], [0, 0, 9, 0]], [[0, 0, 0, 7], [1, 0, 0, 255]]], np.uint8), None),
        (np.array([[[0, 255], [9, 0]], [[0, 7], [1, 255]]], np.uint8), None),
    ],
    ids=["gray", "palette", "bits", "16 bits", "color", "color and alpha", "gray and alpha"],
)
def test_nonzero_values_are_the_object(tmp_path: Path, values: Any, mode: str | None) -> None:
    assert read_mask(save(tmp_path / "m.png", values, mode)).tolist() == [[False, True], [False, True]]


def fault(masks: Masks, names: list[str], size: tuple[int, int] = (4, 4)) -> str:
    def read() -> None:
        masks.require([(name, "") for name in names])
        for name in names:
            masks.of((name, ""), *size, Geometry(4, 4))

    with pytest.raises((ValueError, FileNotFoundError)) as error:
        read()
    message = str(error.value)
    assert message.splitlines() == [message]
    return message


def test_faults_of_mask_files(tmp_path: Path) -> None:
    for name, values in (("c/a", np.zeros((4, 4), np.uint8)), ("c/b", np.ones((4, 6), np.uint8))):
        save(tmp_path / f"{name}.png", values)
    (tmp_path / "c/d.png").write_bytes(b"no image")
    Image.new("L", (4, 4), 1).save(tmp_path / "c/e.png", "JPEG")
    names = ["c/a.jpg", "c/b.jpg", "c/d.jpg", "c/e.jpg", "f.jpg", "g.jpg"]
    masks = find_masks(tmp_path, [(name, "") for name in names])
    for name, message in (
        ("c/b", "found 6 × 4 pixels, expected 4 × 4 as of c/b.jpg"),
        ("c/d", "truncated, or not an image of a valid format (PNG)"),
        ("c/e", "truncated, or not an image of a valid format (PNG)"),
    ):
        assert fault(masks, [f"{name}.jpg"]).startswith(f"{tmp_path}/{name}.png: {message}")
    missing = "found no mask of 2 of 6 test images, first f.jpg; expected f.png"
    assert fault(masks, names).startswith(f"{tmp_path}: {missing}")
    with pytest.raises(ValueError, match=r"c/a\.png: is the mask of c/a\.jpg and c/a\.gif"):
        find_masks(tmp_path, [("c/a.jpg", ""), ("c/a.gif", "")])
    with pytest.raises(FileNotFoundError, match="nowhere: expected a folder of masks"):
        find_masks(tmp_path / "nowhere", [])


def test_faults_of_boxes(tmp_path: Path) -> None:
    file = tmp_path / "boxes.csv"
    file.write_text(f"{BOXES}a.jpg,-1,-1,6,6\nb.jpg,0,0,4,6\n")
    masks = find_masks(file, [])
    assert masks.of(("a.jpg", ""), 4, 4, Geometry(4, 4)).all()  # one pixel beyond each edge
    message = "line 3: found a box of 0 to 4 × 0 to 6, expected it in 4 × 4"
    assert fault(masks, ["b.jpg"]).startswith(f"{file}: {message}")
    masks.require([("a.jpg", ""), ("c.jpg", "")])
    assert not masks.of(("c.jpg", ""), 4, 4, Geometry(4, 4)).any()
    missing = "found no mask of 1 of 1 test images, first c.jpg; expected a box with image c.jpg"
    assert fault(masks, ["c.jpg"]).startswith(f"{file}: {missing}")


def test_an_image_without_a_mask_has_an_empty_one() -> None:
    assert not Masks("", "", complete=True).of(("a", ""), 4, 4, Geometry(4, 4)).any()

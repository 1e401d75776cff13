"""Images of one height and width from files of any shape, and the same geometry for their masks."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from saliency_assay.data.geometry import Geometry
from saliency_assay.data.image_lists import Box
from saliency_assay.data.masks import Masks

SHAPES = [(50, 30), (30, 50), (64, 48), (97, 130), (8, 9)]


def old_crop(width: int, height: int, size: int, crop_share: float) -> tuple[float, float, float, float]:
    """The crop of squares in version 0.2."""
    scaled = round(size / crop_share)
    edges = []
    for length in (width, height):
        resized_length = scaled * length // min(width, height)
        first = round((resized_length - size) / 2)
        end = min((first + size) * length / resized_length, length)
        edges.append((first * length / resized_length, end))
    (left, right), (upper, lower) = edges
    return left, upper, right, lower


@pytest.mark.parametrize("crop_share", [1.0, 0.875, 0.3])
def test_the_crop_of_squares_is_that_of_earlier_versions(crop_share: float) -> None:
    for width, height in SHAPES:
        for size in (8, 31, 224):
            placement = Geometry(size, size, crop_share=crop_share).placement(width, height)
            assert placement.crop == old_crop(width, height, size, crop_share)
            assert (placement.left, placement.top, placement.width, placement.height) == (0, 0, size, size)


@pytest.mark.parametrize(("width", "height"), SHAPES)
@pytest.mark.parametrize("crop_share", [1.0, 0.8])
def test_a_crop_has_the_aspect_ratio_and_share_of_the_largest(
    width: int, height: int, crop_share: float
) -> None:
    left, upper, right, lower = Geometry(24, 32, crop_share=crop_share).placement(width, height).crop
    assert min(left, upper, width - right, height - lower) >= 0
    scale = min(width / 32, height / 24) * crop_share
    assert (right - left, lower - upper) == pytest.approx((32 * scale, 24 * scale), rel=0.05, abs=1)
    assert (left + right, upper + lower) == pytest.approx((width, height), abs=2 * scale + 1e-9)


def test_pad_keeps_the_whole_image_on_black() -> None:
    white = Image.new("RGB", (40, 10), (255, 255, 255))
    padded = Geometry(8, 16, "pad").resized(white)
    assert padded.shape == (3, 8, 16)
    inside = np.zeros((8, 16), dtype=bool)
    inside[2:6] = True
    np.testing.assert_array_equal(padded == 255, np.broadcast_to(inside, (3, 8, 16)))
    assert set(np.unique(padded)) == {0, 255}
    narrow = Geometry(8, 16, "pad").placement(1, 1000)
    assert (narrow.left, narrow.top, narrow.width, narrow.height) == (7, 0, 1, 8)


def test_stretch_resizes_the_sides_independently() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (12, 40), dtype=np.uint8)
    image = Image.fromarray(pixels)
    expected = np.asarray(image.resize((16, 8), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(Geometry(8, 16, "stretch").resized(image)[0], expected)


@pytest.mark.parametrize("fit", ["crop", "pad", "stretch"])
@pytest.mark.parametrize(("width", "height"), [(48, 32), (32, 64), (40, 40)])
def test_masks_and_boxes_follow_the_image(tmp_path: Path, fit: str, width: int, height: int) -> None:
    """Where the scale is a whole number or the reciprocal of one, edges stay between pixels."""
    geometry = Geometry(16, 24, fit)
    pixels = np.zeros((height, width), dtype=np.uint8)
    box = Box("", width // 4, height // 4, width // 2, height // 2)
    pixels[int(box.y) : int(box.y + box.height), int(box.x) : int(box.x + box.width)] = 255
    file = tmp_path / "a.png"
    Image.fromarray(pixels).save(file)
    row = ("a", "")
    masks = [
        Masks("", "", complete=True, files={row: file}).of(row, width, height, geometry),
        Masks("", "", complete=False, boxes={"a": [box]}).of(row, width, height, geometry),
    ]
    assert masks[0].shape == (16, 24)
    np.testing.assert_array_equal(*masks)
    image = geometry.resized(Image.fromarray(pixels))[0]
    assert 0 < masks[0].sum() < masks[0].size
    assert (masks[0] != (image > 127)).mean() <= 1 / 16

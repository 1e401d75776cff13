"""Every mask transform against plain loops, and on masks that are empty, full, or one pixel."""

from collections.abc import Mapping
from inspect import signature
from itertools import permutations, product
from math import cos, floor, radians, sin
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from saliency_assay.studies.retrain.mask_transforms import TRANSFORMS, Masks, transform
from saliency_assay.studies.retrain.parameters import TRANSFORMS as SETTINGS

EVERY: tuple[dict[str, Any], ...] = (
    {"kind": "none"},
    {"kind": "dilation", "radius": 2},
    {"kind": "erosion", "radius": 1},
    {"kind": "convex_hull"},
    {"kind": "noise", "share": 0.2},
    {"kind": "rotation", "degrees": 70},
    {"kind": "transposition"},
)
EACH = pytest.mark.parametrize("settings", EVERY, ids=lambda settings: settings["kind"])
DRAWN = ("noise", "rotation", "transposition")


def some_masks() -> Masks:
    """Masks of every density and a block, then empty, full, single pixels, a row, a column, a diagonal, two corners."""
    rng = np.random.default_rng(0)
    masks = rng.random((16, 11, 8)) < np.resize(np.linspace(0.02, 0.98, 7), 16)[:, None, None]
    masks[7:] = False
    masks[7, 1:10, :7] = True
    masks[9] = True
    masks[10, 4, 3] = True
    masks[11, 0, 7] = True
    masks[12, 5, 1:6] = True
    masks[13, [2, 6, 9], 2] = True
    masks[14, range(1, 7), range(1, 7)] = True
    masks[15, [0, 10], [0, 7]] = True
    return masks


def seeds_of(masks: Masks) -> list[int]:
    return [2**62 + 17 * image for image in range(len(masks))]


def changed(settings: Mapping[str, Any], masks: Masks | None = None) -> Masks:
    masks = some_masks() if masks is None else masks
    return transform(masks, settings, seeds_of(masks))


def pixels_of(masks: Masks) -> list[tuple[int, int]]:
    return list(product(range(masks.shape[1]), range(masks.shape[2])))


# ---------------------------------------------------------------------------------------- all of them


def test_transforms_are_those_the_configuration_knows() -> None:
    assert list(TRANSFORMS) == list(SETTINGS) == [settings["kind"] for settings in EVERY]
    for kind, function in TRANSFORMS.items():
        assert list(signature(function).parameters) == ["masks", "seeds", *SETTINGS[kind]]


@EACH
def test_a_transform_gives_new_masks_of_the_same_shape(settings: dict[str, Any]) -> None:
    masks = some_masks()
    result = changed(settings, masks)
    assert (result.dtype, result.shape) == (np.bool_, masks.shape)
    assert not np.shares_memory(result, masks)
    np.testing.assert_array_equal(masks, some_masks())
    assert (settings["kind"] == "none") == np.array_equal(result, masks)


@EACH
def test_a_transform_does_not_depend_on_how_masks_are_split(settings: dict[str, Any]) -> None:
    masks, seeds = some_masks(), seeds_of(some_masks())
    whole = transform(masks, settings, seeds)
    parts = [
        transform(masks[first:last], settings, seeds[first:last])
        for first, last in ((0, 1), (1, 6), (6, 6), (6, 16))
    ]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_array_equal(transform(masks[::-1], settings, seeds[::-1]), whole[::-1])


@EACH
def test_only_what_is_drawn_depends_on_the_seed(settings: dict[str, Any]) -> None:
    masks = np.repeat(some_masks()[4:5], 6, axis=0)
    result = transform(masks, settings, [3, 3, 3, 4, 5, 6])
    assert np.array_equal(result[:2], result[1:3])
    different = {mask.tobytes() for mask in result[2:]}
    assert len(different) == (4 if settings["kind"] in DRAWN else 1)


def test_the_hull_of_a_full_mask_is_full_and_of_none_is_empty() -> None:
    hulls = changed({"kind": "convex_hull"})
    assert not hulls[8].any()
    assert hulls[9].all()


def test_what_does_not_fit_is_refused() -> None:
    masks = some_masks()
    with pytest.raises(ValueError, match=r"^seeds: found 15, expected 16"):
        transform(masks, {"kind": "none"}, [1] * 15)
    with pytest.raises(ValueError, match=r"^transform\.radius: found -1, expected at least 0$"):
        changed({"kind": "dilation", "radius": -1})


# ------------------------------------------------------------------------------- dilation and erosion


def near(one: tuple[int, int], other: tuple[int, int], radius: int) -> bool:
    return (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2 <= radius**2


@pytest.mark.parametrize("radius", [0, 1, 3])
def test_dilation_and_erosion_equal_plain_loops(radius: int) -> None:
    masks = some_masks()
    dilated, eroded = (changed({"kind": kind, "radius": radius}) for kind in ("dilation", "erosion"))
    places = pixels_of(masks)
    for mask, larger, smaller in zip(masks, dilated, eroded, strict=True):
        for place in places:
            around = [mask[other] for other in places if near(place, other, radius)]
            assert larger[place] == any(around)
            assert smaller[place] == all(around)


# ---------------------------------------------------------------------------------------------- hull


def plain_hull(mask: Masks) -> Masks:
    """On integer coordinates, two a pixel: the points left of, or on, every line that has all corners on its left."""
    corners = {
        (2 * y + down, 2 * x + right)
        for y, x in np.argwhere(mask).tolist()
        for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0))
    }

    def left(a: tuple[int, int], b: tuple[int, int], p: tuple[int, int]) -> bool:
        return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) >= 0

    sides = [(a, b) for a, b in permutations(corners, 2) if all(left(a, b, c) for c in corners)]
    inside = [
        [bool(sides) and all(left(a, b, (2 * y, 2 * x)) for a, b in sides) for x in range(mask.shape[1])]
        for y in range(mask.shape[0])
    ]
    return np.array(inside)


def sparse_masks() -> Masks:
    """At most six pixels each, and the thin ones."""
    rng = np.random.default_rng(1)
    masks = np.zeros((24, 11, 8), dtype=bool)
    for number, mask in enumerate(masks):
        mask.flat[rng.choice(mask.size, number % 7, replace=False)] = True
    return np.concatenate([masks, some_masks()[10:]])


def test_the_hull_equals_that_of_half_planes() -> None:
    masks = sparse_masks()
    for mask, hull in zip(masks, changed({"kind": "convex_hull"}, masks), strict=True):
        np.testing.assert_array_equal(hull, plain_hull(mask))


# --------------------------------------------------------------------------------------------- noise


def test_noise_turns_over_its_share_of_all_pixels() -> None:
    masks = np.zeros((40, 50, 30), dtype=bool)
    masks[:, :20] = True
    share = 0.07
    flipped = masks ^ changed({"kind": "noise", "share": share}, masks)
    for part in (flipped, flipped[masks], flipped[~masks]):
        error = (share * (1 - share) / part.size) ** 0.5
        assert abs(part.mean() - share) < 5 * error
    each = flipped.reshape(40, -1).sum(1)
    assert chisquare(flipped.sum(0).flatten()).pvalue > 1e-3
    assert len(set(each)) > 10


# ------------------------------------------------------------------------------------------ rotation


def plain_rotation(mask: Masks, angle: float) -> tuple[Masks, Masks]:
    """The turned mask, and where a pixel's source lies so near to an edge that rounding decides."""
    height, width = mask.shape
    middle = (height - 1) / 2, (width - 1) / 2
    turned, close = np.zeros_like(mask), np.zeros_like(mask)
    for y, x in product(range(height), range(width)):
        down, right = y - middle[0], x - middle[1]
        source = (
            middle[0] + cos(radians(angle)) * down + sin(radians(angle)) * right,
            middle[1] - sin(radians(angle)) * down + cos(radians(angle)) * right,
        )
        nearest = [floor(value + 0.5) for value in source]
        close[y, x] = any(abs((value + 0.5) - round(value + 0.5)) < 1e-6 for value in source)
        inside = 0 <= nearest[0] < height and 0 <= nearest[1] < width
        turned[y, x] = inside and mask[nearest[0], nearest[1]]
    return turned, close


@pytest.mark.parametrize("degrees", [0, 10, 180])
def test_rotation_is_about_the_center_by_an_angle_of_each_image(degrees: float) -> None:
    masks = np.concatenate([some_masks(), np.ones((4, 11, 8), dtype=bool)])
    rotated, angles = changed({"kind": "rotation", "degrees": degrees}, masks), []
    for mask, seed, turned in zip(masks, seeds_of(masks), rotated, strict=True):
        angles.append(np.random.default_rng(seed).uniform(-degrees, degrees))
        expected, close = plain_rotation(mask, angles[-1])
        assert close.sum() <= 2
        np.testing.assert_array_equal(turned | close, expected | close)
    assert min(angles) <= -degrees / 2
    assert max(angles) >= degrees / 2


# ------------------------------------------------------------------------------------- transposition


def test_transposition_is_a_shift_around_the_borders() -> None:
    masks = some_masks()
    height, width = masks.shape[1:]
    for mask, moved in zip(masks, changed({"kind": "transposition"}), strict=True):
        assert moved.sum() == mask.sum()
        shifted = [
            [[mask[(y - down) % height, (x - right) % width] for x in range(width)] for y in range(height)]
            for down, right in product(range(height), range(width))
        ]
        assert moved.tolist() in shifted


def test_transposition_moves_a_pixel_to_any_place_alike() -> None:
    masks = np.zeros((3000, 5, 6), dtype=bool)
    masks[:, 1, 2] = True
    hits = transform(masks, {"kind": "transposition"}, range(3000)).sum(0).flatten()
    assert hits.sum() == 3000
    assert chisquare(hits).pvalue > 1e-3

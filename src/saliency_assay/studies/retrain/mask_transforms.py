"""Transforms of masks that reduce leakage of the class by size, shape or position (IteROAR, section 4.7).

A transform takes masks bool ``[n, H, W]``, True where occluded, and one seed per image, and returns new masks of the
same shape. Each result depends only on the mask and its seed, and so not on how a set is divided into shards.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from saliency_assay.studies.retrain.parameters import transform_from

Masks = NDArray[np.bool_]


def transform(masks: Masks, settings: Mapping[str, Any], seeds: Sequence[int]) -> Masks:
    """Transform masks by ``settings``: a ``kind`` and its parameters, with defaults for missing ones.

    Raises:
        ValueError: masks or settings are invalid, or there is not one seed per mask.
    """
    if masks.dtype != np.bool_ or masks.ndim != 3:
        raise ValueError(f"masks: found {masks.dtype} {list(masks.shape)}, expected bool [n, H, W]")
    if len(seeds) != len(masks):
        raise ValueError(f"seeds: found {len(seeds)}, expected {len(masks)}, one per image")
    checked = transform_from(settings)
    return TRANSFORMS[checked.pop("kind")](masks, seeds, **checked)


def none(masks: Masks, seeds: Sequence[int]) -> Masks:
    """Return a copy of the masks."""
    return masks.copy()


def dilation(masks: Masks, seeds: Sequence[int], *, radius: int) -> Masks:
    """Return the pixels whose center is at most ``radius`` pixels from that of an occluded one. Masks grow."""
    return ndimage.binary_dilation(masks, _disc(radius))


def erosion(masks: Masks, seeds: Sequence[int], *, radius: int) -> Masks:
    """Return the pixels farther than ``radius`` from every pixel that is not occluded. Masks shrink and may vanish.

    Only pixels of the image count: masks are not eroded from the image border, and a full mask stays full, so that
    erosion is the dual of ``dilation`` everywhere.
    """
    return ndimage.binary_erosion(masks, _disc(radius), border_value=1)


def convex_hull(masks: Masks, seeds: Sequence[int]) -> Masks:
    """Return the pixels whose center is in the convex hull of the occluded pixels; an empty mask stays empty.

    It is the hull of the midpoints of pixel edges, not of pixel centers, so that even the hull of a single pixel or a
    row of pixels has an area.
    """
    return _stack_like(masks, (_hull(mask) if mask.any() else mask for mask in masks))


def noise(masks: Masks, seeds: Sequence[int], *, share: float) -> Masks:
    """Flip each pixel with probability ``share``; k occluded pixels of A become k + share · (A − 2k) on average."""
    samples = (generator.random(masks.shape[1:]) for generator in _generators(seeds))
    return masks ^ _stack_like(masks, (values < share for values in samples))


def rotation(masks: Masks, seeds: Sequence[int], *, degrees: float) -> Masks:
    """Rotate each mask about the image's center by an angle sampled uniformly from −``degrees`` to ``degrees``.

    Interpolation is nearest neighbor. Pixels that leave the image are lost, and pixels that enter it are not occluded,
    so that masks may shrink.
    """
    angles = [generator.uniform(-degrees, degrees) for generator in _generators(seeds)]
    return _stack_like(masks, (_rotate(mask, angle) for mask, angle in zip(masks, angles, strict=True)))


def transposition(masks: Masks, seeds: Sequence[int]) -> Masks:
    """Shift each mask cyclically by one of the H · W offsets, all equally likely; the area is unchanged."""
    shifts = [generator.integers(masks.shape[1:]) for generator in _generators(seeds)]
    return _stack_like(
        masks, (np.roll(mask, shift, (0, 1)) for mask, shift in zip(masks, shifts, strict=True))
    )


TRANSFORMS: Mapping[str, Callable[..., Masks]] = {
    function.__name__: function
    for function in (none, dilation, erosion, convex_hull, noise, rotation, transposition)
}


def _disc(radius: int) -> Masks:
    """Return a disc of ``radius``, ``[1, 2 · radius + 1, 2 · radius + 1]``; size 1 on axis 0 keeps images separate."""
    distance = np.arange(-radius, radius + 1)
    return (distance[:, None] ** 2 + distance**2 <= radius**2)[None]


def _hull(mask: Masks) -> Masks:
    from skimage.morphology import convex_hull_image  # slow to import and needed only here

    hull: Masks = convex_hull_image(mask)  # type: ignore[no-untyped-call]
    return hull


def _rotate(mask: Masks, angle: float) -> Masks:
    # With "grid-constant", pixels extend half a pixel beyond their centers; with "constant", rounding errors would
    # remove the border of the mask.
    rotated = ndimage.rotate(mask.view(np.uint8), angle, reshape=False, order=0, mode="grid-constant")
    return rotated.astype(bool)


def _generators(seeds: Sequence[int]) -> Iterable[np.random.Generator]:
    return (np.random.default_rng(seed) for seed in seeds)


def _stack_like(masks: Masks, transformed: Iterable[Masks]) -> Masks:
    result = np.empty_like(masks)
    for row, mask in zip(result, transformed, strict=True):
        row[:] = mask
    return result

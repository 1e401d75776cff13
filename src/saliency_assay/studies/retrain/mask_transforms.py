"""What keeps a mask from leaking the class by its size, shape or place (Palacio et al., IteROAR, section 4.7).

A transform takes masks bool ``[n, H, W]``, True where occluded, and one seed for each image, and gives new masks of the
same shape. What becomes of a mask depends on it and its seed alone, so results do not depend on how a set is split.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from saliency_assay.studies.retrain.parameters import transform_from

Masks = NDArray[np.bool_]


def transform(masks: Masks, settings: Mapping[str, Any], seeds: Sequence[int]) -> Masks:
    """The masks under ``settings``: the ``kind`` of a transform, its parameters beside it, defaults for the rest.

    Raises:
        ValueError: masks of another type or shape, seeds that are not as many, settings that are not valid.
    """
    if masks.dtype != np.bool_ or masks.ndim != 3:
        raise ValueError(f"masks: found {masks.dtype} {list(masks.shape)}, expected bool [n, H, W]")
    if len(seeds) != len(masks):
        raise ValueError(f"seeds: found {len(seeds)}, expected one for each of {len(masks)} images")
    checked = transform_from(settings)
    return TRANSFORMS[checked.pop("kind")](masks, seeds, **checked)


def none(masks: Masks, seeds: Sequence[int]) -> Masks:
    """The masks as they are."""
    return masks.copy()


def dilation(masks: Masks, seeds: Sequence[int], *, radius: int) -> Masks:
    """The pixels at most ``radius`` pixels from an occluded one, centre to centre. Masks grow."""
    return ndimage.binary_dilation(masks, _disc(radius))


def erosion(masks: Masks, seeds: Sequence[int], *, radius: int) -> Masks:
    """The pixels further than ``radius`` pixels from every one that is not occluded: masks shrink, and may vanish.

    Only pixels of the image count. A mask is not eaten from the border, and a full one stays full, which makes erosion
    the dual of ``dilation`` everywhere.
    """
    return ndimage.binary_erosion(masks, _disc(radius), border_value=1)


def convex_hull(masks: Masks, seeds: Sequence[int]) -> Masks:
    """The pixels whose centre lies in the convex hull of the occluded ones; an empty mask stays empty.

    The hull is of the midpoints of their edges, not of their centres: a row of pixels, or one, has a hull with an area.
    """
    return _each(masks, (_hull(mask) if mask.any() else mask for mask in masks))


def noise(masks: Masks, seeds: Sequence[int], *, share: float) -> Masks:
    """Each pixel turned over with probability ``share``, occluded or not: k pixels of A become k + share · (A − 2k)."""
    draws = (generator.random(masks.shape[1:]) for generator in _generators(seeds))
    return masks ^ _each(masks, (values < share for values in draws))


def rotation(masks: Masks, seeds: Sequence[int], *, degrees: float) -> Masks:
    """Each mask turned about the image's centre by its own angle, uniform from −``degrees`` to ``degrees``.

    Nearest neighbour. What leaves the image is lost, and what enters is not occluded, so masks may shrink.
    """
    angles = [generator.uniform(-degrees, degrees) for generator in _generators(seeds)]
    return _each(masks, (_turned(mask, angle) for mask, angle in zip(masks, angles, strict=True)))


def transposition(masks: Masks, seeds: Sequence[int]) -> Masks:
    """Each mask moved to another place: a cyclic shift, all H · W equally likely, which keeps its area."""
    shifts = [generator.integers(masks.shape[1:]) for generator in _generators(seeds)]
    return _each(masks, (np.roll(mask, shift, (0, 1)) for mask, shift in zip(masks, shifts, strict=True)))


TRANSFORMS: Mapping[str, Callable[..., Masks]] = {
    function.__name__: function
    for function in (none, dilation, erosion, convex_hull, noise, rotation, transposition)
}


def _disc(radius: int) -> Masks:
    """The pixels at most ``radius`` from the middle one, ``[1, 2 · radius + 1, 2 · radius + 1]``: images do not mix."""
    distance = np.arange(-radius, radius + 1)
    return (distance[:, None] ** 2 + distance**2 <= radius**2)[None]


def _hull(mask: Masks) -> Masks:
    from skimage.morphology import convex_hull_image  # slow to import, and nothing else needs it

    hull: Masks = convex_hull_image(mask)  # type: ignore[no-untyped-call]
    return hull


def _turned(mask: Masks, angle: float) -> Masks:
    # Under grid-constant pixels reach half a pixel beyond their centres. Under constant they do not, and a rounding
    # error takes the border off.
    turned = ndimage.rotate(mask.view(np.uint8), angle, reshape=False, order=0, mode="grid-constant")
    return turned.astype(bool)


def _generators(seeds: Sequence[int]) -> Iterable[np.random.Generator]:
    return (np.random.default_rng(seed) for seed in seeds)


def _each(masks: Masks, found: Iterable[Masks]) -> Masks:
    result = np.empty_like(masks)
    for row, mask in zip(result, found, strict=True):
        row[:] = mask
    return result

"""Overlap of the masks of consecutive iterations: MMO, MAMO and CMA (Palacio et al., IteROAR, section 3).

Masks are m̄, True where a pixel is occluded. ‖·‖₀ counts the entries that are not 0, so that it measures the union of
the masks in the sums of Eqs. 2 and 4.
"""

import itertools

import torch
from torch import Tensor


def mmo(masks: Tensor) -> Tensor:
    """Compute ‖m̄_i ⊙ m̄_{i+1}‖₀ in pixels, int64 ``[N, I − 1]``, of masks bool ``[N, I, H, W]`` in order.

    The mean over images and i is MMO (Eq. 1). Values are between 0 and the size of a mask; 0 means that the map
    highlights none of the pixels occluded in the iteration before.

    Raises:
        ValueError: masks have another type or shape.
    """
    mask_list = _mask_list(masks)
    return _stack_columns(
        [_area(mask & next_mask) for mask, next_mask in itertools.pairwise(mask_list)], masks
    )


def mamo(masks: Tensor) -> Tensor:
    """Compute ‖(Σ_{ι≤i} m̄_ι) ⊙ m̄_{i+1}‖₀ in pixels, int64 ``[N, I − 1]``, of masks as in ``mmo``.

    The mean over images and i is MAMO (Eq. 2). Values are at least ``mmo`` and at most the size of mask i + 1.

    Raises:
        ValueError: as ``mmo``.
    """
    mask_list = _mask_list(masks)
    covered, overlaps = mask_list[0].clone(), []
    for next_mask in mask_list[1:]:
        overlaps.append(_area(covered & next_mask))
        covered |= next_mask
    return _stack_columns(overlaps, masks)


def cma(masks: Tensor) -> Tensor:
    """Compute ‖Σ_{ι≤i} m̄_ι‖₀ in pixels, int64 ``[N, I]``: the area occluded after each iteration; masks as in ``mmo``.

    The last column is CMA (Eq. 4). For masks of k pixels, values are at most (i + 1) · k, which disjoint masks reach.

    Raises:
        ValueError: as ``mmo``.
    """
    mask_list = _mask_list(masks)
    covered, areas = torch.zeros_like(mask_list[0]), []
    for mask in mask_list:
        covered |= mask
        areas.append(_area(covered))
    return _stack_columns(areas, masks)


def pairwise(masks: Tensor) -> Tensor:
    """Compute ‖m̄_i ⊙ m̄_n‖₀ for all i and n in pixels, int64 ``[N, I, I]``, of masks as in ``mmo`` (Eq. 3).

    The result is symmetric, with the sizes of the masks on the diagonal.

    Raises:
        ValueError: as ``mmo``.
    """
    _mask_list(masks)
    overlaps = masks.new_empty((len(masks), masks.shape[1], masks.shape[1]), dtype=torch.int64)
    # In float64 the product is exact for any number of pixels; one image at a time, because it needs 8 bytes per pixel.
    for row, image in zip(overlaps, masks.flatten(2), strict=True):
        values = image.double()
        row.copy_(values @ values.T)
    return overlaps


def expected_mmo(k: int, area: int) -> float:
    """Return E‖m̄_i ⊙ m̄_{i+1}‖₀ = k² / A for independent masks of exactly ``k`` of ``area`` pixels, all equally likely.

    A pixel is in each mask with probability k / A; the expectation of a sum does not require independent pixels.
    """
    return k * k / area


def expected_mamo(i: int, k: int, area: int) -> float:
    """Return E‖(Σ_{ι≤i} m̄_ι) ⊙ m̄_{i+1}‖₀ = k (1 − (1 − k / A)^{i+1}) for masks as in ``expected_mmo``."""
    return k * (1 - (1 - k / area) ** (i + 1))


def expected_cma(i: int, k: int, area: int) -> float:
    """Return E‖Σ_{ι≤i} m̄_ι‖₀ = A (1 − (1 − k / A)^{i+1}) for masks as in ``expected_mmo``."""
    return area * (1 - (1 - k / area) ** (i + 1))


def _mask_list(masks: Tensor) -> tuple[Tensor, ...]:
    """Check the masks, and return those of each iteration, ``[N, H, W]``."""
    if masks.dtype != torch.bool or masks.ndim != 4 or masks.shape[1] < 1:
        raise ValueError(
            f"masks: found {masks.dtype} {list(masks.shape)}, expected torch.bool [N, I, H, W] with I of at least 1"
        )
    return masks.unbind(1)


def _area(mask: Tensor) -> Tensor:
    return mask.flatten(1).sum(1)


def _stack_columns(columns: list[Tensor], masks: Tensor) -> Tensor:
    """Stack columns to ``[N, columns]``; a single mask has no overlap and therefore no column."""
    if not columns:
        return masks.new_empty((len(masks), 0), dtype=torch.int64)
    return torch.stack(columns, dim=1)

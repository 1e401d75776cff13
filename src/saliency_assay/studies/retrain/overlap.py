"""How far the masks of consecutive iterations overlap (Palacio et al., IteROAR, section 3).

Masks are m̄, True where a pixel is occluded. ‖·‖₀ counts entries that are not 0, so the sums of Eqs. 2 and 4 are unions.
"""

import itertools

import torch
from torch import Tensor


def mmo(masks: Tensor) -> Tensor:
    """‖m̄_i ⊙ m̄_{i+1}‖₀ of masks bool ``[N, I, H, W]`` in their order, pixels, int64 ``[N, I − 1]``.

    The mean over images and i is MMO (Eq. 1). From 0 to the size of a mask; 0 says that the map left what was occluded.

    Raises:
        ValueError: masks of another type or shape.
    """
    each = _checked(masks)
    return _stacked([_area(one & following) for one, following in itertools.pairwise(each)], masks)


def mamo(masks: Tensor) -> Tensor:
    """‖(Σ_{ι≤i} m̄_ι) ⊙ m̄_{i+1}‖₀ of masks as for ``mmo``, pixels, int64 ``[N, I − 1]``.

    The mean over images and i is MAMO (Eq. 2). At least ``mmo``, at most the size of mask i + 1.

    Raises:
        ValueError: as ``mmo``.
    """
    each = _checked(masks)
    covered, found = each[0].clone(), []
    for following in each[1:]:
        found.append(_area(covered & following))
        covered |= following
    return _stacked(found, masks)


def cma(masks: Tensor) -> Tensor:
    """‖Σ_{ι≤i} m̄_ι‖₀ of masks as for ``mmo``, pixels, int64 ``[N, I]``: what images lack after each iteration.

    The last column is CMA (Eq. 4). At most (i + 1) · k for masks of k pixels, which disjoint masks reach.

    Raises:
        ValueError: as ``mmo``.
    """
    each = _checked(masks)
    covered, found = torch.zeros_like(each[0]), []
    for mask in each:
        covered |= mask
        found.append(_area(covered))
    return _stacked(found, masks)


def pairwise(masks: Tensor) -> Tensor:
    """‖m̄_i ⊙ m̄_n‖₀ for all i and n of masks as for ``mmo``, pixels, int64 ``[N, I, I]`` (Eq. 3).

    Symmetric; the diagonal holds the size of each mask.

    Raises:
        ValueError: as ``mmo``.
    """
    _checked(masks)
    found = masks.new_empty((len(masks), masks.shape[1], masks.shape[1]), dtype=torch.int64)
    # Image by image, so that float64, exact for any number of pixels, is never held for more than one.
    for row, image in zip(found, masks.flatten(2), strict=True):
        values = image.double()
        row.copy_(values @ values.T)
    return found


def expected_mmo(k: int, area: int) -> float:
    """E‖m̄_i ⊙ m̄_{i+1}‖₀ = k² / A for independent masks of exactly ``k`` of ``area`` pixels, all equally likely.

    A pixel is in each mask with chance k / A, and the expectation of a sum needs no independence of pixels.
    """
    return k * k / area


def expected_mamo(i: int, k: int, area: int) -> float:
    """E‖(Σ_{ι≤i} m̄_ι) ⊙ m̄_{i+1}‖₀ = k (1 − (1 − k / A)^{i+1}) for masks as in ``expected_mmo``."""
    return k * (1 - (1 - k / area) ** (i + 1))


def expected_cma(i: int, k: int, area: int) -> float:
    """E‖Σ_{ι≤i} m̄_ι‖₀ = A (1 − (1 − k / A)^{i+1}) for masks as in ``expected_mmo``."""
    return area * (1 - (1 - k / area) ** (i + 1))


def _checked(masks: Tensor) -> tuple[Tensor, ...]:
    """The masks of each iteration, ``[N, H, W]``."""
    if masks.dtype != torch.bool or masks.ndim != 4 or masks.shape[1] < 1:
        raise ValueError(
            f"masks: found {masks.dtype} {list(masks.shape)}, expected torch.bool [N, I, H, W] with I of at least 1"
        )
    return masks.unbind(1)


def _area(mask: Tensor) -> Tensor:
    return mask.flatten(1).sum(1)


def _stacked(columns: list[Tensor], masks: Tensor) -> Tensor:
    """``[N, columns]``; of a single mask there is no overlap, and so no column."""
    if not columns:
        return masks.new_empty((len(masks), 0), dtype=torch.int64)
    return torch.stack(columns, dim=1)

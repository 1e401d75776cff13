"""Reductions of raw maps ``[N, C, H, W]`` to one value per pixel, ``[N, H, W]``."""

from collections.abc import Callable, Mapping
from math import ceil, floor
from types import MappingProxyType

import torch
from torch import Tensor


def reduce(maps: Tensor, reduction: str) -> Tensor:
    """Reduce raw maps ``[N, C or 1, H, W]`` to ``[N, H, W]`` of the same type by the reduction of that name.

    A map with a value that is not finite becomes NaN everywhere, so that no metric scores a part of it.

    Raises:
        ValueError: unknown reduction, or maps of another shape.
    """
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction: found {reduction!r}, valid: {', '.join(REDUCTIONS)}")
    if maps.ndim != 4:
        raise ValueError(f"maps: found {list(maps.shape)}, expected [N, C, H, W]")
    finite = maps.isfinite().flatten(1).all(1)
    return torch.where(finite[:, None, None], REDUCTIONS[reduction](maps), torch.nan)


def _positive_sum(maps: Tensor) -> Tensor:
    return maps.clamp(min=0).sum(1)


def _visual(maps: Tensor) -> Tensor:
    """Return BAM's map e: the positive sum, clipped at the map's 99th percentile, scaled to [0, 1]; NaN if constant.

    A map that is constant up to rounding counts as constant: upsampling one value gives pixels that differ in the last
    bits, and min–max scaling would turn this rounding error into a picture.
    """
    flat = _positive_sum(maps).flatten(1)
    low, high = flat.amin(1, keepdim=True), percentile(flat, 99)[:, None]
    is_rankable = high - low > 16 * torch.finfo(maps.dtype).eps * high
    scaled = torch.where(is_rankable, (flat.minimum(high) - low) / (high - low), torch.nan)
    return scaled.reshape(maps[:, 0].shape)


REDUCTIONS: Mapping[str, Callable[[Tensor], Tensor]] = MappingProxyType(
    {
        "sum": lambda maps: maps.sum(1),
        "abs_sum": lambda maps: maps.abs().sum(1),
        "abs_max": lambda maps: maps.abs().amax(1),
        "positive_sum": _positive_sum,
        "squared_sum": lambda maps: maps.square().sum(1),
        "visual": _visual,
    }
)


def percentile(values: Tensor, percent: float) -> Tensor:
    """Return the percentile of each row of ``[N, P]``, ``[N]``, linear between ranks like ``numpy.percentile``.

    ``torch.quantile`` accepts at most 2²⁴ values in total, which is 334 maps of 224 × 224 pixels.
    """
    rank = percent / 100 * (values.shape[1] - 1)
    # Only the values from this rank up, 1 % of them in BAM's reduction, instead of sorting all.
    top = values.topk(values.shape[1] - floor(rank), dim=1).values
    below, above = top[:, -1], top[:, -1 - (ceil(rank) - floor(rank))]
    return below + (above - below) * (rank - floor(rank))

"""Scores of a batch of images."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Scored:
    """Scores, and the curves that figures plot."""

    scores: Mapping[tuple[str, str], Tensor]
    """Float64 ``[N]`` by the score's registered name and its variant, which is empty if there is only one. NaN where
    the metric is not defined."""
    curves: Mapping[str, Tensor] = field(default_factory=dict)
    """Float64 ``[N, S]``, or with more axes, by name."""


def check_explained(explained: Tensor, maps: Tensor, *, summed: bool = False) -> Tensor:
    """Return the maps that ``explain`` has computed if they can be compared with ``maps``.

    Raises:
        ValueError: they are of another shape; if both are ``summed`` over channels, of other images or another size.
    """
    differs = explained.shape[2:] != maps.shape[2:] or len(explained) != len(maps)
    if differs or not (summed or explained.shape == maps.shape):
        raise ValueError(
            f"explain: returned {list(explained.shape)}, expected {list(maps.shape)} like the maps, which must be as "
            "the method returns them"
        )
    return explained


def is_rankable(saliency: Tensor) -> Tensor:
    """Return True for each map ``[N, H, W]`` that is finite and not constant, so that it can rank pixels, bool ``[N]``.

    A map that is constant up to rounding counts as constant: upsampling one value gives pixels that differ in the last
    bits.
    """
    return _is_finite_nonconstant(saliency.flatten(1))


def nan_unless(defined: Tensor, scores: Tensor) -> Tensor:
    """Return ``scores``, ``[N]`` or ``[N, …]``, with NaN for images that are not ``defined``, bool ``[N]``."""
    shape = (-1, *[1] * (scores.ndim - 1))
    return torch.where(defined.reshape(shape), scores, torch.nan)


def correlation(first: Tensor, second: Tensor) -> Tensor:
    """Compute Pearson's correlation along the last axis of two float64 tensors.

    It is NaN where either tensor is not finite or is constant up to rounding.
    """
    defined = _is_finite_nonconstant(first) & _is_finite_nonconstant(second)
    first, second = (values - values.mean(-1, keepdim=True) for values in (first, second))
    rho = (first * second).sum(-1) / (first.norm(dim=-1) * second.norm(dim=-1))
    return torch.where(defined, rho.clamp(-1, 1), torch.nan)  # rounding can exceed ±1


def spearman(first: Tensor, second: Tensor) -> Tensor:
    """Compute Spearman's ρ of two maps ``[N, H, W]`` each, or ``[N, S]``, with mean ranks for equal values, ``[N]``."""
    return correlation(mean_ranks(first.flatten(1)), mean_ranks(second.flatten(1)))


def mean_ranks(values: Tensor) -> Tensor:
    """Return the ranks from 1 along each row of ``[N, P]``, the mean rank for equal values, float64."""
    ordered = values.sort(dim=1).values
    below = torch.searchsorted(ordered, values.contiguous())
    not_above = torch.searchsorted(ordered, values.contiguous(), right=True)
    return (below + not_above + 1).double() / 2  # the mean of the ranks from below + 1 to not_above


def _is_finite_nonconstant(values: Tensor) -> Tensor:
    """Return True where the values along the last axis are finite and differ by more than rounding."""
    low, high = values.amin(-1), values.amax(-1)
    # 16 ε: a few roundings of the largest magnitude, as interpolation of equal values has.
    rounding = 16 * torch.finfo(values.dtype).eps * torch.maximum(low.abs(), high.abs())
    return values.isfinite().all(-1) & (high - low > rounding)

"""Scores of a batch of images."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Scored:
    """Scores, and the curves behind them where a figure shows them."""

    scores: Mapping[tuple[str, str], Tensor]
    """Float64 ``[N]`` by the score's registered name and its variant, empty where there is only one. NaN where the
    metric is not defined."""
    curves: Mapping[str, Tensor] = field(default_factory=dict)
    """Float64 ``[N, S]``, or of more axes, by name."""


def is_rankable(saliency: Tensor) -> Tensor:
    """Return whether each map ``[N, H, W]`` can order or weigh pixels, bool ``[N]``: it is finite and not constant.

    Constant up to rounding is constant: upsampling one value gives pixels that differ in the last bits.
    """
    return _spreads(saliency.flatten(1))


def nan_unless(defined: Tensor, scores: Tensor) -> Tensor:
    """``scores``, ``[N]`` or ``[N, …]``, with NaN for images that are not ``defined``, bool ``[N]``."""
    shape = (-1, *[1] * (scores.ndim - 1))
    return torch.where(defined.reshape(shape), scores, torch.nan)


def correlation(first: Tensor, second: Tensor) -> Tensor:
    """Pearson's correlation along the last axis of two float64 tensors, NaN where either is constant up to rounding."""
    defined = _spreads(first) & _spreads(second)
    first, second = (values - values.mean(-1, keepdim=True) for values in (first, second))
    found = (first * second).sum(-1) / (first.norm(dim=-1) * second.norm(dim=-1))
    return torch.where(defined, found.clamp(-1, 1), torch.nan)


def _spreads(values: Tensor) -> Tensor:
    """Return whether the last axis holds finite values that differ by more than rounding."""
    low, high = values.amin(-1), values.amax(-1)
    rounding = 16 * torch.finfo(values.dtype).eps * torch.maximum(low.abs(), high.abs())
    return values.isfinite().all(-1) & (high - low > rounding)

"""Maps that are degraded step by step, so that their order of quality is known."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

REMOVED = 0.5
"""Share of the pixels that the highest level of ``removal`` removes."""
PATCHES = 8
"""Patches along the shorter side of the image in ``shuffle``."""
BLUR = 0.25
"""Standard deviation of the highest level of ``blur``, in shorter sides of the image."""


@dataclass(frozen=True)
class Degraded:
    """A method whose maps are degraded; it is called as the method itself."""

    method: Callable[..., Tensor]
    degradation: str
    level: float
    """In [0, 1]; 0 leaves maps unchanged."""
    seed: int

    def __call__(self, *arguments: Any, **keywords: Any) -> Tensor:
        """Return the degraded maps ``[N, C or 1, H, W]`` of the method."""
        maps = self.method(*arguments, **keywords)
        return degrade(maps, self.degradation, self.level, seed=self.seed)


def degrade(maps: Tensor, degradation: str, level: float, *, seed: int) -> Tensor:
    """Return maps ``[N, C, H, W]`` degraded to ``level``, in [0, 1]; 0 returns them unchanged.

    ``noise`` mixes a map with its own values in random order: (1 − level) · map + level · permuted map. ``shuffle``
    exchanges a share ``level`` of its patches. ``removal`` gives the highest pixels, a share of ``REMOVED`` · level,
    the lowest value of the map. ``blur`` is Gaussian. A higher level changes the same pixels and further ones. The
    order of pixels and patches depends only on ``seed`` and the size of the map, so that a metric that recomputes a
    map degrades it in the same way.
    """
    return maps if level == 0 else DEGRADE[degradation](maps, level, torch.Generator().manual_seed(seed))


def _noise(maps: Tensor, level: float, generator: torch.Generator) -> Tensor:
    values = maps.flatten(2)
    order = torch.randperm(values.shape[2], generator=generator).to(maps.device)
    return ((1 - level) * values + level * values[:, :, order]).reshape(maps.shape)


def _shuffle(maps: Tensor, level: float, generator: torch.Generator) -> Tensor:
    """Exchange patches in a cycle; pixels beyond the last complete patch stay."""
    height, width = maps.shape[2:]
    side = max(1, min(height, width) // PATCHES)
    rows, columns = height // side, width // side
    order = torch.randperm(rows * columns, generator=generator)
    chosen = order[: max(2, round(level * len(order)))].tolist()
    result = maps.clone()
    for target, source in zip(chosen, [*chosen[1:], chosen[0]], strict=True):
        (top, left), (from_top, from_left) = (
            (number // columns * side, number % columns * side) for number in (target, source)
        )
        result[:, :, top : top + side, left : left + side] = maps[
            :, :, from_top : from_top + side, from_left : from_left + side
        ]
    return result


def _removal(maps: Tensor, level: float, generator: torch.Generator) -> Tensor:
    """Give the highest pixels the value of the lowest one; pixels with several channels are ordered by their sum."""
    values = maps.flatten(2)
    order = values.sum(1).argsort(dim=1, descending=True, stable=True)
    removed = order[:, : round(REMOVED * level * order.shape[1])]
    channels = values.shape[1]
    lowest = values.gather(2, order[:, None, -1:].expand(-1, channels, 1))
    places = removed[:, None].expand(-1, channels, -1)
    return values.scatter(2, places, lowest.expand(places.shape)).reshape(maps.shape)


def _blur(maps: Tensor, level: float, generator: torch.Generator) -> Tensor:
    sigma = BLUR * level * min(maps.shape[2:])
    for axis in (2, 3):
        size = maps.shape[axis]
        radius = min(ceil(3 * sigma), size - 1)
        offsets = torch.arange(-radius, radius + 1, dtype=maps.dtype, device=maps.device)
        weights = torch.exp(-0.5 * (offsets / sigma) ** 2)
        widths = (0, 0, radius, radius) if axis == 2 else (radius, radius, 0, 0)
        windows = pad(maps, widths, mode="reflect").unfold(axis, 2 * radius + 1, 1)
        maps = windows @ (weights / weights.sum())
    return maps


DEGRADE = {"noise": _noise, "shuffle": _shuffle, "removal": _removal, "blur": _blur}

"""Sparseness, complexity and effective complexity against closed forms and plain loops."""

from math import log
from typing import Any

import numpy as np
import pytest
import torch
from support import exact, generator
from torch import Tensor

from saliency_assay.metrics.concentration import complexity, effective_complexity, sparseness

PIXELS = 12


def score(metric: Any, maps: Tensor, **parameters: float) -> np.ndarray:
    images, targets = torch.zeros(len(maps), 3, *maps.shape[2:]), torch.zeros(len(maps), dtype=torch.int64)
    scored = metric(lambda pixels: pixels, images, targets, maps, generator=generator(), **parameters)
    [values] = scored.scores.values()
    return values.numpy()


def spread_evenly(pixels: int) -> Tensor:
    """A map ``[1, 1, 3, 4]`` with the same value at this number of pixels, of alternating sign, and 0 elsewhere."""
    values = torch.zeros(PIXELS, dtype=torch.float64)
    values[:pixels] = 0.3 * (-1.0) ** torch.arange(pixels)
    return values.reshape(1, 1, 3, 4)


@pytest.mark.parametrize("pixels", [1, 5, PIXELS])
def test_equal_pixels(pixels: int) -> None:
    maps = spread_evenly(pixels)
    exact(score(sparseness, maps), np.array([1 - pixels / PIXELS]))
    exact(score(complexity, maps), np.array([log(pixels)]))
    exact(score(effective_complexity, maps), np.array([pixels]))


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_plain_loops(unit: float) -> None:
    maps = torch.randn(5, 3, 3, 4, generator=generator(3), dtype=torch.float64) * unit
    gini, entropy = [], []
    for raw in maps.numpy():
        magnitudes = np.abs(raw).sum(0).flatten().tolist()
        differences = sum(abs(one - other) for one in magnitudes for other in magnitudes)
        gini.append(differences / (2 * PIXELS * sum(magnitudes)))
        shares = [value / sum(magnitudes) for value in magnitudes]
        entropy.append(-sum(share * log(share) for share in shares))
    exact(score(sparseness, maps), np.array(gini))
    exact(score(complexity, maps), np.array(entropy))


@pytest.mark.parametrize("unit", [1e-9, -1e9])
def test_pixels_above_a_share_of_the_maximum(unit: float) -> None:
    maps = torch.arange(PIXELS, dtype=torch.float64).reshape(1, 1, 3, 4) * unit
    for threshold, pixels in ((0, 11), (1e-5, 11), (0.5, 6), (1, 0)):
        exact(score(effective_complexity, maps, threshold=threshold), np.array([pixels]))


def test_maps_without_shares() -> None:
    maps = torch.ones(3, 1, 3, 4)
    maps[0], maps[1, 0, 1, 1] = 0, torch.nan
    assert np.isnan(score(sparseness, maps)).tolist() == [True, True, False]
    assert np.isnan(score(complexity, maps)).tolist() == [True, True, False]
    assert np.isnan(score(effective_complexity, maps)).tolist() == [True, True, False]

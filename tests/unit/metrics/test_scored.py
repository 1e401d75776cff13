"""Functions shared by metrics: rankable maps and Pearson's correlation."""

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr
from support import generator

from saliency_assay.metrics.scored import Scored, correlation, is_rankable, nan_unless

NAN = float("nan")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_map_varies_unless_it_is_constant_up_to_rounding_or_not_finite(dtype: torch.dtype) -> None:
    maps = torch.randn(9, 4, 5, generator=generator()).to(dtype)
    step = torch.finfo(dtype).eps
    maps[1] = 0.3
    maps[2] = 0
    maps[3, 2, 2] = NAN
    maps[4, 0, 0] = torch.inf
    maps[5, 0, 0] = -torch.inf
    maps[6], maps[6, 1, 1] = 1, 1 + 8 * step  # a few last bits
    maps[7], maps[7, 1, 1] = -1, -1 + 64 * step
    maps[8], maps[8, 1, 1] = 0, 1e-30  # small, and all there is
    found = is_rankable(maps)
    assert found.dtype == torch.bool
    assert found.tolist() == [True, False, False, False, False, False, False, True, True]


def test_rounding_is_relative_to_the_greatest_size() -> None:
    step = torch.finfo(torch.float32).eps
    maps = torch.tensor([[[-1000.0, -1000 + 1000 * step]], [[-1000.0, -1000 + 64_000 * step]]])
    assert len(maps[0].unique()) == len(maps[1].unique()) == 2
    assert is_rankable(maps).tolist() == [False, True]


def test_an_upsampled_value_does_not_vary() -> None:
    one = torch.tensor([[[[0.1]]], [[[0.7]]]])
    maps = torch.nn.functional.interpolate(one, size=(13, 9), mode="bilinear")[:, 0]
    assert is_rankable(maps).tolist() == [False, False]


@pytest.mark.parametrize("shape", [(3,), (3, 4), (3, 2, 5)])
def test_scores_of_undefined_images_are_nan(shape: tuple[int, ...]) -> None:
    scores = torch.rand(shape, dtype=torch.float64, generator=generator())
    found = nan_unless(torch.tensor([True, False, True]), scores)
    assert found.shape == scores.shape
    assert found[1].isnan().all()
    assert torch.equal(found[[0, 2]], scores[[0, 2]])


@pytest.mark.parametrize("shape", [(7, 30), (2, 3, 5)])
def test_correlation_is_scipys(shape: tuple[int, ...]) -> None:
    first, second = torch.randn(2, *shape, dtype=torch.float64, generator=generator())
    second = first - 0.7 * second + 3
    found = correlation(first, second)
    assert found.dtype == torch.float64
    expected = np.empty(shape[:-1])
    for place in np.ndindex(*expected.shape):
        expected[place] = pearsonr(first[place].numpy(), second[place].numpy()).statistic
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_correlation_stays_within_one() -> None:
    first = torch.rand(500, 3, dtype=torch.float64, generator=generator())
    assert bool((correlation(first, 3 * first + 0.1) <= 1).all())
    assert bool((correlation(first, -0.3 * first) >= -1).all())
    np.testing.assert_allclose(correlation(first, 3 * first + 0.1), np.ones(500), rtol=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, 0.3, 0.7, -1 / 3, 1e6 + 0.1])
@pytest.mark.parametrize("count", [2, 3, 7, 100, 1000])
def test_correlation_with_a_constant_is_nan(value: float, count: int) -> None:
    """The mean of equal numbers need not be that number, to the last bit."""
    constant = torch.full((2, count), value, dtype=torch.float64)
    other = torch.rand(2, count, dtype=torch.float64, generator=generator())
    assert correlation(constant, other).isnan().all()
    assert correlation(other, constant).isnan().all()
    assert correlation(constant, constant).isnan().all()


def test_correlation_with_nan_is_nan_in_its_row_alone() -> None:
    first = torch.rand(3, 6, dtype=torch.float64, generator=generator())
    second = first.clone()
    second[1, 4] = NAN
    assert correlation(first, second).isnan().tolist() == [False, True, False]


def test_scored_needs_no_curves() -> None:
    scores = {("deletion", ""): torch.zeros(2, dtype=torch.float64)}
    assert Scored(scores).curves == {}

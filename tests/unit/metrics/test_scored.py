"""Functions shared by metrics: rankable maps and Pearson's correlation."""

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr
from support import generator

from saliency_assay.metrics.scored import correlation, is_rankable, nan_unless

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
    result = is_rankable(maps)
    assert result.dtype == torch.bool
    assert result.tolist() == [True, False, False, False, False, False, False, True, True]


@pytest.mark.parametrize("shape", [(3,), (3, 4), (3, 2, 5)])
def test_scores_of_undefined_images_are_nan(shape: tuple[int, ...]) -> None:
    scores = torch.rand(shape, dtype=torch.float64, generator=generator())
    result = nan_unless(torch.tensor([True, False, True]), scores)
    assert result.shape == scores.shape
    assert result[1].isnan().all()
    assert torch.equal(result[[0, 2]], scores[[0, 2]])


@pytest.mark.parametrize("shape", [(7, 30), (2, 3, 5)])
def test_correlation_is_scipys(shape: tuple[int, ...]) -> None:
    first, second = torch.randn(2, *shape, dtype=torch.float64, generator=generator())
    second = first - 0.7 * second + 3
    result = correlation(first, second)
    assert result.dtype == torch.float64
    expected = np.empty(shape[:-1])
    for place in np.ndindex(*expected.shape):
        expected[place] = pearsonr(first[place].numpy(), second[place].numpy()).statistic
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 + 0.1])
@pytest.mark.parametrize("count", [2, 7, 1000])
def test_correlation_with_a_constant_is_nan(value: float, count: int) -> None:
    """The mean of equal numbers need not be that number, to the last bit."""
    constant = torch.full((2, count), value, dtype=torch.float64)
    other = torch.rand(2, count, dtype=torch.float64, generator=generator())
    assert correlation(constant, other).isnan().all()
    assert correlation(other, constant).isnan().all()
    assert correlation(constant, constant).isnan().all()

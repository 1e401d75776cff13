"""Reductions of raw maps against plain NumPy, image by image."""

import numpy as np
import pytest
import torch

from saliency_assay.metrics.reductions import REDUCTIONS, percentile, reduce


def plain(raw: np.ndarray, reduction: str) -> np.ndarray:
    """One map ``[C, H, W]`` reduced pixel by pixel."""
    result = np.empty(raw.shape[1:], raw.dtype)
    for i, j in np.ndindex(*result.shape):
        values = raw[:, i, j]
        result[i, j] = {
            "sum": sum(values),
            "abs_sum": sum(abs(v) for v in values),
            "abs_max": max(abs(v) for v in values),
            "positive_sum": sum(v for v in values if v > 0),
            "squared_sum": sum(v * v for v in values),
            "visual": sum(v for v in values if v > 0),
        }[reduction]
    if reduction == "visual":
        clipped = np.clip(result, None, np.percentile(result, 99))
        result = (clipped - clipped.min()) / (clipped.max() - clipped.min())
    return result


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_reduction_equals_plain_numpy(reduction: str, channels: int, dtype: type[np.floating]) -> None:
    raw = np.random.default_rng(0).normal(size=(5, channels, 17, 13)).astype(dtype)
    found = reduce(torch.tensor(raw), reduction)
    assert found.dtype == torch.tensor(raw).dtype
    expected = np.stack([plain(image, reduction) for image in raw])
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(found.numpy(), expected, rtol=tolerance, atol=tolerance)


def test_a_worked_example() -> None:
    """Two channels, four pixels: one sums to less than its parts, one has a tie in size."""
    raw = torch.tensor([[[[1.0, -2.0], [3.0, 0.0]], [[-1.0, -1.0], [-3.0, 2.0]]]])
    expected = {
        "sum": [0, -3, 0, 2],
        "abs_sum": [2, 3, 6, 2],
        "abs_max": [1, 2, 3, 2],
        "positive_sum": [1, 0, 3, 2],
        "squared_sum": [2, 5, 18, 4],
        # The 99th percentile of 0, 1, 2, 3 lies at rank 2.97.
        "visual": [1 / 2.97, 0, 1, 2 / 2.97],
    }
    assert set(expected) == set(REDUCTIONS)
    for reduction, values in expected.items():
        np.testing.assert_allclose(reduce(raw, reduction).flatten(), values, rtol=1e-6)


def test_visual_fills_the_unit_interval_and_clips_one_percent() -> None:
    raw = torch.randn(6, 3, 20, 20, generator=torch.Generator().manual_seed(0))
    visual = reduce(raw, "visual")
    assert visual.amin((1, 2)).tolist() == [0] * 6
    assert visual.amax((1, 2)).tolist() == [1] * 6
    assert (visual == 1).sum((1, 2)).tolist() == [4] * 6  # 1 % of 400 pixels
    exact_multiple = reduce(raw * 1024, "visual")
    assert torch.equal(exact_multiple, visual)


CONSTANT = {
    "zero": torch.zeros(3, 20, 20),
    "constant": torch.full((3, 20, 20), 0.3),
    "negative": -torch.rand(3, 20, 20, generator=torch.Generator().manual_seed(0)),
    "three pixels of 400": torch.zeros(3, 20, 20)
    .flatten(1)
    .index_fill(1, torch.arange(3), 1.0)
    .reshape(3, 20, 20),
}


@pytest.mark.parametrize("kind", CONSTANT)
def test_visual_of_a_constant_map_is_nan_and_the_rest_of_the_batch_is_not(kind: str) -> None:
    other = torch.rand(2, 3, 20, 20, generator=torch.Generator().manual_seed(1))
    visual = reduce(torch.stack([other[0], CONSTANT[kind], other[1]]), "visual")
    assert visual.isnan().all((1, 2)).tolist() == [False, True, False]
    assert visual.isnan().any((1, 2)).tolist() == [False, True, False]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_value_that_is_not_finite_makes_its_map_nan(reduction: str, value: float) -> None:
    raw = torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    raw[1, 2, 4, 4] = value
    assert reduce(raw, reduction).isnan().flatten(1).all(1).tolist() == [False, True, False]
    assert reduce(raw, reduction)[::2].isfinite().all()


@pytest.mark.parametrize(("count", "size"), [(340, 224), (17, 1024)])
def test_visual_works_beyond_the_limit_of_torch_quantile(count: int, size: int) -> None:
    """More than 2²⁴ values in one call, most of them views of one map."""
    single = torch.rand(1, 1, size, size, generator=torch.Generator().manual_seed(2))
    assert count * single.numel() > 2**24
    visual = reduce(single.expand(count, 1, size, size), "visual")
    expected = plain_visual(single[0, 0].numpy())
    for i in (0, count - 1):
        np.testing.assert_allclose(visual[i].numpy(), expected, atol=1e-6)


def plain_visual(positive: np.ndarray) -> np.ndarray:
    high = np.percentile(positive, 99)
    return (np.minimum(positive, high) - positive.min()) / (high - positive.min())


@pytest.mark.parametrize("count", [1, 2, 5, 100, 101, 333])
@pytest.mark.parametrize("percent", [0, 50, 95, 99, 100])
def test_percentile_is_numpys(count: int, percent: float) -> None:
    values = np.random.default_rng(count).normal(size=(4, count)).round(1)  # rounding makes ties
    found = percentile(torch.tensor(values), percent)
    np.testing.assert_allclose(found.numpy(), np.percentile(values, percent, axis=1), rtol=1e-12)


def test_wrong_input_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^reduction: found 'max', valid: sum, abs_sum, abs_max, positive_sum, "
    ):
        reduce(torch.zeros(2, 3, 4, 4), "max")
    with pytest.raises(ValueError, match=r"^maps: found \[2, 4, 4\], expected \[N, C, H, W\]$"):
        reduce(torch.zeros(2, 4, 4), "sum")

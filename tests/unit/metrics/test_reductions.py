"""Reductions of raw maps against plain NumPy, image by image."""

import numpy as np
import pytest
import torch

from saliency_assay.metrics.reductions import REDUCTIONS, reduce


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
    reduced = reduce(torch.tensor(raw), reduction)
    assert reduced.dtype == torch.tensor(raw).dtype
    expected = np.stack([plain(image, reduction) for image in raw])
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(reduced.numpy(), expected, rtol=tolerance, atol=tolerance)


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


def test_visual_works_beyond_the_limit_of_torch_quantile() -> None:
    """More than 2²⁴ values in one call, most of them views of one map."""
    count, size = 17, 1024
    single = torch.rand(1, 1, size, size, generator=torch.Generator().manual_seed(2))
    assert count * single.numel() > 2**24
    visual = reduce(single.expand(count, 1, size, size), "visual")
    expected = plain_visual(single[0, 0].numpy())
    for i in (0, count - 1):
        np.testing.assert_allclose(visual[i].numpy(), expected, atol=1e-6)


def plain_visual(positive: np.ndarray) -> np.ndarray:
    high = np.percentile(positive, 99)
    return (np.minimum(positive, high) - positive.min()) / (high - positive.min())


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^reduction: found 'max', valid: sum, abs_sum\b"):
        reduce(torch.zeros(2, 3, 4, 4), "max")
    with pytest.raises(ValueError, match=r"^maps: found \[2, 4, 4\], expected \[N, C, H, W\]$"):
        reduce(torch.zeros(2, 4, 4), "sum")

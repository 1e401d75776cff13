"""Non-sensitivity against closed forms."""

import numpy as np
import pytest
import torch
from support import generator
from torch import Tensor, nn

from saliency_assay.metrics.faithfulness import single_pixels
from saliency_assay.metrics.non_sensitivity import non_sensitivity

SEED, SIDE = 2, 4
PIXELS = SIDE**2
TARGETS = torch.zeros(3, dtype=torch.int64)


class FirstPixels(nn.Module):
    """A logit that is the sum of the first ``count`` pixels of all channels, and a logit 0."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, images: Tensor) -> Tensor:
        total = images.flatten(2)[:, :, : self.count].sum((1, 2))
        return torch.stack([total, torch.zeros_like(total)], 1)


def scored(model: nn.Module, maps: Tensor, threshold: float = 1e-5, pixels: int = PIXELS) -> np.ndarray:
    images = torch.full((3, 2, SIDE, SIDE), 0.25, dtype=torch.float64)
    responses = single_pixels(
        model, images, TARGETS, generator=generator(SEED), pixels=pixels, fill="black", output="logit"
    )
    result = non_sensitivity(
        model, images, TARGETS, maps, generator=generator(SEED), responses=responses, threshold=threshold
    )
    return result.scores["non_sensitivity", ""].numpy()


def nonzero(counts: list[int], value: float = 1e-3) -> Tensor:
    """Maps of two channels that cancel, nonzero at the first pixels: as many as each of ``counts``."""
    places = torch.arange(PIXELS) < torch.tensor(counts)[:, None]
    values = places.double().reshape(-1, 1, SIDE, SIDE) * value
    return torch.cat([values, -values], 1)


def test_pixels_on_which_map_and_model_disagree_are_counted() -> None:
    expected = np.array([0, 4, 6]) / PIXELS
    np.testing.assert_array_equal(scored(FirstPixels(6), nonzero([6, 10, 0])), expected)
    # The scale of the map does not matter.
    np.testing.assert_array_equal(scored(FirstPixels(6), nonzero([6, 10, 0], 1e6)), expected)


def test_thresholds() -> None:
    """Each pixel changes the logit by 0.5; of the maps' nonzero values, one is ten times the others."""
    maps = nonzero([6, 10, 0])
    maps[:, 0, 0, 0] *= 19  # with the other channel, 20 against 2
    maps[2] = torch.nan
    for threshold, expected in ((0.05, [0, 4]), (0.1, [5, 5]), (0.5, [1, 1])):
        np.testing.assert_array_equal(
            scored(FirstPixels(6), maps, threshold), [*(np.array(expected) / PIXELS), np.nan]
        )


def test_a_sample_of_pixels() -> None:
    sampled = torch.randperm(PIXELS, generator=generator(SEED))[:5]
    expected = [((sampled < 6) ^ (sampled < count)).double().mean() for count in (6, 10, 0)]
    np.testing.assert_allclose(scored(FirstPixels(6), nonzero([6, 10, 0]), pixels=5), expected)


def test_responses_of_other_images() -> None:
    with pytest.raises(ValueError, match=r"^responses: found 3 images, expected 2"):
        scored(FirstPixels(6), nonzero([6, 10]))

"""Monotonicity against closed forms and plain loops."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from support import conv_classifier, cyclic_targets, exact, generator, random_images
from torch import Tensor, nn

from saliency_assay.metrics.monotonicity import monotonicity


class Weighted(nn.Module):
    """The logit of class 0 is a weighted sum of the pixels."""

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.weights = weights

    def forward(self, images: Tensor) -> Tensor:
        value = (images * self.weights).flatten(1).sum(1)
        return torch.stack([value, torch.zeros_like(value)], 1)


@pytest.mark.parametrize(("negative", "expected"), [(0, 1.0), (4, 12 / 16), (16, 0.0)])
def test_share_of_positive_weights(negative: int, expected: float) -> None:
    weights = torch.ones(16, dtype=torch.float64)
    weights[:negative] = -1
    model, maps = Weighted(weights.reshape(1, 4, 4)), torch.arange(16.0).reshape(1, 1, 4, 4).double()
    images, targets = torch.ones(1, 1, 4, 4, dtype=torch.float64), torch.zeros(1, dtype=torch.int64)
    scored = monotonicity(model, images, targets, maps, generator=generator(), steps="exact")
    exact(scored.scores["monotonicity", ""], np.array([expected]))


def test_pixels_equal_to_their_fill_decrease_nothing() -> None:
    """Whatever the rounding in a batch."""
    model, images, targets = conv_classifier(dtype=torch.float32), random_images(3).float(), cyclic_targets(3)
    images[:, :, :, 4:] = 0
    maps = torch.where(images.sum(1, keepdim=True) > 0, 1.0, 0.0) + 1e-3 * torch.rand_like(images)
    scored = monotonicity(model, images, targets, maps, generator=generator(), steps="exact")
    curve = scored.curves["curve"]
    black = 12 * 8  # inserted first
    steps = (curve.diff(dim=1)[:, black:] >= 0).double().sum(1) + black
    exact(scored.scores["monotonicity", ""], steps / 144)


@pytest.mark.parametrize("steps", [7, 500, "exact"])
def test_plain_loops(steps: int | str) -> None:
    model, images, targets = conv_classifier(), random_images(4), cyclic_targets(4)
    maps = torch.randn(4, 3, 12, 12, generator=generator(3), dtype=torch.float64)
    maps[3] = 1.0
    scored = monotonicity(model, images, targets, maps, generator=generator(), steps=steps)
    blocks = 144 if steps == "exact" else min(int(steps), 144)
    for image in range(3):
        values = maps[image].sum(0).flatten().tolist()
        order = sorted(range(144), key=lambda pixel: -values[pixel])
        shown = images[image].repeat(blocks + 1, 1, 1, 1)
        for step, block in enumerate(range(blocks, -1, -1)):
            for pixel in order[: int(np.floor(block * 144 / blocks + 0.5))]:
                shown[step, :, pixel // 12, pixel % 12] = 0
        with torch.no_grad():
            curve = model(shown).softmax(1)[:, targets[image]].tolist()
        exact(scored.curves["curve"][image], np.array(curve))
        increases = [after >= before for before, after in pairwise(curve)]
        exact(scored.scores["monotonicity", ""][image], np.array(np.mean(increases)))
    assert scored.scores["monotonicity", ""][3].isnan()

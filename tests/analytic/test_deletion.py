"""Deletion and insertion against closed forms and plain loops."""

from typing import Any

import numpy as np
import pytest
import torch
from support import generator, hard_case, output_of
from torch import Tensor, nn

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.aopc import aopc
from saliency_assay.metrics.deletion import deletion, insertion
from saliency_assay.metrics.fills import fill as fill_of

SIZE, PIXELS = 6, 36
BOTH = {"deletion": deletion, "insertion": insertion}


class Mean(nn.Module):
    """The logit of class 0 is the mean of all values: a linear output whose pixels count alike."""

    def forward(self, images: Tensor) -> Tensor:
        value = images.flatten(1).mean(1)
        return torch.stack([value, torch.zeros_like(value)], 1)


def plain_area(
    name: str, model: nn.Module, image: Tensor, fill: Tensor, raw: Tensor, target: int, steps: int | str
) -> tuple[float, list[float]]:
    values = raw.numpy().sum(0).flatten()
    order = sorted(range(PIXELS), key=lambda pixel: -values[pixel])
    blocks = PIXELS if steps == "exact" else min(int(steps), PIXELS)
    shares, curve = [], []
    for block in range(blocks + 1):
        count = int(np.floor(block * PIXELS / blocks + 0.5))
        shown = (image if name == "deletion" else fill).clone()
        for pixel in order[:count]:
            row, column = divmod(pixel, SIZE)
            shown[:, row, column] = (fill if name == "deletion" else image)[:, row, column]
        curve.append(output_of(model, shown, target))
        shares.append(count / PIXELS)
    area = 0.0
    for block in range(blocks):
        area += (shares[block + 1] - shares[block]) * (curve[block] + curve[block + 1]) / 2
    return area, curve


def test_deletion_and_aopc_summarize_the_same_curve_of_pixel_flipping() -> None:
    """Bach et al. (2015) plot the curve; deletion is the area under it, AOPC (Samek et al., 2017) its mean drop."""
    model, images, targets, maps = hard_case()
    inputs = (model, images[:3], targets[:3], maps[:3])
    scored = deletion(*inputs, generator=generator(4), steps="exact", fill="black")
    curve = scored.curves["curve"].double()
    area = (curve.sum(1) - (curve[:, 0] + curve[:, -1]) / 2) / PIXELS
    mean_drop = (curve[:, :1] - curve).sum(1) / (PIXELS + 1)
    (score,) = scored.scores.values()
    torch.testing.assert_close(score.double(), area, check_dtype=False)
    drops = aopc(*inputs, generator=generator(4), steps=PIXELS, every=PIXELS, fill="black").scores
    torch.testing.assert_close(drops["aopc_morf", f"L={PIXELS}"].double(), mean_drop, check_dtype=False)


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("steps", [1, 7, 100, "exact"])
def test_equals_plain_loops(name: str, steps: int | str) -> None:
    """Of blocks that are not equal, of single pixels, and of maps with ties, without a score and with a NaN."""
    model, images, targets, maps = hard_case()
    options: dict[str, Any] = {"steps": steps, "fill": "random"}
    scored = BOTH[name](model, images, targets, maps, generator=generator(4), **options)
    fills = fill_of("random", images, seeds=sample_seeds(5, 1, generator(4))).expand_as(images)
    for index in range(5):
        inputs = (model, images[index], fills[index], maps[index], int(targets[index]))
        area, curve = plain_area(name, *inputs, steps)
        if index > 2:
            area, curve = np.nan, [np.nan] * len(curve)
        np.testing.assert_allclose(float(scored.scores[name, ""][index]), area, atol=1e-12)
        np.testing.assert_allclose(scored.curves["curve"][index], curve, atol=1e-12)


def test_a_linear_output_of_equal_pixels_has_half_the_area() -> None:
    """Its curve is a straight line from the image's output to the fill's, whatever the order and the blocks."""
    images = torch.full((1, 1, SIZE, SIZE), 0.8, dtype=torch.float64)
    maps = torch.rand(1, 1, SIZE, SIZE, generator=generator(1), dtype=torch.float64)
    options: dict[str, Any] = {"steps": 5, "fill": "black", "output": "logit"}
    for name, function in BOTH.items():
        scored = function(Mean(), images, torch.tensor([0]), maps, generator=generator(), **options)
        assert float(scored.scores[name, ""]) == pytest.approx(0.4, abs=1e-12)
        ends = [0.8, 0.0] if name == "deletion" else [0.0, 0.8]
        np.testing.assert_allclose(scored.curves["curve"][0, [0, -1]], ends, atol=1e-15)

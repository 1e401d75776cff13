"""AOPC and its random baseline against closed forms and plain loops."""

import numpy as np
import pytest
import torch
from support import cyclic_targets, generator, hard_case, hard_maps, output_of, random_images, smooth_network
from torch import Tensor, nn

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.aopc import aopc, random_orders
from saliency_assay.metrics.fills import fill as fill_of

SIZE, PIXELS = 6, 36
MEAN = torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)
FEW = {"steps": 10, "every": 4}


class OnePixel(nn.Module):
    """The logit of class 0 is three times the gray pixel ``place``."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place

    def forward(self, images: Tensor) -> Tensor:
        value = 3 * images.flatten(1)[:, self.place]
        return torch.stack([value, torch.zeros_like(value)], 1)


def plain_curve(
    model: nn.Module, image: Tensor, fill: Tensor, order: list[int], target: int, output: str
) -> list[float]:
    current = image.clone()
    curve = [output_of(model, current, target, output)]
    for pixel in order[:10]:
        row, column = divmod(pixel, SIZE)
        current[:, row, column] = fill[:, row, column]
        curve.append(output_of(model, current, target, output))
    return curve


def plain_aopc(curve: list[float], length: int) -> float:
    total = 0.0
    for k in range(1, length + 1):
        total += curve[0] - curve[k]
    return total / (length + 1)


def test_a_model_that_reads_one_pixel_has_a_known_aopc() -> None:
    """It falls by 3x at the step of that pixel, so AOPC is (L − rank) / (L + 1) · 3x, and 0 if that is later."""
    images = random_images(2, 1, 4)
    maps = torch.arange(16.0, 0, -1, dtype=torch.float64).reshape(1, 1, 4, 4).repeat(2, 1, 1, 1)
    options = {"steps": 16, "every": 5, "fill": "black", "output": "logit"}
    scores = aopc(OnePixel(5), images, torch.tensor([0, 0]), maps, generator=generator(), **options).scores
    value = 3 * images[:, 0, 1, 1].numpy()
    for length in (5, 10, 15, 16):
        for name, steps in {"aopc_morf": max(length - 5, 0), "aopc_lerf": max(length - 10, 0)}.items():
            expected = steps / (length + 1) * value
            np.testing.assert_allclose(scores[name, f"L={length}"], expected, rtol=1e-12, atol=1e-15)
    assert len(scores) == 8


@pytest.mark.parametrize(("fill", "output"), [("mean", "probability"), ("random", "logit")])
def test_equals_plain_loops(fill: str, output: str) -> None:
    """Ties in reading order, reversed for LeRF; no score for a constant map or one with a NaN."""
    model, images, targets, maps = hard_case()
    options = {"mean": MEAN, "fill": fill, "output": output}
    scored = aopc(model, images, targets, maps, generator=generator(4), **options, **FEW)
    fills = fill_of(fill, images, mean=MEAN, seeds=sample_seeds(5, 2, generator(4))[::2]).expand_as(images)
    for index in range(5):
        values = maps[index].numpy().sum(0).flatten()
        order = sorted(range(PIXELS), key=lambda pixel, values=values: -values[pixel])
        for name, pixels in (("morf", order), ("lerf", order[::-1])):
            curve = plain_curve(model, images[index], fills[index], pixels, int(targets[index]), output)
            if index > 2:
                curve = [np.nan] * 11
            np.testing.assert_allclose(scored.curves[name][index], curve, atol=1e-12)
            for length in (4, 8, 10):
                score = float(scored.scores[f"aopc_{name}", f"L={length}"][index])
                np.testing.assert_allclose(score, plain_aopc(curve, length), atol=1e-12)
    assert len(scored.scores) == 6
    assert float(scored.scores["aopc_morf", "L=10"][:3].abs().min()) > 1e-4


def test_random_orders_equal_plain_loops() -> None:
    """With the random fill of the metric, and orders of each image's own."""
    model, images, targets = smooth_network(), random_images(3, size=SIZE), cyclic_targets(3)
    responses = random_orders(
        model, images, targets, generator=generator(4), fill="random", random_orders=4, **FEW
    )
    seeds = sample_seeds(3, 2, generator(4))
    fills = fill_of("random", images, seeds=seeds[::2]).expand_as(images)
    assert responses["random_aopc"].shape == (3, 4, 3)
    for index in range(3):
        child, curves = generator(seeds[2 * index + 1]), []
        for number in range(4):
            ranks = torch.randperm(PIXELS, generator=child).tolist()
            order = [ranks.index(rank) for rank in range(PIXELS)]
            curve = plain_curve(model, images[index], fills[index], order, int(targets[index]), "probability")
            expected = [plain_aopc(curve, length) for length in (4, 8, 10)]
            np.testing.assert_allclose(responses["random_aopc"][index, number], expected, atol=1e-12)
            curves.append(curve)
        np.testing.assert_allclose(responses["random_curve"][index], np.mean(curves, 0), atol=1e-12)


def test_more_steps_than_pixels_are_refused() -> None:
    inputs = smooth_network(), random_images(5, size=SIZE), cyclic_targets(5)
    options = {"generator": generator(), "steps": 37, "fill": "black"}
    with pytest.raises(ValueError, match=r"^steps: found 37\b.* 36\b"):
        aopc(*inputs, hard_maps(), **options)
    with pytest.raises(ValueError, match=r"^steps: found 37\b.* 36\b"):
        random_orders(*inputs, **options)

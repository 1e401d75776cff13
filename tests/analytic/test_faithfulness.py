"""Faithfulness against closed forms and plain loops."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from support import cyclic_targets, generator, hard_case, hard_maps, output_of, random_images, smooth_network
from torch import Tensor, nn

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.faithfulness import faithfulness, single_pixels
from saliency_assay.metrics.fills import fill as fill_of

SIZE, PIXELS = 6, 36
MEAN = torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)
KEY = ("faithfulness", "")


def linear(weights: Tensor, bias: float = 0.5) -> nn.Module:
    """The logit of class 0 is wᵀx + b, that of class 1 is 0."""
    layer = nn.Linear(weights.numel(), 2).double()
    layer.weight.data = torch.stack([weights.flatten(), torch.zeros(weights.numel(), dtype=torch.float64)])
    layer.bias.data = torch.tensor([bias, 0.0], dtype=torch.float64)
    return nn.Sequential(nn.Flatten(), layer).eval()


def score(model: nn.Module, images: Tensor, targets: Tensor, maps: Tensor, **options: Any) -> Tensor:
    responses = single_pixels(model, images, targets, generator=generator(4), mean=MEAN, **options)
    return faithfulness(model, images, targets, maps, generator=generator(4), responses=responses).scores[KEY]


def test_gradient_times_input_of_a_linear_output_is_faithful() -> None:
    """With black fill the fall at a pixel is its w·x. With the mean it is w·(x − mean)."""
    images, targets = random_images(3, size=SIZE), torch.zeros(3, dtype=torch.int64)
    weights = torch.randn(3, SIZE, SIZE, generator=generator(5), dtype=torch.float64)
    for fill, color in (("black", 0), ("mean", MEAN[:, None, None])):
        for pixels, sign in ((2, 1), (20, -1), (PIXELS, 1)):
            options: dict[str, Any] = {"pixels": pixels, "output": "logit", "fill": fill}
            scores = score(linear(weights), images, targets, sign * weights * (images - color), **options)
            np.testing.assert_allclose(scores, [sign] * 3, rtol=1e-10)


@pytest.mark.parametrize(("fill", "output"), [("random", "probability"), ("blur", "logit")])
def test_equals_plain_loops(fill: str, output: str) -> None:
    model, images, targets, maps = hard_case()
    options = {"pixels": 15, "fill": fill, "output": output}
    responses = single_pixels(model, images, targets, generator=generator(4), mean=MEAN, **options)
    scores = score(model, images, targets, maps, **options)
    fills = fill_of(fill, images, mean=MEAN, seeds=sample_seeds(5, 1, generator(4))).expand_as(images)

    for index in range(5):
        target, relevance, drops = int(targets[index]), [], []
        before = output_of(model, images[index], target, output)
        for pixel in responses["pixel"][index].tolist():
            row, column = divmod(pixel, SIZE)
            perturbed = images[index].clone()
            perturbed[:, row, column] = fills[index, :, row, column]
            drops.append(before - output_of(model, perturbed, target, output))
            relevance.append(sum(float(maps[index, channel, row, column]) for channel in range(3)))
        np.testing.assert_allclose(responses["drop"][index], drops, atol=1e-13)
        np.testing.assert_allclose(float(responses["original"][index]), before, atol=1e-13)
        expected = np.nan if index > 2 else stats.pearsonr(relevance, drops).statistic
        np.testing.assert_allclose(float(scores[index]), expected, atol=1e-10)


def test_pixels_are_one_set_for_all_images_and_batches() -> None:
    model, images, targets = smooth_network(), random_images(3, size=SIZE), cyclic_targets(3)

    def pixels(seed: int, count: int, images: Tensor = images) -> list[list[int]]:
        options: dict[str, Any] = {"generator": generator(seed), "pixels": count, "fill": "black"}
        return single_pixels(model, images, targets[: len(images)], **options)["pixel"].tolist()

    first, *others = pixels(4, 15)
    assert others == [first] * 2
    assert first == sorted(set(first))
    assert pixels(4, 15, images[2:]) == [first]
    assert pixels(5, 15)[0] != first
    assert pixels(4, PIXELS)[0] == list(range(PIXELS))


def test_undefined_scores_are_nan() -> None:
    """Relevance that is constant at the chosen pixels but not elsewhere, and a model that no pixel changes."""
    images, targets = random_images(2, size=SIZE), torch.zeros(2, dtype=torch.int64)
    model = smooth_network()
    chosen = single_pixels(model, images, targets, generator=generator(4), pixels=15, fill="black")["pixel"]
    elsewhere = torch.rand(2, 1, PIXELS, generator=generator(1), dtype=torch.float64)
    elsewhere.scatter_(2, chosen[:, None], 0.25)
    elsewhere = elsewhere.reshape(2, 1, SIZE, SIZE)
    assert score(model, images, targets, elsewhere, pixels=15, fill="black").isnan().all()
    varying = torch.rand(2, 1, SIZE, SIZE, generator=generator(1), dtype=torch.float64)
    assert score(model, images, targets, varying, pixels=15, fill="black").isfinite().all()
    blind = linear(torch.zeros(3, SIZE, SIZE, dtype=torch.float64))
    assert score(blind, images, targets, varying, pixels=15, fill="black").isnan().all()


def test_what_does_not_fit_is_refused() -> None:
    model, images, targets = smooth_network(), random_images(3, size=SIZE), cyclic_targets(3)
    with pytest.raises(ValueError, match=r"^pixels: found 100\b.* 36\b"):
        single_pixels(model, images, targets, generator=generator(), pixels=100, fill="black")
    responses = single_pixels(model, images[:2], targets[:2], generator=generator(), pixels=9, fill="black")
    with pytest.raises(ValueError, match=r"^responses: found 2 images, expected 3\b"):
        faithfulness(model, images, targets, hard_maps()[:3], generator=generator(), responses=responses)


def test_falls_that_differ_by_rounding_alone_are_constant() -> None:
    """Every pixel counts alike, but f(x) − f(x_i) is a difference of numbers near 1000."""
    images, targets = torch.full((1, 3, SIZE, SIZE), 0.7, dtype=torch.float64), torch.tensor([0])
    model, maps = linear(torch.full((3, SIZE, SIZE), 0.1, dtype=torch.float64), bias=1000.3), hard_maps()[:1]
    options: dict[str, Any] = {"pixels": 15, "fill": "black", "output": "logit"}
    responses = single_pixels(model, images, targets, generator=generator(), **options)
    np.testing.assert_allclose(responses["drop"], 0.21, rtol=1e-10)
    noise = 1e-13 * torch.randn(1, 15, generator=generator(), dtype=torch.float64)
    noisy = responses | {"drop": responses["drop"] + noise}
    for each in (responses, noisy):
        scores = faithfulness(model, images, targets, maps, generator=generator(), responses=each).scores
        assert scores[KEY].isnan().tolist() == [True]


def test_a_pixel_that_shows_its_fill_falls_by_exactly_nothing() -> None:
    """Whatever the place in a batch does to the last bits of an output."""
    images = torch.rand(2, 1, 4, 4, dtype=torch.float64, generator=generator(1))
    images[:, :, :2] = 0

    def predict(shown: Tensor) -> Tensor:
        noise = 1e-12 * torch.arange(len(shown), dtype=torch.float64)
        return torch.stack([shown.sum((1, 2, 3)) + noise, torch.zeros(len(shown), dtype=torch.float64)], 1)

    options: dict[str, Any] = {"generator": generator(), "pixels": 16, "fill": "black", "output": "logit"}
    drops = single_pixels(predict, images, torch.zeros(2, dtype=torch.int64), **options)["drop"]
    assert bool((drops[:, :8] == 0).all())
    assert bool((drops[:, 8:] > 0).all())

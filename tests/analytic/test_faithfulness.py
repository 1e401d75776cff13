"""Faithfulness against closed forms and plain loops."""

import numpy as np
import pytest
import torch
from scipy import stats
from support import cyclic_targets, generator, hard_maps, random_images, seen_batches, smooth_network
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


def some_weights() -> Tensor:
    return torch.randn(3, SIZE, SIZE, generator=generator(5), dtype=torch.float64)


def score(model: nn.Module, images: Tensor, targets: Tensor, maps: Tensor, **options: object) -> Tensor:
    responses = single_pixels(model, images, targets, generator=generator(4), mean=MEAN, **options)  # type: ignore[arg-type]
    return faithfulness(model, images, targets, maps, generator=generator(4), responses=responses).scores[KEY]


def test_gradient_times_input_of_a_linear_output_is_faithful() -> None:
    """With black fill the fall at a pixel is its w·x. With the mean it is w·(x − mean)."""
    images, weights, targets = random_images(3, size=SIZE), some_weights(), torch.zeros(3, dtype=torch.int64)
    for options, maps in (
        ({"fill": "black"}, weights * images),
        ({"fill": "mean"}, weights * (images - MEAN[:, None, None])),
    ):
        for pixels in (2, 20, PIXELS):
            for sign in (1, -1):
                given = {"pixels": pixels, "output": "logit", **options}
                found = score(linear(weights), images, targets, sign * maps, **given)
                np.testing.assert_allclose(found, [sign] * 3, rtol=1e-10)


@pytest.mark.parametrize("fill", ["black", "mean", "image_mean", "random", "blur"])
@pytest.mark.parametrize("output", ["probability", "logit"])
def test_equals_plain_loops(fill: str, output: str) -> None:
    model, images, targets, maps = (
        smooth_network(),
        random_images(5, size=SIZE),
        cyclic_targets(5),
        hard_maps(),
    )
    options = {"pixels": 15, "fill": fill, "output": output}
    responses = single_pixels(model, images, targets, generator=generator(4), mean=MEAN, **options)
    found = score(model, images, targets, maps, **options)
    fills = fill_of(fill, images, mean=MEAN, seeds=sample_seeds(5, 1, generator(4))).expand_as(images)

    def ask(image: Tensor, target: int) -> float:
        with torch.no_grad():
            logits = model(image[None])[0].numpy()
        return float(logits[target] if output == "logit" else np.exp(logits[target]) / np.exp(logits).sum())

    assert responses["pixel"].dtype == torch.int64
    assert responses["drop"].dtype == torch.float64
    for index in range(5):
        target, relevance, drops = int(targets[index]), [], []
        for pixel in responses["pixel"][index].tolist():
            row, column = divmod(pixel, SIZE)
            perturbed = images[index].clone()
            perturbed[:, row, column] = fills[index, :, row, column]
            drops.append(ask(images[index], target) - ask(perturbed, target))
            relevance.append(sum(float(maps[index, channel, row, column]) for channel in range(3)))
        np.testing.assert_allclose(responses["drop"][index], drops, atol=1e-13)
        np.testing.assert_allclose(
            float(responses["original"][index]), ask(images[index], target), atol=1e-13
        )
        expected = np.nan if index > 2 else stats.pearsonr(relevance, drops).statistic
        np.testing.assert_allclose(float(found[index]), expected, atol=1e-10)


def test_pixels_are_one_set_for_all_images_and_batches() -> None:
    model, images, targets = smooth_network(), random_images(5, size=SIZE), cyclic_targets(5)
    serial = generator(4)
    parts = [
        single_pixels(model, *part, generator=serial, pixels=15, fill="random")
        for part in zip(images.split(2), targets.split(2), strict=True)
    ]
    whole = single_pixels(model, images, targets, generator=generator(4), pixels=15, fill="random")
    assert set(whole) == {"pixel", "drop", "original"}
    for name in whole:
        joined = torch.cat([part[name] for part in parts])
        np.testing.assert_allclose(joined, whole[name], atol=1e-13)
    chosen = whole["pixel"][0].tolist()
    assert whole["pixel"].tolist() == [chosen] * 5
    assert chosen == sorted(set(chosen))
    assert len(chosen) == 15
    other = single_pixels(model, images, targets, generator=generator(5), pixels=15, fill="random")
    assert other["pixel"][0].tolist() != chosen
    every = single_pixels(model, images, targets, generator=generator(4), pixels=PIXELS, fill="black")
    assert every["pixel"][0].tolist() == list(range(PIXELS))


def test_undefined_scores_are_nan() -> None:
    """Relevance that is constant at the chosen pixels but not elsewhere, and a model that no pixel changes."""
    images, targets = random_images(2, size=SIZE), torch.zeros(2, dtype=torch.int64)
    model = smooth_network()
    chosen = single_pixels(model, images, targets, generator=generator(4), pixels=15, fill="black")["pixel"]
    elsewhere = torch.rand(2, 1, PIXELS, generator=generator(1), dtype=torch.float64)
    elsewhere.scatter_(2, chosen[:, None], 0.25)
    found = score(model, images, targets, elsewhere.reshape(2, 1, SIZE, SIZE), pixels=15, fill="black")
    assert found.isnan().tolist() == [True, True]
    varying = torch.rand(2, 1, SIZE, SIZE, generator=generator(1), dtype=torch.float64)
    assert score(model, images, targets, varying, pixels=15, fill="black").isfinite().all()
    rounded = 0.1 + 1e-16 * varying  # constant, as upsampling one value leaves it
    assert 0 < rounded.max() - rounded.min() < 1e-15
    assert score(model, images, targets, rounded, pixels=15, fill="black").isnan().tolist() == [True, True]
    blind = linear(torch.zeros(3, SIZE, SIZE, dtype=torch.float64))
    assert score(blind, images, targets, varying, pixels=15, fill="black").isnan().tolist() == [True, True]


def test_the_original_is_evaluated_once() -> None:
    model, images, targets = smooth_network(), random_images(2, size=SIZE), cyclic_targets(2)
    with seen_batches(model) as seen:
        single_pixels(model, images, targets, generator=generator(), pixels=15, fill="black")
    assert sum(map(len, seen)) == 2 * (1 + 15)


def test_what_does_not_fit_is_refused() -> None:
    model, images, targets = smooth_network(), random_images(3, size=SIZE), cyclic_targets(3)
    with pytest.raises(ValueError, match=r"^pixels: found") as error:
        single_pixels(model, images, targets, generator=generator(), pixels=100, fill="black")
    assert str(error.value) == "pixels: found 100, expected at most 36, the pixels of an image"
    responses = single_pixels(model, images[:2], targets[:2], generator=generator(), pixels=9, fill="black")
    with pytest.raises(ValueError, match=r"^responses: found") as error:
        faithfulness(model, images, targets, hard_maps()[:3], generator=generator(), responses=responses)
    assert str(error.value) == "responses: found 2 images, expected 3, as many as maps"


def test_falls_that_differ_by_rounding_alone_are_constant() -> None:
    """Every pixel counts alike, but f(x) − f(x_i) is a difference of numbers near 1000."""
    images, targets = torch.full((1, 3, SIZE, SIZE), 0.7, dtype=torch.float64), torch.tensor([0])
    model, maps = linear(torch.full((3, SIZE, SIZE), 0.1, dtype=torch.float64), bias=1000.3), hard_maps()[:1]
    options = {"pixels": 15, "fill": "black", "output": "logit"}
    responses = single_pixels(model, images, targets, generator=generator(), **options)  # type: ignore[arg-type]
    np.testing.assert_allclose(responses["drop"], 0.21, rtol=1e-10)
    noisy = responses | {
        "drop": responses["drop"] + 1e-13 * torch.randn(1, 15, generator=generator(), dtype=torch.float64)
    }
    for found in (responses, noisy):
        scores = faithfulness(model, images, targets, maps, generator=generator(), responses=found).scores
        assert scores[KEY].isnan().tolist() == [True]


def test_a_pixel_that_shows_its_fill_falls_by_exactly_nothing() -> None:
    """Whatever the place in a batch does to the last bits of an output."""
    images = torch.rand(2, 1, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    images[:, :, :2] = 0
    calls = 0

    def predict(shown: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        noise = 1e-12 * torch.arange(len(shown), dtype=torch.float64)
        return torch.stack([shown.sum((1, 2, 3)) + noise, torch.zeros(len(shown), dtype=torch.float64)], 1)

    asked = {"generator": torch.Generator().manual_seed(0), "pixels": 16, "fill": "black", "output": "logit"}
    found = single_pixels(predict, images, torch.zeros(2, dtype=torch.int64), **asked)
    assert calls > 1
    assert bool((found["drop"][:, :8] == 0).all())
    assert bool((found["drop"][:, 8:] > 0).all())

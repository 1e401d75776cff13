"""F-Fidelity against closed forms and a plain loop."""

from typing import Any

import numpy as np
import pytest
import torch
from support import conv_classifier, cyclic_targets, exact, generator, hard_maps, random_images, seen_batches
from torch import Tensor, nn

from saliency_assay.methods.sampling import sample_seeds, uniform
from saliency_assay.metrics.f_fidelity import f_fidelity
from saliency_assay.metrics.scored import Scored

MEAN = torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)
NAN = float("nan")
SCORES = ("f_fidelity_plus", "f_fidelity_minus")


class Threshold(nn.Module):
    """Predict class 0 if the weighted sum of an image's pixels is above the threshold, else class 1."""

    def __init__(self, weights: Tensor, threshold: float) -> None:
        super().__init__()
        self.weights, self.threshold = weights, threshold

    def forward(self, images: Tensor) -> Tensor:
        value = (images * self.weights).sum((1, 2, 3)) - self.threshold
        return torch.stack([value, torch.zeros_like(value)], 1)


def scored(
    model: nn.Module, images: Tensor, maps: Tensor, targets: Tensor | None = None, **parameters: Any
) -> Scored:
    """Scores of maps by a fine-tuned model, of class 0 by default."""
    targets = torch.zeros(len(images), dtype=torch.int64) if targets is None else targets

    def unused(images: Tensor) -> Tensor:
        raise AssertionError("the explained model was evaluated")

    found: Scored = f_fidelity(
        unused, images, targets, maps, generator=generator(5), finetuned_model=model, **parameters
    )
    return found


def plain_curve(
    model: nn.Module,
    image: Tensor,
    saliency: np.ndarray,
    target: int,
    orders: list[list[int]],
    fill: Tensor,
    output: str,
    sign: str,
    alpha: float,
    beta: float,
    points: int,
) -> list[float]:
    """FFid+ or FFid− at every explanation size, one image and one forward pass at a time."""

    def value(shown: Tensor) -> float:
        with torch.no_grad():
            logits = model(shown[None])[0]
        return float(logits.argmax() == target) if output == "accuracy" else float(logits.softmax(0)[target])

    pixels, curve = saliency.size, []
    by_relevance = sorted(range(pixels), key=lambda pixel: -saliency.flat[pixel])
    for point in range(1, points + 1):
        size = point * pixels // (points + 1)
        candidates = by_relevance[:size] if sign == "plus" else by_relevance[size:]
        count = min(round(alpha * len(candidates)), round(beta * pixels))
        values = []
        for order in orders:
            shown = image.clone()
            for pixel in [pixel for pixel in order if pixel in candidates][:count]:
                shown[:, pixel // image.shape[2], pixel % image.shape[2]] = fill
            values.append(value(shown))
        curve.append(value(image) - sum(values) / len(values))
    return curve


@pytest.mark.parametrize("output", ["accuracy", "probability"])
@pytest.mark.parametrize(
    ("fill", "points", "samples", "alpha_plus", "alpha_minus", "beta"),
    [("mean", 5, 3, 0.5, 0.5, 0.1), ("black", 4, 2, 0.3, 0.9, 0.6), ("mean", 1, 1, 1.0, 0.0, 1.0)],
)
def test_equals_a_plain_loop(
    output: str, fill: str, points: int, samples: int, alpha_plus: float, alpha_minus: float, beta: float
) -> None:
    model, images, maps, targets = conv_classifier(), random_images(5, size=6), hard_maps(), cyclic_targets(5)
    found = scored(
        model, images, maps, targets, mean=MEAN, fill=fill, points=points, samples=samples, alpha_plus=alpha_plus,
        alpha_minus=alpha_minus, beta=beta, output=output,
    )  # fmt: skip
    keys = uniform(sample_seeds(5, samples, generator(5)), images[:, :1]).reshape(5, samples, -1)
    color = MEAN if fill == "mean" else torch.zeros(3)
    for sign, alpha in (("plus", alpha_plus), ("minus", alpha_minus)):
        expected = []
        for index in range(5):
            orders = keys[index].argsort(dim=1).tolist()
            saliency, target = maps[index].sum(0).numpy(), int(targets[index])
            settings = (orders, color, output, sign, alpha, beta, points)
            curve = plain_curve(model, images[index], saliency, target, *settings)
            expected.append([NAN] * points if index > 2 else curve)  # constant, NaN
        curves = torch.tensor(expected, dtype=torch.float64)
        exact(found.curves[sign], curves, 1e-9, floor=1e-12)
        exact(found.scores[f"f_fidelity_{sign}", ""], curves.mean(1), 1e-9, floor=1e-12)


def test_without_limits_it_is_plain_fidelity() -> None:
    """All pixels of the explanation, or all others, are removed at once, whatever the random order."""
    model, images, maps = conv_classifier(), random_images(3, size=6), hard_maps()[:3]
    found = scored(
        model, images, maps, points=3, samples=2, alpha_plus=1.0, alpha_minus=1.0, beta=1.0, fill="black",
        output="probability",
    )  # fmt: skip
    order = maps.sum(1).flatten(1).argsort(dim=1, descending=True, stable=True)
    for point, size in enumerate((9, 18, 27)):
        explanation = torch.zeros(3, 36).scatter(1, order[:, :size], 1).reshape(3, 1, 6, 6)
        for sign, kept in (("plus", 1 - explanation), ("minus", explanation)):
            with torch.no_grad():
                before, after = (model(shown).softmax(1)[:, 0] for shown in (images, images * kept))
            exact(found.curves[sign][:, point], before - after, 1e-9, floor=1e-12)


@pytest.mark.parametrize("tolerated", range(0, 12, 2))
def test_a_model_that_counts_pixels(tolerated: int) -> None:
    """White pixels on black: class 0 as long as no more than ``tolerated`` are missing, wherever they are."""
    images, maps = torch.ones(2, 1, 10, 10), torch.randn(2, 1, 10, 10, generator=generator())
    model = Threshold(torch.ones(1), 100 - tolerated - 0.5)
    found = scored(
        model, images, maps, points=9, samples=3, alpha_plus=0.5, alpha_minus=0.2, beta=0.08, fill="black"
    )
    sizes = range(10, 100, 10)
    plus = [float(min(size / 2, 8) > tolerated) for size in sizes]
    minus = [float(min((100 - size) / 5, 8) > tolerated) for size in sizes]
    for sign, expected in (("plus", plus), ("minus", minus)):
        np.testing.assert_array_equal(found.curves[sign], [expected] * 2)
        np.testing.assert_array_equal(found.scores[f"f_fidelity_{sign}", ""], [np.mean(expected)] * 2)


def test_a_model_that_reads_one_pixel() -> None:
    """The pixel is lost with the probability that it is among the k removed pixels of its set: k / s or k / (d − s)."""
    weights = torch.zeros(1, 8, 8)
    weights[0, 2, 5] = 1
    maps = (
        torch.arange(64.0).flip(0).reshape(1, 1, 8, 8).roll((2, 5), (2, 3))
    )  # relevance rank 0 at this pixel
    saliency = torch.cat([maps, -maps])
    found = scored(
        Threshold(weights, 0.5), torch.ones(2, 1, 8, 8), saliency, points=7, samples=2000, beta=0.2, fill="black"
    )  # fmt: skip
    for sign, image, sizes in (("plus", 0, range(8, 64, 8)), ("minus", 1, range(56, 0, -8))):
        expected = [min(round(size / 2), 13) / size for size in sizes]
        np.testing.assert_allclose(found.curves[sign][image], expected, atol=4 * 0.5 / 2000**0.5)
        np.testing.assert_array_equal(found.curves[sign][1 - image], 0)


def test_a_misclassified_image_has_no_output_to_lose() -> None:
    model = Threshold(-torch.ones(1), -95.5)  # class 0 only if at least five of 100 pixels are missing
    maps = torch.randn(1, 1, 10, 10, generator=generator())
    found = scored(model, torch.ones(1, 1, 10, 10), maps, points=9, samples=2, fill="black")
    np.testing.assert_array_equal(found.scores["f_fidelity_plus", ""], [-1])


def test_removed_pixels_are_random_ones_of_the_set() -> None:
    """Of all passes: the right number of pixels, all in the set, each equally often, and others in each sample."""
    images, maps = torch.ones(1, 1, 6, 6), torch.arange(36.0).reshape(1, 1, 6, 6)
    model = Threshold(torch.ones(1), 0.5)
    with seen_batches(model) as seen:
        scored(
            model,
            images,
            maps,
            points=2,
            samples=300,
            alpha_plus=0.5,
            alpha_minus=0.25,
            beta=0.2,
            fill="black",
        )
    removed = torch.cat(seen)[:, 0].flatten(1) == 0
    assert not removed[-1].any()  # the original image
    passes = removed[:-1].reshape(300, 4, 36)
    sets = [range(24, 36), range(12, 36), range(24), range(12)]
    for number, (pixels, count) in enumerate(zip(sets, (6, 7, 6, 3), strict=True)):
        assert bool((passes[:, number].sum(1) == count).all())
        times = passes[:, number].sum(0).numpy()
        assert not times[[pixel for pixel in range(36) if pixel not in pixels]].any()
        share = count / len(pixels)
        np.testing.assert_allclose(
            times[list(pixels)], 300 * share, atol=5 * (300 * share * (1 - share)) ** 0.5
        )
        assert len(passes[:, number].unique(dim=0)) > 150


def test_maps_share_the_random_orders() -> None:
    """Half of the pixels are the explanation of one map and the rest of its negative."""
    model, images, maps = (
        conv_classifier(),
        random_images(3),
        torch.randn(3, 1, 12, 12, generator=generator()),
    )
    one, other = (
        scored(model, images, sign * maps, points=1, output="probability", mean=MEAN) for sign in (1, -1)
    )
    for first, second in (SCORES, SCORES[::-1]):
        np.testing.assert_array_equal(one.scores[first, ""], other.scores[second, ""])
    assert not torch.equal(one.scores[SCORES[0], ""], one.scores[SCORES[1], ""])


def test_a_better_explanation_scores_better_on_both() -> None:
    """The model needs 13 of 16 pixels; relevance of just these, of random and of all other pixels."""
    weights = torch.zeros(1, 12, 12)
    weights[0, 4:8, 4:8] = 1
    maps = torch.stack([weights, torch.rand(1, 12, 12, generator=generator()), -weights])
    maps += 1e-3 * torch.rand(1, 12, 12, generator=generator(1))
    found = scored(Threshold(weights, 12.5), torch.ones(3, 1, 12, 12), maps, fill="black")
    plus, minus = (found.scores[name, ""].tolist() for name in SCORES)
    assert plus[0] > plus[1] > plus[2]
    assert minus[0] < minus[1] < minus[2]


def test_an_output_that_is_not_finite_is_refused() -> None:
    images, maps = torch.ones(1, 1, 6, 6), torch.rand(1, 1, 6, 6)
    with pytest.raises(ValueError, match="is NaN or infinite"):
        scored(Threshold(torch.tensor([NAN]), 0), images, maps, fill="black", output="probability")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"points": 36}, "points, samples: found 36, 10, expected 1 to 35 points, fewer than the pixels of an image, "
         "and at least 1 sample"),
        ({"samples": 0}, "points, samples: found 19, 0, expected 1 to 35 points, fewer than the pixels of an image, "
         "and at least 1 sample"),
        ({"beta": 1.5}, "beta: found 1.5, expected a share in [0, 1]"),
        ({"alpha_minus": -0.1}, "alpha_minus: found -0.1, expected a share in [0, 1]"),
        ({"fill": "random"}, "fill: found 'random', valid: mean, black"),
        ({"output": "loss", "fill": "black"}, "output: found 'loss', valid: probability, logit, accuracy"),
        ({}, "mean: found none, expected the data set's mean [3] for fill 'mean'"),
    ],
)  # fmt: skip
def test_invalid_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011  # its text is compared
        scored(conv_classifier(), random_images(3, size=6), hard_maps()[:3], **parameters)
    assert str(error.value) == message

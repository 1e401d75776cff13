"""F-Fidelity against closed forms and a plain loop."""

from typing import Any

import numpy as np
import pytest
import torch
from support import conv_classifier, cyclic_targets, exact, generator, hard_maps, output_of, random_images
from torch import Tensor, nn

from saliency_assay.methods.sampling import sample_seeds, uniform
from saliency_assay.metrics.f_fidelity import f_fidelity
from saliency_assay.metrics.scored import Scored

MEAN = torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)
NAN = float("nan")


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

    return f_fidelity(
        unused, images, targets, maps, generator=generator(5), finetuned_model=model, **parameters
    )


def plain_curve(
    model: nn.Module, image: Tensor, saliency: np.ndarray, target: int, orders: list[list[int]], fill: Tensor,
    output: str, sign: str, alpha: float, beta: float, points: int,
) -> list[float]:  # fmt: skip
    """FFid+ or FFid− at every explanation size, one image and one forward pass at a time."""

    def value(shown: Tensor) -> float:
        with torch.no_grad():
            is_right = model(shown[None])[0].argmax() == target
        return float(is_right) if output == "accuracy" else output_of(model, shown, target)

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


@pytest.mark.parametrize(
    ("output", "fill", "points", "samples", "alpha_plus", "alpha_minus", "beta"),
    [
        ("accuracy", "mean", 5, 3, 0.5, 0.5, 0.1),
        ("probability", "black", 4, 2, 0.3, 0.9, 0.6),
        ("probability", "mean", 1, 1, 1.0, 0.0, 1.0),
    ],
)
def test_equals_a_plain_loop(
    output: str, fill: str, points: int, samples: int, alpha_plus: float, alpha_minus: float, beta: float
) -> None:
    model, images, maps, targets = conv_classifier(), random_images(5, size=6), hard_maps(), cyclic_targets(5)
    results = scored(
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
        exact(results.curves[sign], curves, 1e-9, floor=1e-12)
        exact(results.scores[f"f_fidelity_{sign}", ""], curves.mean(1), 1e-9, floor=1e-12)


@pytest.mark.parametrize("tolerated", [0, 4, 8])
def test_a_model_that_counts_pixels(tolerated: int) -> None:
    """White pixels on black: class 0 as long as no more than ``tolerated`` are missing, wherever they are."""
    images, maps = torch.ones(2, 1, 10, 10), torch.randn(2, 1, 10, 10, generator=generator())
    model = Threshold(torch.ones(1), 100 - tolerated - 0.5)
    results = scored(
        model, images, maps, points=9, samples=3, alpha_plus=0.5, alpha_minus=0.2, beta=0.08, fill="black"
    )
    sizes = range(10, 100, 10)
    plus = [float(min(size / 2, 8) > tolerated) for size in sizes]
    minus = [float(min((100 - size) / 5, 8) > tolerated) for size in sizes]
    for sign, expected in (("plus", plus), ("minus", minus)):
        np.testing.assert_array_equal(results.curves[sign], [expected] * 2)
        np.testing.assert_array_equal(results.scores[f"f_fidelity_{sign}", ""], [np.mean(expected)] * 2)


def test_a_misclassified_image_has_no_output_to_lose() -> None:
    model = Threshold(-torch.ones(1), -95.5)  # class 0 only if at least five of 100 pixels are missing
    maps = torch.randn(1, 1, 10, 10, generator=generator())
    results = scored(model, torch.ones(1, 1, 10, 10), maps, points=9, samples=2, fill="black")
    np.testing.assert_array_equal(results.scores["f_fidelity_plus", ""], [-1])


def test_points_that_do_not_fit_the_image_and_a_missing_mean_are_refused() -> None:
    inputs = conv_classifier(), random_images(3, size=6), hard_maps()[:3]
    with pytest.raises(ValueError, match=r"^points: found 36, expected at most 35\b"):
        scored(*inputs, points=36)
    with pytest.raises(ValueError, match=r"^mean: found none\b"):
        scored(*inputs)

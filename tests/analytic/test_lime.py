"""LIME against scikit-learn's ridge regression, captum and linear models, whose coefficients are known."""

from math import exp
from typing import Any

import captum.attr
import numpy as np
import pytest
import torch
from captum._utils.models.linear_model import SkLearnRidge
from scipy.spatial.distance import cosine
from sklearn.linear_model import Ridge
from support import (
    CLASSES,
    conv_classifier,
    cyclic_targets,
    exact,
    generator,
    random_images,
    with_random_state,
)
from torch import Tensor, nn

from saliency_assay.methods.lime import lime, proximity, sample_present
from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.methods.segments import segment

# Images that SLIC cuts into different numbers of segments.
IMAGES, TARGETS = random_images(3).roll(1, 0), cyclic_targets(3)
IMAGES[1] = IMAGES[1].round(decimals=0)
IMAGES[2, :, 4:] = 0.5


def samples_of(labels: Tensor, samples: int, seed: int = 0) -> list[np.ndarray]:
    """The presence of segments in the samples of each image, bool ``[samples, M]``."""
    counts = labels.flatten(1).amax(1) + 1
    exists = torch.arange(int(counts.max())) < counts[:, None]
    present = sample_present(exists, samples, sample_seeds(len(labels), 1, generator(seed)))
    return [rows[:, :count].numpy() for rows, count in zip(present, counts.tolist(), strict=True)]


def outputs(
    model: nn.Module, image: Tensor, target: int, label: Tensor, rows: np.ndarray, color: Tensor, output: str
) -> np.ndarray:
    """The target's output for each sample of one image, with its absent segments painted one by one."""
    values = []
    for row in rows:
        masked = image.clone()
        for number in np.flatnonzero(~row):
            masked[:, label == number] = color[:, None]
        with torch.no_grad():
            logits = model(masked[None])[0]
        values.append(float((logits.softmax(0) if output == "probability" else logits)[target]))
    return np.array(values)


def weights_of(rows: np.ndarray, width: float) -> np.ndarray:
    """The square root of exp(−D² / σ²), as in ``lime_image``; a sample without segments is at distance 1."""
    full = np.ones(rows.shape[1])
    distances = np.array([cosine(row, full) if row.any() else 1.0 for row in rows.astype(float)])
    return np.sqrt(np.exp(-(distances**2) / width**2))


def linear_model() -> nn.Module:
    model = nn.Sequential(nn.Flatten(), nn.Linear(IMAGES[0].numel(), CLASSES))
    return with_random_state(model, seed=1).requires_grad_(False)


def contributions(model: nn.Module, labels: Tensor) -> list[np.ndarray]:
    """w · x, summed over each segment of each image."""
    effects = (model[1].weight[TARGETS].reshape(IMAGES.shape) * IMAGES).sum(1)
    return [
        np.bincount(label.flatten(), effect.flatten()) for label, effect in zip(labels, effects, strict=True)
    ]


def painted(coefficients: list[np.ndarray], labels: Tensor) -> np.ndarray:
    return np.stack([values[label] for values, label in zip(coefficients, labels.numpy(), strict=True)])


@pytest.mark.parametrize("output", ["probability", "logit"])
@pytest.mark.parametrize(
    ("features", "baseline", "width", "ridge"),
    [("grid", "black", 0.25, 1.0), ("superpixels", "mean", 0.25, 1.0), ("superpixels", "black", 0.1, 0.01)],
)
def test_coefficients_are_those_of_ridge_regression(
    features: str, baseline: str, width: float, ridge: float, output: str
) -> None:
    model, labels = conv_classifier(), segment(IMAGES, features, 10)
    color = model.mean.flatten() if baseline == "mean" else torch.zeros(3, dtype=torch.float64)
    settings = {
        "features": features,
        "baseline": baseline,
        "kernel_width": width,
        "ridge": ridge,
        "output": output,
    }
    maps = lime(model, IMAGES, TARGETS, generator=generator(), segments=10, samples=60, **settings)
    expected = []
    for image, target, label, rows in zip(IMAGES, TARGETS, labels, samples_of(labels, 60), strict=True):
        values = outputs(model, image, int(target), label, rows, color, output)
        expected.append(Ridge(alpha=ridge).fit(rows, values, sample_weight=weights_of(rows, width)).coef_)
    exact(maps[:, 0], painted(expected, labels), 1e-8, floor=1e-11)
    if features == "superpixels":
        assert len({len(values) for values in expected}) >= 2


def test_maps_equal_captums() -> None:
    model, labels = conv_classifier(), segment(IMAGES, "superpixels", 10)
    maps = lime(model, IMAGES, TARGETS, generator=generator(), segments=10, samples=40, output="logit")

    def similarity(image: Tensor, masked: Tensor, sample: Tensor, **_: Any) -> float:
        distance = 1 - float(nn.functional.cosine_similarity(sample, torch.ones_like(sample)))
        return exp(-(distance**2) / (2 * 0.25**2))

    for i, rows in enumerate(samples_of(labels, 40)):
        replay = iter(torch.from_numpy(rows).double())
        explainer = captum.attr.Lime(
            model,
            interpretable_model=SkLearnRidge(alpha=1.0),
            similarity_func=similarity,
            perturb_func=lambda *_, replay=replay, **__: next(replay)[None],
        )
        mask = labels[i : i + 1, None].expand(1, 3, -1, -1)
        expected = explainer.attribute(
            IMAGES[i : i + 1], target=int(TARGETS[i]), feature_mask=mask, n_samples=40
        )
        exact(maps[i].expand(3, -1, -1), expected[0], 1e-5, floor=1e-8)  # captum's regression is in float32


@pytest.mark.parametrize("features", ["grid", "superpixels"])
def test_without_a_penalty_a_linear_model_has_its_contributions(features: str) -> None:
    model, labels = linear_model(), segment(IMAGES, features, 10)
    settings = {"features": features, "segments": 10, "samples": 60, "ridge": 1e-10, "output": "logit"}
    maps = lime(model, IMAGES, TARGETS, generator=generator(), **settings)
    expected = painted(contributions(model, labels), labels)
    exact(maps[:, 0], expected, 1e-7, floor=1e-9)
    assert np.ptp(expected) > 0.1


@pytest.mark.parametrize("ridge", [0.1, 3.0, 1e4])
def test_the_penalty_shrinks_the_contributions_of_a_linear_model(ridge: float) -> None:
    """φ = (G + λ I)⁻¹ G c, with c the contributions and G the weighted covariance of the samples."""
    model, labels = linear_model(), segment(IMAGES, "grid", 9)
    settings = {"features": "grid", "segments": 9, "samples": 50, "ridge": ridge, "output": "logit"}
    maps = lime(model, IMAGES, TARGETS, generator=generator(), **settings)
    expected = []
    for change, rows in zip(contributions(model, labels), samples_of(labels, 50), strict=True):
        weights = weights_of(rows, 0.25)
        centered = rows - weights @ rows / weights.sum()
        covariance = centered.T @ (weights[:, None] * centered)
        expected.append(np.linalg.solve(covariance + ridge * np.eye(9), covariance @ change))
    exact(maps[:, 0], painted(expected, labels), 1e-9)
    if ridge == 1e4:
        assert maps.abs().max() < 0.01 * max(np.abs(change).max() for change in contributions(model, labels))


def test_one_segment_is_shrunk_by_its_variance() -> None:
    """φ = c V / (V + λ), with V = Σ π (z − z̄)²."""
    model = linear_model()
    settings = {"features": "grid", "segments": 1, "samples": 20, "ridge": 1e-3, "output": "logit"}
    maps = lime(model, IMAGES, TARGETS, generator=generator(), **settings)
    labels = segment(IMAGES, "grid", 1)
    for found, change, rows in zip(maps, contributions(model, labels), samples_of(labels, 20), strict=True):
        weights, present = weights_of(rows, 0.25), rows[:, 0]
        mean = weights @ present / weights.sum()
        variance = weights @ (present - mean) ** 2
        exact(found, np.full((1, 12, 12), change[0] * variance / (variance + 1e-3)), 1e-10)


def test_samples_are_fair_and_begin_with_the_full_image() -> None:
    exists = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    present = sample_present(exists, 4000, [1, 2])
    assert present[0, 0].all()
    assert torch.equal(present[1, 0], exists[1])
    assert not present[1, :, 4:].any()
    share = present.double().mean(1)[exists]
    assert (share - 0.5).abs().max() < 4 * 0.5 / 4000**0.5
    assert len(present[0].unique(dim=0)) == 64
    assert not torch.equal(present[0, :, :4], present[1, :, :4])


def test_weights_are_those_of_the_cosine_distance() -> None:
    exists = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    present = sample_present(exists, 50, [3, 4])
    present[:, 7] = False  # the empty sample
    for width in (0.25, 2.0):
        found = proximity(present, exists, width)
        for weights, rows, count in zip(found, present.numpy(), (5, 3), strict=True):
            exact(weights, weights_of(rows[:, :count], width), 1e-12)


@pytest.mark.parametrize("sizes", [(1, 2), (1, 1, 1)], ids=str)
def test_any_split_gives_the_same_maps_of_superpixels(sizes: tuple[int, ...]) -> None:
    model, settings = conv_classifier(), {"features": "superpixels", "segments": 10, "samples": 30}
    counts = segment(IMAGES, "superpixels", 10).flatten(1).amax(1)
    assert len(counts.unique()) >= 2
    whole, serial = lime(model, IMAGES, TARGETS, generator=generator(), **settings), generator()
    parts = [
        lime(model, *part, generator=serial, **settings)
        for part in zip(IMAGES.split(sizes), TARGETS.split(sizes), strict=True)
    ]
    exact(torch.cat(parts), whole, 1e-9)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            {"samples": 0},
            "samples, kernel_width, ridge: found 0, 0.25, 1.0, expected at least 1, above 0 and above 0",
        ),
        (
            {"kernel_width": 0.0},
            "samples, kernel_width, ridge: found 1000, 0.0, 1.0, expected at least 1, above 0 and above 0",
        ),
        (
            {"ridge": 0.0},
            "samples, kernel_width, ridge: found 1000, 0.25, 0.0, expected at least 1, above 0 and above 0",
        ),
        ({"segments": 145}, "segments: found 145, expected 1 to 144, one for each pixel"),
        ({"features": "hexagons"}, "features: found 'hexagons', valid: grid, superpixels"),
        ({"output": "loss"}, "output: found 'loss', valid: probability, logit"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="found") as error:
        lime(conv_classifier(), IMAGES, TARGETS, generator=generator(), **setting)
    assert str(error.value) == message

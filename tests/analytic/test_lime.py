"""LIME against scikit-learn's ridge regression and a linear model, whose coefficients are known."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cosine
from sklearn.linear_model import Ridge
from support import (
    CLASSES,
    conv_classifier,
    cyclic_targets,
    exact,
    generator,
    output_of,
    random_images,
    with_random_state,
)
from torch import Tensor, nn

from saliency_assay.methods.lime import lime, sample_present
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
        values.append(output_of(model, masked, target, output))
    return np.array(values)


def weights_of(rows: np.ndarray, width: float) -> np.ndarray:
    """The square root of exp(−D² / σ²), as in ``lime_image``; a sample without segments is at distance 1."""
    full = np.ones(rows.shape[1])
    distances = np.array([cosine(row, full) if row.any() else 1.0 for row in rows.astype(float)])
    return np.sqrt(np.exp(-(distances**2) / width**2))


def painted(coefficients: list[np.ndarray], labels: Tensor) -> np.ndarray:
    return np.stack([values[label] for values, label in zip(coefficients, labels.numpy(), strict=True)])


@pytest.mark.parametrize(
    ("features", "baseline", "width", "ridge", "output"),
    [("grid", "mean", 0.25, 1.0, "probability"), ("superpixels", "black", 0.1, 0.01, "logit")],
)
def test_coefficients_are_those_of_ridge_regression(
    features: str, baseline: str, width: float, ridge: float, output: str
) -> None:
    model, labels = conv_classifier(), segment(IMAGES, features, 10)
    color = model.mean.flatten() if baseline == "mean" else torch.zeros(3, dtype=torch.float64)
    settings = {"features": features, "baseline": baseline, "kernel_width": width}
    settings |= {"ridge": ridge, "output": output}
    maps = lime(model, IMAGES, TARGETS, generator=generator(), segments=10, samples=60, **settings)
    expected = []
    for image, target, label, rows in zip(IMAGES, TARGETS, labels, samples_of(labels, 60), strict=True):
        values = outputs(model, image, int(target), label, rows, color, output)
        expected.append(Ridge(alpha=ridge).fit(rows, values, sample_weight=weights_of(rows, width)).coef_)
    exact(maps[:, 0], painted(expected, labels), 1e-8, floor=1e-11)
    if features == "superpixels":
        assert len({len(values) for values in expected}) >= 2


def test_without_a_penalty_a_linear_model_has_its_contributions() -> None:
    model = with_random_state(nn.Sequential(nn.Flatten(), nn.Linear(IMAGES[0].numel(), CLASSES)), seed=1)
    labels = segment(IMAGES, "superpixels", 10)
    settings = {"segments": 10, "samples": 60, "ridge": 1e-10, "output": "logit"}
    maps = lime(model, IMAGES, TARGETS, generator=generator(), **settings)
    effects = (model[1].weight.detach()[TARGETS].reshape(IMAGES.shape) * IMAGES).sum(1)
    sums = [np.bincount(*(each.flatten() for each in pair)) for pair in zip(labels, effects, strict=True)]
    expected = painted(sums, labels)
    exact(maps[:, 0], expected, 1e-7, floor=1e-9)
    assert np.ptp(expected) > 0.1


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


def test_any_split_gives_the_same_maps_of_superpixels() -> None:
    model, settings = conv_classifier(), {"features": "superpixels", "segments": 10, "samples": 30}
    counts = segment(IMAGES, "superpixels", 10).flatten(1).amax(1)
    assert len(counts.unique()) >= 2
    whole, serial = lime(model, IMAGES, TARGETS, generator=generator(), **settings), generator()
    parts = [
        lime(model, *part, generator=serial, **settings)
        for part in zip(IMAGES.split(2), TARGETS.split(2), strict=True)
    ]
    exact(torch.cat(parts), whole, 1e-9)

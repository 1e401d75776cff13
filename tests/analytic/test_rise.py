"""RISE against a plain loop over masks, against scikit-image, and against its expectation for a linear model."""

from typing import Any

import numpy as np
import pytest
import torch
from skimage.transform import resize
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

from saliency_assay.methods.rise import interpolation, rise, sample_grids
from saliency_assay.methods.sampling import sample_seeds

IMAGES, TARGETS = random_images(3)[..., :9], cyclic_targets(3)


def plain_masks(
    seed: int, samples: int, cells: int, probability: float, height: int, width: int
) -> np.ndarray:
    """The masks of one image ``[samples, H, W]``, each upsampled as a whole and then cropped."""
    size = -(-height // cells), -(-width // cells)
    grids, tops, lefts = sample_grids(seed, samples, cells, probability, *size)
    shape = (cells + 1) * size[0], (cells + 1) * size[1]
    masks = []
    for grid, top, left in zip(grids.double().numpy(), tops.tolist(), lefts.tolist(), strict=True):
        upsampled = resize(grid, shape, order=1, mode="reflect", anti_aliasing=False)
        masks.append(upsampled[top : top + height, left : left + width])
    return np.stack(masks)


def linear_model(weight: Tensor) -> nn.Module:
    """f_t(x) = weight[t] · x + bias[t], of weights ``[CLASSES, 3, H, W]``."""
    model = with_random_state(nn.Sequential(nn.Flatten(), nn.Linear(weight[0].numel(), CLASSES)), seed=1)
    model[1].weight.data = weight.flatten(1)
    return model.requires_grad_(False)


def overlaps(side: int, cells: int) -> np.ndarray:
    """Mean over the shifts of Σ_j a_j(u) a_j(v), with a_j(u) the weight of cell j at pixel u, ``[side, side]``."""
    weights = interpolation(side, cells).numpy()
    return np.mean([shift @ shift.T for shift in weights], 0)


def expectation(drops: np.ndarray, baseline_logit: float, probability: float, cells: int) -> np.ndarray:
    """E[f(x ⊙ M) M(λ)] / p of a linear model, where E[M(μ) M(λ)] = p² + p (1 − p) C(μ, λ)."""
    down, across = (overlaps(side, cells) for side in drops.shape)
    spread = np.einsum("hy,yx,wx->hw", down, drops, across)
    return baseline_logit + probability * drops.sum() + (1 - probability) * spread


@pytest.mark.parametrize("output", ["probability", "logit"])
@pytest.mark.parametrize("baseline", ["black", "mean"])
@pytest.mark.parametrize("cells", [2, 5])
def test_a_map_is_the_weighted_mean_of_its_masks(output: str, baseline: str, cells: int) -> None:
    model, settings = conv_classifier(), {"samples": 8, "cells": cells, "probability": 0.3}
    maps = rise(model, IMAGES, TARGETS, generator=generator(4), baseline=baseline, output=output, **settings)
    seeds = sample_seeds(3, 1, generator(4))
    color = model.mean if baseline == "mean" else torch.zeros(1, 3, 1, 1, dtype=torch.float64)
    for image, target, seed, found in zip(IMAGES, TARGETS, seeds, maps, strict=True):
        expected = np.zeros((12, 9))
        for mask in plain_masks(seed, **settings, height=12, width=9):
            masked = image * torch.from_numpy(mask) + color[0] * torch.from_numpy(1 - mask)
            with torch.no_grad():
                logits = model(masked[None])[0]
            value = (logits.softmax(0) if output == "probability" else logits)[target]
            expected += float(value) * mask / (0.3 * 8)
        exact(found[0], expected, 1e-10)


@pytest.mark.parametrize("weights", ["random", "one pixel"])
@pytest.mark.parametrize("probability", [0.25, 0.5])
def test_maps_of_a_linear_model_are_unbiased(weights: str, probability: float) -> None:
    weight = torch.randn(CLASSES, 3, 12, 9, generator=generator(2), dtype=torch.float64)
    if weights == "one pixel":
        weight *= 0
        weight[:, :, 4, 6] = 5
    model, copies = linear_model(weight), 60
    images, targets = IMAGES[:1].expand(copies, -1, -1, -1), torch.full((copies,), 1)
    settings: dict[str, Any] = {"samples": 500, "cells": 4, "probability": probability, "output": "logit"}
    maps = rise(model, images, targets, generator=generator(), **settings)[:, 0].numpy()
    drops = (weight[1] * IMAGES[0]).sum(0).numpy()
    expected = expectation(drops, float(model[1].bias[1]), probability, 4)
    error = maps.std(0, ddof=1) / copies**0.5
    assert np.abs((maps.mean(0) - expected) / error).max() < 4.5
    assert np.ptp(expected) > 10 * error.max()  # precise enough to tell pixels apart
    if weights == "one pixel":
        # The tolerance is for pixels with the same cells as their neighbors.
        assert expected[4, 6] > expected.max() - 1e-9
        assert expected[4, 6] > np.median(expected) + 20 * error.max()


def test_with_every_cell_on_a_map_is_the_output_for_the_image() -> None:
    model = conv_classifier()
    maps = rise(model, IMAGES, TARGETS, generator=generator(), samples=4, probability=1.0)
    with torch.no_grad():
        probabilities = model(IMAGES).softmax(1)[range(3), TARGETS]
    exact(maps, probabilities[:, None, None, None].expand_as(maps), 1e-12)


@pytest.mark.parametrize(("height", "width", "cells"), [(12, 9, 7), (6, 6, 7), (33, 20, 5), (8, 8, 2)])
def test_masks_are_scikit_images(height: int, width: int, cells: int) -> None:
    down, across = interpolation(height, cells), interpolation(width, cells)
    assert down.shape == (-(-height // cells), height, cells)
    grids, tops, lefts = sample_grids(3, 40, cells, 0.5, len(down), len(across))
    masks = down[tops] @ grids.double() @ across[lefts].mT
    exact(masks, plain_masks(3, 40, cells, 0.5, height, width), 1e-12)


def test_grids_and_shifts_are_uniform() -> None:
    grids, tops, lefts = sample_grids(0, 4000, 7, 0.3, 5, 3)
    share = grids.double().mean(0)
    assert (share - 0.3).abs().max() < 4 * (0.3 * 0.7 / 4000) ** 0.5
    for shifts, count in ((tops, 5), (lefts, 3)):
        assert (shifts.bincount(minlength=count) / 4000 - 1 / count).abs().max() < 0.03


def test_each_image_has_masks_of_its_own() -> None:
    images, targets = IMAGES[:1].expand(2, -1, -1, -1), TARGETS[:1].expand(2)
    maps = rise(conv_classifier(), images, targets, generator=generator(), samples=10)
    assert (maps[0] - maps[1]).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("setting", "found"),
    [
        ({"samples": 0}, "0, 7, 0.5"),
        ({"cells": 1}, "2000, 1, 0.5"),
        ({"probability": 0.0}, "2000, 7, 0.0"),
        ({"probability": 1.5}, "2000, 7, 1.5"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(setting: dict[str, Any], found: str) -> None:
    with pytest.raises(ValueError, match="found") as error:
        rise(conv_classifier(), IMAGES, TARGETS, generator=generator(), **setting)
    assert str(error.value) == (
        f"samples, cells, probability: found {found}, expected at least 1, at least 2, and in (0, 1]"
    )

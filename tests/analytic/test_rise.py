"""RISE against a plain loop over masks and against scikit-image."""

import numpy as np
import pytest
import torch
from skimage.transform import resize
from support import (
    conv_classifier,
    cyclic_targets,
    exact,
    generator,
    output_of,
    random_images,
)

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


@pytest.mark.parametrize(
    ("output", "baseline", "cells"),
    [("probability", "black", 2), ("logit", "mean", 5), ("probability", "mean", 5)],
)
def test_a_map_is_the_weighted_mean_of_its_masks(output: str, baseline: str, cells: int) -> None:
    model, settings = conv_classifier(), {"samples": 8, "cells": cells, "probability": 0.3}
    maps = rise(model, IMAGES, TARGETS, generator=generator(4), baseline=baseline, output=output, **settings)
    seeds = sample_seeds(3, 1, generator(4))
    color = model.mean if baseline == "mean" else torch.zeros(1, 3, 1, 1, dtype=torch.float64)
    for image, target, seed, raw in zip(IMAGES, TARGETS, seeds, maps, strict=True):
        expected = np.zeros((12, 9))
        for mask in plain_masks(seed, **settings, height=12, width=9):
            masked = image * torch.from_numpy(mask) + color[0] * torch.from_numpy(1 - mask)
            expected += output_of(model, masked, int(target), output) * mask / (0.3 * 8)
        exact(raw[0], expected, 1e-10)


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

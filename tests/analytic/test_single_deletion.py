"""Single deletion against closed forms, plain loops with scipy, and the authors' program."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from support import conv_classifier, cyclic_targets, exact, generator, random_images
from torch import Tensor, nn

from saliency_assay.methods.gradient import gradient_x_input
from saliency_assay.metrics.single_deletion import deleted_cells, single_deletion
from saliency_assay.training.deletion import grid_cells


def scored(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    absolute: bool = False,
    **options: object,
) -> Tensor:
    grid = {"grid": options.pop("grid")} if "grid" in options else {}
    options = {"fill": "black", **options}
    responses = deleted_cells(model, images, targets, generator=generator(), **grid, **options)  # type: ignore[arg-type]
    result = single_deletion(
        model,
        images,
        targets,
        maps,
        generator=generator(),
        responses=responses,
        absolute=absolute,
        **grid,  # type: ignore[arg-type]
    )
    return result.scores["single_deletion", ""]


@pytest.mark.parametrize("grid", [2, 4, 5])
def test_gradient_x_input_of_a_linear_model_has_the_highest_score(grid: int) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 4)).double()
    images, targets = random_images(4, size=8), cyclic_targets(4)
    maps = gradient_x_input(model, images, targets, generator=generator())
    exact(scored(model, images, targets, maps, grid=grid), np.ones(4))
    exact(scored(model, images, targets, -maps, grid=grid), -np.ones(4))


@pytest.mark.parametrize("absolute", [False, True])
def test_plain_loops(absolute: bool) -> None:
    model, images, targets = conv_classifier(), random_images(5), cyclic_targets(5)
    maps = torch.randn(5, 3, 12, 12, generator=generator(3), dtype=torch.float64)
    maps[1, :, :6] = 0  # half of the cells have the same sum
    maps[3], maps[4, 1, 2, 2] = 0.5, torch.nan
    mean = torch.tensor([0.3, 0.4, 0.5], dtype=torch.float64)
    scores = scored(model, images, targets, maps, absolute=absolute, fill="mean", mean=mean)
    for image in range(3):
        target, values = int(targets[image]), maps[image].sum(0)
        values = values.abs() if absolute else values
        sums, drops = [], []
        for row in range(0, 12, 3):
            for column in range(0, 12, 3):
                shown = images[image].clone()
                shown[:, row : row + 3, column : column + 3] = mean[:, None, None]
                with torch.no_grad():
                    before, after = model(torch.stack([images[image], shown]))[:, target].tolist()
                sums.append(float(values[row : row + 3, column : column + 3].sum()))
                drops.append(before - after)
        exact(scores[image], np.array(spearmanr(sums, drops).statistic), floor=1e-9)
    assert scores[3:].isnan().all()


AUTHORS = {
    (4, False): [-0.208823529, -0.25132888, -0.170588235, 0.305882353, 0.108823529],
    (3, False): [0.233333333, 0.237322226, -0.166666667, 0.483333333, 0.4],
    (4, True): [-0.414705882, -0.037699332, -0.094117647, 0.370588235, -0.264705882],
    (3, True): [-0.516666667, -0.406838102, 0.116666667, 0.95, -0.1],
}
"""Scores by ``single_deletion_protocol`` of visinf/idsds, commit 8e84200, with zeros as baseline, of the images and
maps below, the latter summed over channels and for ``True`` then absolute, as the program does."""


@pytest.mark.parametrize(("grid", "absolute"), AUTHORS)
def test_scores_are_those_of_the_authors(grid: int, absolute: bool) -> None:
    images, targets = random_images(6)[:5], cyclic_targets(5)
    maps = torch.randn(6, 3, 12, 12, generator=generator(3), dtype=torch.float64)[:5]
    maps[1, :, :6] = 0
    scores = scored(conv_classifier(), images, targets, maps, grid=grid, absolute=absolute)
    exact(scores, np.array(AUTHORS[grid, absolute]), floor=1e-8)


def test_cells_without_an_effect_have_equal_ranks() -> None:
    """An image whose lower half has the color of the fill; the score is that of a vector with ties."""
    model, targets = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 4)), cyclic_targets(2)
    images = random_images(2, size=8, dtype=torch.float32)
    images[:, :, 4:] = 0
    drop = deleted_cells(model, images, targets, generator=generator(), fill="black")["drop"]
    assert (drop[:, 8:] == 0).all()
    assert (drop[:, :8] != 0).all()
    maps = torch.randn(2, 1, 8, 8, generator=generator(1))
    sums = maps.reshape(2, 4, 2, 4, 2).sum((2, 4)).reshape(2, 16)
    expected = [spearmanr(*pair).statistic for pair in zip(sums.numpy(), drop.numpy(), strict=True)]
    exact(scored(model, images, targets, maps), np.array(expected), floor=1e-9)


def test_a_map_that_ranks_no_cells_has_no_score() -> None:
    model, images, targets = conv_classifier(), random_images(3), cyclic_targets(3)
    maps = torch.zeros(3, 1, 12, 12, dtype=torch.float64)
    maps[1, :, ::3] = 1  # each cell has the same pixels
    maps[2, :, 0, 0] = 1
    assert scored(model, images, targets, maps).isnan().tolist() == [True, True, False]


def test_cells_are_those_of_upsampled_grids() -> None:
    for height, width, grid in ((12, 8, 4), (7, 11, 3), (5, 5, 5)):
        small = torch.arange(grid * grid, dtype=torch.float32).reshape(1, 1, grid, grid)
        expected = nn.functional.interpolate(small, (height, width), mode="nearest")[0, 0].long()
        np.testing.assert_array_equal(grid_cells((height, width), grid), expected)
    with pytest.raises(ValueError, match=r"^grid: found 6, expected at most 5"):
        grid_cells((9, 5), 6)

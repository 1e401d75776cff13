"""Extremal perturbations against plain loops and a plain descent, and on models whose best mask is known."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter1d
from support import CLASSES, conv_classifier, cyclic_targets, exact, generator, random_images
from torch import Tensor, nn

from saliency_assay.methods import extremal
from saliency_assay.methods.extremal import (
    area_reference,
    extremal_perturbation,
    max_convolution,
    mixed,
    optimized,
    perturbed,
    smooth,
)

IMAGES, TARGETS = random_images(3), cyclic_targets(3)
SHAPES = [(8, 8, 1, 0.75), (7, 10, 2, 3.0), (13, 9, 3, 5.5)]
"""Height, width, step and sigma in pixels."""


class Weighted(nn.Module):
    """f_t(x) = Σ w_t ⊙ x, of weights ``[CLASSES, H, W]``."""

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.weights = weights

    def forward(self, images: Tensor) -> Tensor:
        return torch.einsum("nchw,khw->nk", images, self.weights)


def plain_windows(height: int, width: int, step: int, sigma: float) -> list[list[tuple[int, float]]]:
    """For each pixel of image and margin, the cell, -1 outside of the grid, and the kernel value in its window."""
    reach = 1 + int(np.ceil(sigma / step))
    rows, columns = -(-height // step), -(-width // step)
    grid = np.full((rows + 4 * reach, columns + 4 * reach), -1)
    grid[2 * reach : -2 * reach, 2 * reach : -2 * reach] = np.arange(rows * columns).reshape(rows, columns)
    windows = []
    for y in range(-reach * step, (rows + reach) * step):
        for x in range(-reach * step, (columns + reach) * step):
            window = []
            for row in range(y // step - reach, y // step + reach + 1):
                for column in range(x // step - reach, x // step + reach + 1):
                    distance = np.hypot(y - step * row, x - step * column) / sigma
                    value = np.exp(-2 * max(distance - 0.5, 0) ** 2)
                    window.append((grid[row + 2 * reach, column + 2 * reach], value))
            windows.append(window)
    return windows


def plain_smooth(height: int, width: int, step: int, sigma: float) -> Callable[[Tensor], Tensor]:
    """The mask of each pixel as a softmax-weighted mean over its window, differentiable by autograd."""
    windows = plain_windows(height, width, step, sigma)
    cells = torch.tensor([[int(cell) for cell, _ in window] for window in windows])
    kernel = torch.tensor([[value for _, value in window] for window in windows], dtype=torch.float64)

    def masks(parameters: Tensor) -> Tensor:
        values = torch.where(cells >= 0, parameters[:, cells], 0) * kernel
        return (values * (20 * values).softmax(2)).sum(2)

    return masks


# ------------------------------------------------------------------------------------------------- masks


@pytest.mark.parametrize(("height", "width", "step", "sigma"), SHAPES)
def test_max_convolution_and_its_gradient_are_those_of_plain_windows(
    height: int, width: int, step: int, sigma: float
) -> None:
    convolution = max_convolution(height, width, step, sigma).to(IMAGES)
    parameters = torch.rand(2, convolution.cells, generator=generator(), dtype=torch.float64)
    parameters[1] = parameters[1].round()
    parameters.requires_grad_()
    masks = smooth(parameters, convolution), plain_smooth(height, width, step, sigma)(parameters)
    exact(*(each.detach() for each in masks), 1e-12)
    slopes = torch.randn(masks[0].shape, generator=generator(1), dtype=torch.float64)
    exact(*(torch.autograd.grad((each * slopes).sum(), parameters)[0] for each in masks), 1e-10)


@pytest.mark.parametrize(("height", "width", "step", "sigma"), SHAPES)
def test_a_cell_has_the_same_area_anywhere(height: int, width: int, step: int, sigma: float) -> None:
    """With the margin, a mask costs as much at the border as inside, although the image holds a part of it."""
    convolution = max_convolution(height, width, step, sigma).to(IMAGES)
    masks = smooth(torch.eye(convolution.cells, dtype=torch.float64), convolution)
    areas, inside = masks.sum(1), convolution.crop(masks).sum((1, 2, 3))
    exact(areas, areas[:1].expand_as(areas), 1e-12)
    assert inside[0] < 0.8 * areas[0]
    assert convolution.crop(masks).shape == (convolution.cells, 1, height, width)


def test_the_image_is_where_its_cells_are() -> None:
    convolution = max_convolution(14, 10, 2, 3.0).to(IMAGES)
    for cell in range(35):
        parameters = torch.zeros(1, 35, dtype=torch.float64)
        parameters[0, cell] = 1
        mask = convolution.crop(smooth(parameters, convolution))[0, 0]
        assert mask[2 * (cell // 5), 2 * (cell % 5)] == mask.max() > 0.9


# ---------------------------------------------------------------------------------------- area constraint


@pytest.mark.parametrize("largest", [1, 14, 50, 144])
def test_the_largest_pixels_are_the_reference(largest: int) -> None:
    masks = torch.rand(3, 144, generator=generator(), dtype=torch.float64)
    expected = np.zeros((3, 144))
    for row, mask in zip(expected, masks.numpy(), strict=True):
        row[np.argsort(mask)[-largest:]] = 1
    assert torch.equal(area_reference(masks, largest), torch.from_numpy(expected))


def test_equal_pixels_share_the_reference() -> None:
    masks = torch.tensor(
        [[0.9, 0.5, 0.5, 0.1, 0.5, 0.5, 0.0, 0.2, 0.3, 0.4], [0.7] * 10], dtype=torch.float64
    )
    masks[1, 3] += 1e-15  # a rounding error
    reference = area_reference(masks, 3)
    exact(reference, np.array([[1, 0.5, 0.5, 0, 0.5, 0.5, 0, 0, 0, 0], [0.3] * 10]))


# ------------------------------------------------------------------------------------------ perturbation


def test_levels_of_blur_are_weighted_means_inside_the_image() -> None:
    images = random_images(2, size=30)[:, :, :, :25]
    levels = perturbed(conv_classifier(), images, "blur")
    assert levels.shape == (2, 8, 3, 30, 25)
    assert torch.equal(levels[:, 7], images)
    for level in range(7):
        sigma = 20 / 224 * 25 * (1 - level / 7)
        expected, weights = images.numpy(), np.ones((30, 25))
        for axis in (-2, -1):
            settings = {"sigma": sigma, "axis": axis, "mode": "constant", "truncate": 4}
            expected, weights = (
                gaussian_filter1d(expected, **settings),
                gaussian_filter1d(weights, **settings),
            )
        exact(levels[:, level], expected / weights, 1e-10)


def test_undefined_masks_have_undefined_pixels() -> None:
    """A NaN must not become an index outside of the levels."""
    levels = torch.rand(2, 8, 3, 3, 3, generator=generator())
    masks = torch.stack([torch.full((1, 3, 3), torch.nan), torch.full((1, 3, 3), 0.3)])
    undefined, other = mixed(levels, masks)
    assert undefined.isnan().all()
    assert other.isfinite().all()


def test_levels_are_interpolated() -> None:
    levels = torch.rand(2, 8, 3, 4, 5, generator=generator(), dtype=torch.float64)
    masks = torch.rand(2, 1, 4, 5, generator=generator(1), dtype=torch.float64)
    masks[0, 0, 0, :3] = torch.tensor([0.0, 1.0, 3 / 7])
    mixture, positions = mixed(levels, masks), np.linspace(0, 1, 8)
    for image, channel, y, x in np.ndindex(2, 3, 4, 5):
        expected = np.interp(masks[image, 0, y, x], positions, levels[image, :, channel, y, x])
        assert mixture[image, channel, y, x] == pytest.approx(expected, rel=1e-12)


# ------------------------------------------------------------------------------------------- optimization


@pytest.mark.parametrize(
    ("variant", "perturbation", "step", "sigma"), [("preserve", "mean", 1, 1.125), ("delete", "blur", 2, 3.0)]
)
def test_descent_is_that_of_sgd_on_the_sorted_mask(
    variant: str, perturbation: str, step: int, sigma: float
) -> None:
    """From random parameters, which have no ties, each image for itself."""
    model, steps, area = conv_classifier().requires_grad_(False), 25, 0.2
    levels, convolution = (
        perturbed(model, IMAGES, perturbation),
        max_convolution(12, 12, step, sigma).to(IMAGES),
    )
    start = torch.rand(3, convolution.cells, generator=generator(), dtype=torch.float64)
    parameters = optimized(
        model, TARGETS, levels, convolution, start, area=area, steps=steps, variant=variant
    )
    masks_of = plain_smooth(12, 12, step, sigma)
    pixels = convolution.shape[0] * convolution.shape[1]
    reference = (torch.arange(pixels) >= pixels - round(144 * area)).double()
    for image, (target, level) in enumerate(zip(TARGETS, levels, strict=True)):
        leaf = start[image : image + 1].clone().requires_grad_()
        optimizer = torch.optim.SGD([leaf], lr=0.01, momentum=0.9, dampening=0.9)
        weight = 300.0
        for _ in range(steps):
            masks = masks_of(leaf)
            inside = convolution.crop(masks)[0]
            position = (inside if variant == "preserve" else 1 - inside) * (len(level) - 1)
            ramps = (1 - (position - torch.arange(len(level))[:, None, None]).abs()).clamp(min=0)
            logit = model((ramps[:, None] * level).sum(0, keepdim=True))[0, target]
            penalty = (masks.sort().values - reference).square().mean()
            loss = weight * penalty - (logit if variant == "preserve" else -logit)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            leaf.data.clamp_(0, 1)
            weight *= 1.0035
        exact(parameters[image], leaf[0].detach(), 1e-8, floor=1e-10)
        assert (parameters[image] - start[image]).abs().mean() > 0.01


@pytest.mark.parametrize(("variant", "top", "left"), [("preserve", 2, 2), ("delete", 1, 9)])
def test_the_mask_covers_the_region_that_the_model_sees(variant: str, top: int, left: int) -> None:
    weights = torch.zeros(CLASSES, 16, 16, dtype=torch.float64)
    weights[1, top : top + 6, left : left + 6] = 1.0
    images = torch.ones(1, 1, 16, 16, dtype=torch.float64)
    settings = {"area": 36 / 256, "variant": variant, "perturbation": "black", "steps": 300}
    maps = extremal_perturbation(
        Weighted(weights), images, torch.tensor([1]), generator=generator(), **settings
    )
    mask = maps[0, 0]
    region = weights[1] > 0
    assert mask[region].mean() > 0.9
    assert mask[~region].mean() < 0.1


def test_mirrored_images_have_mirrored_masks() -> None:
    """The order of the pixels decides nothing, although all pixels of the first mask inside of the image are equal."""
    weights = torch.randn(CLASSES, 12, 12, generator=generator(), dtype=torch.float64)
    expected = extremal_perturbation(Weighted(weights), IMAGES, TARGETS, generator=generator(), steps=60)
    for flip in ((2,), (3,)):
        mirrored = Weighted(weights.flip([axis - 1 for axis in flip]))
        maps = extremal_perturbation(mirrored, IMAGES.flip(flip), TARGETS, generator=generator(), steps=60)
        exact(maps.flip(flip), expected, 1e-6, floor=1e-9)
        assert (expected - expected.flip(flip)).abs().max() > 0.1


def test_shares_are_of_the_shorter_side(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def record(*arguments: Any) -> None:
        seen.append(arguments)
        raise RuntimeError

    monkeypatch.setattr(extremal, "max_convolution", record)
    model = Weighted(torch.ones(CLASSES, 1, 1, dtype=torch.float64))
    for shape in ((224, 230), (40, 32), (8, 8)):
        images = torch.zeros(1, 1, *shape, dtype=torch.float64)
        with pytest.raises(RuntimeError):
            extremal_perturbation(model, images, TARGETS[:1], generator=generator(), perturbation="black")
    assert seen == [(224, 230, 7, 21.0), (40, 32, 1, 3.0), (8, 8, 1, 0.75)]

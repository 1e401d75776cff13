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


def plain_levels(levels: np.ndarray, masks: np.ndarray) -> np.ndarray:
    """Interpolate between levels ``[L, C, H, W]`` pixel by pixel."""
    positions = np.linspace(0, 1, len(levels))
    mixture = np.zeros(levels.shape[1:])
    for channel, y, x in np.ndindex(mixture.shape):
        mixture[channel, y, x] = np.interp(masks[y, x], positions, levels[:, channel, y, x])
    return mixture


# ------------------------------------------------------------------------------------------------- masks


@pytest.mark.parametrize(("height", "width", "step", "sigma"), SHAPES)
def test_max_convolution_is_its_definition(height: int, width: int, step: int, sigma: float) -> None:
    convolution = max_convolution(height, width, step, sigma).to(IMAGES)
    parameters = torch.rand(2, convolution.cells, generator=generator(), dtype=torch.float64)
    parameters[1] = parameters[1].round()
    masks = smooth(parameters, convolution).numpy()
    for values, found in zip(parameters.numpy(), masks, strict=True):
        expected = []
        for window in plain_windows(height, width, step, sigma):
            terms = np.array([value * values[cell] if cell >= 0 else 0 for cell, value in window])
            expected.append((terms * np.exp(20 * terms)).sum() / np.exp(20 * terms).sum())
        exact(found, np.array(expected), 1e-12)


@pytest.mark.parametrize(("height", "width", "step", "sigma"), SHAPES)
def test_max_convolution_has_the_right_gradient(height: int, width: int, step: int, sigma: float) -> None:
    convolution, masks = (
        max_convolution(height, width, step, sigma).to(IMAGES),
        plain_smooth(height, width, step, sigma),
    )
    parameters = torch.rand(
        2, convolution.cells, generator=generator(), dtype=torch.float64, requires_grad=True
    )
    slopes = torch.randn(smooth(parameters, convolution).shape, generator=generator(1), dtype=torch.float64)
    found, expected = (
        torch.autograd.grad((function(parameters) * slopes).sum(), parameters)[0]
        for function in (lambda values: smooth(values, convolution), masks)
    )
    exact(found, expected, 1e-10)


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
    for row, found in zip(expected, masks.numpy(), strict=True):
        row[np.argsort(found)[-largest:]] = 1
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


def test_other_perturbations_fade_to_a_color() -> None:
    model, masks = conv_classifier(), torch.rand(3, 1, 12, 12, generator=generator(), dtype=torch.float64)
    for name, color in (("black", torch.zeros(1, 3, 1, 1)), ("mean", model.mean)):
        mixture = mixed(perturbed(model, IMAGES, name), masks)
        exact(mixture, masks * IMAGES + (1 - masks) * color, 1e-12)


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
    for found, level, mask in zip(mixed(levels, masks), levels, masks, strict=True):
        exact(found, plain_levels(level.numpy(), mask[0].numpy()), 1e-12)


# ------------------------------------------------------------------------------------------- optimization


@pytest.mark.parametrize("variant", ["preserve", "delete"])
@pytest.mark.parametrize("perturbation", ["blur", "mean"])
@pytest.mark.parametrize(("step", "sigma"), [(1, 1.125), (2, 3.0)])
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
    found = optimized(model, TARGETS, levels, convolution, start, area=area, steps=steps, variant=variant)
    masks_of = plain_smooth(12, 12, step, sigma)
    pixels = convolution.shape[0] * convolution.shape[1]
    reference = (torch.arange(pixels) >= pixels - round(144 * area)).double()
    for image, (target, level) in enumerate(zip(TARGETS, levels, strict=True)):
        parameters = start[image : image + 1].clone().requires_grad_()
        optimizer = torch.optim.SGD([parameters], lr=0.01, momentum=0.9, dampening=0.9)
        weight = 300.0
        for _ in range(steps):
            masks = masks_of(parameters)
            inside = convolution.crop(masks)[0]
            position = (inside if variant == "preserve" else 1 - inside) * (len(level) - 1)
            ramps = (1 - (position - torch.arange(len(level))[:, None, None]).abs()).clamp(min=0)
            logit = model((ramps[:, None] * level).sum(0, keepdim=True))[0, target]
            penalty = (masks.sort().values - reference).square().mean()
            loss = weight * penalty - (logit if variant == "preserve" else -logit)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            parameters.data.clamp_(0, 1)
            weight *= 1.0035
        exact(found[image], parameters[0].detach(), 1e-8, floor=1e-10)
        assert (found[image] - start[image]).abs().mean() > 0.01


@pytest.mark.parametrize("variant", ["preserve", "delete"])
@pytest.mark.parametrize(("top", "left"), [(2, 2), (1, 9)])
def test_the_mask_covers_the_region_that_the_model_sees(variant: str, top: int, left: int) -> None:
    weights = torch.zeros(CLASSES, 16, 16, dtype=torch.float64)
    weights[1, top : top + 6, left : left + 6] = 1.0
    images = torch.ones(1, 3, 16, 16, dtype=torch.float64)
    mask = extremal_perturbation(
        Weighted(weights),
        images,
        torch.tensor([1]),
        generator=generator(),
        area=36 / 256,
        variant=variant,
        perturbation="black",
    )[0, 0]
    region = weights[1] > 0
    assert mask[region].mean() > 0.9
    assert mask[~region].mean() < 0.05


@pytest.mark.parametrize("variant", ["preserve", "delete"])
@pytest.mark.parametrize("area", [0.05, 0.1, 0.3])
def test_masks_have_the_area(area: float, variant: str) -> None:
    settings = {"area": area, "variant": variant}
    maps = extremal_perturbation(conv_classifier(), IMAGES, TARGETS, generator=generator(), **settings)
    assert ((maps.mean((1, 2, 3)) / area - 1).abs() < 0.25).all()  # cells are coarse in an image of 12 pixels
    assert maps.std((1, 2, 3)).min() > 0.05


@pytest.mark.parametrize("area", [0.05, 0.3])
def test_a_linear_model_keeps_most_of_the_largest_weights(area: float) -> None:
    """The best mask of an area keeps the pixels with the largest w ⊙ x; one pixel is one cell here."""
    y, x = torch.meshgrid(torch.arange(20.0), torch.arange(20.0), indexing="ij")
    bump = torch.exp(-((y - 7) ** 2 + (x - 12) ** 2) / 40).double()
    weights = 0.5 * torch.stack([bump, bump.flip(1), 1 - bump, -bump.flip(0)])
    images, targets = torch.ones(4, 1, 20, 20, dtype=torch.float64), torch.arange(4)
    settings = {"area": area, "perturbation": "black"}
    maps = extremal_perturbation(Weighted(weights), images, targets, generator=generator(), **settings)
    count = round(area * 400)
    for found, weight in zip(maps.flatten(1), weights.flatten(1), strict=True):
        worst, best = (weight.topk(count, largest=largest).values.sum() for largest in (False, True))
        assert weight[found.topk(count).indices].sum() > worst + 0.94 * (best - worst)
    assert ((maps.mean((1, 2, 3)) - area).abs() < 0.045).all()


def test_mirrored_images_have_mirrored_masks() -> None:
    """The order of the pixels decides nothing, although all pixels of the first mask inside of the image are equal."""
    weights = torch.randn(CLASSES, 12, 12, generator=generator(), dtype=torch.float64)
    for flip in ((2,), (3,), (2, 3)):
        mirrored = Weighted(weights.flip([axis - 1 for axis in flip]))
        found, expected = (
            extremal_perturbation(model, images, TARGETS, generator=generator(), steps=60)
            for model, images in ((mirrored, IMAGES.flip(flip)), (Weighted(weights), IMAGES))
        )
        exact(found.flip(flip), expected, 1e-6, floor=1e-9)
        assert (expected - expected.flip(flip)).abs().max() > 0.1


@pytest.mark.exhaustive
@pytest.mark.parametrize(("top", "left"), [(20, 14), (20, 0), (30, 30)], ids=["inside", "border", "corner"])
def test_a_small_logit_is_found_anywhere(top: int, left: int) -> None:
    """Without a margin, masks of cells of two pixels lie at the border, where fewer of their soft pixels count."""
    weights = torch.zeros(CLASSES, 48, 48, dtype=torch.float64)
    weights[1, top : top + 14, left : left + 14] = 4 / 196
    mask = extremal_perturbation(
        Weighted(weights),
        torch.ones(1, 1, 48, 48, dtype=torch.float64),
        torch.tensor([1]),
        generator=generator(),
        area=196 / 48**2,
        perturbation="black",
    )[0, 0]
    assert mask[weights[1] > 0].mean() > 0.8


def test_shares_are_of_the_shorter_side(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def record(*arguments: Any) -> extremal.MaxConvolution:
        seen.append(arguments)
        return max_convolution(*arguments)

    monkeypatch.setattr(extremal, "max_convolution", record)
    model = Weighted(torch.ones(CLASSES, 1, 1, dtype=torch.float64))
    for shape in ((224, 230), (40, 32), (8, 8)):
        extremal_perturbation(
            model, torch.rand(1, 1, *shape).double(), TARGETS[:1], generator=generator(), steps=1
        )
    assert seen == [(224, 230, 7, 21.0), (40, 32, 1, 3.0), (8, 8, 1, 0.75)]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"variant": "keep"}, "variant: found 'keep', valid: preserve, delete"),
        ({"perturbation": "gray"}, "perturbation: found 'gray', valid: blur, black, mean"),
        (
            {"steps": 0},
            "steps, area, cell, sigma: found 0, 0.1, 0.03125, 0.09375, expected at least 1 and shares in (0, 1]",
        ),
        (
            {"area": 0.0},
            "steps, area, cell, sigma: found 800, 0.0, 0.03125, 0.09375, expected at least 1 and shares in (0, 1]",
        ),
        (
            {"sigma": 1.5},
            "steps, area, cell, sigma: found 800, 0.1, 0.03125, 1.5, expected at least 1 and shares in (0, 1]",
        ),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="found") as error:
        extremal_perturbation(conv_classifier(), IMAGES, TARGETS, generator=generator(), **setting)
    assert str(error.value) == message

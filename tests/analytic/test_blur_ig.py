"""Blur integrated gradients against closed forms, SciPy's Gaussian filter, and the integral over the scale."""

import numpy as np
import pytest
import torch
from scipy import ndimage
from support import (
    CLASSES,
    conv_classifier,
    cyclic_targets,
    exact,
    generator,
    random_images,
)
from torch import Tensor, nn

from saliency_assay.methods.blur_ig import blur_ig, blur_matrix
from saliency_assay.methods.differentiate import input_gradient

IMAGES, TARGETS = random_images(4, size=12)[..., :9], cyclic_targets(4)
PIXELS = IMAGES[0].numel()


class Quadratic(nn.Module):
    """f_t(x) = xᵀ A_t x."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = torch.randn(CLASSES, PIXELS, PIXELS, generator=generator(3), dtype=torch.float64)

    def forward(self, images: Tensor) -> Tensor:
        flat = images.flatten(1)
        return torch.einsum("ni,kij,nj->nk", flat, self.weights, flat)


def blurred(sigma: float) -> Tensor:
    """The images, blurred by SciPy."""
    if sigma == 0:
        return IMAGES
    return torch.from_numpy(ndimage.gaussian_filter(IMAGES.numpy(), (0, 0, sigma, sigma), mode="constant"))


def change(model: nn.Module, sigma: float) -> Tensor:
    """f_t(x) minus f_t of the blurred image."""
    with torch.no_grad():
        return (model(IMAGES) - model(blurred(sigma)))[range(4), TARGETS]


@pytest.mark.parametrize("sigma", [0.1, 1.0, 9.0])
@pytest.mark.parametrize("side", [1, 12])
def test_the_matrix_blurs_as_scipy_does(side: int, sigma: float) -> None:
    expected = ndimage.gaussian_filter1d(np.eye(side), sigma, axis=0, mode="constant")
    exact(blur_matrix(side, sigma), expected, 1e-12, floor=1e-15)


def test_maps_equal_the_plain_sum() -> None:
    """12 pixels, the longer side, are the unit of ``max_sigma``."""
    model, steps = conv_classifier(), 6
    points = [blurred(0.3 * 12 * step / (steps - 1)) for step in range(steps)]
    slopes = [input_gradient(model, point, TARGETS).numpy() for point in points]
    expected = np.zeros(IMAGES.shape)
    for k in range(steps - 1):
        expected += (slopes[k] + slopes[k + 1]) / 2 * (points[k] - points[k + 1]).numpy()
    maps = blur_ig(model, IMAGES, TARGETS, generator=generator(), steps=steps, max_sigma=0.3)
    exact(maps, expected)


def test_memory_format_is_that_of_the_images() -> None:
    images = IMAGES.contiguous(memory_format=torch.channels_last)
    settings = {"generator": generator(), "steps": 3}
    maps = blur_ig(conv_classifier(), images, TARGETS, **settings)
    assert maps.is_contiguous(memory_format=torch.channels_last)
    exact(maps, blur_ig(conv_classifier(), IMAGES, TARGETS, **settings))


@pytest.mark.parametrize("steps", [2, 5])
def test_maps_of_a_quadratic_are_complete(steps: int) -> None:
    maps = blur_ig(Quadratic(), IMAGES, TARGETS, generator=generator(), steps=steps, max_sigma=0.25)
    exact(maps.sum((1, 2, 3)), change(Quadratic(), 3.0))

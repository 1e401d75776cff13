"""Every fill against plain NumPy."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter
from scipy.stats import kstest
from support import random_images
from torch import Tensor

from saliency_assay.metrics.fills import FILLS, fill

MEAN = torch.tensor([0.4, 0.5, 0.3])
SEEDS = [11, 12, 13, 14, 15]


def some_images(dtype: torch.dtype = torch.float32) -> Tensor:
    return random_images(5, 3, 10, dtype=dtype)[..., :8].contiguous(memory_format=torch.channels_last)


def made(name: str, images: Tensor) -> Tensor:
    return fill(name, images, mean=MEAN, seeds=SEEDS[: len(images)])


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_fill_broadcasts_to_the_images_and_is_like_them(name: str, dtype: torch.dtype) -> None:
    images = some_images(dtype)
    before = images.clone()
    fills = made(name, images)
    assert fills.dtype == dtype
    assert torch.broadcast_shapes(fills.shape, images.shape) == images.shape
    assert fills.ndim == 4
    assert bool(((fills >= 0) & (fills <= 1)).all())
    assert torch.equal(images, before)


@pytest.mark.parametrize("name", FILLS)
def test_a_fill_does_not_depend_on_how_images_are_split(name: str) -> None:
    images = some_images()
    whole = made(name, images).expand_as(images)
    parts = zip(images.split(2), (SEEDS[:2], SEEDS[2:4], SEEDS[4:]), strict=True)
    split = [fill(name, part, mean=MEAN, seeds=seeds).expand_as(part) for part, seeds in parts]
    assert torch.equal(torch.cat(split), whole)


def test_black_and_the_means_are_constant() -> None:
    images = some_images(torch.float64)
    assert made("black", images).tolist() == [[[[0]], [[0]], [[0]]]]
    assert made("gray", images).tolist() == [[[[0.5]], [[0.5]], [[0.5]]]]
    assert torch.equal(made("mean", images)[0, :, 0, 0], MEAN.double())
    expected = [[image[channel].mean() for channel in range(3)] for image in images.numpy()]
    np.testing.assert_allclose(made("image_mean", images)[:, :, 0, 0], expected, rtol=1e-14)


def test_random_is_fixed_by_each_images_seed_and_uniform() -> None:
    images = random_images(3, 3, 40)
    fills = fill("random", images, seeds=[5, 6, 5])
    assert torch.equal(fills[0], fills[2])
    assert not torch.equal(fills[0], fills[1])
    assert len(fills[0].unique()) == fills[0].numel()  # a value for each pixel and channel
    assert torch.equal(fill("random", images.flip(0), seeds=[5, 6, 5]), fills)  # whatever the image shows
    for image in fills[:2]:
        assert kstest(image.flatten(), "uniform").pvalue > 1e-3


@pytest.mark.parametrize("shape", [(10, 8), (8, 10)])
def test_blur_is_a_gaussian_of_a_tenth_of_the_shorter_side(shape: tuple[int, int]) -> None:
    images = random_images(2, 3, 10)[:, :, : shape[0], : shape[1]]
    fills = fill("blur", images)

    for image, blurred in zip(images.numpy(), fills.numpy(), strict=True):
        for channel, expected in zip(image, blurred, strict=True):
            np.testing.assert_allclose(gaussian_filter(channel, 0.8, mode="mirror"), expected, rtol=1e-12)


def test_blur_of_an_image_that_learns_is_a_plain_tensor() -> None:
    assert not fill("blur", some_images().requires_grad_()).requires_grad


@pytest.mark.parametrize(
    ("name", "argument", "message"),
    [
        ("mean", {}, "mean: found none, expected"),
        ("mean", {"mean": torch.zeros(1)}, r"mean: found \[1\], expected the data set's mean \[3\]"),
        ("mean", {"mean": torch.zeros(3, 1)}, r"mean: found \[3, 1\]"),
        ("random", {}, "seeds: found none, expected"),
        ("random", {"seeds": [1, 2, 3, 4, 5, 6]}, "seeds: found 6, expected one for each of 5 images"),
    ],
)
def test_mean_and_seeds_must_fit(name: str, argument: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        fill(name, some_images(), **argument)

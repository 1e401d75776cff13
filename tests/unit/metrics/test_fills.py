"""Every fill against plain NumPy."""

from inspect import signature

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter
from scipy.stats import kstest
from support import random_images
from torch import Tensor

from saliency_assay.metrics import METRICS
from saliency_assay.metrics.fills import BLUR, FILLS, fill

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
    found = made(name, images)
    assert found.dtype == dtype
    assert torch.broadcast_shapes(found.shape, images.shape) == images.shape
    assert found.ndim == 4
    assert bool(((found >= 0) & (found <= 1)).all())
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
    assert torch.equal(made("mean", images)[0, :, 0, 0], MEAN.double())
    expected = [[image[channel].mean() for channel in range(3)] for image in images.numpy()]
    np.testing.assert_allclose(made("image_mean", images)[:, :, 0, 0], expected, rtol=1e-14)


def test_the_mean_of_equal_pixels_is_exact() -> None:
    images = torch.full((1, 3, 7, 9), 0.1)
    assert torch.equal(made("image_mean", images).expand_as(images), images)


def test_random_is_fixed_by_each_images_seed_and_uniform() -> None:
    images = random_images(3, 3, 40)
    found = fill("random", images, seeds=[5, 6, 5])
    assert torch.equal(found[0], found[2])
    assert not torch.equal(found[0], found[1])
    assert len(found[0].unique()) == found[0].numel()  # a value for each pixel and channel
    assert torch.equal(fill("random", images.flip(0), seeds=[5, 6, 5]), found)  # whatever the image shows
    for image in found[:2]:
        assert kstest(image.flatten(), "uniform").pvalue > 1e-3


@pytest.mark.parametrize("shape", [(10, 8), (8, 10)])
def test_blur_is_a_gaussian_of_a_tenth_of_the_shorter_side(shape: tuple[int, int]) -> None:
    images = random_images(2, 3, 10)[:, :, : shape[0], : shape[1]]
    found = fill("blur", images)
    assert BLUR == 0.1
    for image, blurred in zip(images.numpy(), found.numpy(), strict=True):
        for channel, expected in zip(image, blurred, strict=True):
            np.testing.assert_allclose(gaussian_filter(channel, 0.8, mode="mirror"), expected, rtol=1e-12)


def test_blur_of_a_point_is_the_kernel_and_of_a_constant_itself() -> None:
    point = torch.zeros(1, 1, 41, 41, dtype=torch.float64)
    point[0, 0, 20, 20] = 1
    distance = np.arange(-16, 17)  # truncated at four deviations of 4.1 pixels
    kernel = np.exp(-(distance**2) / (2 * 4.1**2))
    kernel /= kernel.sum()
    np.testing.assert_allclose(fill("blur", point)[0, 0, 20, 4:37], kernel * kernel[16], rtol=1e-12)
    flat = torch.full((1, 2, 9, 9), 0.3)
    np.testing.assert_allclose(fill("blur", flat), flat, rtol=1e-6)


def test_blur_of_an_image_that_learns_is_a_plain_tensor() -> None:
    assert not fill("blur", some_images().requires_grad_()).requires_grad


@pytest.mark.parametrize(
    ("mean", "found"),
    [(None, "none"), (torch.zeros(1), "[1]"), (torch.zeros(3, 1), "[3, 1]")],
)
def test_the_data_sets_mean_must_fit(mean: Tensor | None, found: str) -> None:
    with pytest.raises(ValueError, match=r"^mean: ") as error:
        fill("mean", some_images(), mean=mean)
    assert str(error.value) == f"mean: found {found}, expected the data set's mean [3] for fill 'mean'"


@pytest.mark.parametrize(("seeds", "found"), [(None, "none"), ([], "0"), ([1, 2, 3, 4, 5, 6], "6")])
def test_seeds_must_be_as_many_as_images(seeds: list[int] | None, found: str) -> None:
    with pytest.raises(ValueError, match=r"^seeds: ") as error:
        fill("random", some_images(), seeds=seeds)
    assert str(error.value) == f"seeds: found {found}, expected one for each of 5 images for fill 'random'"


def test_an_unknown_fill_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^fill: found 'gray', valid: black, mean, image_mean, random, blur$"
    ):
        fill("gray", some_images())


def test_metrics_offer_the_fills_there_are() -> None:
    offered = [
        metric.parameters["fill"].choices
        for metric in METRICS
        if "fill" in metric.parameters and "fill" not in metric.finetuning.values()  # a fill of the training
    ]
    assert offered == [FILLS] * len(offered)
    assert len(offered) >= 4
    assert list(signature(fill).parameters) == ["name", "images", "mean", "seeds"]

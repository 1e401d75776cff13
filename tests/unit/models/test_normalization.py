"""Statistics of a training set's channels against NumPy's."""

import numpy as np
import pytest
import torch

from saliency_assay.models.normalization import channel_statistics


def images() -> torch.Tensor:
    generator = torch.Generator().manual_seed(4)
    drawn = torch.randint(0, 256, (11, 3, 5, 4), generator=generator, dtype=torch.uint8)
    drawn[:, 1] //= 3
    return drawn


@pytest.mark.parametrize("block", [1, 3, 100])
def test_equals_numpy(block: int) -> None:
    chosen = torch.tensor([9, 0, 4, 5, 2, 10, 7])
    mean, deviation = channel_statistics(images(), chosen, block=block)
    pixels = images().numpy()[chosen.numpy()] / 255
    np.testing.assert_allclose(mean, pixels.mean((0, 2, 3)), rtol=1e-12)
    np.testing.assert_allclose(deviation, pixels.std((0, 2, 3)), rtol=1e-10)
    assert all(isinstance(value, float) for value in mean + deviation)


def test_floats_are_counted_in_16_bits() -> None:
    pixels = torch.rand(9, 2, 5, 4, generator=torch.Generator().manual_seed(1))
    mean, deviation = channel_statistics(pixels, torch.arange(9), block=4)
    np.testing.assert_allclose(mean, pixels.double().mean((0, 2, 3)), atol=1e-6)
    np.testing.assert_allclose(deviation, pixels.double().numpy().std((0, 2, 3)), atol=1e-6)
    floats = channel_statistics(images().float() / 255, torch.arange(11))
    np.testing.assert_allclose(floats, channel_statistics(images(), torch.arange(11)), rtol=1e-12)


@pytest.mark.parametrize("level", [0, 77, 255])
def test_a_channel_that_never_changes_has_deviation_1(level: int) -> None:
    pixels = images()
    pixels[:, 2] = level
    mean, deviation = channel_statistics(pixels, torch.arange(11), block=4)
    assert mean[2] == pytest.approx(level / 255, rel=1e-12)
    assert deviation[2] == 1.0
    np.testing.assert_allclose(deviation[:2], (pixels.numpy()[:, :2] / 255).std((0, 2, 3)), rtol=1e-10)


def test_one_gray_level_of_difference_is_a_deviation() -> None:
    pixels = torch.full((100, 1, 50, 50), 200, dtype=torch.uint8)
    pixels[3, 0, 2, 1] = 201
    deviation = channel_statistics(pixels, torch.arange(100))[1][0]
    assert deviation == pytest.approx((pixels.numpy() / 255).std(), rel=1e-9)
    assert deviation < 1e-4

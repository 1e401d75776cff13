"""Guided integrated gradients against a plain NumPy derivation, and the straight path in its limits."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from support import (
    CLASSES,
    conv_classifier,
    cyclic_targets,
    exact,
    generator,
    random_images,
    seen_batches,
    with_random_state,
)
from torch import Tensor, nn

from saliency_assay.methods.baselines import baseline as baseline_color
from saliency_assay.methods.differentiate import input_gradient
from saliency_assay.methods.guided_ig import guided_ig
from saliency_assay.methods.path import integrated_gradients

IMAGES, TARGETS = random_images(4, size=6), cyclic_targets(4)
PIXELS = IMAGES[0].numel()


def linear(seed: int = 1) -> nn.Module:
    return with_random_state(nn.Sequential(nn.Flatten(), nn.Linear(PIXELS, CLASSES)), seed)


def plain_guided_ig(
    model: nn.Module, image: Tensor, target: int, start: Tensor, steps: int, fraction: float, max_dist: float
) -> np.ndarray:
    """One image and one value at a time, in a loop that stops when the distance is reached."""
    goal, begin = image.flatten().numpy(), start.flatten().numpy()
    now, result = begin.copy(), np.zeros(len(goal))
    full = np.abs(goal - begin).sum()
    for step in range(1, steps + 1):
        point = torch.from_numpy(now.copy()).reshape(image.shape)[None]
        slopes = input_gradient(model, point, torch.tensor([target])).flatten().numpy()
        before, straight = now.copy(), step / steps
        nearest = begin + max(straight - max_dist, 0) * (goal - begin)
        furthest = begin + min(straight + max_dist, 1) * (goal - begin)
        for i in range(len(goal)):
            if abs(nearest[i] - begin[i]) > abs(now[i] - begin[i]):
                now[i] = nearest[i]
        available = [i for i in range(len(goal)) if abs(furthest[i] - now[i]) > 1e-14]
        while available and np.abs(goal - now).sum() - full * (1 - straight) > 1e-12:
            ordered = sorted(abs(slopes[i]) for i in available)
            largest = ordered[min(int(fraction * (len(goal) - 1)), len(ordered) - 1)]
            group = [i for i in available if abs(slopes[i]) <= largest]
            room = sum(abs(furthest[i] - now[i]) for i in group)
            share = min(1, (np.abs(goal - now).sum() - full * (1 - straight)) / room)
            for i in group:
                now[i] = furthest[i] if share == 1 else now[i] + share * (furthest[i] - now[i])
            available = [i for i in available if i not in group]
        result += slopes * (now - before)
    return result.reshape(image.shape)


@pytest.mark.parametrize(
    ("baseline", "steps", "fraction", "max_dist"),
    [("black", 20, 0.25, 0.1), ("black", 5, 0.25, 0.4), ("mean", 10, 0.1, 1.0), ("mean", 9, 0.001, 0.02)],
)
def test_maps_equal_the_plain_derivation(baseline: str, steps: int, fraction: float, max_dist: float) -> None:
    model, images = conv_classifier(), IMAGES.clone()
    images[0, :, :2] = 0  # equal to the baseline, if it is black
    settings: dict[str, Any] = {"steps": steps, "fraction": fraction, "max_dist": max_dist}
    maps = guided_ig(model, images, TARGETS, generator=generator(), baseline=baseline, **settings)
    color = baseline_color(model, images, baseline)
    straight = integrated_gradients(model, images, TARGETS, generator=generator(), baseline=baseline)
    for i in range(4):
        start = color.expand_as(images[:1])[0]
        expected = plain_guided_ig(model, images[i], int(TARGETS[i]), start, **settings)
        exact(maps[i], expected, 1e-8, floor=1e-10 * np.abs(expected).max())
    assert (maps - straight).abs().max() > 0.01 * straight.abs().max()


def test_equal_gradients_move_together() -> None:
    """Three levels of gradients, so that every group ends within ties, and pixels of all levels have two values."""
    model = linear()
    levels = torch.arange(PIXELS) % 3 + 1.0
    model[1].weight.data = levels.double().expand(CLASSES, -1).contiguous()
    with seen_batches(model) as seen:
        guided_ig(model, IMAGES, TARGETS, generator=generator(), steps=10, fraction=0.1, max_dist=1.0)
    positions = torch.stack(seen) / IMAGES
    for level in (1, 2, 3):
        inside = positions.flatten(2)[:, :, levels == level]
        exact(inside, inside[:, :, :1].expand_as(inside))
    # The smallest first: a third of the values, but not of the distance, moves before all others.
    assert (positions.flatten(2)[1][:, levels == 1] > 0).all()
    assert (positions.flatten(2)[3][:, levels == 3] == 0).all()
    assert (positions.flatten(2)[9][:, levels == 1] > 1 - 1e-12).all()


@pytest.mark.parametrize("setting", [{"max_dist": 0.0}, {"fraction": 1.0}], ids=str)
def test_without_a_choice_the_path_is_straight(setting: dict[str, float]) -> None:
    model = conv_classifier()
    maps = guided_ig(model, IMAGES, TARGETS, generator=generator(), steps=12, **setting)
    expected = integrated_gradients(model, IMAGES, TARGETS, generator=generator(), steps=12, rule="left")
    exact(maps, expected, 1e-8, floor=1e-10 * float(expected.abs().max()))


def test_an_image_equal_to_the_baseline_has_a_map_of_zeros() -> None:
    images = torch.cat([torch.zeros_like(IMAGES[:1]), IMAGES[:1]])
    maps = guided_ig(conv_classifier(), images, TARGETS[:2], generator=generator(), steps=10)
    assert not maps[0].any()
    assert maps[1].any()


class Overflowing(nn.Module):
    """The mean of an image, which is not a number where a pixel is above 0.5."""

    def forward(self, images: Tensor) -> Tensor:
        factors = torch.where(images.detach().amax((1, 2, 3)) > 0.5, torch.nan, 1.0)
        return (images.mean((1, 2, 3)) * factors)[:, None].expand(-1, CLASSES)


def test_gradients_that_are_not_numbers_end_in_maps_that_are_not() -> None:
    images = torch.stack([torch.full_like(IMAGES[0], 0.4), torch.full_like(IMAGES[0], 0.9)])
    maps = guided_ig(Overflowing(), images, TARGETS[:2], generator=generator(), steps=4)
    assert maps[0].isfinite().all()
    assert maps[1].isnan().all()


def mirrored(network: nn.Sequential) -> nn.Sequential:
    """The network g with g(mirrored x) = f(x)."""
    result = deepcopy(network)
    first, _, second, _, _, head = result
    for layer in (first, second):
        layer.weight.data = layer.weight.data.flip(-1)
    head.weight.data = head.weight.data.reshape(CLASSES, 6, 8, 8).flip(-1).reshape(CLASSES, -1)
    return result


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_mirrored_images_have_mirrored_maps(dtype: torch.dtype) -> None:
    """Rounding orders none of the gradients at the baseline of one color, which are equal away from the border."""
    layers = nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 6, 3, padding=1), nn.ReLU()
    network = nn.Sequential(*layers, nn.Flatten(), nn.Linear(6 * 64, CLASSES))
    network, images = with_random_state(network, 5, dtype), random_images(4, size=8, dtype=dtype)
    maps = guided_ig(network, images, TARGETS, generator=generator(), steps=25)
    of_mirrored = guided_ig(mirrored(network), images.flip(-1), TARGETS, generator=generator(), steps=25)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    assert (of_mirrored.flip(-1) - maps).abs().max() < tolerance * maps.abs().max()

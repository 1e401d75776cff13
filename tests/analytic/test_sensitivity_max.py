"""Max-sensitivity against closed forms, plain loops and captum's."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from support import conv_classifier, cyclic_targets, exact, generator, random_images
from torch import Tensor

from saliency_assay.methods.differentiate import input_gradient
from saliency_assay.methods.sampling import sample_seeds, uniform
from saliency_assay.metrics.sensitivity_max import sensitivity_max

NAN, SIZE, SEED = float("nan"), 6, 11
Explain = Callable[[Tensor, Tensor], Tensor]


def gradients(channels: int = 3) -> Explain:
    """The gradient, of all channels or summed into one."""
    model = conv_classifier()

    def explain(images: Tensor, targets: Tensor) -> Tensor:
        maps = input_gradient(model, images, targets)
        return maps if channels == 3 else maps.sum(1, keepdim=True)

    return explain


def scored(explain: Explain, images: Tensor, maps: Tensor | None = None, **parameters: object) -> Tensor:
    targets = cyclic_targets(len(images))
    maps = explain(images, targets) if maps is None else maps
    scores = sensitivity_max(
        conv_classifier(), images, targets, maps, generator=generator(SEED), explain=explain, **parameters
    ).scores
    assert list(scores) == [("sensitivity_max", "")]
    assert scores["sensitivity_max", ""].dtype == torch.float64
    return scores["sensitivity_max", ""]


def neighbors(images: Tensor, radius: float, samples: int) -> list[Tensor]:
    """The samples y of each image, ``[samples, C, H, W]``."""
    seeds = sample_seeds(len(images), samples, generator(SEED))
    rows = [seeds[i * samples : (i + 1) * samples] for i in range(len(images))]
    return [image + radius * uniform(row, images) for image, row in zip(images, rows, strict=True)]


def plain(explain: Explain, images: Tensor, radius: float, samples: int, relative: bool) -> list[float]:
    """Definition 3.1, one image, sample and value at a time."""
    scores = []
    for i, sampled in enumerate(neighbors(images, radius, samples)):
        target = torch.tensor([i % 4])
        own, largest = explain(images[i : i + 1], target).flatten().tolist(), 0.0
        for y in sampled:
            moved = explain(y[None], target).flatten().tolist()
            distance = sum((after - before) ** 2 for after, before in zip(moved, own, strict=True)) ** 0.5
            largest = max(largest, distance)
        scores.append(largest / sum(value**2 for value in own) ** 0.5 if relative else largest)
    return scores


@pytest.mark.parametrize(
    ("channels", "relative", "radius", "samples"), [(1, True, 0.1, 7), (3, False, 0.3, 1), (3, True, 0.3, 7)]
)
def test_it_equals_plain_loops(channels: int, relative: bool, radius: float, samples: int) -> None:
    images, explain = random_images(5, size=SIZE), gradients(channels)
    scores = scored(explain, images, radius=radius, samples=samples, relative=relative)
    exact(scores, plain(explain, images, radius, samples, relative), 1e-10)
    assert (scores > 0).all()


def test_samples_fill_the_ball_and_leave_the_pixels_range() -> None:
    """Uniform in [−r, r] around each pixel, anew for each image and sample, and not clipped to [0, 1]."""
    images, seen = random_images(4, size=SIZE).round(), list[Tensor]()

    def explain(pixels: Tensor, targets: Tensor) -> Tensor:
        seen.append(pixels - images)
        return pixels

    scored(explain, images, maps=images + 1, radius=0.25, samples=50)
    assert len(seen) == 50
    shifts = torch.stack(seen) / 0.25  # [samples, N, C, H, W]
    assert shifts.abs().max() <= 1
    assert shifts.max() > 0.999
    assert shifts.min() < -0.999
    exact(shifts.square().mean(), np.array(1 / 3), 0.02)
    assert len(shifts.flatten(2).flatten(0, 1).unique(dim=0)) == 50 * 4
    assert (torch.stack(seen) + images > 1).any()
    assert (torch.stack(seen) + images < 0).any()


def test_no_radius_gives_exactly_nothing() -> None:
    images = random_images(3, size=SIZE)
    for relative in (True, False):
        assert scored(gradients(), images, radius=0, samples=2, relative=relative).tolist() == [0.0] * 3
        still = scored(lambda pixels, targets: torch.ones_like(pixels), images, radius=1, relative=relative)
        assert still.tolist() == [0.0] * 3


def test_maps_of_the_images_are_not_computed_again() -> None:
    """A map that is off by 2 everywhere is that far from its neighbors."""
    images = random_images(3, size=SIZE)
    ones = torch.ones_like(images)
    scores = scored(lambda pixels, targets: ones, images, maps=3 * ones, samples=2)
    exact(scores, np.full(3, 2 / 3), 1e-12)


def test_what_is_not_finite_is_nan() -> None:
    images = random_images(7, size=SIZE)
    maps, explained = torch.ones_like(images), 2 * torch.ones_like(images)
    maps[1, 0, 2, 3], maps[2, 2, 5, 5] = NAN, float("inf")
    explained[3, 1, 0, 0], explained[4, 0, 1, 1] = NAN, float("inf")
    maps[5] = 0
    calls: list[int] = []

    def explain(pixels: Tensor, targets: Tensor) -> Tensor:
        calls.append(len(pixels))
        return (
            explained if len(calls) % 3 == 2 else maps.nan_to_num(nan=1, posinf=1)
        )  # in one sample of three

    relative = scored(explain, images, maps=maps, samples=3)
    exact(relative, np.array([1, NAN, NAN, NAN, NAN, NAN, 1]))
    absolute = scored(explain, images, maps=maps, samples=3, relative=False)
    exact(absolute, np.array([1, NAN, NAN, NAN, NAN, 2, 1]) * (3 * SIZE * SIZE) ** 0.5)
    assert calls == [7] * 6  # the whole batch at a time


def test_maps_of_another_shape_are_refused() -> None:
    images = random_images(2, size=SIZE)
    with pytest.raises(ValueError, match=r"^explain: .*\[2, 1, 6, 6\], expected \[2, 3, 6, 6\]"):
        scored(gradients(1), images, maps=torch.zeros_like(images))

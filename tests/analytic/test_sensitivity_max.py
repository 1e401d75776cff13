"""Max-sensitivity against closed forms, plain loops and captum's."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from captum.metrics import sensitivity_max as captum_sensitivity_max
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
    given = explain(images, targets) if maps is None else maps
    found = sensitivity_max(
        conv_classifier(), images, targets, given, generator=generator(SEED), explain=explain, **parameters
    )
    assert list(found.scores) == [("sensitivity_max", "")]
    assert found.scores["sensitivity_max", ""].dtype == torch.float64
    return found.scores["sensitivity_max", ""]


def neighbors(images: Tensor, radius: float, samples: int) -> list[Tensor]:
    """The draws y of each image, ``[samples, C, H, W]``."""
    seeds = sample_seeds(len(images), samples, generator(SEED))
    rows = [seeds[i * samples : (i + 1) * samples] for i in range(len(images))]
    return [image + radius * uniform(row, images) for image, row in zip(images, rows, strict=True)]


def plain(explain: Explain, images: Tensor, radius: float, samples: int, relative: bool) -> list[float]:
    """Definition 3.1, one image, draw and value at a time."""
    scores = []
    for i, drawn in enumerate(neighbors(images, radius, samples)):
        target = torch.tensor([i % 4])
        own, largest = explain(images[i : i + 1], target).flatten().tolist(), 0.0
        for y in drawn:
            moved = explain(y[None], target).flatten().tolist()
            distance = sum((after - before) ** 2 for after, before in zip(moved, own, strict=True)) ** 0.5
            largest = max(largest, distance)
        scores.append(largest / sum(value**2 for value in own) ** 0.5 if relative else largest)
    return scores


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize(("radius", "samples"), [(0.1, 7), (0.3, 1)])
def test_it_equals_plain_loops(channels: int, relative: bool, radius: float, samples: int) -> None:
    images, explain = random_images(5, size=SIZE), gradients(channels)
    found = scored(explain, images, radius=radius, samples=samples, relative=relative)
    exact(found, plain(explain, images, radius, samples, relative), 1e-10)
    assert (found > 0).all()


@pytest.mark.parametrize("channels", [1, 3])
def test_it_equals_captum(channels: int) -> None:
    images, targets, explain = random_images(5, size=SIZE), cyclic_targets(5), gradients(channels)
    drawn = torch.cat(neighbors(images, 0.2, 7))

    def explained(pixels: Tensor | tuple[Tensor], target: Tensor) -> Tensor | tuple[Tensor]:
        return (explain(pixels[0], target),) if isinstance(pixels, tuple) else explain(pixels, target)

    def perturb(repeated: Tensor) -> Tensor:
        assert (repeated - drawn).abs().max() <= 0.2
        return drawn

    expected = captum_sensitivity_max(
        explained, images, perturb_func=perturb, n_perturb_samples=7, norm_ord=2, target=targets
    )
    exact(scored(explain, images, radius=0.2, samples=7), expected, 1e-10)


def test_draws_fill_the_ball_and_leave_the_pixels_range() -> None:
    """Uniform in [−r, r] around each pixel, anew for each image and draw, and not clipped to [0, 1]."""
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


def test_an_explanation_that_is_the_image_moves_as_far_as_the_image() -> None:
    images = random_images(3, size=SIZE)
    lengths = [
        (drawn - image).flatten(1).norm(dim=1).max()
        for drawn, image in zip(neighbors(images, 0.5, 9), images, strict=True)
    ]
    found = scored(lambda pixels, targets: 2 * pixels, images, radius=0.5, samples=9, relative=False)
    exact(found, 2 * torch.stack(lengths), 1e-12)


def test_no_radius_gives_exactly_nothing() -> None:
    images = random_images(3, size=SIZE)
    for relative in (True, False):
        assert scored(gradients(), images, radius=0, samples=2, relative=relative).tolist() == [0.0] * 3
        still = scored(lambda pixels, targets: torch.ones_like(pixels), images, radius=1, relative=relative)
        assert still.tolist() == [0.0] * 3


def test_maps_are_those_given() -> None:
    """Φ(x) is not drawn again: a map that is off by 1 everywhere is that far from its neighbors."""
    images = random_images(3, size=SIZE)
    ones = torch.ones_like(images)
    found = scored(lambda pixels, targets: ones, images, maps=3 * ones, samples=2)
    exact(found, np.full(3, 2 / 3), 1e-12)


def test_what_is_not_finite_is_nan() -> None:
    images = random_images(7, size=SIZE)
    maps, explained = torch.ones_like(images), 2 * torch.ones_like(images)
    maps[1, 0, 2, 3], maps[2, 2, 5, 5] = NAN, float("inf")
    explained[3, 1, 0, 0], explained[4, 0, 1, 1] = NAN, float("inf")
    maps[5] = 0
    calls: list[int] = []

    def explain(pixels: Tensor, targets: Tensor) -> Tensor:
        calls.append(len(pixels))
        return explained if len(calls) % 3 == 2 else maps.nan_to_num(nan=1, posinf=1)  # in one draw of three

    relative = scored(explain, images, maps=maps, samples=3)
    exact(relative, np.array([1, NAN, NAN, NAN, NAN, NAN, 1]))
    absolute = scored(explain, images, maps=maps, samples=3, relative=False)
    exact(absolute, np.array([1, NAN, NAN, NAN, NAN, 2, 1]) * (3 * SIZE * SIZE) ** 0.5)
    assert calls == [7] * 6  # the whole batch at a time


def test_errors_say_what_was_found() -> None:
    images = random_images(2, size=SIZE)
    for parameters, found in [({"radius": -0.1}, "-0.1, 50"), ({"samples": 0}, "0.1, 0")]:
        with pytest.raises(ValueError, match=r"^radius") as error:
            scored(gradients(), images, **parameters)
        assert str(error.value) == f"radius, samples: found {found}, expected at least 0 and 1"
    with pytest.raises(ValueError, match=r"^explain") as error:
        scored(gradients(1), images, maps=torch.zeros_like(images))
    assert "returned [2, 1, 6, 6], expected [2, 3, 6, 6]" in str(error.value)

"""The optimal explanations against numpy's least squares on designs that are written out square by square."""

from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from scipy import stats
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

from saliency_assay.methods.optimal import (
    covered,
    every_square,
    make_scatter,
    optimal_noisy_baseline,
    optimal_square,
    paint,
    shared_pixels,
    shared_squares,
)

IMAGES, TARGETS = random_images(5, size=8), cyclic_targets(5)
PIXELS = 64


def target_logits(model: nn.Module, images: Tensor, targets: Tensor) -> np.ndarray:
    with torch.no_grad():
        return model(images).gather(1, targets[:, None])[:, 0].numpy()


def masks(height: int, width: int, smallest: int, largest: int) -> np.ndarray:
    """M: a row of ones and zeros for each square inside the image."""
    rows = []
    for side, top, left in product(range(smallest, largest + 1), range(height), range(width)):
        if top + side <= height and left + side <= width:
            mask = np.zeros((height, width))
            mask[top : top + side, left : left + side] = 1
            rows.append(mask.ravel())
    return np.array(rows)


def fall(model: nn.Module, image: Tensor, target: Tensor, perturbed: np.ndarray) -> np.ndarray:
    """f(x) − f(x − I) for each x − I in ``perturbed [S, C, H, W]``."""
    before = target_logits(model, image[None], target[None])
    return before - target_logits(model, torch.from_numpy(perturbed), target.expand(len(perturbed)))


def without(image: Tensor, design: np.ndarray) -> np.ndarray:
    """The image without the pixels of each row of ``design``, ``[S, C, H, W]``."""
    return image.numpy() * (1 - design.reshape(-1, 1, *image.shape[1:]))


def shown_by(
    method: partial[Tensor], model: nn.Module, images: Tensor = IMAGES, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """The maps, and what the model was shown after the images themselves, ``[rows, C, H, W]`` in order."""
    with seen_batches(model) as seen:
        maps = method(model, images, TARGETS[: len(images)], generator=generator(seed))
    assert torch.equal(seen[0], images)
    assert {len(batch) for batch in seen} == {len(images)}
    return maps.numpy(), torch.cat(seen[1:]).numpy()


def perturbed_by(
    method: partial[Tensor], model: nn.Module, images: Tensor = IMAGES
) -> tuple[np.ndarray, np.ndarray]:
    """As ``shown_by``, image after image: ``[N, S, C, H, W]``."""
    maps, shown = shown_by(method, model, images)
    return maps, shown.reshape(-1, len(images), *images.shape[1:]).swapaxes(0, 1)


def least_squares(model: nn.Module, image: Tensor, target: Tensor, baselines: np.ndarray) -> np.ndarray:
    """The solution ``[C, H, W]`` of least norm on the explicit design."""
    design = (image.numpy() - baselines).astype(float).reshape(len(baselines), -1)
    falls = fall(model, image, target, baselines)
    return np.linalg.lstsq(design, falls, rcond=None)[0].reshape(image.shape)


# ------------------------------------------------------------------------------------------ noisy baseline


@pytest.mark.parametrize(
    ("samples", "channels", "size", "noise", "protocol"),
    [
        (2300, 3, 6, 0.2, "printed"),
        (109, 3, 6, 0.2, "released"),
        (108, 3, 6, 1e-3, "printed"),
        (40, 3, 6, 0.2, "printed"),
        (40, 3, 6, 1e-3, "released"),
        (1, 3, 6, 0.2, "printed"),
        (600, 3, 8, 0.2, "printed"),
        (300, 1, 8, 1e-3, "released"),
    ],
)
def test_noisy_baseline_is_the_least_squares_solution(
    samples: int, channels: int, size: int, noise: float, protocol: str
) -> None:
    """108 values with many, one more, as many, fewer, one; 192, where the scatter matrix has two panels; and 64."""
    model, images = conv_classifier(channels=channels), random_images(5, channels, size)
    method = partial(optimal_noisy_baseline, samples=samples, noise=noise, protocol=protocol)
    maps, seen = shown_by(method, model, images)
    assert samples <= len(seen) < samples + 5
    for image, target, map_ in zip(images, TARGETS, maps, strict=True):
        expected = least_squares(model, image, target, seen[:samples])
        exact(map_, expected, floor=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("samples", [40, 109])
def test_images_among_the_baselines(samples: int) -> None:
    """Their x − z̄ lies where the baselines vary, also with fewer of them than values."""
    model, images = conv_classifier(), random_images(5, size=6)
    method = partial(optimal_noisy_baseline, samples=samples)
    _, seen = shown_by(method, model, images)
    images = torch.from_numpy(seen[[0, 7, 15, 23, 39]])
    maps, again = shown_by(method, model, images)
    assert (again == seen).all()
    for image, target, map_ in zip(images, TARGETS, maps, strict=True):
        expected = least_squares(model, image, target, seen[:samples])
        exact(map_, expected, floor=1e-8 * np.abs(expected).max())


def test_noisy_baseline_in_float32_solves_in_float64() -> None:
    model, images = conv_classifier(dtype=torch.float32), random_images(5, size=6, dtype=torch.float32)
    maps, seen = shown_by(partial(optimal_noisy_baseline, samples=1500), model, images)
    assert (maps.dtype, seen.dtype) == (np.float32, np.float32)
    for image, target, map_ in zip(images, TARGETS, maps, strict=True):
        expected = least_squares(model, image, target, seen[:1500])
        exact(map_, expected, 1e-4, floor=1e-5 * np.abs(expected).max())


def test_noisy_baselines_are_normal_about_black() -> None:
    model = conv_classifier()
    _, seen = shown_by(partial(optimal_noisy_baseline, samples=1200, noise=0.3), model)
    assert stats.kstest(seen[::7].ravel(), "norm", (0, 0.3)).pvalue > 0.01
    assert len(np.unique(seen[:, 0, 0, 0])) == len(seen) == 1200


def test_released_noisy_baselines_stay_in_the_range_of_pixels() -> None:
    """The released I = clip(x + n, x − 1, x), n ~ N(0, 0.2²), of the same noise as the printed I = x − z."""
    model = conv_classifier()
    _, printed = shown_by(partial(optimal_noisy_baseline, samples=200), model)
    _, released = shown_by(partial(optimal_noisy_baseline, samples=200, protocol="released"), model)
    image = IMAGES.numpy()[:, None]
    exact(image - released, np.clip(image - printed, image - 1, image), floor=1e-15)
    assert released.min() == 0
    assert 0.5 < released.max() <= 1
    assert printed.min() < -0.5


def test_noisy_baseline_without_noise_is_complete() -> None:
    """One perturbation, I = x: the map of least norm whose product with it is f(x) − f(0) is along x."""
    model, black = conv_classifier(), torch.zeros_like(IMAGES)
    maps = optimal_noisy_baseline(model, IMAGES, TARGETS, generator=generator(), samples=300, noise=0.0)
    falls = torch.from_numpy(target_logits(model, IMAGES, TARGETS) - target_logits(model, black, TARGETS))
    exact(maps, IMAGES * (falls / IMAGES.square().sum((1, 2, 3)))[:, None, None, None])
    of_black = optimal_noisy_baseline(model, black, TARGETS, generator=generator(), samples=300, noise=0.0)
    exact(of_black, np.zeros(black.shape), floor=0)


@pytest.mark.parametrize("protocol", ["printed", "released"])
def test_baselines_depend_on_the_seed_alone(protocol: str) -> None:
    model, used = conv_classifier(), generator(3)
    torch.rand(100, generator=used)
    state = used.get_state()
    method = partial(optimal_noisy_baseline, model, IMAGES, TARGETS, samples=12, protocol=protocol)
    maps = method(generator=generator(3))
    assert torch.equal(method(generator=used), maps)
    assert torch.equal(used.get_state(), state)
    assert not torch.equal(method(generator=generator(4)), maps)


def test_every_batch_sees_the_same_baselines() -> None:
    """1,100 samples: passes go across the blocks in which baselines are sampled."""
    sizes = (2, 3)
    model, method = conv_classifier(), partial(optimal_noisy_baseline, samples=1100)
    maps, seen = shown_by(method, model)
    split = []
    for images, targets in zip(IMAGES.split(sizes), TARGETS.split(sizes), strict=True):
        with seen_batches(model) as shown:
            split.append(method(model, images, targets, generator=generator()))
        assert torch.equal(shown[0], images)
        assert {len(batch) for batch in shown} == {len(images)}
        assert len(shown) == 1 + -(-1100 // len(images))
        assert (torch.cat(shown[1:])[:1100].numpy() == seen[:1100]).all()
    exact(torch.cat(split), maps, floor=1e-10)


def test_the_scatter_is_factorized_once_for_all_batches() -> None:
    model = conv_classifier()
    serial = partial(optimal_noisy_baseline, model, generator=generator(3), samples=50)
    make_scatter.cache_clear()
    for images, targets in zip(IMAGES.split(2), TARGETS.split(2), strict=True):
        serial(images, targets)
    cache = make_scatter.cache_info()
    assert (cache.misses, cache.hits) == (1, 2)
    others = [
        {"seed": 4},
        {"samples": 51},
        {"noise": 0.1},
        {"protocol": "released"},
        {"images": IMAGES[:, :, :4]},
    ]
    for missed, other in enumerate(others, start=2):
        arguments = {"images": IMAGES, "targets": TARGETS, "samples": 50, "seed": 3, **other}
        optimal_noisy_baseline(model, generator=generator(arguments.pop("seed")), **arguments)
        assert make_scatter.cache_info().misses == missed


# -------------------------------------------------------------------------------------------------- square


@pytest.mark.parametrize("ridge", [0.0, 2.0])
@pytest.mark.parametrize(("smallest", "largest"), [(1, 10), (1, 1), (3, 5), (3, 3)], ids=str)
def test_square_is_the_least_squares_solution(smallest: int, largest: int, ridge: float) -> None:
    """Sides above 8 have no place in the image; side 1 is occlusion; 3 to 5 see 63 of 64 directions, 3 alone 36."""
    model = conv_classifier()
    settings = {"smallest": smallest, "largest": largest, "ridge": ridge}
    maps = optimal_square(model, IMAGES, TARGETS, generator=generator(), **settings)
    assert maps.shape == (5, 1, 8, 8)
    assert_solved(maps.numpy(), model, masks(8, 8, smallest, largest), ridge)


def assert_solved(maps: np.ndarray, model: nn.Module, design: np.ndarray, ridge: float) -> None:
    """Assert that maps solve the (ridge) regression of falls on ``design``, with the least norm without ridge."""
    for image, target, map_ in zip(IMAGES, TARGETS, maps, strict=True):
        falls = fall(model, image, target, without(image, design))
        if ridge:
            expected = np.linalg.inv(design.T @ design + ridge * np.eye(PIXELS)) @ design.T @ falls
        else:
            expected = np.linalg.lstsq(design, falls, rcond=None)[0]
        exact(map_.ravel(), expected, floor=1e-8 * np.abs(expected).max())


def sampled_design(seen: np.ndarray) -> np.ndarray:
    """The squares ``[S, H·W]`` that are black in the perturbed images: those of one are those of all."""
    black = (seen == 0).all(2)
    assert (black == black[:1]).all()
    assert (IMAGES > 0).all()
    return black[0].reshape(black.shape[1], -1).astype(float)


@pytest.mark.parametrize("squares", [20, 110], ids=["fewer than pixels", "more than pixels"])
@pytest.mark.parametrize("ridge", [0.0, 1e-3, 2.0])
def test_sampled_squares_are_the_least_squares_solution(squares: int, ridge: float) -> None:
    model = conv_classifier()
    method = partial(optimal_square, squares=squares, smallest=2, ridge=ridge)
    maps, seen = perturbed_by(method, model)
    design = sampled_design(seen)
    assert len(np.unique(design, axis=0)) == squares
    assert {tuple(row) for row in design} <= {tuple(row) for row in masks(8, 8, 2, 8)}
    assert_solved(maps, model, design, ridge)


def test_square_on_a_large_image() -> None:
    """50,176 pixels, 40 squares: the explicit formula in the form that inverts 40 × 40."""
    model = with_random_state(
        nn.Sequential(nn.AvgPool2d(32), nn.Flatten(), nn.Linear(49, CLASSES), nn.Tanh()), 1
    )
    image, target = random_images(1, channels=1, size=224), cyclic_targets(1)
    method = partial(optimal_square, squares=40, smallest=20, largest=60, ridge=100.0)
    maps, seen = perturbed_by(method, model, image)
    design = (seen[0, :, 0] == 0).reshape(40, -1).astype(float)
    falls = fall(model, image[0], target[0], seen[0])
    assert np.abs(falls).max() > 1e-6
    expected = design.T @ np.linalg.inv(design @ design.T + 100 * np.eye(40)) @ falls
    exact(maps.ravel(), expected, floor=1e-8 * np.abs(expected).max())


# ------------------------------------------------------------------------------- squares and their designs


@pytest.mark.parametrize(("height", "width"), [(7, 9), (6, 4)], ids=str)
@pytest.mark.parametrize("share", [1.0, 0.3], ids=["all", "some"])
def test_products_of_the_design_are_those_of_the_explicit_matrix(
    height: int, width: int, share: float
) -> None:
    squares = every_square(height, width, 1, 10)
    design = masks(height, width, 1, 10)
    assert len(squares) == len(design)
    kept = np.random.default_rng(0).permutation(len(design))[: int(share * len(design))]
    squares, design = squares[kept], design[kept]
    exact(covered(squares, height, width).flatten(1).double(), design)
    exact(shared_squares(squares, height, width), design.T @ design)
    exact(shared_pixels(squares), design @ design.T)
    values = np.random.default_rng(1).normal(size=(3, len(design)))
    painted = paint(squares, torch.from_numpy(values), height, width)
    exact(painted.flatten(1), values @ design, floor=1e-12)


# ------------------------------------------------------------------------------------------------- contract


LARGE = torch.zeros(1, 1, 101, 100)


@pytest.mark.parametrize(
    ("method", "images", "message"),
    [
        (optimal_noisy_baseline, LARGE, "images: found 10100 values an image.* at most 10000;"),
        (partial(optimal_square, largest=2), LARGE, "squares: found 20000 on 10100 pixels.* at most 10000"),
        (partial(optimal_square, smallest=9), IMAGES, "smallest: found 9, expected 1 to 8"),
        (partial(optimal_square, squares=205), IMAGES, "squares: found 205, expected 0 for all or 1 to 204"),
    ],
)
def test_what_cannot_be_solved_is_refused(method: partial[Tensor], images: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        method(conv_classifier(), images, cyclic_targets(len(images)), generator=generator())

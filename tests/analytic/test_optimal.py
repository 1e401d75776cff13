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

from saliency_assay.methods.backprop import guided_backprop
from saliency_assay.methods.gradient import gradient, gradient_x_input
from saliency_assay.methods.optimal_noisy import NormalEquations, noisy_baseline
from saliency_assay.methods.optimal_square import make_design, square
from saliency_assay.methods.path import integrated_gradients
from saliency_assay.methods.smoothed_path import integrated_gradients_smoothgrad
from saliency_assay.methods.smoothing import smoothgrad
from saliency_assay.methods.squares import covered, every_square, paint, shared_pixels, shared_squares

IMAGES, TARGETS = random_images(5, size=8), cyclic_targets(5)
PIXELS, VALUES = 64, 192
METHODS = {
    "noisy_baseline": partial(noisy_baseline, samples=7),
    "square": partial(square, largest=2),
    "square, sampled": partial(square, squares=9, ridge=0.5),
}
EVERY_METHOD = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def linear() -> nn.Module:
    return with_random_state(nn.Sequential(nn.Flatten(), nn.Linear(VALUES, CLASSES)), seed=1)


def target_logits(model: nn.Module, images: Tensor, targets: Tensor) -> np.ndarray:
    with torch.no_grad():
        return np.array(
            [model(image[None])[0, target] for image, target in zip(images, targets, strict=True)]
        )


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


def perturbed_by(
    method: partial[Tensor], model: nn.Module, images: Tensor = IMAGES, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """The maps, and the perturbed images ``[N, S, C, H, W]`` that the model was shown for them."""
    with seen_batches(model) as seen:
        maps = method(model, images, TARGETS[: len(images)], generator=generator(seed))
    assert torch.equal(seen[0], images)
    assert {len(batch) for batch in seen} == {len(images)}
    return maps.numpy(), torch.cat(seen[1:]).reshape(len(images), -1, *images.shape[1:]).numpy()


def infidelity(
    map_: np.ndarray, perturbations: np.ndarray, falls: np.ndarray, rescale: bool = False
) -> float:
    """INFD of one map: the mean of (Iᵀ Φ − (f(x) − f(x − I)))², Φ times its best scalar first if asked."""
    products = np.array([(perturbation * map_).sum() for perturbation in perturbations])
    scale = (products * falls).sum() / (products**2).sum() if rescale else 1.0
    return float(((scale * products - falls) ** 2).mean())


def assert_least(
    best: np.ndarray, others: list[np.ndarray], perturbations: np.ndarray, falls: np.ndarray
) -> None:
    least = infidelity(best, perturbations, falls)
    assert least > 1e-9  # the model is not linear: no map is perfect
    nudge = np.random.default_rng(0).normal(size=best.shape) * best.std() * 0.01
    assert infidelity(best + nudge, perturbations, falls) > least
    assert infidelity(1.01 * best, perturbations, falls) > least
    for other in others:
        assert infidelity(other, perturbations, falls) > least
        assert infidelity(other, perturbations, falls, rescale=True) > least


# ------------------------------------------------------------------------------------------ noisy baseline


@pytest.mark.parametrize("sizes", [(1, 700, 1500, 99), (2300,), (1024, 1024, 252)], ids=str)
def test_normal_equations_take_rows_in_any_portions(sizes: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    equations = NormalEquations(300, torch.device("cpu"))
    for _ in range(2):  # the second time in the memory of the first
        design, values = random.normal(size=(2300, 300)), random.normal(size=2300)
        equations.clear()
        parts = (torch.from_numpy(array).split(sizes) for array in (design, values))
        for part in zip(*parts, strict=True):
            equations.add(*part)
        assert equations.rows == 2300
        exact(equations.solution(), np.linalg.lstsq(design, values, rcond=None)[0], floor=1e-11)


@pytest.mark.parametrize("protocol", ["printed", "released"])
@pytest.mark.parametrize(("samples", "channels"), [(600, 3), (300, 1), (100, 3)], ids=str)
def test_noisy_baseline_is_the_least_squares_solution(protocol: str, samples: int, channels: int) -> None:
    """With 100 samples of 192 values the solution of least norm, which is what lstsq gives."""
    model, images = conv_classifier(channels=channels), random_images(5, channels, size=8)
    maps, seen = perturbed_by(partial(noisy_baseline, samples=samples, protocol=protocol), model, images)
    assert seen.shape[1] == samples
    for image, target, perturbed, map_ in zip(images, TARGETS, seen, maps, strict=True):
        design = (image.numpy() - perturbed).reshape(samples, -1)
        expected = np.linalg.lstsq(design, fall(model, image, target, perturbed), rcond=None)[0]
        exact(map_.ravel(), expected, floor=1e-8 * np.abs(expected).max())


def test_noisy_baselines_are_normal_about_black() -> None:
    model = conv_classifier()
    _, seen = perturbed_by(partial(noisy_baseline, samples=300, noise=0.3), model)
    assert stats.kstest(seen.ravel(), "norm", (0, 0.3)).pvalue > 0.01
    flat = seen.reshape(5 * 300, -1)
    assert len(np.unique(flat[:, 0])) == len(flat)  # neither samples nor images share their noise
    assert abs(np.corrcoef(flat[:300, 0], flat[300:600, 0])[0, 1]) < 0.2


def test_released_noisy_baselines_stay_in_the_range_of_pixels() -> None:
    """The released I = clip(x + n, x − 1, x), n ~ N(0, 0.2²), of the same noise as the printed I = x − z."""
    model = conv_classifier()
    _, printed = perturbed_by(partial(noisy_baseline, samples=40), model)
    _, released = perturbed_by(partial(noisy_baseline, samples=40, protocol="released"), model)
    image = IMAGES.numpy()[:, None]
    exact(image - released, np.clip(image - printed, image - 1, image), floor=1e-15)
    assert released.min() == 0
    assert 0.5 < released.max() <= 1
    assert printed.min() < -0.5


def test_noisy_baseline_of_a_linear_model_is_its_weights() -> None:
    model = linear()
    weights = model[1].weight.detach()[TARGETS].reshape(IMAGES.shape)
    for protocol in ("printed", "released"):
        maps = noisy_baseline(model, IMAGES, TARGETS, generator=generator(), samples=500, protocol=protocol)
        exact(maps, weights, floor=1e-10)


def test_noisy_baseline_without_noise_is_complete() -> None:
    """One perturbation, I = x: the map of least norm whose product with it is f(x) − f(0) is along x."""
    model = conv_classifier()
    maps = noisy_baseline(model, IMAGES, TARGETS, generator=generator(), samples=300, noise=0.0)
    black = torch.zeros_like(IMAGES)
    falls = torch.from_numpy(target_logits(model, IMAGES, TARGETS) - target_logits(model, black, TARGETS))
    exact(maps, IMAGES * (falls / IMAGES.square().sum((1, 2, 3)))[:, None, None, None])


def test_noisy_baseline_has_the_least_infidelity_of_local_explanations() -> None:
    model = conv_classifier()
    maps, seen = perturbed_by(partial(noisy_baseline, samples=600), model)
    rivals = [
        gradient(model, IMAGES, TARGETS, generator=generator()),
        smoothgrad(model, IMAGES, TARGETS, generator=generator(), noise=0.2),
        guided_backprop(model, IMAGES, TARGETS, generator=generator()),
        integrated_gradients(model, IMAGES, TARGETS, generator=generator()) / IMAGES,
        integrated_gradients_smoothgrad(model, IMAGES, TARGETS, generator=generator(), samples=5) / IMAGES,
    ]
    for i, (image, target, perturbed) in enumerate(zip(IMAGES, TARGETS, seen, strict=True)):
        falls = fall(model, image, target, perturbed)
        assert_least(maps[i], [rival[i].numpy() for rival in rivals], image.numpy() - perturbed, falls)


# -------------------------------------------------------------------------------------------------- square


@pytest.mark.parametrize(("smallest", "largest"), [(1, 10), (1, 3), (3, 5), (3, 3)], ids=str)
def test_square_is_the_least_squares_solution(smallest: int, largest: int) -> None:
    """Sides above 8 have no place in the image; sides 3 to 5 see 63 of 64 directions, side 3 alone 36."""
    model = conv_classifier()
    settings = {"smallest": smallest, "largest": largest}
    maps = square(model, IMAGES, TARGETS, generator=generator(), **settings)
    assert maps.shape == (5, 1, 8, 8)
    design = masks(8, 8, smallest, largest)
    for image, target, map_ in zip(IMAGES, TARGETS, maps, strict=True):
        falls = fall(model, image, target, without(image, design))
        expected = np.linalg.lstsq(design, falls, rcond=None)[0]
        exact(map_.ravel(), expected, floor=1e-8 * np.abs(expected).max())


def sampled_design(seen: np.ndarray) -> np.ndarray:
    """The squares ``[S, H·W]`` that are black in the perturbed images: those of one are those of all."""
    black = (seen == 0).all(2)
    assert (black == black[:1]).all()
    assert (IMAGES > 0).all()
    return black[0].reshape(black.shape[1], -1).astype(float)


@pytest.mark.parametrize("squares", [20, 110], ids=["fewer than pixels", "more than pixels"])
def test_sampled_squares_are_the_least_squares_solution(squares: int) -> None:
    model = conv_classifier()
    maps, seen = perturbed_by(partial(square, squares=squares, smallest=2), model)
    design = sampled_design(seen)
    assert len(np.unique(design, axis=0)) == squares
    assert {tuple(row) for row in design} <= {tuple(row) for row in masks(8, 8, 2, 8)}
    for image, target, map_ in zip(IMAGES, TARGETS, maps, strict=True):
        falls = fall(model, image, target, without(image, design))
        expected = np.linalg.lstsq(design, falls, rcond=None)[0]
        exact(map_.ravel(), expected, floor=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("squares", [0, 20, 150], ids=["all", "fewer than pixels", "more than pixels"])
@pytest.mark.parametrize("ridge", [1e-3, 2.0])
def test_square_with_ridge(squares: int, ridge: float) -> None:
    model = conv_classifier()
    maps, seen = perturbed_by(partial(square, squares=squares, ridge=ridge), model)
    design = sampled_design(seen)
    for image, target, map_ in zip(IMAGES, TARGETS, maps, strict=True):
        falls = fall(model, image, target, without(image, design))
        expected = np.linalg.inv(design.T @ design + ridge * np.eye(PIXELS)) @ design.T @ falls
        exact(map_.ravel(), expected, floor=1e-8 * np.abs(expected).max())


def test_square_on_a_large_image() -> None:
    """50,176 pixels, 40 squares: the explicit formula in the form that inverts 40 × 40."""
    model = with_random_state(
        nn.Sequential(nn.AvgPool2d(32), nn.Flatten(), nn.Linear(49, CLASSES), nn.Tanh()), 1
    )
    image, target = random_images(1, channels=1, size=224), cyclic_targets(1)
    method = partial(square, squares=40, smallest=20, largest=60, ridge=100.0)
    maps, seen = perturbed_by(method, model, image)
    design = (seen[0, :, 0] == 0).reshape(40, -1).astype(float)
    falls = fall(model, image[0], target[0], seen[0])
    assert np.abs(falls).max() > 1e-6
    expected = design.T @ np.linalg.inv(design @ design.T + 100 * np.eye(40)) @ falls
    exact(maps.ravel(), expected, floor=1e-8 * np.abs(expected).max())


def test_square_of_a_linear_model_is_weights_times_input() -> None:
    model = linear()
    weights = model[1].weight.detach()[TARGETS].reshape(IMAGES.shape)
    maps = square(model, IMAGES, TARGETS, generator=generator())
    exact(maps, (weights * IMAGES).sum(1, keepdim=True))


def test_square_of_single_pixels_is_their_occlusion() -> None:
    """Proposition 2.4: with one pixel removed at a time Φ ⊙ x is the occlusion of each."""
    model = conv_classifier()
    maps = square(model, IMAGES, TARGETS, generator=generator(), largest=1)
    for image, target, map_ in zip(IMAGES, TARGETS, maps, strict=True):
        exact(map_.ravel(), fall(model, image, target, without(image, np.eye(PIXELS))), floor=1e-10)


def test_square_in_float32_solves_in_float64() -> None:
    single = square(
        conv_classifier(dtype=torch.float32), IMAGES.float(), TARGETS, generator=generator(), largest=4
    )
    assert single.dtype is torch.float32
    double = square(conv_classifier(), IMAGES, TARGETS, generator=generator(), largest=4)
    exact(single, double, 1e-4, floor=1e-5 * float(double.abs().max()))


def test_square_has_the_least_infidelity_of_global_explanations() -> None:
    model = conv_classifier()
    maps, seen = perturbed_by(partial(square), model)
    rivals = [
        gradient_x_input(model, IMAGES, TARGETS, generator=generator()),
        smoothgrad(model, IMAGES, TARGETS, generator=generator(), noise=0.2) * IMAGES,
        guided_backprop(model, IMAGES, TARGETS, generator=generator()) * IMAGES,
        integrated_gradients(model, IMAGES, TARGETS, generator=generator()),
        integrated_gradients_smoothgrad(model, IMAGES, TARGETS, generator=generator(), samples=5),
        square(model, IMAGES, TARGETS, generator=generator(), largest=1),
    ]
    design = masks(8, 8, 1, 8)
    for i, (image, target) in enumerate(zip(IMAGES, TARGETS, strict=True)):
        falls = fall(model, image, target, without(image, design))
        summed = [rival[i].sum(0).numpy().ravel() for rival in rivals]
        assert_least(maps[i].ravel(), summed, design, falls)
    assert seen.shape[1] == len(design)


@pytest.mark.parametrize("squares", [0, 12])
def test_squares_are_factorised_once_for_all_batches(squares: int) -> None:
    model = conv_classifier()
    serial = partial(square, model, generator=generator(3), largest=3, squares=squares)
    make_design.cache_clear()
    for images, targets in zip(IMAGES.split(2), TARGETS.split(2), strict=True):
        serial(images, targets)
    found = make_design.cache_info()
    assert (found.misses, found.hits) == (1, 2)
    square(model, IMAGES, TARGETS, generator=generator(4), largest=3, squares=squares)
    assert make_design.cache_info().misses == (2 if squares else 1)


def test_sampled_squares_hang_on_the_seed_alone() -> None:
    model, used = conv_classifier(), generator(3)
    torch.rand(100, generator=used)
    settings = {"squares": 12, "ridge": 0.1}
    maps = square(model, IMAGES, TARGETS, generator=generator(3), **settings)
    assert torch.equal(square(model, IMAGES, TARGETS, generator=used, **settings), maps)
    assert not torch.equal(square(model, IMAGES, TARGETS, generator=generator(4), **settings), maps)


# ------------------------------------------------------------------------------- squares and their designs


@pytest.mark.parametrize(("height", "width"), [(7, 9), (6, 4)], ids=str)
@pytest.mark.parametrize("share", [1.0, 0.3], ids=["all", "some"])
def test_what_least_squares_asks_of_the_design(height: int, width: int, share: float) -> None:
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


def test_squares_of_the_released_code_are_counted() -> None:
    assert len(every_square(28, 28, 1, 10)) == 5605


# ------------------------------------------------------------------------------------------------- contract


@pytest.mark.parametrize("sizes", [(2, 3), (1, 1, 1, 1, 1), (4, 1)], ids=str)
def test_noise_does_not_depend_on_the_split(sizes: tuple[int, ...]) -> None:
    """300 samples: rows of an image are spread over passes, and over blocks of draws, in many ways."""
    model, method = conv_classifier(), partial(noisy_baseline, samples=300)
    maps, seen = perturbed_by(method, model)
    serial = partial(method, model, generator=generator())
    with seen_batches(model) as parts:
        split = [serial(*part) for part in zip(IMAGES.split(sizes), TARGETS.split(sizes), strict=True)]
    shown = iter(parts)
    for image, size in zip(IMAGES.split(sizes), sizes, strict=True):
        assert torch.equal(next(shown), image)
        rows = torch.cat([next(shown) for _ in range(300)])
        assert rows.shape[0] == 300 * size
        assert (seen.reshape(-1, *IMAGES.shape[1:])[: len(rows)] == rows.numpy()).all()
        seen = seen[size:]
    exact(torch.cat(split), maps)


@EVERY_METHOD
@pytest.mark.parametrize("sizes", [(2, 3), (1, 1, 1, 1, 1), (4, 1)], ids=str)
def test_any_split_gives_the_same_maps(method: partial[Tensor], sizes: tuple[int, ...]) -> None:
    model = conv_classifier()
    whole = method(model, IMAGES, TARGETS, generator=generator())
    serial = partial(method, model, generator=generator())
    parts = [serial(*part) for part in zip(IMAGES.split(sizes), TARGETS.split(sizes), strict=True)]
    exact(torch.cat(parts), whole, floor=1e-10)


@EVERY_METHOD
def test_one_seed_one_result(method: partial[Tensor]) -> None:
    model = conv_classifier()
    maps = method(model, IMAGES, TARGETS, generator=generator(5))
    assert torch.equal(method(model, IMAGES, TARGETS, generator=generator(5)), maps)
    same = torch.equal(method(model, IMAGES, TARGETS, generator=generator(6)), maps)
    assert same is (method is METHODS["square"])


@EVERY_METHOD
def test_a_pass_has_as_many_rows_as_the_batch(method: partial[Tensor]) -> None:
    passes = {"noisy_baseline": 1 + 7, "square": 1 + 64 + 49, "square, sampled": 1 + 9}
    with seen_batches(model := conv_classifier()) as seen:
        method(model, IMAGES, TARGETS, generator=generator())
    assert [len(batch) for batch in seen] == [5] * passes[next(k for k, v in METHODS.items() if v is method)]


@EVERY_METHOD
def test_inputs_that_learn_get_no_graph(method: partial[Tensor]) -> None:
    images = IMAGES.clone().requires_grad_()
    maps = method(conv_classifier(), images, TARGETS, generator=generator())
    assert not maps.requires_grad
    assert images.grad is None


@EVERY_METHOD
def test_a_model_without_logits_is_refused(method: partial[Tensor]) -> None:
    with pytest.raises(
        ValueError, match=r"^model: returned float64 \[5, 3, 8, 8\], expected logits \[5, K\]$"
    ):
        method(nn.Identity(), IMAGES, TARGETS, generator=generator())


LARGE = torch.zeros(1, 1, 101, 100)


@pytest.mark.parametrize(
    ("method", "images", "message"),
    [
        (
            partial(noisy_baseline),
            LARGE,
            "images: found 10100 values an image, noisy_baseline solves for at most 10000; "
            "use square with a sample of squares and ridge",
        ),
        (
            partial(noisy_baseline, samples=0),
            IMAGES,
            "samples, noise: found 0, 0.2, expected at least 1 and 0",
        ),
        (
            partial(noisy_baseline, noise=-1.0),
            IMAGES,
            "samples, noise: found 20000, -1.0, expected at least 1 and 0",
        ),
        (
            partial(noisy_baseline, protocol="none"),
            IMAGES,
            "protocol: found 'none', valid: printed, released",
        ),
        (
            partial(square, largest=2),
            LARGE,
            "squares: found 20000 on 10100 pixels, expected at most 10000 of either; "
            "give squares and ridge to solve for a sample",
        ),
        (partial(square, smallest=0), IMAGES, "smallest: found 0, expected 1 to 8, the image's shorter side"),
        (partial(square, smallest=9), IMAGES, "smallest: found 9, expected 1 to 8, the image's shorter side"),
        (
            partial(square, smallest=3, largest=2),
            IMAGES,
            "largest: found 2, expected at least smallest, 3",
        ),
        (
            partial(square, squares=205),
            IMAGES,
            "squares: found 205, expected 0 for all or 1 to 204, as many as fit",
        ),
        (
            partial(square, squares=-1),
            IMAGES,
            "squares: found -1, expected 0 for all or 1 to 204, as many as fit",
        ),
        (partial(square, ridge=-0.5), IMAGES, "ridge: found -0.5, expected at least 0"),
    ],
)
def test_what_cannot_be_solved_is_refused(method: partial[Tensor], images: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=r"^\w+(, \w+)?: found ") as error:
        method(conv_classifier(), images, cyclic_targets(len(images)), generator=generator())
    assert str(error.value) == message

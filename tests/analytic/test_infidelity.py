"""Infidelity against closed forms, plain loops, captum's, and the explanations that are optimal for it."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import combinations, product
from math import comb, factorial
from typing import Any

import numpy as np
import pytest
import torch
from captum.metrics import infidelity as captum_infidelity
from scipy import stats
from support import (
    SmoothNet,
    conv_classifier,
    cyclic_targets,
    exact,
    generator,
    random_images,
    with_random_state,
)
from torch import Tensor, nn

from saliency_assay.methods.optimal import optimal_noisy_baseline, optimal_square
from saliency_assay.metrics import infidelity as infidelity_module
from saliency_assay.metrics import subsets as subsets_module
from saliency_assay.metrics.infidelity import (
    coalition_sizes,
    infidelity_noisy_baseline,
    infidelity_shap,
    infidelity_square,
    infidelity_subset,
    noisy_baselines,
    removed_coalitions,
    removed_squares,
    removed_subsets,
    subset_size,
)
from saliency_assay.metrics.scored import Scored
from saliency_assay.metrics.subsets import sample_subsets

NAN, SIZE, SEED = float("nan"), 6, 11
Fields = dict[str, Any]
SQUARE = (removed_squares, infidelity_square, {"smallest": 2, "largest": 4})
SUBSET = (removed_subsets, infidelity_subset, {"samples": 40, "share": 0.3})
SHAP = (removed_coalitions, infidelity_shap, {"samples": 40})
NOISY = (noisy_baselines, infidelity_noisy_baseline, {"samples": 40, "noise": 0.2})
CASES = {"square": SQUARE, "subset": SUBSET, "shap": SHAP, "noisy": NOISY}
SETS = {name: CASES[name] for name in ("square", "subset", "shap")}
RESPONSES_ONLY = {"explanation", "rescale"}  # what only the metric reads


def scored(case: tuple, model: Any, images: Tensor, targets: Tensor, maps: Tensor, **more: Any) -> Tensor:
    """A metric and its model responses, each with a generator of one seed."""
    model_responses, metric, parameters = case
    given = {**parameters, **more}
    asked = {name: value for name, value in given.items() if name not in RESPONSES_ONLY}
    responses = model_responses(model, images, targets, generator=generator(SEED), **asked)
    found = metric(model, images, targets, maps, generator=generator(SEED), responses=responses, **given)
    assert list(found.scores) == [("infidelity", "")]
    assert not found.curves
    return found.scores["infidelity", ""]


def some_maps(channels: int, size: int = SIZE) -> Tensor:
    """One of each: any values, ties and many zeros, negative values alone, constant, zero, NaN, infinite."""
    maps = torch.randn(7, channels, size, size, generator=generator(3), dtype=torch.float64)
    maps[1] = (maps[1] * 2).round() / 2
    maps[2] = -maps[2].abs()
    maps[3], maps[4] = 0.7, 0.0
    maps[5, 0, 2, 1], maps[6, -1, 5, 5] = NAN, float("inf")
    return maps


class LinearNet(nn.Module):
    """Logits that are linear in the pixels, with an offset."""

    def __init__(self, pixels: int) -> None:
        super().__init__()
        weights = torch.randn(4, pixels, generator=generator(5), dtype=torch.float64)
        self.weights = nn.Parameter(weights)

    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1) @ self.weights.T + 3


def gradient_of(model: LinearNet, images: Tensor, targets: Tensor) -> Tensor:
    return model.weights[targets].detach().reshape(images.shape)


# ------------------------------------------------------------------------------------------- plain loops


def plain_squares(smallest: int, largest: int) -> list[np.ndarray]:
    masks = []
    for side in range(smallest, largest + 1):
        for top, left in product(range(SIZE - side + 1), repeat=2):
            mask = np.zeros((SIZE, SIZE), dtype=bool)
            for row, column in product(range(side), repeat=2):
                mask[top + row, left + column] = True
            masks.append(mask)
    return masks


def smallest_keys(keys: Tensor, sizes: Iterable[int], size: int = SIZE) -> list[np.ndarray]:
    """For each row of keys, the pixels of its ``sizes`` smallest ones."""
    masks = []
    for row, count in zip(keys.tolist(), sizes, strict=True):
        chosen = {pixel for _, pixel in sorted((key, pixel) for pixel, key in enumerate(row))[:count]}
        masks.append(np.array([pixel in chosen for pixel in range(size * size)]).reshape(size, size))
    return masks


def plain_masks(name: str, samples: int = 40) -> list[np.ndarray]:
    child, pixels = generator(SEED), SIZE * SIZE
    if name == "square":
        return plain_squares(2, 4)
    sizes = [round(0.3 * pixels)] * samples
    if name == "shap":
        kernel = [
            comb(pixels, s) * (pixels - 1) / (comb(pixels, s) * s * (pixels - s)) for s in range(1, pixels)
        ]
        shares = torch.tensor([weight / (pixels - 1) for weight in kernel], dtype=torch.float64)
        sizes = (torch.multinomial(shares, samples, replacement=True, generator=child) + 1).tolist()
    keys = torch.rand(samples, pixels, generator=child, dtype=torch.float64)
    return smallest_keys(keys, sizes)


def output(model: Any, image: np.ndarray, target: int) -> float:
    with torch.no_grad():
        return float(model(torch.tensor(image)[None])[0, target])


def plain_infidelity(
    model: Any, image: np.ndarray, target: int, pairs: Iterable[tuple[np.ndarray, float]], rescale: bool
) -> float:
    """Equation 1 for (x − I, IᵀΦ), one at a time."""
    before = output(model, image, target)
    both = [(predicted, before - output(model, shown, target)) for shown, predicted in pairs]
    scale = 1.0
    if rescale:
        power = sum(predicted**2 for predicted, _ in both)
        scale = sum(predicted * drop for predicted, drop in both) / power if power else 0.0
    return sum((scale * predicted - drop) ** 2 for predicted, drop in both) / len(both)


def plain_removal(
    model: Any,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    masks: list[np.ndarray],
    explanation: str,
    rescale: bool,
) -> list[float]:
    scores = []
    for image, target, raw in zip(images.numpy(), targets.tolist(), maps.numpy(), strict=True):
        pairs = []
        for mask in masks:
            shown, predicted = image.copy(), 0.0
            for row, column in zip(*np.nonzero(mask), strict=True):
                for channel in range(len(image)):
                    if explanation == "local":
                        predicted += (
                            image[channel, row, column] * raw[min(channel, len(raw) - 1), row, column]
                        )
                    elif channel < len(raw):
                        predicted += raw[channel, row, column]
                    shown[channel, row, column] = 0
            pairs.append((shown, predicted))
        finite = np.isfinite(raw).all()
        scores.append(plain_infidelity(model, image, target, pairs, rescale) if finite else NAN)
    return scores


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(
    ("channels", "explanation"), [(3, "global"), (3, "local"), (1, "global"), (1, "local")]
)
@pytest.mark.parametrize("rescale", [False, True])
def test_removal_equals_plain_loops(name: str, channels: int, explanation: str, rescale: bool) -> None:
    model, images, targets = conv_classifier(), random_images(7, size=SIZE), cyclic_targets(7)
    maps = some_maps(channels)
    found = scored(SETS[name], model, images, targets, maps, explanation=explanation, rescale=rescale)
    exact(found, plain_removal(model, images, targets, maps, plain_masks(name), explanation, rescale), 1e-10)
    assert found.isnan().tolist() == [False] * 5 + [True] * 2


def plain_noise(images: Tensor, samples: int, clipped: bool) -> list[np.ndarray]:
    child, shape = generator(SEED), images.shape[1:]
    draws = []
    for _ in range(0, samples, 1024):
        draws.extend(torch.empty(1024, *shape, dtype=torch.float64).normal_(generator=child).numpy())
    return [np.clip(0.2 * draw, 0, 1) if clipped else 0.2 * draw for draw in draws[:samples]]


@pytest.mark.parametrize("protocol", ["printed", "released"])
@pytest.mark.parametrize(("channels", "rescale"), [(3, False), (3, True), (1, True)])
def test_noisy_baseline_equals_plain_loops(protocol: str, channels: int, rescale: bool) -> None:
    model, images, targets = conv_classifier(), random_images(7, size=SIZE), cyclic_targets(7)
    maps, expected = some_maps(channels), []
    for image, target, raw in zip(images.numpy(), targets.tolist(), maps.numpy(), strict=True):
        pairs = []
        for z in plain_noise(images, 40, clipped=protocol == "released"):
            perturbation = image - z
            predicted = sum(
                perturbation[channel, row, column] * raw[min(channel, len(raw) - 1), row, column]
                for channel, row, column in np.ndindex(*image.shape)
            )
            pairs.append((z, predicted))
        finite = np.isfinite(raw).all()
        expected.append(plain_infidelity(model, image, target, pairs, rescale) if finite else NAN)
    exact(scored(NOISY, model, images, targets, maps, protocol=protocol, rescale=rescale), expected, 1e-10)


def test_the_released_perturbation_is_clipped_noise() -> None:
    """I = clip(x + 0.2 N(0, 1), x − 1, x), with the noise's sign turned: x − I = clip(noise, 0, 1)."""
    image = random_images(1, size=SIZE)[0].numpy()
    for z in plain_noise(random_images(1, size=SIZE), 20, clipped=False):
        released = np.clip(image - z, image - 1, image)
        exact(image - released, np.clip(z, 0, 1), floor=1e-15)


# ------------------------------------------------------------------------------------------ closed forms


def test_a_product_of_two_pixels() -> None:
    """f = x₀x₃ of a 2 × 2 image of ones: removing either loses 1, removing another pixel nothing."""
    images = torch.ones(1, 1, 2, 2, dtype=torch.float64)
    maps = torch.tensor([[[[1.0, 0], [0, 0]]]], dtype=torch.float64)

    def predict(pixels: Tensor) -> Tensor:
        return (pixels[:, 0, 0, 0] * pixels[:, 0, 1, 1])[:, None]

    case = (removed_squares, infidelity_square, {"smallest": 1, "largest": 1})
    first = torch.tensor([0])
    # Squared errors 0, 0, 0 and (0 − 1)²; the square of the whole image adds (1 − 1)².
    exact(scored(case, predict, images, first, maps), np.array([1 / 4]))
    exact(scored(case, predict, images, first, maps, largest=2), np.array([1 / 5]))
    # Where 3 is predicted of one pixel: 4, 0, 0, 1; β = (3 · 1 / 4) / (9 / 4) = 1/3 gives the map above.
    exact(scored(case, predict, images, first, 3 * maps), np.array([5 / 4]))
    exact(scored(case, predict, images, first, 3 * maps, rescale=True), np.array([1 / 4]))


@pytest.mark.parametrize("name", SETS)
def test_gradient_times_input_explains_a_linear_model(name: str) -> None:
    images, targets = random_images(5, size=SIZE), cyclic_targets(5)
    model = LinearNet(images[0].numel())
    gradient = gradient_of(model, images, targets)
    exact(scored(SETS[name], model, images, targets, gradient * images), np.zeros(5), floor=1e-24)
    exact(scored(SETS[name], model, images, targets, gradient, explanation="local"), np.zeros(5), floor=1e-24)
    assert (scored(SETS[name], model, images, targets, gradient) > 1e-3).all()
    assert (scored(SETS[name], model, images, targets, -gradient * images) > 1e-3).all()
    turned = scored(SETS[name], model, images, targets, -2 * gradient * images, rescale=True)
    exact(turned, np.zeros(5), floor=1e-24)


@pytest.mark.parametrize("protocol", ["printed", "released"])
def test_the_gradient_explains_a_linear_model_under_noise(protocol: str) -> None:
    images, targets = random_images(5, size=SIZE), cyclic_targets(5)
    model = LinearNet(images[0].numel())
    gradient = gradient_of(model, images, targets)
    exact(scored(NOISY, model, images, targets, gradient, protocol=protocol), np.zeros(5), floor=1e-24)
    assert (scored(NOISY, model, images, targets, gradient * images, protocol=protocol) > 1e-3).all()


@pytest.mark.parametrize("name", CASES)
def test_a_zero_map_misses_the_whole_drop(name: str) -> None:
    model, images, targets = conv_classifier(), random_images(5, size=SIZE), cyclic_targets(5)
    model_responses, _, parameters = CASES[name]
    drop = model_responses(model, images, targets, generator=generator(SEED), **parameters)["drop"]
    for rescale in (False, True):
        found = scored(CASES[name], model, images, targets, torch.zeros_like(images), rescale=rescale)
        exact(found, drop.square().mean(1))
    assert (drop.abs() > 1e-6).any(1).all()


@pytest.mark.parametrize("name", CASES)
def test_rescaling_finds_the_best_multiple(name: str) -> None:
    model, images, targets = conv_classifier(), random_images(5, size=SIZE), cyclic_targets(5)
    maps = some_maps(3)[:5]
    best = scored(CASES[name], model, images, targets, maps, rescale=True)
    exact(scored(CASES[name], model, images, targets, -1000 * maps, rescale=True), best)
    for scale in (-0.1, -0.01, 0.001, 0.01, 0.03, 0.1, 0.3, 1):
        assert (scored(CASES[name], model, images, targets, scale * maps) >= best - 1e-12).all()


# --------------------------------------------------------------------------- optimal explanations, captum


def others(optimal: Tensor) -> list[Tensor]:
    """Random maps, and some that are close to the optimal ones."""
    noise = torch.randn(3, *optimal.shape, generator=generator(8), dtype=torch.float64)
    return [*noise, *(optimal + 0.01 * noise), torch.zeros_like(optimal), 1.01 * optimal, 0.99 * optimal]


@pytest.mark.parametrize("squares", [0, 30])
@pytest.mark.parametrize("rescale", [False, True])
def test_square_has_the_least_infidelity(squares: int, rescale: bool) -> None:
    """Fitted with a generator of the metric's seed, it is fitted to the metric's squares."""
    model, images, targets = conv_classifier(), random_images(5, size=SIZE), cyclic_targets(5)
    parameters = {"smallest": 1, "largest": 3, "squares": squares}
    optimal = optimal_square(model, images, targets, generator=generator(SEED), **parameters)
    case = (removed_squares, infidelity_square, {**parameters, "rescale": rescale})
    least = scored(case, model, images, targets, optimal)
    for maps in others(optimal):
        assert (least <= scored(case, model, images, targets, maps) + 1e-15).all()
    assert (least < 0.5 * scored(case, model, images, targets, torch.zeros_like(optimal))).all()


@pytest.mark.parametrize("protocol", ["printed", "released"])
def test_noisy_baseline_has_the_least_infidelity(protocol: str) -> None:
    images, targets = random_images(5, size=SIZE), cyclic_targets(5)
    model = with_random_state(SmoothNet(images[0].numel()), 2)
    parameters = {"samples": 300, "noise": 0.2, "protocol": protocol}
    optimal = optimal_noisy_baseline(model, images, targets, generator=generator(SEED), **parameters)
    case = (noisy_baselines, infidelity_noisy_baseline, parameters)
    least = scored(case, model, images, targets, optimal)
    for maps in others(optimal):
        assert (least < scored(case, model, images, targets, maps)).all()


def shapley(model: Any, image: Tensor, target: int) -> Tensor:
    """The pixels' Shapley values of what is shown on black, over all coalitions."""
    flat = image.flatten().numpy()
    worth = {}
    for shown in product([0, 1], repeat=len(flat)):
        worth[shown] = output(model, (flat * shown).reshape(image.shape), target)
    values = np.zeros(len(flat))
    for pixel in range(len(flat)):
        rest = [other for other in range(len(flat)) if other != pixel]
        for size in range(len(flat)):
            weight = factorial(size) * factorial(len(flat) - size - 1) / factorial(len(flat))
            for members in combinations(rest, size):
                without = tuple(int(other in members) for other in range(len(flat)))
                joined = tuple(int(other in members or other == pixel) for other in range(len(flat)))
                values[pixel] += weight * (worth[joined] - worth[without])
    return torch.tensor(values).reshape(image.shape)


def test_shapley_values_have_the_least_infidelity_of_complete_maps() -> None:
    """Proposition 2.5: among maps that sum to f(x) − f(0), which the kernel's endless weight of all pixels demands."""
    images, targets = random_images(3, channels=1, size=3) + 0.3, cyclic_targets(3)
    model = with_random_state(SmoothNet(9), 4)
    model.layers[1].weight.data *= 3  # far from linear
    maps = torch.stack([shapley(model, *pair) for pair in zip(images, targets.tolist(), strict=True)])
    case = (removed_coalitions, infidelity_shap, {"samples": 6000})
    least = scored(case, model, images, targets, maps)
    assert (least > 1e-5).all()
    noise = torch.randn(20, *maps.shape, generator=generator(8), dtype=torch.float64)
    noise -= noise.mean((2, 3, 4), keepdim=True)
    for step in 0.1 * maps.abs().mean() * noise:
        assert (least < scored(case, model, images, targets, maps + step)).all()


def captum_of(
    model: Any, images: Tensor, targets: Tensor, maps: Tensor, perturb: Callable, samples: int
) -> list[Tensor]:
    """captum's infidelity, plain and normalized, of perturbations that are given."""
    return [
        captum_infidelity(
            model, perturb, images, maps, target=targets, n_perturb_samples=samples, normalize=normalize
        )
        for normalize in (False, True)
    ]


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("explanation", ["global", "local"])
def test_removal_equals_captum(name: str, explanation: str) -> None:
    model, images, targets = conv_classifier(), random_images(5, size=SIZE), cyclic_targets(5)
    maps = some_maps(3)[:5]
    masks = torch.tensor(np.stack(plain_masks(name))).double()[:, None]

    def perturb(repeated: Tensor) -> tuple[Tensor, Tensor]:
        removed = masks.repeat(5, 3, 1, 1)
        return removed * (repeated if explanation == "local" else 1), repeated * (1 - removed)

    plain, normalized = captum_of(model, images, targets, maps, perturb, len(masks))
    exact(scored(SETS[name], model, images, targets, maps, explanation=explanation), plain, 1e-10)
    found = scored(SETS[name], model, images, targets, maps, explanation=explanation, rescale=True)
    exact(found, normalized, 1e-8)


@pytest.mark.parametrize("protocol", ["printed", "released"])
def test_noisy_baseline_equals_captum(protocol: str) -> None:
    model, images, targets = conv_classifier(), random_images(5, size=SIZE), cyclic_targets(5)
    maps = some_maps(3)[:5]
    shared = torch.tensor(np.stack(plain_noise(images, 40, clipped=protocol == "released")))

    def perturb(repeated: Tensor) -> tuple[Tensor, Tensor]:
        z = shared.repeat(5, 1, 1, 1)
        return repeated - z, z

    plain, normalized = captum_of(model, images, targets, maps, perturb, 40)
    exact(scored(NOISY, model, images, targets, maps, protocol=protocol), plain, 1e-10)
    exact(scored(NOISY, model, images, targets, maps, protocol=protocol, rescale=True), normalized, 1e-8)


# --------------------------------------------------------------------------------- draws, blocks, batches


def test_coalitions_follow_the_shapley_kernel() -> None:
    """Over the 14 coalitions of 4 pixels: P(Z) ∝ 3 / (C(4, |Z|) |Z| (4 − |Z|)), any one of a size as likely."""
    child = generator(1)
    sizes = coalition_sizes(20_000, 4, child)
    drawn = torch.cat(list(sample_subsets(sizes, 4, child, torch.device("cpu"))))
    assert torch.equal(drawn.sum(1), sizes)
    weights, counts = [], []
    for members in product([0, 1], repeat=4):
        if 0 < sum(members) < 4:
            weights.append(3 / (comb(4, sum(members)) * sum(members) * (4 - sum(members))))
            counts.append(int((drawn == torch.tensor(members).bool()).all(1).sum()))
    assert sum(counts) == 20_000
    assert stats.chisquare(counts, 20_000 * np.array(weights) / sum(weights)).pvalue > 1e-3


@pytest.mark.parametrize(("share", "size"), [(0, 1), (0.01, 1), (0.1, 4), (0.5, 18), (1, 36)])
def test_a_subset_has_its_share_of_pixels(share: float, size: int) -> None:
    assert subset_size(share, 36) == size
    child = generator(2)
    drawn = torch.cat(list(sample_subsets(torch.full((300,), size), 36, child, torch.device("cpu"))))
    assert drawn.sum(1).tolist() == [size] * 300
    if size == 4:
        assert stats.chisquare(drawn.sum(0).numpy()).pvalue > 1e-3


@pytest.mark.parametrize("name", ["subset", "shap"])
def test_blocks_of_subsets_join(name: str) -> None:
    model, images, targets = conv_classifier(), random_images(2, size=SIZE), cyclic_targets(2)
    maps = some_maps(3)[:2]
    assert subsets_module.BLOCK == 64
    found = scored(SETS[name], model, images, targets, maps, samples=150)
    exact(found, plain_removal(model, images, targets, maps, plain_masks(name, 150), "global", False), 1e-10)


def test_blocks_of_squares_join(monkeypatch: pytest.MonkeyPatch) -> None:
    model, images, targets = conv_classifier(), random_images(5, size=SIZE), cyclic_targets(5)
    maps = some_maps(3)[:5]
    whole = scored(SQUARE, model, images, targets, maps)
    monkeypatch.setattr(infidelity_module, "SQUARES", 7)
    assert torch.equal(scored(SQUARE, model, images, targets, maps), whole)


def test_blocks_of_baselines_join() -> None:
    """Model responses see them 32 at a time, the metric 1,024."""
    images, targets = random_images(2, size=SIZE), cyclic_targets(2)
    model = with_random_state(SmoothNet(images[0].numel()), 2)
    maps, expected = some_maps(3)[:2], []
    for image, target, raw in zip(images.numpy(), targets.tolist(), maps.numpy(), strict=True):
        pairs = [(z, float(((image - z) * raw).sum())) for z in plain_noise(images, 1100, clipped=False)]
        expected.append(plain_infidelity(model, image, target, pairs, rescale=False))
    exact(scored(NOISY, model, images, targets, maps, samples=1100), expected, 1e-10)


def test_samples_hang_on_the_seed() -> None:
    model, images, targets = conv_classifier(), random_images(5, size=SIZE), cyclic_targets(5)
    few = (removed_squares, infidelity_square, {"largest": 3, "squares": 9})
    for model_responses, _, parameters in [few, SUBSET, SHAP, NOISY]:
        first, again, other = (
            model_responses(model, images, targets, generator=generator(seed), **parameters)["drop"]
            for seed in (1, 1, 2)
        )
        assert torch.equal(first, again)
        assert not torch.isclose(first, other).all(1).any()


def test_a_sample_of_squares_is_of_all_squares() -> None:
    model, images, targets = conv_classifier(), random_images(2, size=SIZE), cyclic_targets(2)
    every, some = (
        removed_squares(model, images, targets, generator=generator(), largest=3, squares=count)["drop"]
        for count in (0, 20)
    )
    assert every.shape == (2, 36 + 25 + 16)
    assert some.shape == (2, 20)
    where = (some[0][:, None] - every[0]).abs().argmin(1)
    assert len(set(where.tolist())) == 20
    exact(some, every[:, where], 1e-9)


def counted(rows: list[int], model: Any) -> Callable[[Tensor], Tensor]:
    def predict(images: Tensor) -> Tensor:
        rows.append(len(images))
        return model(images)

    return predict


def test_passes_are_as_few_as_can_be() -> None:
    """One for each image and square and one for the image; one for each baseline, whatever the images."""
    model, images, targets = conv_classifier(), random_images(3, size=SIZE), cyclic_targets(3)
    rows: list[int] = []
    removed_squares(counted(rows, model), images, targets, generator=generator(), largest=2)
    assert sum(rows) == 3 + 3 * (36 + 25)
    assert max(rows) == 32
    rows.clear()
    noisy_baselines(counted(rows, model), images, targets, generator=generator(), samples=70)
    assert sum(rows) == 3 + 70
    assert max(rows) == 32
    rows.clear()
    maps = torch.zeros_like(images)
    for name, (model_responses, metric, parameters) in CASES.items():
        responses = model_responses(model, images, targets, generator=generator(), **parameters)
        metric(
            counted(rows, model),
            images,
            targets,
            maps,
            generator=generator(),
            responses=responses,
            **parameters,
        )
        assert not rows, name


def test_float32_maps_and_images_are_summed_in_float64() -> None:
    model = conv_classifier(dtype=torch.float32)
    images, targets = random_images(5, size=SIZE, dtype=torch.float32), cyclic_targets(5)
    maps = some_maps(3)[:5].float()
    for case in CASES.values():
        model_responses, metric, parameters = case
        responses = model_responses(model, images, targets, generator=generator(), **parameters)
        assert responses["drop"].dtype == torch.float64
        score = partial(
            metric, model, images, targets, generator=generator(), responses=responses, **parameters
        )
        large: Scored = score(maps=maps * 1e30)
        assert large.scores["infidelity", ""].isfinite().all()
        for options in [{}] if metric is infidelity_noisy_baseline else [{}, {"explanation": "local"}]:
            single, double = (
                score(maps=each, **options).scores["infidelity", ""] for each in (maps, maps.double())
            )
            assert torch.equal(single, double)


# ------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("square", {"smallest": 7}, "smallest: found 7, expected 1 to 6, the image's shorter side"),
        ("square", {"largest": 1}, "largest: found 1, expected at least smallest, 2"),
        ("square", {"squares": 51}, "squares: found 51, expected 0 for all or 1 to 50, as many as fit"),
        ("subset", {"samples": 0}, "samples, share: found 0, 0.3, expected at least 1 and a share in [0, 1]"),
        (
            "subset",
            {"share": 1.5},
            "samples, share: found 40, 1.5, expected at least 1 and a share in [0, 1]",
        ),
        ("shap", {"samples": 0}, "samples, pixels: found 0, 36, expected at least 1 and 2"),
        ("noisy", {"samples": 0}, "samples, noise: found 0, 0.2, expected at least 1 and 0"),
        ("noisy", {"noise": -1.0}, "samples, noise: found 40, -1.0, expected at least 1 and 0"),
        ("noisy", {"protocol": "both"}, "protocol: found 'both', valid: printed, released"),
    ],
)
def test_model_responses_and_their_metric_refuse_parameters(
    name: str, parameters: Fields, message: str
) -> None:
    model, images, targets = conv_classifier(), random_images(2, size=SIZE), cyclic_targets(2)
    model_responses, metric, usual = CASES[name]
    given = {"generator": generator(), **usual, **parameters}
    with pytest.raises(ValueError, match=r"found") as error:
        model_responses(model, images, targets, **given)
    assert str(error.value) == message
    with pytest.raises(ValueError, match=r"found") as error:
        metric(model, images, targets, torch.zeros_like(images), responses={}, **given)
    assert str(error.value) == message


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("shape", [(2, 2, SIZE, SIZE), (2, 3, SIZE, 5), (3, 3, SIZE, SIZE), (2, SIZE, SIZE)])
def test_maps_that_do_not_fit_are_refused(name: str, shape: tuple[int, ...]) -> None:
    model, images, targets = conv_classifier(), random_images(2, size=SIZE), cyclic_targets(2)
    _, metric, parameters = CASES[name]
    with pytest.raises(ValueError, match=r"^maps") as error:
        metric(model, images, targets, torch.zeros(shape), generator=generator(), responses={}, **parameters)
    assert str(error.value) == f"maps: found {list(shape)}, expected [2, 3 or 1, 6, 6] like the images"


@pytest.mark.parametrize("name", CASES)
def test_responses_of_other_parameters_are_refused(name: str) -> None:
    model, images, targets = conv_classifier(), random_images(2, size=SIZE), cyclic_targets(2)
    _, metric, parameters = CASES[name]
    expected = 50 if name == "square" else 40
    for responses, found in [({}, "none"), ({"drop": torch.zeros(2, 39)}, "[2, 39]")]:
        with pytest.raises(ValueError, match=r"^responses") as error:
            metric(
                model,
                images,
                targets,
                torch.zeros_like(images),
                generator=generator(),
                responses=responses,
                **parameters,
            )
        assert str(error.value) == (
            f"responses: found drop {found}, expected [2, {expected}], of the same images and parameters"
        )


def test_another_kind_of_explanation_is_refused() -> None:
    model, images, targets = conv_classifier(), random_images(2, size=SIZE), cyclic_targets(2)
    for _, metric, parameters in SETS.values():
        with pytest.raises(ValueError, match=r"^explanation: found 'both', valid: global, local$"):
            metric(
                model,
                images,
                targets,
                images,
                generator=generator(),
                responses={},
                **parameters,
                explanation="both",
            )


def test_one_pixel_has_no_coalition() -> None:
    model, images, targets = conv_classifier(), random_images(2, size=1), cyclic_targets(2)
    with pytest.raises(ValueError, match=r"^samples, pixels: found 1000, 1, expected at least 1 and 2$"):
        removed_coalitions(model, images, targets, generator=generator())


def test_baselines_whose_logits_are_not_finite_are_refused() -> None:
    images, targets = random_images(2, size=SIZE), cyclic_targets(2)

    def predict(pixels: Tensor) -> Tensor:
        return pixels.flatten(1)[:, :4].log()  # of a negative value: NaN

    with pytest.raises(
        ValueError, match=r"^predict: the logit of \d+ of 80 noisy baselines is NaN or infinite, exp"
    ):
        noisy_baselines(predict, images, targets, generator=generator(), samples=40)
    with pytest.raises(ValueError, match=r"^model: returned float64 \[32\], expected logits \[32, K\]$"):
        noisy_baselines(
            lambda pixels: pixels.flatten(1)[:, 0] if len(pixels) > 2 else pixels.flatten(1)[:, :4],
            images,
            targets,
            generator=generator(),
            samples=40,
        )

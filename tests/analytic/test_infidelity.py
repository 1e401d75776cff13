"""Infidelity against closed forms, captum's, and the explanations that are optimal for it."""

from collections.abc import Callable
from itertools import product
from math import comb
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
    seen_batches,
    with_random_state,
)
from torch import Tensor

from saliency_assay.methods.optimal import optimal_noisy_baseline, optimal_square
from saliency_assay.metrics import infidelity as infidelity_module
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
from saliency_assay.metrics.subsets import sample_subsets

NAN, SIZE, SEED = float("nan"), 6, 11
SQUARE = (removed_squares, infidelity_square, {"smallest": 2, "largest": 4})
SUBSET = (removed_subsets, infidelity_subset, {"samples": 40, "share": 0.3})
SHAP = (removed_coalitions, infidelity_shap, {"samples": 40})
NOISY = (noisy_baselines, infidelity_noisy_baseline, {"samples": 40, "noise": 0.2})
CASES = {"square": SQUARE, "subset": SUBSET, "shap": SHAP, "noisy": NOISY}
SETS = {name: CASES[name] for name in ("square", "subset", "shap")}


def scored(case: tuple, model: Any, images: Tensor, targets: Tensor, maps: Tensor, **options: Any) -> Tensor:
    """A metric and its model responses, each with a generator of one seed."""
    model_responses, metric, parameters = case
    options = {**parameters, **options}
    inputs = {name: value for name, value in options.items() if name not in ("explanation", "rescale")}
    responses = model_responses(model, images, targets, generator=generator(SEED), **inputs)
    results = metric(model, images, targets, maps, generator=generator(SEED), responses=responses, **options)
    return results.scores["infidelity", ""]


def some_maps(channels: int) -> Tensor:
    """One of each: any values, ties and many zeros, negative values alone, constant, zero, NaN, infinite."""
    maps = torch.randn(7, channels, SIZE, SIZE, generator=generator(3), dtype=torch.float64)
    maps[1] = (maps[1] * 2).round() / 2
    maps[2] = -maps[2].abs()
    maps[3], maps[4] = 0.7, 0.0
    maps[5, 0, 2, 1], maps[6, -1, 5, 5] = NAN, float("inf")
    return maps


# ------------------------------------------------------------------------------------------------ captum


def plain_squares(smallest: int, largest: int) -> list[np.ndarray]:
    masks = []
    for side in range(smallest, largest + 1):
        for top, left in product(range(SIZE - side + 1), repeat=2):
            mask = np.zeros((SIZE, SIZE), dtype=bool)
            for row, column in product(range(side), repeat=2):
                mask[top + row, left + column] = True
            masks.append(mask)
    return masks


def plain_masks(name: str, samples: int) -> list[np.ndarray]:
    """The removed pixels: every square, or for each row of random keys the pixels of its smallest ones."""
    child, pixels = generator(SEED), SIZE * SIZE
    if name == "square":
        return plain_squares(2, 4)
    sizes = [round(0.3 * pixels)] * samples
    if name == "shap":
        kernel = [1 / (size * (pixels - size)) for size in range(1, pixels)]
        shares = torch.tensor(kernel, dtype=torch.float64)
        sizes = (torch.multinomial(shares, samples, replacement=True, generator=child) + 1).tolist()
    masks = np.zeros((samples, pixels), dtype=bool)
    for mask, keys, size in zip(
        masks, torch.rand(samples, pixels, generator=child, dtype=torch.float64), sizes, strict=True
    ):
        mask[sorted(range(pixels), key=keys.tolist().__getitem__)[:size]] = True
    return list(masks.reshape(-1, SIZE, SIZE))


def by_captum(
    model: Any, images: Tensor, targets: Tensor, maps: Tensor, perturb: Callable, samples: int, rescale: bool
) -> Tensor:
    """captum's infidelity of maps of all channels; NaN, which it does not know, for maps that are not finite."""
    finite = maps.nan_to_num(0, 0, 0)
    options = {"target": targets, "n_perturb_samples": samples, "normalize": rescale}
    scores = captum_infidelity(model, perturb, images, finite, **options)
    return torch.where(maps.isfinite().flatten(1).all(1), scores, NAN)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(
    ("channels", "explanation", "rescale", "samples"),
    [(3, "global", True, 40), (1, "global", False, 40), (3, "local", False, 150), (1, "local", True, 40)],
)
def test_removal_equals_captum(
    name: str, channels: int, explanation: str, rescale: bool, samples: int
) -> None:
    """Also where subsets do not fit in one block of 64."""
    model, images, targets = conv_classifier(), random_images(7, size=SIZE), cyclic_targets(7)
    maps, masks = some_maps(channels), torch.tensor(np.stack(plain_masks(name, samples))).double()[:, None]
    # The sum over channels of a global map of one channel is that channel; a local one has it in every channel.
    of_channels = maps.expand_as(images) / (3 if (channels, explanation) == (1, "global") else 1)

    def perturb(repeated: Tensor) -> tuple[Tensor, Tensor]:
        removed = masks.repeat(7, 3, 1, 1)
        return removed * (repeated if explanation == "local" else 1), repeated * (1 - removed)

    expected = by_captum(model, images, targets, of_channels, perturb, len(masks), rescale)
    options = {"explanation": explanation, "rescale": rescale}
    options |= {} if name == "square" else {"samples": samples}
    scores = scored(SETS[name], model, images, targets, maps, **options)
    exact(scores, expected, 1e-8)
    assert scores.isnan().tolist() == [False] * 5 + [True] * 2


@pytest.mark.parametrize(
    ("protocol", "channels", "rescale", "samples"),
    [("printed", 3, False, 1100), ("released", 3, True, 40), ("printed", 1, True, 40)],
)
def test_noisy_baseline_equals_captum(protocol: str, channels: int, rescale: bool, samples: int) -> None:
    """Also where baselines do not fit in one block of 1,024. The released ones are clipped to [0, 1]."""
    images, targets, maps = random_images(7, size=SIZE), cyclic_targets(7), some_maps(channels)
    model, child = with_random_state(SmoothNet(images[0].numel()), 2), generator(SEED)
    blocks = [torch.empty(1024, 3, SIZE, SIZE).double().normal_(generator=child) for _ in range(2)]
    baselines = 0.2 * torch.cat(blocks)[:samples]
    baselines = baselines.clamp(0, 1) if protocol == "released" else baselines

    def perturb(repeated: Tensor) -> tuple[Tensor, Tensor]:
        z = baselines.repeat(7, 1, 1, 1)
        return repeated - z, z

    expected = by_captum(model, images, targets, maps.expand_as(images), perturb, samples, rescale)
    options = {"protocol": protocol, "rescale": rescale, "samples": samples}
    exact(scored(NOISY, model, images, targets, maps, **options), expected, 1e-8)


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


# --------------------------------------------------------------------------- ------- optimal explanations


def others(optimal: Tensor) -> list[Tensor]:
    """Random maps, and some that are close to the optimal ones."""
    noise = torch.randn(3, *optimal.shape, generator=generator(8), dtype=torch.float64)
    return [*noise, *(optimal + 0.01 * noise), torch.zeros_like(optimal), 1.01 * optimal, 0.99 * optimal]


@pytest.mark.parametrize(("squares", "rescale"), [(0, True), (30, False)])
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


# -------------------------------------------------------------------------------- samples, blocks, batches


def test_coalitions_follow_the_shapley_kernel() -> None:
    """Over the 14 coalitions of 4 pixels: P(Z) ∝ 3 / (C(4, |Z|) |Z| (4 − |Z|)), any one of a size as likely."""
    child = generator(1)
    sizes = coalition_sizes(20_000, 4, child)
    coalitions = torch.cat(list(sample_subsets(sizes, 4, child, torch.device("cpu"))))
    assert torch.equal(coalitions.sum(1), sizes)
    weights, counts = [], []
    for members in product([0, 1], repeat=4):
        if 0 < sum(members) < 4:
            weights.append(3 / (comb(4, sum(members)) * sum(members) * (4 - sum(members))))
            counts.append(int((coalitions == torch.tensor(members).bool()).all(1).sum()))
    assert sum(counts) == 20_000
    assert stats.chisquare(counts, 20_000 * np.array(weights) / sum(weights)).pvalue > 1e-3


def test_blocks_of_squares_join(monkeypatch: pytest.MonkeyPatch) -> None:
    model, images, targets = conv_classifier(), random_images(5, size=SIZE), cyclic_targets(5)
    maps = some_maps(3)[:5]
    whole = scored(SQUARE, model, images, targets, maps)
    monkeypatch.setattr(infidelity_module, "SQUARES", 7)
    assert torch.equal(scored(SQUARE, model, images, targets, maps), whole)


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


@pytest.mark.parametrize(("share", "size"), [(0, 1), (0.1, 4), (1, 36)])
def test_a_subset_has_its_share_of_pixels(share: float, size: int) -> None:
    assert subset_size(share, 36) == size


def test_one_pass_for_each_baseline_serves_all_images() -> None:
    model, images, targets = conv_classifier(), random_images(3, size=SIZE), cyclic_targets(3)
    with seen_batches(model) as batches:
        noisy_baselines(model, images, targets, generator=generator(), samples=70)
    assert sum(map(len, batches)) == 3 + 70
    assert max(map(len, batches)) == 32


@pytest.mark.parametrize("name", CASES)
def test_float32_maps_and_images_are_summed_in_float64(name: str) -> None:
    model = conv_classifier(dtype=torch.float32)
    images, targets = random_images(5, size=SIZE, dtype=torch.float32), cyclic_targets(5)
    maps = some_maps(3)[:5].float()
    assert scored(CASES[name], model, images, targets, maps * 1e30).isfinite().all()
    for options in [{}] if name == "noisy" else [{}, {"explanation": "local"}]:
        single, double = (
            scored(CASES[name], model, images, targets, each, **options) for each in (maps, maps.double())
        )
        assert torch.equal(single, double)


# ------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"smallest": 7}, "smallest: found 7, expected 1 to 6"),
        ({"squares": 51}, "squares: found 51, expected 0 for all or 1 to 50"),
    ],
)
def test_squares_that_do_not_fit_are_refused(parameters: dict[str, int], message: str) -> None:
    images, targets = random_images(2, size=SIZE), cyclic_targets(2)
    options: dict[str, Any] = {"generator": generator(), "smallest": 2, "largest": 4, **parameters}
    with pytest.raises(ValueError, match=f"^{message}\\b"):
        removed_squares(conv_classifier(), images, targets, **options)
    with pytest.raises(ValueError, match=f"^{message}\\b"):
        infidelity_square(conv_classifier(), images, targets, 0 * images, responses={}, **options)


def test_one_pixel_has_no_coalition() -> None:
    images, targets = random_images(2, size=1), cyclic_targets(2)
    with pytest.raises(ValueError, match=r"^images: found 1 pixel\b"):
        removed_coalitions(conv_classifier(), images, targets, generator=generator())


@pytest.mark.parametrize("name", CASES)
def test_maps_and_responses_that_do_not_fit_are_refused(name: str) -> None:
    _, metric, parameters = CASES[name]

    def message(shape: tuple[int, ...], responses: dict[str, Tensor]) -> str:
        inputs = conv_classifier(), random_images(2, size=SIZE), cyclic_targets(2), torch.zeros(shape)
        with pytest.raises(ValueError, match="found") as error:
            metric(*inputs, generator=generator(), responses=responses, **parameters)
        return str(error.value)

    for shape in ((2, 2, SIZE, SIZE), (2, 3, SIZE, 5), (3, 3, SIZE, SIZE), (2, SIZE, SIZE)):
        assert message(shape, {}).startswith(f"maps: found {list(shape)}, expected [2, 3 or 1, 6, 6]")
    count = 50 if name == "square" else 40
    shape = (2, 3, SIZE, SIZE)
    assert message(shape, {}).startswith(f"responses: found drop none, expected [2, {count}]")
    assert message(shape, {"drop": torch.zeros(2, 39)}).startswith("responses: found drop [2, 39]")


def test_baselines_whose_logits_are_not_finite_are_refused() -> None:
    images, targets = random_images(2, size=SIZE), cyclic_targets(2)

    def predict(pixels: Tensor) -> Tensor:
        return pixels.flatten(1)[:, :4].log()  # of a negative value: NaN

    with pytest.raises(ValueError, match=r"^predict: the logit of \d+ of 80 noisy baselines is NaN"):
        noisy_baselines(predict, images, targets, generator=generator(), samples=40)

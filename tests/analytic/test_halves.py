"""Removal of halves: infidelity, the explanation that is optimal for it, and attribution on a block."""

from typing import Any

import numpy as np
import pytest
import torch
from support import conv_classifier, cyclic_targets, exact, generator, random_images
from torch import Tensor, nn

from saliency_assay.methods.optimal import optimal_halves
from saliency_assay.metrics.block_attribution import block_attribution
from saliency_assay.metrics.infidelity import infidelity_halves, removed_halves
from saliency_assay.metrics.perturbation import Predict

NAN = float("nan")
COUNT, HEIGHT = 5, 6
TARGETS = cyclic_targets(COUNT)


def some_images(width: int, channels: int = 3, dtype: torch.dtype = torch.float64) -> Tensor:
    return random_images(COUNT, channels, 16, dtype=dtype)[:, :, :HEIGHT, :width].contiguous()


def responses(predict: Predict, images: Tensor) -> Tensor:
    return removed_halves(predict, images, TARGETS[: len(images)], generator=generator())["drop"]


def infd(predict: Predict, images: Tensor, maps: Tensor, **options: Any) -> np.ndarray:
    options |= {"generator": generator(), "responses": {"drop": responses(predict, images)}}
    scored = infidelity_halves(predict, images, TARGETS[: len(images)], maps, **options)
    return scored.scores["infidelity", ""].numpy()


def plain(predict: Predict, images: Tensor, maps: Tensor, *, local: bool, rescale: bool) -> np.ndarray:
    """Equation 1 as it is written: I is the image inside a half, a loop over halves and pixels."""
    scores = []
    for image, raw, target in zip(images, maps, TARGETS, strict=False):
        width = image.shape[2]
        terms = []
        for columns in (range(width // 2), range(width // 2, width)):
            perturbation = torch.zeros_like(image)
            perturbation[:, :, list(columns)] = image[:, :, list(columns)]
            before, after = (predict(x[None])[0, target].item() for x in (image, image - perturbation))
            product = 0.0
            for row in range(image.shape[1]):
                for column in columns:
                    if local:  # a map of one channel has its value in all
                        full = raw.expand_as(image)
                        product += float((full[:, row, column] * image[:, row, column]).sum())
                    else:
                        product += float(raw[:, row, column].sum())
            terms.append((product, before - after))
        scale = 1.0
        if rescale:
            power = sum(product**2 for product, _ in terms)
            scale = sum(product * drop for product, drop in terms) / power if power else 0.0
        scores.append(sum((scale * product - drop) ** 2 for product, drop in terms) / 2)
    return np.array(scores)


# ---- infidelity


@pytest.mark.parametrize(("width", "of_channels"), [(2, 3), (7, 1), (8, 3)])
@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("rescale", [False, True])
def test_infidelity_against_its_definition(width: int, of_channels: int, local: bool, rescale: bool) -> None:
    model = linear(width, bend=True)
    images = some_images(width)
    maps = torch.randn(COUNT, of_channels, HEIGHT, width, generator=generator(3), dtype=torch.float64)
    scores = infd(model, images, maps, explanation="local" if local else "global", rescale=rescale)
    exact(scores, plain(model, images, maps, local=local, rescale=rescale), 1e-10)
    assert (scores > 1e-6).all()


def linear(width: int, bend: bool = False, channels: int = 3) -> Predict:
    """Logits w·x, or of a bent x, so that halves do more than add up."""
    weights = torch.randn(4, channels * HEIGHT * width, generator=generator(8), dtype=torch.float64)

    def predict(images: Tensor) -> Tensor:
        logits = images.flatten(1) @ weights.to(images.dtype).T
        return logits.sin() * 3 + logits.square() / 5 if bend else logits + 0.7

    return predict


def test_a_map_of_zeros_and_one_with_nan() -> None:
    images = some_images(8)
    maps = torch.randn(COUNT, 3, HEIGHT, 8, generator=generator(3), dtype=torch.float64)
    maps[1] = 0
    maps[2, 0, 1, 1] = NAN
    maps[3, 0, 1, 1] = float("inf")
    model = linear(8, bend=True)
    drop = responses(model, images).numpy()
    for rescale in (False, True):
        scores = infd(model, images, maps, rescale=rescale)
        assert np.isnan(scores).tolist() == [False, False, True, True, False]
        exact(scores[1], (drop[1] ** 2).mean())


def test_what_does_not_fit_is_refused() -> None:
    images = some_images(8)
    model = linear(8)
    maps = torch.zeros(COUNT, 3, HEIGHT, 8)
    drop = torch.zeros(COUNT, 3)
    with pytest.raises(ValueError, match=r"^responses: found drop \[5, 3\], expected \[5, 2\]"):
        infidelity_halves(model, images, TARGETS, maps, generator=generator(), responses={"drop": drop})
    with pytest.raises(ValueError, match=r"^images: found width 1\b"):
        responses(linear(1), some_images(1))
    with pytest.raises(ValueError, match=r"^images: found width 1\b"):
        optimal_halves(PassCounter(linear(1)), some_images(1), TARGETS, generator=generator())


# ---- the optimal explanation


class PassCounter(nn.Module):
    def __init__(self, predict: Predict) -> None:
        super().__init__()
        self.predict, self.passes = predict, 0

    def forward(self, images: Tensor) -> Tensor:
        self.passes += len(images)
        return self.predict(images)


@pytest.mark.parametrize(("width", "channels"), [(2, 3), (5, 1)])
def test_the_optimal_explanation_is_the_pseudo_inverse_s(width: int, channels: int) -> None:
    """The least-squares solution of least norm, by NumPy's own pseudo-inverse of the two rows."""
    model = PassCounter(linear(width, bend=True, channels=channels))
    images = some_images(width, channels)
    maps = optimal_halves(model, images, TARGETS, generator=generator())
    assert maps.shape == (COUNT, 1, HEIGHT, width)
    assert model.passes == 3 * COUNT
    design = np.zeros((2, HEIGHT, width))
    design[0, :, : width // 2] = 1
    design[1, :, width // 2 :] = 1
    drop = responses(model, images).numpy()
    expected = np.linalg.pinv(design.reshape(2, -1)) @ drop.T
    exact(maps.flatten(1), expected.T, 1e-9)


def test_its_infidelity_is_0_in_float32() -> None:
    """As maps are stored: to 1e-6 of the squared drops that it is to predict."""
    model = conv_classifier(dtype=torch.float32)
    images = random_images(COUNT, size=15, dtype=torch.float32)
    maps = optimal_halves(model, images, TARGETS, generator=generator())
    assert maps.dtype == torch.float32
    squared = responses(model, images).square().mean(1).numpy()
    assert (squared > 1e-6).all()
    assert (infd(model, images, maps) < 1e-6 * squared).all()


# ---- attribution on a block


def unused(images: Tensor) -> Tensor:
    raise AssertionError("this metric does not evaluate the model")


def share(maps: Tensor, mask: Tensor) -> np.ndarray:
    images, targets = torch.zeros(len(maps), 3, *maps.shape[2:]), torch.zeros(len(maps), dtype=torch.int64)
    scored = block_attribution(unused, images, targets, maps, generator=generator(), mask=mask)
    return scored.scores["block_attribution", ""].numpy()


def plain_share(raw: np.ndarray, mask: np.ndarray) -> float:
    inside = total = 0.0
    for channel in raw:
        for value, block in zip(channel.flat, mask.flat, strict=True):
            total += abs(float(value))
            inside += abs(float(value)) if block else 0
    return inside / total if total > 0 and mask.any() else NAN


def test_the_share_against_a_plain_loop() -> None:
    maps = torch.randn(8, 3, 4, 6, generator=generator(2), dtype=torch.float64)
    maps[1] = 0
    maps[2] = 0.3  # constant: the block's area
    maps[3, 0, 1, 2] = NAN
    maps[4, 0, 1, 2] = float("inf")
    mask = torch.rand(8, 4, 6, generator=generator(3)) < 0.4
    mask[5] = False
    mask[6] = True
    expected = [plain_share(raw, block) for raw, block in zip(maps.numpy(), mask.numpy(), strict=True)]
    expected[4] = NAN
    scores = share(maps, mask)
    assert np.isnan(scores).tolist() == [False, True, False, True, True, True, False, False]
    exact(scores[[0, 2, 6, 7]], np.array(expected)[[0, 2, 6, 7]], 1e-12)
    exact(scores[2], mask[2].double().mean())
    assert scores[6] == 1


def test_shares_are_summed_in_float64() -> None:
    maps = torch.full((1, 1, 4, 6), 1.0e-8)
    maps[0, 0, 0, 0] = 1.0
    mask = torch.ones(1, 4, 6, dtype=torch.bool)
    mask[0, 0, 0] = False
    exact(share(maps, mask), np.array([23e-8 / (1 + 23e-8)]), 1e-6)


@pytest.mark.parametrize("mask", [torch.ones(2, 4, 5, dtype=torch.bool), torch.ones(2, 4, 6)])
def test_a_mask_that_does_not_fit_is_refused(mask: Tensor) -> None:
    with pytest.raises(ValueError, match=rf"^mask: found {mask.dtype} .* torch\.bool \[2, 4, 6\]"):
        share(torch.ones(2, 1, 4, 6), mask)

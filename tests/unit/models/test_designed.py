"""Designed networks: their evidence, and their importance against Shapley values by enumeration."""

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from saliency_assay.data.synthetic.designed import CLASSES, designed
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.models.designed import maximum_shares, saturated_shares, truth_of
from saliency_assay.registry.records import resolve

COLORS = torch.tensor([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0.5]], dtype=torch.float64)
GENERATOR = torch.Generator()
EACH = pytest.mark.parametrize("name", CLASSES)


def network(name: str, **parameters: Any) -> nn.Module:
    builder = resolve(f"saliency_assay.models.designed:{name}")
    result: nn.Module = builder(classes=2, channels=3, generator=GENERATOR, **parameters)
    return result


def classifier(name: str, **parameters: Any) -> Classifier:
    blueprint = Blueprint(f"designed/{name}", f"saliency_assay.models.designed:{name}", parameters)
    return build(blueprint, classes=2, mean=[0.0] * 3, std=[1.0] * 3, generator=GENERATOR).eval()


def shapley(value: Callable[[tuple[int, ...]], float], players: int) -> Tensor:
    """Return the mean contributions of the players over all subsets of the others."""
    subsets = [subset for size in range(players + 1) for subset in combinations(range(players), size)]
    values = {subset: value(subset) for subset in subsets}
    phi = torch.zeros(players, dtype=torch.float64)
    for subset in subsets:
        share = 1 / (players * math.comb(players - 1, len(subset))) if len(subset) < players else 0
        for player in set(range(players)) - set(subset):
            phi[player] += share * (values[tuple(sorted((*subset, player)))] - values[subset])
    return phi


def some_images(name: str, height: int, width: int) -> Tensor:
    """Return images of pure colors, and one of others for which the importance is known."""
    generator = torch.Generator().manual_seed(3)
    pixels = COLORS[torch.randint(0, len(COLORS), (4, height * width), generator=generator)]
    levels = torch.rand(height * width, 3, generator=generator, dtype=torch.float64)
    # The formula of the saturated network is that of responses of at least one half. Perturbed pixels may exceed 1.
    pixels[-1] = pixels[-2] * (0.6 + 0.6 * levels[:, :1]) if name == "saturated" else 1.4 * levels
    return pixels.transpose(1, 2).reshape(4, 3, height, width)


@EACH
def test_importance_is_the_shapley_value_of_the_logit(name: str) -> None:
    height, width = (3, 3) if name == "saturated" else (2, 4)
    model = network(name, **({"size": 3} if name == "saturated" else {})).double()
    images, targets = some_images(name, height, width), torch.tensor([0, 1, 0, 1])
    importance = truth_of(model, images, targets)
    for image, target, phi in zip(images, targets.tolist(), importance, strict=True):

        def logit(kept: tuple[int, ...], image: Tensor = image, target: int = target) -> float:
            mask = torch.zeros(height * width, dtype=torch.float64)
            mask[list(kept)] = 1
            with torch.no_grad():
                return model((image * mask.reshape(height, width))[None])[0, target].item()

        torch.testing.assert_close(phi.flatten(), shapley(logit, height * width), rtol=0, atol=1e-12)


@EACH
def test_images_are_classified_without_error_and_importance_is_complete(name: str) -> None:
    _, blocks = designed(images=200, generator=np.random.default_rng(1))
    (block,) = blocks
    images, labels = torch.from_numpy(block["image"]) / 255, torch.from_numpy(block[f"label_{name}"])
    model = classifier(name)
    with torch.no_grad():
        logits, black = model(images), model(torch.zeros_like(images[:1]))
    assert torch.equal(logits.argmax(1), labels)
    assert logits.abs().min() > 0.2
    importance = truth_of(model, images, labels)
    changes = (logits - black).gather(1, labels[:, None])[:, 0]
    torch.testing.assert_close(importance.sum((1, 2, 3)), changes, rtol=0, atol=1e-5)
    on_objects = torch.from_numpy(block["mask"])[:, None]
    assert not importance[~on_objects].any()
    assert importance[on_objects].any()


@pytest.mark.parametrize("name", ["additive", "counting", "half"])
def test_importance_of_additive_networks_is_the_effect_of_single_pixels(name: str) -> None:
    model, targets = network(name).double(), torch.zeros(4, dtype=torch.int64)
    images = some_images(name, 2, 4)
    removed = torch.stack([images * (torch.arange(8) != pixel).reshape(2, 4) for pixel in range(8)])
    with torch.no_grad():
        effects = model(images)[:, 0] - model(removed.flatten(0, 1))[:, 0].reshape(8, 4)
    torch.testing.assert_close(truth_of(model, images, targets).flatten(1), effects.T, rtol=0, atol=1e-12)


def test_equal_objects_matter_equally_or_not_at_all() -> None:
    image = torch.zeros(1, 3, 32, 32)
    image[0, 0, 2:6, 2:6] = image[0, 1, 20:24, 2:6] = image[0, 0, 2:6, 20:24] = 1
    target = torch.tensor([0])
    both = truth_of(classifier("conjunction"), image, target)[0, 0]
    # Two red squares and a green one: the green one is necessary, the red ones replace each other.
    assert both[20:24, 2:6].sum().item() == pytest.approx(2 / 3)
    assert both[2:6].sum().item() == pytest.approx(1 / 3)
    alone = image.clone()
    alone[0, 1] = 0
    assert not truth_of(classifier("conjunction"), alone, target).any()
    left = truth_of(classifier("half"), image, target)[0, 0]
    assert (left[2:6, 2:6] > 0).all()
    assert not left[:, 16:].any()
    shares = truth_of(classifier("saturated"), image, target)[0, 0]
    assert shares.unique().tolist() == pytest.approx([0, 1 / 32])


def test_shares_of_a_maximum_are_those_of_the_airport_game() -> None:
    responses = torch.tensor([[0.25, 0.5, 1.0, 0.0]], dtype=torch.float64)
    expected = [
        1 / 12,
        1 / 12 + 1 / 8,
        1 / 12 + 1 / 8 + 1 / 2,
        0,
    ]  # each stretch is shared by those who need it
    assert maximum_shares(responses)[0].tolist() == pytest.approx(expected)


def test_what_is_not_known_is_refused() -> None:
    images, targets = torch.rand(2, 3, 8, 8), torch.tensor([0, 1])
    with pytest.raises(ValueError, match=r"^truth: found Sequential, expected a designed network"):
        truth_of(nn.Sequential(nn.Flatten()), images, targets)
    changed = classifier("counting")
    with torch.no_grad():
        changed.layer("0").weight.mul_(1.001)
    with pytest.raises(ValueError, match=r"changed weights"):
        truth_of(changed, images, targets)
    with pytest.raises(ValueError, match=r"^half: found images of 7 columns"):
        truth_of(classifier("half"), images[..., :7], targets)
    with pytest.raises(ValueError, match=r"response 0\.3, expected 0 or at least 0\.5"):
        saturated_shares(torch.tensor([0.3, 0.0, 1.0]))
    for name in CLASSES:
        with pytest.raises(ValueError, match=r"found 5 classes and 1 channels, expected 2 and 3"):
            resolve(f"saliency_assay.models.designed:{name}")(classes=5, channels=1, generator=GENERATOR)

"""Max pooling ties at a baseline of one color: which quadrature avoids it."""

from copy import deepcopy
from typing import Any

import pytest
import torch
from support import CLASSES, cyclic_targets, exact, generator, random_images, with_random_state
from torch import Tensor, nn

from saliency_assay.methods.path import integrated_gradients
from saliency_assay.methods.xrai import _attributions

RULES = ("middle", "trapezoid", "left", "right", "gauss_legendre")

SIZE = 16
IMAGES, TARGETS = random_images(4, size=SIZE), cyclic_targets(4)


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(6 * 64, CLASSES),
        )

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)


def mirrored(network: nn.Module) -> nn.Module:
    """The network g with g(mirrored x) = f(x)."""
    result = deepcopy(network)
    convolution, *_, head = result.layers
    convolution.weight.data = convolution.weight.data.flip(-1)
    head.weight.data = head.weight.data.reshape(CLASSES, 6, 8, 8).flip(-1).reshape(CLASSES, -1)
    return result


def asymmetry(method: Any, **parameters: Any) -> float:
    """How far maps of mirrored images are from mirrored maps, relative to the largest value."""
    network = with_random_state(Pooled(), 2)
    maps = method(network, IMAGES, TARGETS, generator=generator(), **parameters)
    other = method(mirrored(network), IMAGES.flip(-1), TARGETS, generator=generator(), **parameters)
    return float((other.flip(-1) - maps).abs().max() / maps.abs().max())


@pytest.mark.parametrize("rule", RULES)
def test_only_rules_without_a_point_at_the_baseline_are_symmetric(rule: str) -> None:
    difference = asymmetry(integrated_gradients, rule=rule)
    assert difference > 1e-3 if rule in ("trapezoid", "left") else difference < 1e-10


def test_the_default_and_the_attributions_of_xrai_are_symmetric() -> None:
    assert asymmetry(integrated_gradients) < 1e-10
    # Its segmentation is not.
    assert (
        asymmetry(lambda model, images, targets, generator: _attributions(model, images, targets, 3)) < 1e-10
    )


def test_the_default_is_the_midpoint_rule_which_takes_one_step() -> None:
    network = with_random_state(Pooled(), 2)
    maps = integrated_gradients(network, IMAGES, TARGETS, generator=generator(), steps=1)
    pixels = (IMAGES / 2).requires_grad_()
    gradient = torch.autograd.grad(network(pixels).gather(1, TARGETS[:, None]).sum(), pixels)[0]
    exact(maps, gradient * IMAGES)

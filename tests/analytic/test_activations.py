"""Every activation function under every method with rules for layers: sums of maps, or a refusal by name."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from support import CLASSES, cyclic_targets, exact, generator, random_images, with_random_state
from torch import Tensor, nn

from saliency_assay.methods.canonical import canonical
from saliency_assay.methods.deeplift import deeplift
from saliency_assay.methods.fullgrad import full_gradient, fullgrad
from saliency_assay.methods.relevance import attnlrp, deep_taylor, lrp_alpha_beta, lrp_epsilon

IMAGES, TARGETS = random_images(4, size=8), cyclic_targets(4)

RECTIFIERS = {"ReLU": nn.ReLU(), "ReLU6": nn.ReLU6(), "Hardtanh(0, c)": nn.Hardtanh(0, 2)}
ACTIVATIONS = {
    **RECTIFIERS,
    **{
        "Hardtanh(-1, 1)": nn.Hardtanh(),
        "LeakyReLU": nn.LeakyReLU(0.2),
        "PReLU": nn.PReLU(),
        "ELU": nn.ELU(),
    },
    **{"CELU": nn.CELU(0.5), "SELU": nn.SELU(), "Softplus": nn.Softplus(), "Sigmoid": nn.Sigmoid()},
    **{"Tanh": nn.Tanh(), "Hardswish": nn.Hardswish()},
    **{"Hardsigmoid": nn.Hardsigmoid(), "SiLU": nn.SiLU(), "GELU": nn.GELU(), "Mish": nn.Mish()},
}
ONLY_RECTIFIERS = {
    "LRP-αβ": partial(lrp_alpha_beta, input_rule="same"),
    "deep Taylor": partial(deep_taylor, input_rule="same"),
}
METHODS: dict[str, Callable[..., Tensor]] = {
    **ONLY_RECTIFIERS,
    "LRP-ε": partial(lrp_epsilon, epsilon=1e-12),
    "AttnLRP": partial(attnlrp, epsilon=1e-12),
    "Rescale": partial(deeplift, rule="rescale"),
    "RevealCancel": partial(deeplift, rule="reveal_cancel"),
}


def network_of(activation: nn.Module, biases: bool) -> nn.Sequential:
    """Weights large enough for all parts of the activation functions."""
    network = nn.Sequential(
        nn.Conv2d(3, 16, 3, bias=biases),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, bias=biases),
        activation,
        nn.Conv2d(16, 16, 3, bias=biases),
        activation,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, CLASSES, bias=biases),
    )
    network = with_random_state(network, 1)
    for layer in (network[0], network[2], network[4]):
        layer.weight.data *= 3
    return network


def logits(network: nn.Module, images: Tensor) -> Tensor:
    with torch.no_grad():
        return network(images)[range(len(TARGETS)), TARGETS]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_sum_of_the_map_or_refusal(name: str, method: str) -> None:
    is_deeplift = method in ("Rescale", "RevealCancel")
    network = network_of(ACTIVATIONS[name], biases=is_deeplift)

    def explain() -> Tensor:
        return METHODS[method](network, IMAGES, TARGETS, generator=generator())

    if method in ONLY_RECTIFIERS and name not in RECTIFIERS:
        with pytest.raises(
            ValueError, match=rf"found {name.partition('(')[0]} \('3'\) .*or use lrp_epsilon$"
        ):
            explain()
        return
    expected = logits(network, IMAGES)
    if is_deeplift:
        expected = expected - logits(network, torch.zeros_like(IMAGES))
    exact(explain().sum((1, 2, 3)), expected, 1e-6)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_full_gradients_sum_to_the_logit(name: str) -> None:
    network, received = network_of(ACTIVATIONS[name], biases=True), []
    of_input, _ = full_gradient(
        canonical(network, IMAGES), IMAGES, TARGETS, lambda _, term: received.append(term)
    )
    total = of_input.sum((1, 2, 3)) + sum(term.flatten(1).sum(1) for term in received)
    exact(total, logits(network, IMAGES), 1e-9)
    assert fullgrad(network, IMAGES, TARGETS, generator=generator()).isfinite().all()


@pytest.mark.parametrize("method", ONLY_RECTIFIERS)
def test_a_relu_below_its_maximum_is_a_relu(method: str) -> None:
    maps = [
        METHODS[method](network_of(activation, biases=True), IMAGES, TARGETS, generator=generator())
        for activation in (nn.ReLU(), nn.Hardtanh(0, 1e6))
    ]
    exact(*maps, 1e-12)


@pytest.mark.parametrize("method", ["LRP-αβ", "deep Taylor", "LRP-ε"])
def test_softmax_is_no_activation(method: str) -> None:
    network = network_of(nn.Softmax(1), biases=False)
    with pytest.raises(ValueError, match=r"Softmax|softmax"):
        METHODS[method](network, IMAGES, TARGETS, generator=generator())

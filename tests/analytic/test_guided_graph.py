"""Guided backpropagation finds the ReLUs of a network however they are written."""

from collections.abc import Callable

import pytest
import torch
from captum.attr import GuidedBackprop
from support import CLASSES, cyclic_targets, exact, generator, random_images, with_random_state
from torch import Tensor, nn
from torch.nn import functional

from saliency_assay.methods.gradient import gradient
from saliency_assay.methods.guided import guided_backprop, is_rectifier

IMAGES, TARGETS = random_images(4, size=8), cyclic_targets(4)


def each_half(values: Tensor) -> Tensor:
    for half in (values[:, :4], values[:, 4:]):
        half.relu_()
    return values


def channels_last(values: Tensor) -> Tensor:
    return functional.relu(values.permute(0, 2, 3, 1), inplace=True).permute(0, 3, 1, 2)


def clamped_view(values: Tensor) -> Tensor:
    values.flatten(1).clamp_(min=0)
    return values


SPELLINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "function": functional.relu,
    "permuted view": channels_last,
    "slices": each_half,
    "clamped view": clamped_view,
    "clamp": lambda values: values.clamp(min=0),
    "clamp_min": lambda values: torch.clamp_min(values, 0),
    "threshold": lambda values: functional.threshold(values, 0, 0),
    "maximum": lambda values: torch.maximum(values, values.new_zeros(())),
    "maximum, in the other order": lambda values: torch.maximum(torch.zeros_like(values), values),
}


class Net(nn.Module):
    def __init__(self, relu: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.head, self.relu = nn.Linear(8, CLASSES), relu

    def forward(self, images: Tensor) -> Tensor:
        return self.head(torch.relu(self.second(self.relu(self.first(images)))).mean((2, 3)))


class Clipped(Net):
    """As ``Net``, with activations far above 6."""

    def forward(self, images: Tensor) -> Tensor:
        return self.head(torch.relu(self.second(self.relu(20 * self.first(images)))).mean((2, 3)))


class Modules(Net):
    """The same function with modules, which captum finds."""

    def __init__(self) -> None:
        super().__init__(torch.relu)
        self.relus = nn.ModuleList([nn.ReLU(), nn.ReLU()])

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.relus[1](self.second(self.relus[0](self.first(images)))).mean((2, 3)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_captums_map(spelling: str) -> None:
    network, reference = (with_random_state(each, 1) for each in (Net(SPELLINGS[spelling]), Modules()))
    expected = GuidedBackprop(reference).attribute(IMAGES, target=TARGETS).detach()
    maps = guided_backprop(network, IMAGES, TARGETS, generator=generator())
    exact(maps, expected, 1e-9, floor=1e-12)
    plain = gradient(reference, IMAGES, TARGETS, generator=generator())
    assert (maps - plain).abs().max() > 0.1 * plain.abs().max()


RELU6: dict[str, Callable[[Tensor], Tensor]] = {
    "module": nn.ReLU6(),
    "in place": nn.ReLU6(inplace=True),
    "function": functional.relu6,
    "hardtanh": lambda values: functional.hardtanh(values, 0, 6),
    "hardtanh, in place": lambda values: functional.hardtanh_(values, 0, 6),
    "clamp": lambda values: values.clamp(0, 6),
    "clamp_": lambda values: values.clamp_(0, 6),
    "clamp with tensors": lambda values: values.clamp(values.new_zeros(()), values.new_tensor(6)),
    "two clamps": lambda values: values.clamp(max=6).clamp(min=0),
    "minimum": lambda values: torch.minimum(values.relu(), values.new_tensor(6)),
    "scripted": lambda values: torch.jit.script(nn.ReLU6())(values),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("spelling", RELU6)
def test_relu6_passes_positive_gradients_between_its_ends(spelling: str) -> None:
    network = with_random_state(Clipped(RELU6[spelling]), 1)
    maps = guided_backprop(network, IMAGES, TARGETS, generator=generator())
    images = IMAGES.clone().requires_grad_()
    h1 = 20 * network.first(images)
    h2 = network.second(h1.clamp(0, 6))
    top = (network.head.weight[TARGETS] / h2[0, 0].numel())[:, :, None, None]
    middle = torch.autograd.grad(h2, h1, (h2 > 0) * top.clamp(min=0), retain_graph=True)[0]
    is_linear = (h1 > 0) & (h1 < 6)
    # The derivative of the clamp in h2 above is already 1[0 < h1 < 6].
    expected = torch.autograd.grad(h1, images, is_linear * middle.clamp(min=0))[0]
    exact(maps, expected, 1e-9, floor=1e-12)
    assert all(part.any() for part in (h1 > 6, is_linear & (middle > 0), is_linear & (middle < 0)))


UNDEFINED: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "LeakyReLU": (functional.leaky_relu, "LeakyReLU"),
    "PReLU": (lambda values: functional.prelu(values, values.new_full((1,), 0.25)), "PReLU"),
    "ELU": (functional.elu, "ELU"),
    "CELU": (functional.celu, "CELU"),
    "SELU": (functional.selu, "ELU or SELU"),
    "Softplus": (functional.softplus, "Softplus"),
    "Hardswish": (functional.hardswish, "Hardswish"),
    "SiLU": (functional.silu, "SiLU"),
    "GELU": (functional.gelu, "GELU"),
    "Mish": (functional.mish, "Mish"),
    "Hardtanh": (functional.hardtanh, "Hardtanh"),
    "Hardtanh by clamp": (lambda values: values.clamp(-1, 1), "Hardtanh"),
    "Tanh": (torch.tanh, "Tanh"),
    "Sigmoid": (torch.sigmoid, "Sigmoid"),
    "SiLU by operations": (lambda values: values * values.sigmoid(), "a product of x"),
    "Hardswish by operations": (lambda values: values * functional.relu6(values + 3) / 6, "a product of x"),
    "GELU by operations": (lambda values: values / 2 * (1 + torch.erf(values / 2**0.5)), "a product of x"),
    "Softsign": (functional.softsign, "a product of x"),
    "Hardsigmoid by operations": (
        lambda values: values * (functional.relu6(pooled(values) + 3) / 6),
        "a gate",
    ),
}


def pooled(values: Tensor) -> Tensor:
    return values.mean((2, 3), keepdim=True)


@pytest.mark.parametrize("case", UNDEFINED)
def test_another_activation_beside_a_relu_is_refused(case: str) -> None:
    function, name = UNDEFINED[case]
    network = with_random_state(Net(function), 1)
    with pytest.raises(
        ValueError, match=rf"^guided_backprop: found ReLU and {name}.* in Net; .*use gradient$"
    ):
        guided_backprop(network, IMAGES, TARGETS, generator=generator())


def gated_linear_unit(values: Tensor) -> Tensor:
    first, second = values.chunk(2, 1)
    return torch.cat([first * second.sigmoid()] * 2, 1)


GATES: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": lambda values: values * pooled(values).sigmoid(),
    "sigmoid, expanded": lambda values: (
        values * values.mean((2, 3)).sigmoid()[:, :, None, None].expand_as(values)
    ),
    "hardsigmoid": lambda values: values * functional.hardsigmoid(pooled(values)),
    "tanh": lambda values: values * (1 + torch.tanh(pooled(values))),
    "gated linear unit": gated_linear_unit,
    "unit length": functional.normalize,
    "softmax": lambda values: values * values.softmax(1),
}


@pytest.mark.parametrize("gate", GATES)
def test_gates_and_norms_pass_the_gradient(gate: str) -> None:
    """With positive gradients at the ReLU behind the gate, the rule changes nothing."""
    network = with_random_state(Net(GATES[gate]), 1)
    network.head.weight.data.abs_()
    maps = guided_backprop(network, IMAGES, TARGETS, generator=generator())
    exact(maps, gradient(network, IMAGES, TARGETS, generator=generator()), 1e-9, floor=1e-12)


def test_a_network_may_return_probabilities() -> None:
    network = with_random_state(Net(torch.relu), 1)
    maps = guided_backprop(nn.Sequential(network, nn.Sigmoid()), IMAGES, TARGETS, generator=generator())
    logits = network(IMAGES)[range(len(TARGETS)), TARGETS, None, None, None]
    scale = (logits.sigmoid() * (1 - logits.sigmoid())).detach()
    exact(maps, scale * guided_backprop(network, IMAGES, TARGETS, generator=generator()), 1e-9, floor=1e-12)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (functional.relu, True),
        (functional.relu6, True),
        (lambda values: values.clamp(0, 6), True),
        (lambda values: values.clamp(min=0.1), False),
        (lambda values: values.clamp(max=0), False),
        (lambda values: functional.threshold(values, 0.5, 0), False),
        (lambda values: torch.maximum(values, values.new_ones(())), False),
        (functional.gelu, False),
        (functional.leaky_relu, False),
    ],
)
def test_which_nodes_are_relus(function: Callable[[Tensor], Tensor], expected: bool) -> None:
    node = function(torch.randn(4, requires_grad=True)).grad_fn
    assert node is not None
    assert is_rectifier(node) == expected


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_maximum_is_no_relu_because_the_other_argument_is_0_for_these_images(sign: int) -> None:
    """max(v, relu(v)) for v < 0 or v > 0 throughout: the gradient is that of autograd, but for the ReLU in it."""

    weights = torch.linspace(-1, 1, IMAGES[0].numel()).reshape(IMAGES.shape[1:]).to(IMAGES)

    class Maximum(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            values = sign * (1 + images)
            score = (torch.maximum(values, torch.relu(values)) * weights).sum((1, 2, 3))
            return torch.stack([score] * CLASSES, 1)

    maps = guided_backprop(Maximum(), IMAGES, TARGETS, generator=generator())
    # Autograd gives half of the gradient to each argument where they are equal.
    expected = (weights + weights.clamp(min=0)) / 2 if sign > 0 else torch.zeros_like(weights)
    exact(maps, expected.expand_as(maps), 1e-12)

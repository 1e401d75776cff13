"""Guided backpropagation finds the ReLUs of a network however they are written."""

from collections.abc import Callable

import pytest
import torch
from captum.attr import GuidedBackprop
from support import CLASSES, cyclic_targets, exact, generator, random_images, with_random_state
from torch import Tensor, nn
from torch.nn import functional

from saliency_assay.methods.gradient import gradient
from saliency_assay.methods.guided import guided_backprop, is_relu

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
    assert is_relu(node) == expected


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

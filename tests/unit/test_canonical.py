"""A network as a chain of known layers: the same function, made of layers that are called once."""

from collections import OrderedDict

import pytest
import torch
from support import (
    ConvNet,
    SkipNet,
    SmoothNet,
    classifier,
    exact,
    generator,
    random_images,
    state_of,
    with_random_state,
)
from torch import Tensor, nn
from torch.nn import functional

from saliency_assay.methods.canonical import REARRANGEMENTS, Add, canonical, normalised, unfit_relus
from saliency_assay.models.resnet import resnet8

IMAGES = random_images(3, size=8)


class Functional(nn.Module):
    """Every operation that is known as a function, in several spellings."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.wide, self.narrow = nn.Linear(4 * 2 * 2, 4), nn.Linear(4, 4)

    def forward(self, images: Tensor) -> Tensor:
        x = torch.relu(self.first(images))
        x = functional.max_pool2d(x, 3, 2, 1)
        x = functional.relu(torch.add(self.second(x), x), inplace=True)
        x = functional.avg_pool2d(x + x, 2)
        x = functional.dropout(x, 0.5, self.training)
        flat = self.wide(x.view(x.size(0), -1)) + self.wide(x.reshape((x.shape[0], -1)))
        flat = flat + self.wide(torch.flatten(x, 1, -1)).add(self.wide(x.flatten(start_dim=1)))
        space = self.narrow(x.mean((2, 3))) + self.narrow(torch.mean(x, dim=[-1, -2]))
        kept = x.mean((2, 3), keepdim=True) + functional.adaptive_avg_pool2d(x, (1, 1))
        return flat.relu() + (space + self.narrow(kept.flatten(1)))


class OptionA(nn.Module):
    """A shortcut without parameters: every second pixel, and channels of zeros (He et al., 2016, option A)."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.relu = nn.Conv2d(3, 7, 3, stride=2, padding=1), nn.ReLU()
        self.head = nn.Linear(7, 4)

    def forward(self, images: Tensor) -> Tensor:
        shortcut = functional.pad(images[:, :, ::2, ::2], (0, 0, 0, 0, 2, 2), "constant", 0)
        return self.head(self.relu(self.convolution(images) + shortcut).mean((2, 3)))


class PreActivation(nn.Module):
    """BatchNorm before convolutions, at the input and after an addition, and one whose convolution is read twice."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (
            nn.BatchNorm2d(3),
            nn.BatchNorm2d(3, affine=False),
            nn.BatchNorm2d(3),
        )
        self.relu1, self.relu2 = nn.ReLU(), nn.ReLU()
        self.convolution = nn.Conv2d(3, 3, 3, padding=1, bias=False)
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(192, 6), nn.BatchNorm1d(6, affine=False), nn.Linear(6, 4)
        )

    def forward(self, images: Tensor) -> Tensor:
        branch = self.convolution(self.relu1(self.norm1(images)))
        return self.head(self.relu2(self.norm2(branch + images)) + self.norm3(branch))


class Shared(nn.Module):
    """A convolution and a ReLU that are called twice, the ReLU over its input, which is read again afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.relu, self.dropout = (
            nn.Conv2d(3, 3, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Dropout(),
        )
        self.head = nn.Linear(192, 4)

    def forward(self, images: Tensor) -> Tensor:
        first = self.convolution(images)
        again = self.convolution(self.relu(self.dropout(first)))
        return self.head((self.relu(again) + first).flatten(1))


def misnamed() -> nn.Module:
    """Modules whose names are those of functions."""
    layers = {"add_": nn.Conv2d(3, 3, 1), "relu_": nn.Tanh(), "size": nn.Flatten(), "view": nn.Linear(192, 4)}
    return nn.Sequential(OrderedDict(layers))


NETWORKS = {
    "convolutional": lambda: ConvNet(3),
    "skip": SkipNet,
    "tanh": lambda: SmoothNet(IMAGES[0].numel()),
    "resnet8": lambda: resnet8(classes=4, channels=3, width=4, generator=generator()),
    "functional": Functional,
    "option A": OptionA,
    "pre-activation": PreActivation,
    "shared": Shared,
    "misnamed": misnamed,
}


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest) -> nn.Module:
    return with_random_state(NETWORKS[request.param](), seed=3)


def test_is_the_same_function(network: nn.Module) -> None:
    with torch.no_grad():
        logits = network(IMAGES)
        assert logits.std(0).min() > 1e-4
        exact(canonical(network)(IMAGES), logits, tolerance=1e-10)


def test_sees_a_classifiers_normalised_images() -> None:
    network = with_random_state(ConvNet(3), seed=3)
    model = classifier(network, "body.6")
    pixels = normalised(model, IMAGES)
    exact(pixels, (IMAGES - 0.45) / 0.25, tolerance=1e-6, floor=1e-6)  # the mean is kept in float32
    assert normalised(network, IMAGES) is IMAGES
    with torch.no_grad():
        exact(canonical(model)(pixels), model(IMAGES))


def test_is_made_of_known_layers_that_are_called_once(network: nn.Module) -> None:
    module = canonical(network)
    called = [module.get_submodule(node.target) for node in module.graph.find_nodes(op="call_module")]
    assert len({id(layer) for layer in called}) == len(called)
    assert not any(isinstance(layer, nn.BatchNorm2d | nn.BatchNorm1d | nn.Dropout) for layer in called)
    assert not any(getattr(layer, "inplace", False) for layer in called)
    others = [node for node in module.graph.nodes if node.op not in ("placeholder", "output", "call_module")]
    assert {node.target for node in others} <= set(REARRANGEMENTS)
    assert not any(part.training for part in called)


def test_layers_of_each_kind_are_counted() -> None:
    kinds = [type(layer) for layer in canonical(with_random_state(Functional(), seed=3)).modules()]
    pools = {nn.MaxPool2d: 1, nn.AvgPool2d: 1, nn.AdaptiveAvgPool2d: 4}
    assert {kind: kinds.count(kind) for kind in pools} == pools
    assert [kinds.count(kind) for kind in (nn.ReLU, nn.Linear, Add)] == [3, 7, 9]


def test_leaves_the_network_and_the_random_numbers_alone(network: nn.Module) -> None:
    before, noise = state_of(network), torch.get_rng_state()
    module = canonical(network)
    with torch.no_grad():
        module(IMAGES.clone())
    assert state_of(network) == before
    assert torch.equal(torch.get_rng_state(), noise)


def test_weights_that_stay_are_shared_and_folded_ones_are_not() -> None:
    network = with_random_state(ConvNet(3), seed=3)
    module = canonical(network)
    assert module.get_submodule("body.10") is network.body[10]
    own = {parameter.data_ptr() for parameter in module.parameters()}
    assert network.body[0].weight.data_ptr() not in own
    assert network.body[10].weight.data_ptr() in own


# ---------------------------------------------------------------------------------------------- refusals


class Refused(nn.Module):
    """A forward of one's own over a linear layer and its BatchNorm."""

    def __init__(self, forward: object) -> None:
        super().__init__()
        self.weight, self.layer, self.act = nn.Parameter(torch.ones(1)), nn.Conv2d(3, 3, 1), nn.ReLU()
        self.forward_with = forward

    def forward(self, images: Tensor) -> Tensor:
        return self.forward_with(self, images)


VALID = (
    "which has no rule of its own; valid: modules, relu, addition of two, flatten, pooling, mean over space, "
    "slices of images and zero padding"
)


@pytest.mark.parametrize(
    ("forward", "operation"),
    [
        (lambda net, x: torch.sigmoid(net.layer(x)), "'sigmoid' (sigmoid)"),
        (lambda net, x: net.layer(x) * 2, "'mul' (mul)"),
        (lambda net, x: net.layer(x) + 1, "'add' (add)"),
        (lambda net, x: torch.add(x, net.layer(x), alpha=2), "'add' (add)"),
        (lambda net, x: net.layer(x) + net.weight, "'weight' (weight)"),
        (lambda net, x: torch.cat([x, net.layer(x)], 1), "'cat' (cat)"),
        (lambda net, x: net.layer(x).view(-1, 192), "'view' (view)"),
        (lambda net, x: net.layer(x).view(x.size(1), -1), "'view' (view)"),
        (lambda net, x: functional.avg_pool2d(net.layer(x), x.shape[2]), "'avg_pool2d' (avg_pool2d)"),
        (lambda net, x: functional.avg_pool2d(net.layer(x), x.size()[2:]), "'avg_pool2d' (avg_pool2d)"),
        (lambda net, x: net.layer(x)[:, :, : x.size(2) // 2], "'floordiv' (floordiv)"),
        (lambda net, x: net.layer(x)[:, :, : x.size(2)], "'getitem' (getitem)"),
        (lambda net, x: torch.flatten(net.layer(x)), "'flatten' (flatten)"),
        (lambda net, x: net.layer(x).flatten(2), "'flatten' (flatten)"),
        (lambda net, x: net.layer(x).mean(1), "'mean' (mean)"),
        (lambda net, x: net.layer(x).mean(), "'mean' (mean)"),
        (lambda net, x: net.layer(x)[::2], "'getitem' (getitem)"),
        (lambda net, x: functional.pad(net.layer(x), (1, 1), value=1.0), "'pad' (pad)"),
        (lambda net, x: functional.pad(net.layer(x), (0, 0, 0, 0, 0, 0, 1, 0)), "'pad' (pad)"),
        (lambda net, x: functional.dropout(net.layer(x), 0.5), "'dropout' (dropout)"),
        (
            lambda net, x: functional.max_pool2d(net.layer(x), 2, return_indices=True)[0],
            "'max_pool2d_with_indices' (max_pool2d_with_indices)",
        ),
    ],
)
def test_unknown_operations_are_refused(forward: object, operation: str) -> None:
    network = Refused(forward).double().eval()
    network(IMAGES)  # it does run
    with pytest.raises(ValueError, match=r"^Refused: found the operation") as error:
        canonical(network)
    assert str(error.value) == f"Refused: found the operation {operation}, {VALID}"


def test_what_nothing_reads_is_not_refused() -> None:
    def forward(net: Refused, images: Tensor) -> Tensor:
        torch.sigmoid(images)
        return net.layer(images)

    network = Refused(forward).double().eval()
    exact(canonical(network)(IMAGES).detach(), network(IMAGES).detach())


def test_a_forward_that_looks_at_values_is_refused() -> None:
    network = Refused(lambda net, x: net.layer(x) if x.sum() > 0 else x).eval()
    with pytest.raises(ValueError, match=r"^Refused: its layers cannot be traced") as error:
        canonical(network)
    assert str(error.value) == (
        "Refused: its layers cannot be traced (symbolically traced variables cannot be used as inputs to control "
        "flow); expected a forward without branches that depend on values, or a method that needs gradients only, "
        "such as integrated_gradients"
    )


@pytest.mark.parametrize("part", ["body.1", "body.9"], ids=["BatchNorm", "dropout"])
def test_training_mode_is_refused(part: str) -> None:
    network = with_random_state(ConvNet(3), seed=3)
    network.get_submodule(part).train()
    with pytest.raises(ValueError, match=r"^ConvNet: found training mode, expected evaluation mode$"):
        canonical(network)


def test_training_mode_is_of_no_matter_without_a_layer_that_knows_it() -> None:
    network = with_random_state(SkipNet(), seed=3).train()
    exact(canonical(network)(IMAGES).detach(), network(IMAGES).detach())


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            [nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3, track_running_stats=False)],
            "Sequential: found BatchNorm2d ('1') without running statistics; expected one that keeps them",
        ),
        (
            [nn.Flatten(), nn.BatchNorm1d(192), nn.Linear(192, 4)],
            "Sequential: found BatchNorm1d ('1') that follows no linear layer; expected one that does",
        ),
    ],
)
def test_a_batchnorm_that_cannot_be_folded_is_refused(layers: list[nn.Module], message: str) -> None:
    with pytest.raises(ValueError, match=r"^Sequential: found BatchNorm") as error:
        canonical(nn.Sequential(*layers).eval())
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("network", "phrases"),
    [
        (SkipNet(), []),
        (Functional(), [f"the ReLU {name!r} is a function" for name in ("relu", "relu_1", "relu_2")]),
        (Shared(), ["the ReLU 'relu' is called more than once"]),
        (classifier(Shared(), "head"), ["the ReLU 'relu' is called more than once"]),
    ],
)
def test_relus_that_hooks_do_not_see_once_are_named(network: nn.Module, phrases: list[str]) -> None:
    assert list(unfit_relus(network)) == phrases

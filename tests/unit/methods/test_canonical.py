"""A network as a chain of known layers: the same function, made of layers that are called once."""

import gc
import weakref
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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

import saliency_assay
from saliency_assay.methods import canonical as canonical_module
from saliency_assay.methods import exported
from saliency_assay.methods.canonical import canonical, normalized
from saliency_assay.methods.operations import REARRANGEMENTS
from saliency_assay.models.independence import ROUNDING
from saliency_assay.models.resnet import resnet8
from saliency_assay.models.timm_networks import timm_network

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


class InPlace(nn.Module):
    """ReLUs and an addition in place, as in torchvision's residual networks and its VGGs, and one over a view."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.norm1, self.norm2, self.relu = nn.BatchNorm2d(4), nn.BatchNorm2d(4), nn.ReLU(inplace=True)
        self.head = nn.Sequential(nn.Linear(64, 6), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(6, 4))

    def forward(self, images: Tensor) -> Tensor:
        x = functional.max_pool2d(self.relu(self.norm1(self.first(images))), 2)
        out = before = self.norm2(self.second(x))
        out += x
        flat = torch.flatten(self.relu(before), 1)
        return self.head(flat) + self.head(functional.relu_((out + x).flatten(1)))


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
    "norm of a vector": lambda: nn.Sequential(
        nn.Flatten(), nn.BatchNorm1d(192), nn.ReLU(), nn.Linear(192, 4)
    ),
    "shared": Shared,
    "in place": InPlace,
    "misnamed": misnamed,
}


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest) -> nn.Module:
    return with_random_state(NETWORKS[request.param](), seed=3)


def test_is_the_same_function(network: nn.Module) -> None:
    with torch.no_grad():
        logits = network(IMAGES)
        assert logits.std(0).min() > 1e-4
        exact(canonical(network, IMAGES)(IMAGES), logits, tolerance=1e-10)


def test_sees_a_classifiers_normalized_images() -> None:
    network = with_random_state(ConvNet(3), seed=3)
    model = classifier(network, "body.6")
    pixels = normalized(model, IMAGES)
    exact(pixels, (IMAGES - 0.45) / 0.25, tolerance=1e-6, floor=1e-6)  # the mean is kept in float32
    assert normalized(network, IMAGES) is IMAGES
    with torch.no_grad():
        exact(canonical(model, IMAGES)(pixels), model(IMAGES))


def test_is_made_of_known_layers_that_are_called_once(network: nn.Module) -> None:
    module = canonical(network, IMAGES)
    called = [module.get_submodule(node.target) for node in module.graph.find_nodes(op="call_module")]
    assert len({id(layer) for layer in called}) == len(called)
    assert not any(isinstance(layer, nn.BatchNorm2d | nn.BatchNorm1d | nn.Dropout) for layer in called)
    assert not any(getattr(layer, "inplace", False) for layer in called)
    others = [node for node in module.graph.nodes if node.op not in ("placeholder", "output", "call_module")]
    assert {node.target for node in others if node.op != "get_attr"} <= set(REARRANGEMENTS)
    assert not any(part.training for part in called)


def test_leaves_the_network_and_the_random_numbers_alone(network: nn.Module) -> None:
    before, noise = state_of(network), torch.get_rng_state()
    module = canonical(network, IMAGES)
    with torch.no_grad():
        module(IMAGES.clone())
    assert state_of(network) == before
    assert torch.equal(torch.get_rng_state(), noise)


# ------------------------------------------------------------------------------------- kept between calls


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[nn.Module]:
    """The networks that are recorded, in order."""
    seen: list[nn.Module] = []
    record = exported.exported

    def watch(network: nn.Module, *args: Any) -> exported.Exported:
        seen.append(network)
        return record(network, *args)

    monkeypatch.setattr(canonical_module, "exported", watch)
    return seen


def test_an_unchanged_network_is_traced_once(traces: list[nn.Module]) -> None:
    network, other = (with_random_state(ConvNet(3), seed=seed) for seed in (3, 4))
    modules = [canonical(model, IMAGES) for model in (network, classifier(network, "body.6"), network)]
    assert modules[0] is modules[1] is modules[2]
    assert traces == [network]
    assert canonical(other, IMAGES) is not modules[0]
    assert canonical(network, IMAGES) is modules[0]
    assert traces == [network, other]
    assert all(one is other for one, other in zip(traces, [network, other], strict=True))


class Weighted(nn.Module):
    """Multiplies pixels by a tensor that the forward pass creates, which a trace stores as a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 2)

    def forward(self, images: Tensor) -> Tensor:
        return self.head((images * torch.arange(3.0).reshape(3, 1, 1)).mean((2, 3)))


def test_a_trace_leaves_no_constant_in_the_network(traces: list[nn.Module]) -> None:
    network = Weighted().double().eval()
    before = set(vars(network))
    assert canonical(network, IMAGES) is canonical(network, IMAGES)
    assert traces == [network]
    assert set(vars(network)) == before
    exact(canonical(network, IMAGES)(IMAGES).detach(), network(IMAGES).detach())


def test_timm_attention_that_is_not_fused() -> None:
    options = {"img_size": 16, "embed_dim": 8, "depth": 1, "num_heads": 2}
    name, size = "vit_tiny_patch16_224", {"patch_size": 4}
    network = timm_network(classes=2, channels=3, generator=generator(), name=name, **options, **size).eval()
    network.blocks[0].attn.fused_attn = False
    images = random_images(2, size=16, dtype=torch.float32)
    exact(canonical(network, images)(images).detach(), network(images).detach(), tolerance=1e-4, floor=1e-6)


class Scaled(ConvNet):
    """Logits times a tensor that is no buffer and an option that is no attribute of the module."""

    def __init__(self) -> None:
        super().__init__(3)
        self.factor, self.options = torch.tensor(2.0), SimpleNamespace(factor=0.5)

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images) * self.factor * self.options.factor


def scaled(network: nn.Module) -> None:
    with torch.no_grad():
        network.body[0].weight.mul_(2)


def learned(network: nn.Module) -> None:
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    network(IMAGES)[:, 0].sum().backward()
    optimizer.step()


def replaced(network: nn.Module) -> None:
    network.body[0].weight = nn.Parameter(network.body[0].weight.detach() * 2)


def softened(network: nn.Module) -> None:
    network.body[2] = nn.Softplus().eval()


CHANGES = {
    "a tensor of the forward pass": lambda network: network.factor.mul_(3),
    "an option": lambda network: setattr(network.options, "factor", 3.0),
    "in place": scaled,
    "an optimizer's step": learned,
    "another parameter": replaced,
    "running statistics": lambda network: network.body[1].running_var.mul_(4),
    "BatchNorm's ε": lambda network: setattr(network.body[1], "eps", 0.5),
    "another layer": softened,
    "another pool": lambda network: setattr(network.body[3], "kernel_size", 1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_network_gives_a_new_result(change: str) -> None:
    network = with_random_state(Scaled(), seed=3)
    before = canonical(network, IMAGES)
    with torch.no_grad():
        logits = network(IMAGES)
    CHANGES[change](network)
    network.eval()
    with torch.no_grad():
        assert not torch.allclose(network(IMAGES), logits, atol=1e-6)
        assert canonical(network, IMAGES) is not before
        exact(canonical(network, IMAGES)(IMAGES), network(IMAGES), tolerance=1e-10)


def test_weights_made_for_inference_are_compared_anew() -> None:
    """They have no version that counts changes."""
    with torch.inference_mode():
        network = with_random_state(ConvNet(3), seed=3)
    before = canonical(network, IMAGES)
    with torch.inference_mode():
        network.body[0].weight.mul_(2)
        exact(canonical(network, IMAGES)(IMAGES).clone(), network(IMAGES).clone(), tolerance=1e-10)
    assert canonical(network, IMAGES) is not before


def test_a_form_derived_without_gradients_has_gradients_later() -> None:
    network = with_random_state(ConvNet(3), seed=3)
    with torch.inference_mode():
        module = canonical(network, IMAGES)
    pixels = IMAGES.clone().requires_grad_()
    (slopes,) = torch.autograd.grad(module(pixels).sum(), pixels)
    assert slopes.any()


def test_a_network_is_let_go() -> None:
    network = with_random_state(InPlace(), seed=3)
    module = canonical(network, IMAGES)
    gone = weakref.ref(network), weakref.ref(module)
    del network, module
    for _ in range(2):  # the network goes first, and with it what is kept for it
        gc.collect()
    assert [one() for one in gone] == [None, None]


# ---------------------------------------------------------------------------------------------- refusals


class Refused(nn.Module):
    """A forward of one's own over a linear layer and its BatchNorm."""

    def __init__(self, forward: object) -> None:
        super().__init__()
        self.weight, self.layer, self.act = nn.Parameter(torch.ones(1)), nn.Conv2d(3, 3, 1), nn.ReLU()
        self.matrix = nn.Parameter(torch.ones(2, 3))
        self.mean, self.spread = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.full((3,), 2.0))
        self.forward_with = forward

    def forward(self, images: Tensor) -> Tensor:
        return self.forward_with(self, images)


@pytest.mark.parametrize(
    ("forward", "operation"),
    [
        (lambda net, x: net.layer(x).view(3, -1)[:, : x.shape[0]], "slice"),
        (lambda net, x: torch.cat([x, net.layer(x)]), "cat"),
        (lambda net, x: net.layer(x).flip(0), "flip"),
        (lambda net, x: net.layer(x) - net.layer(x).mean(), "mean"),
        (lambda net, x: net.layer(x)[::2], "slice"),
        (lambda net, x: net.layer(x).softmax(0), "softmax"),
        (lambda net, x: net.layer(x).cumsum(1), "cumsum"),
        (lambda net, x: torch.maximum(x, net.layer(x)), "maximum"),
        (lambda net, x: functional.pad(net.layer(x), (1, 1), value=1.0), "pad"),
        (lambda net, x: functional.pad(net.layer(x), (0, 0, 0, 0, 0, 0, 1, 0)), "pad"),
        (lambda net, x: functional.dropout(net.layer(x), 0.5), "dropout"),
        (lambda net, x: functional.linear(x, net.layer(x)[0, 0]), "select"),
        (lambda net, x: net.layer(x) * torch.rand_like(x), "rand_like"),
        (
            lambda net, x: functional.interpolate(net.layer(x), scale_factor=1.3, mode="bilinear"),
            "upsample_bilinear2d",
        ),
        (lambda net, x: functional.avg_pool2d(net.layer(x).transpose(0, 2)[:2], 3), "avg_pool2d"),
    ],
)
def test_unknown_operations_are_refused(forward: object, operation: str) -> None:
    network = Refused(forward).double().eval()
    with torch.no_grad():
        network(IMAGES)  # it does run
    with pytest.raises(ValueError, match=rf"^Refused: found the operation '{operation}'"):
        canonical(network, IMAGES)


def copied(net: Refused, x: Tensor) -> Tensor:
    """A copy is written, and not what it is a copy of."""
    before = net.layer(x)
    return before + before.clone().relu_()


@pytest.mark.parametrize(
    "forward",
    [
        copied,
        lambda net, x: torch.sigmoid(net.layer(x)) * functional.silu(net.layer(x)),
        lambda net, x: functional.gelu(net.layer(x), approximate="tanh") / 3 + net.weight,
        lambda net, x: torch.cat([x, net.layer(x)], 1)[:, :, : x.size(2) // 2],
        lambda net, x: net.layer(x).view(-1, 192).view(x.shape[0], -1),
        lambda net, x: functional.layer_norm(net.layer(x).flatten(2).transpose(1, 2).mean(1), (3,)),
        lambda net, x: functional.linear(
            net.layer(x).contiguous().view(x.size(0), 3, -1).mean(-1), net.matrix
        ),
        lambda net, x: (net.layer(x).softmax(-1) @ net.layer(x).transpose(-2, -1)).unbind(1)[0],
        lambda net, x: functional.batch_norm(net.layer(x), net.mean, net.spread, net.mean, net.spread),
        lambda net, x: functional.scaled_dot_product_attention(x, net.layer(x), x, scale=0.5),
        lambda net, x: functional.scaled_dot_product_attention(x, net.layer(x), x, is_causal=True),
        lambda net, x: net.layer(x) + 1,
        lambda net, x: (1 - net.layer(x)) * 3 - torch.add(x, net.layer(x), alpha=2),
        lambda net, x: torch.einsum("nchw,kc->nkhw", net.layer(x), net.matrix),
        lambda net, x: torch.einsum("nchw,nkhw->nhck", net.layer(x), x),
        lambda net, x: functional.avg_pool2d(net.layer(x), x.shape[2]),
        lambda net, x: functional.max_pool2d(net.layer(x), 2, return_indices=True)[0],
        lambda net, x: (h := net.layer(x), h.clamp_(0))[0],
        lambda net, x: (
            functional.adaptive_max_pool2d(net.layer(x), 2) + net.layer(x).amax((2, 3), keepdim=True)
        ),
        lambda net, x: functional.adaptive_max_pool2d(net.layer(x), (3, 5)),
        lambda net, x: net.layer(x).transpose(0, 1).index_select(-1, torch.tensor([2, 1])) / torch.tensor(3),
        lambda net, x: (functional.relu6(net.layer(x)[:, :1] + 3 * torch.ones(3, 1, 1)) / 6).sum(1),
        lambda net, x: net.layer(x).flatten(2).reshape(-1, 64) + net.mean.repeat(len(x))[:, None],
        lambda net, x: net.layer(x).max(-1)[0] + net.layer(x).amax(-1),
        lambda net, x: functional.normalize(net.layer(x)) / (1 + net.layer(x).abs()),
        lambda net, x: functional.group_norm(net.layer(x), 3, net.mean, net.spread),
        lambda net, x: functional.instance_norm(net.layer(x)) + net.layer(x).std((2, 3), keepdim=True),
        lambda net, x: functional.rms_norm(net.layer(x), (8,)) + net.layer(x).var(1, keepdim=True),
        lambda net, x: functional.interpolate(net.layer(x), scale_factor=2, mode="bilinear"),
        lambda net, x: functional.pad(net.layer(x), (1, 1, 1, 1), "reflect").roll((1, 2), (2, 3)),
        lambda net, x: net.layer(x).masked_fill(torch.eye(8, dtype=torch.bool), -2.0),
        lambda net, x: torch.where(torch.eye(8, dtype=torch.bool), net.layer(x), net.weight),
        lambda net, x: torch.stack(net.layer(x).chunk(3, 1), -1).squeeze(1).movedim(1, 2).flip(1),
        lambda net, x: functional.conv1d(net.layer(x).flatten(2), net.matrix[:, :, None].expand(2, 3, 3)),
        lambda net, x: net.layer(x).unfold(2, 4, 2).repeat_interleave(2, 1).repeat(1, 1, 2, 1, 1),
        lambda net, x: (
            functional.pixel_shuffle(functional.pixel_unshuffle(x, 2), 2)
            + functional.glu(net.layer(x)[:, :2], 1)
        ),
        lambda net, x: net.layer(x) * net.act(torch.zeros(3, 1, 1, dtype=x.dtype).fill_(2.0)),
        lambda net, x: functional.scaled_dot_product_attention(
            x, net.layer(x), x, attn_mask=net.matrix[0, 0].expand(x.shape[2], 1)
        ),
    ],
)
def test_functions_have_the_same_value_in_canonical_form(forward: object) -> None:
    network = with_random_state(Refused(forward), seed=2)
    module = canonical(network, IMAGES)
    with torch.no_grad():
        exact(module(IMAGES), network(IMAGES))
        exact(module(IMAGES[:1]), network(IMAGES[:1]))


@pytest.mark.parametrize(
    "options", [{}, {"batch_first": True}, {"add_bias_kv": True}, {"add_zero_attn": True}], ids=str
)
def test_attention_has_the_same_value_in_canonical_form(options: dict[str, bool]) -> None:
    network = with_random_state(Attentive(**options), seed=2)
    module = canonical(network, IMAGES)
    assert not any(isinstance(layer, nn.MultiheadAttention) for layer in module.modules())
    with torch.no_grad():
        exact(module(IMAGES), network(IMAGES))


class Attentive(nn.Module):
    """Attention of the rows of the images' first channel to those of the second."""

    def __init__(self, **options: bool) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(IMAGES.shape[-1], 2, kdim=IMAGES.shape[-1], **options)

    def forward(self, images: Tensor) -> Tensor:
        query, keys = images[:, 0], images[:, 1]
        if not self.attention.batch_first:
            query, keys = query.transpose(0, 1), keys.transpose(0, 1)
        mixed, _ = self.attention(query, keys, keys, need_weights=False)
        return mixed if self.attention.batch_first else mixed.transpose(0, 1)


def flat_first(net: Refused, x: Tensor) -> Tensor:
    h = net.layer(x)
    flat = h.flatten(1)
    functional.relu_(h)
    return flat


def slice_is_written(net: Refused, x: Tensor) -> Tensor:
    h = net.layer(x)
    h[:, :2].relu_()
    return h.flatten(1)


def by_a_module(net: Refused, x: Tensor) -> Tensor:
    h = net.layer(x)
    flat = h.view(h.size(0), -1)
    net.act(h)
    return flat


def of_one_base(net: Refused, x: Tensor) -> Tensor:
    h = net.layer(x)
    upper, rest = h[:, :2], h[:, 1:]
    upper += x[:, :2]
    return rest.flatten(1)


def by_an_unknown_view(net: Refused, x: Tensor) -> Tensor:
    h = net.layer(x)
    functional.relu_(h.squeeze())
    return h.flatten(1)


@pytest.mark.parametrize(
    ("forward", "operation"),
    [
        (flat_first, "relu_"),
        (slice_is_written, "relu_"),
        (by_a_module, "relu_"),
        (of_one_base, "add_"),
        (by_an_unknown_view, "relu_"),
    ],
)
def test_a_write_that_a_view_passes_on_is_refused(forward: object, operation: str) -> None:
    network = Refused(forward).double().eval()
    network.act.inplace = True
    with torch.no_grad():
        network(IMAGES)  # it does run
    with pytest.raises(
        ValueError, match=f"^Refused: found '{operation}' in place, over memory that is read later"
    ):
        canonical(network, IMAGES)


def test_logits_of_a_network_with_auxiliary_outputs() -> None:
    network = Refused(lambda net, x: (net.layer(input=x), torch.sigmoid(x))).double().eval()
    exact(canonical(network, IMAGES)(IMAGES).detach(), network(IMAGES)[0].detach())


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (lambda net, x: {"scores": net.layer(x)}, "found no logits in its output"),
        (
            lambda net, x: net.layer(x) if x.sum() > 0 else x,
            "its layers cannot be traced.*branches that depend on values",
        ),
    ],
)
def test_a_forward_that_cannot_be_taken_apart_is_refused(forward: object, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^Refused: {message}"):
        canonical(Refused(forward).double().eval(), IMAGES)


@pytest.mark.parametrize("part", ["body.1", "body.9"], ids=["BatchNorm", "dropout"])
def test_training_mode_is_refused(part: str) -> None:
    network = with_random_state(ConvNet(3), seed=3)
    before = canonical(network, IMAGES)
    network.get_submodule(part).train()
    with pytest.raises(ValueError, match=r"^ConvNet: found training mode, expected evaluation mode$"):
        canonical(network, IMAGES)
    assert canonical(network.eval(), IMAGES) is before


def test_training_mode_is_allowed_without_a_layer_that_depends_on_it() -> None:
    network = with_random_state(SkipNet(), seed=3).train()
    exact(canonical(network, IMAGES)(IMAGES).detach(), network(IMAGES).detach())


def test_batch_statistics_are_refused() -> None:
    network = nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3, track_running_stats=False)).double().eval()
    with pytest.raises(ValueError, match=r"^Sequential: found the operation 'batch_norm' \('1'\)"):
        canonical(network, IMAGES)


PROPAGATED = ["lrp_epsilon", "lrp_alpha_beta", "deep_taylor", "deeplift", "fullgrad", "attnlrp"]


def hooked(hook: Callable[..., object]) -> nn.Module:
    layers = [nn.Conv2d(3, 256, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 4)]
    network = with_random_state(nn.Sequential(*layers), 1, torch.float32)
    network[0].register_forward_hook(hook)
    return network


def without_a_channel(layer: nn.Module, inputs: object, output: Tensor) -> Tensor:
    """An ablation with an effect below the rounding errors that are allowed between two forms of a network."""
    return torch.cat([output[:, :228], 0 * output[:, 228:229], output[:, 229:]], 1)


@pytest.mark.parametrize("method", PROPAGATED)
def test_a_hook_is_part_of_the_network(method: str) -> None:
    class Ablated(nn.Module):
        def forward(self, values: Tensor) -> Tensor:
            return without_a_channel(self, (), values)

    network, plain, images = hooked(without_a_channel), hooked(lambda *_: None), IMAGES.float()
    change = (network(images) - plain(images)).abs().max() / plain(images).abs().max()
    assert 0 < change < ROUNDING
    maps = saliency_assay.attribute(method, network, images, [0, 1, 2])
    in_forward = saliency_assay.attribute(
        method, nn.Sequential(plain[0], Ablated(), *plain[1:]), images, [0, 1, 2]
    )
    assert torch.equal(maps, in_forward)
    assert not torch.equal(maps, saliency_assay.attribute(method, plain, images, [0, 1, 2]))


def by_numpy(layer: nn.Module, inputs: object, output: Tensor) -> Tensor:
    return torch.from_numpy(2 * output.detach().numpy())


def watching(layer: nn.Module, inputs: object, output: Tensor) -> None:
    output.detach().numpy().std()


def test_hooks_that_cannot_be_exported_must_not_change_logits() -> None:
    images, plain = IMAGES.float(), hooked(lambda *_: None)
    maps = saliency_assay.attribute("lrp_epsilon", hooked(watching), images, [0, 1, 2])
    assert torch.equal(maps, saliency_assay.attribute("lrp_epsilon", plain, images, [0, 1, 2]))
    with pytest.raises(ValueError, match=r"^lrp_epsilon: found hooks of Sequential that change its logits"):
        saliency_assay.attribute("lrp_epsilon", hooked(by_numpy), images, [0, 1, 2])


@pytest.mark.parametrize("method", ["lrp_epsilon", "deeplift"])
def test_hooks_that_watch_may_keep_anything(method: str, tmp_path: Path) -> None:
    seen: list[Tensor] = []
    with (tmp_path / "log").open("w") as file:

        def watch(layer: nn.Module, inputs: object, output: Tensor) -> None:
            seen.append(output)
            file.write("seen\n")

        maps = saliency_assay.attribute(method, hooked(watch), IMAGES.float(), [0, 1, 2])
    expected = saliency_assay.attribute(method, hooked(lambda *_: None), IMAGES.float(), [0, 1, 2])
    assert torch.equal(maps, expected)
    assert seen


def test_a_global_hook_is_refused() -> None:
    network = hooked(lambda *_: None)
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        with pytest.raises(ValueError, match="found a global hook"):
            saliency_assay.attribute("lrp_epsilon", network, IMAGES.float(), [0, 1, 2])
    finally:
        handle.remove()
    saliency_assay.attribute("lrp_epsilon", network, IMAGES.float(), [0, 1, 2])

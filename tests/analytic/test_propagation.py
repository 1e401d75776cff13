"""DeepLIFT and LRP-ε through networks of torchvision and timm: sums, and LRP-ε against gradients.

LRP-ε is compared with gradient ⊙ input of the same network, whose normalizations, attention weights and gates count as
constants and whose activations are linear functions of their input (Ali et al. 2022). Autograd computes it from the
network's own layers, without the canonical form.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
import torch
from support import exact, generator, with_random_state
from torch import Tensor, nn
from torch.nn import functional
from torchvision import models

from saliency_assay.methods.deeplift import deeplift
from saliency_assay.methods.relevance import lrp_epsilon

RULES = ("rescale", "reveal_cancel")

timm = pytest.importorskip("timm")


def small_vgg() -> nn.Module:
    """VGG with few and narrow layers: the classifier of the original has a gigabyte of weights."""
    network = models.VGG(models.vgg.make_layers([16, "M", 16, "M", 16, 16, "M"]), init_weights=False)
    for layer, width in ((0, 16 * 49), (3, 16), (6, 16)):
        network.classifier[layer] = nn.Linear(width, 16)
    return network


def small_swin() -> nn.Module:
    """Four windows and shifted windows of 4 × 4 patches, and a stage with merged patches."""
    size = {"embed_dim": 24, "depths": (2, 2), "num_heads": (2, 4)}
    return timm.models.swin_transformer.SwinTransformer(img_size=SIZE, window_size=4, **size)


SIZE = 64
NETWORKS = {
    "torchvision/resnet18": lambda: models.resnet18(),
    "torchvision/densenet": lambda: models.DenseNet(8, (2, 2, 2), 16),
    "torchvision/vgg": small_vgg,
    "torchvision/vit": lambda: models.VisionTransformer(SIZE, 16, 2, 3, 96, 192),
    "torchvision/mobilenet_v3_small": lambda: models.mobilenet_v3_small(),
    "timm/vit_tiny": lambda: timm.create_model("vit_tiny_patch16_224", img_size=SIZE),
    "timm/deit_tiny": lambda: timm.create_model("deit_tiny_distilled_patch16_224", img_size=SIZE),
    "timm/swin": small_swin,
    "timm/convnext_atto": lambda: timm.create_model("convnext_atto"),
    "timm/efficientnet": lambda: timm.create_model("test_efficientnet"),
}
REPEATED = {
    "torchvision/resnet50": lambda: models.resnet50(),
    "torchvision/convnext_tiny": lambda: models.convnext_tiny(),
    "torchvision/efficientnet_b0": lambda: models.efficientnet_b0(),
    "timm/efficientnet_b0": lambda: timm.create_model("efficientnet_b0"),
    "timm/resnet18": lambda: timm.create_model("resnet18"),
}
"""Networks whose operations others have, too."""
TARGETS = torch.tensor([3, 7])


@pytest.fixture(
    scope="module",
    params=[*NETWORKS, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in REPEATED)],
)
def case(request: pytest.FixtureRequest) -> tuple[nn.Module, Tensor]:
    network = {**NETWORKS, **REPEATED}[request.param]()
    calibrate(with_random_state(network, 0))
    return network, pixels(SIZE)


def pixels(size: int) -> Tensor:
    return torch.rand(2, 3, size, size, generator=generator(1), dtype=torch.float64)


def calibrate(network: nn.Module) -> None:
    """Set running statistics to those of random images, so that signals neither vanish nor grow with depth."""
    norms = [layer for layer in network.modules() if isinstance(layer, nn.BatchNorm2d)]
    for norm in norms:
        norm.train()
        norm.momentum = None
        norm.reset_running_stats()
        norm.weight.data.abs_().add_(0.5)
    with torch.no_grad():
        network(torch.randn(4, 3, SIZE, SIZE, generator=generator(2), dtype=torch.float64))
    network.eval()


@pytest.mark.parametrize("rule", RULES)
def test_deeplift_sums_to_the_difference(case: tuple[nn.Module, Tensor], rule: str) -> None:
    network, images = case
    with torch.no_grad():
        difference = (network(images) - network(torch.zeros_like(images))).gather(1, TARGETS[:, None])[:, 0]
    maps = deeplift(network, images, TARGETS, generator=generator(), rule=rule)
    assert difference.abs().min() > 1e-4
    exact(maps.sum((1, 2, 3)), difference, tolerance=1e-8, floor=0)


def test_lrp_epsilon_is_gradient_x_input_of_the_linearized_network(case: tuple[nn.Module, Tensor]) -> None:
    network, images = case
    maps = lrp_epsilon(network, images, TARGETS, generator=generator(), epsilon=1e-12)
    leaf = images.clone().requires_grad_()
    shifts: list[Tensor] = []
    with linearized(shifts):
        logits = network(leaf).gather(1, TARGETS[:, None])[:, 0]
        constants = [*shifts, *(p for name, p in network.named_parameters() if is_added(name))]
        gradient, *by_constants = torch.autograd.grad(logits.sum(), [leaf, *constants], allow_unused=True)
    expected = gradient * images
    exact(maps, expected, tolerance=1e-6, floor=1e-6 * expected.abs().max())
    # Pixels and everything that is added to activations share the logits without a rest.
    added = sum(
        (share * constant).sum()
        for share, constant in zip(by_constants, constants, strict=True)
        if share is not None
    )
    assert (maps.sum() + added - logits.sum()).abs() < 1e-4 * logits.abs().sum()


def is_added(name: str) -> bool:
    return name.endswith(("bias", "token", "pos_embedding", "pos_embed")) and "table" not in name


@contextmanager
def linearized(shifts: list[Tensor]) -> Iterator[None]:
    """Replace PyTorch's functions by their linear counterparts; constants that BatchNorm adds go to ``shifts``."""
    softmax, sigmoid = torch.softmax, torch.sigmoid

    def layer_norm(x: Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
        axes = tuple(range(-len(shape), 0))
        centered = x - x.mean(axes, keepdim=True)
        y = centered / (x.var(axes, unbiased=False, keepdim=True) + eps).sqrt().detach()
        y = y if weight is None else y * weight
        return y if bias is None else y + bias

    def batch_norm(x: Tensor, mean: Tensor, var: Tensor, weight: Tensor, bias: Tensor, *rest: Any) -> Tensor:
        scale = (weight / (var + rest[-1]).sqrt()).detach()
        shift = (bias - mean * scale).detach().requires_grad_()
        shifts.append(shift)
        return x * scale[:, None, None] + shift[:, None, None]

    def by_ratio(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def linear(x: Tensor, *args: Any, **options: Any) -> Tensor:
            options.pop("inplace", None)
            return x * (function(x, *[a for a in args if not isinstance(a, bool)], **options) / x).detach()

        return linear

    def gate(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda x, *args, **options: function(
            x,
            *[a for a in args if not isinstance(a, bool)],
            **{k: v for k, v in options.items() if k != "inplace"},
        ).detach()

    def attention(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, **options: Any) -> Tensor:
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        scores = scores if attn_mask is None else scores + attn_mask
        return softmax(scores, -1).detach() @ v

    def multihead(self: nn.MultiheadAttention, x: Tensor, *rest: Any, **options: Any) -> tuple[Tensor, None]:
        q, k, v = (
            part.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)
            for part in functional.linear(x, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        )
        return self.out_proj(attention(q, k, v).transpose(1, 2).flatten(2)), None

    with (
        patch.object(functional, "layer_norm", layer_norm),
        patch.object(functional, "batch_norm", batch_norm),
        patch.object(functional, "gelu", by_ratio(functional.gelu)),
        patch.object(functional, "silu", by_ratio(functional.silu)),
        patch.object(functional, "hardswish", by_ratio(functional.hardswish)),
        patch.object(functional, "hardsigmoid", gate(functional.hardsigmoid)),
        patch.object(functional, "scaled_dot_product_attention", attention),
        patch.object(nn.MultiheadAttention, "forward", multihead),
        patch.object(torch, "sigmoid", gate(sigmoid)),
        patch.object(nn.Softmax, "forward", lambda self, x: softmax(x, self.dim).detach()),
        patch.object(nn.Sigmoid, "forward", lambda self, x: sigmoid(x).detach()),
    ):
        yield


class Small(nn.Module):
    """Layers on tokens of images, and a forward that combines them."""

    def __init__(self, forward: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(8, 8, bias=False) for _ in range(3))
        self.head = nn.Linear(8, 10, bias=False)
        self.matrix = nn.Parameter(torch.zeros(3, 3))
        self.register_buffer("order", torch.tensor([2, 0, 1]))
        self.register_buffer("keep", torch.eye(3, dtype=torch.bool))
        self.forward_with = forward

    def forward(self, images: Tensor) -> Tensor:
        return self.forward_with(self, images.mean(3))


def small(forward: Callable[[Any, Tensor], Tensor]) -> nn.Module:
    return with_random_state(Small(forward), 4)


@pytest.mark.parametrize(
    "forward",
    [
        lambda net, x: net.head(net.a(x)[:, net.order].mean(1)),
        lambda net, x: net.head((net.matrix @ net.a(x)).mean(1)),
        lambda net, x: net.head((0.3 * net.a(x).mean(1)) * net.b(x).mean(1)),
        lambda net, x: net.head(
            torch.cat([net.matrix[:, :1].expand(x.shape[0], 3, 1), net.a(x)[..., 1:]], 2).mean(1)
        ),
        lambda net, x: net.head(
            functional.scaled_dot_product_attention(net.a(x), net.b(x), x, attn_mask=net.keep).mean(1)
        ),
        lambda net, x: net.head((net.a(x) @ net.b(x).mT).mean(1) @ net.matrix.new_ones(3, 8)),
        lambda net, x: net.head(functional.rms_norm(functional.normalize(net.a(x) + 1, dim=1), (8,)).mean(1)),
        lambda net, x: net.head((net.a(x) / (2 + net.b(x).abs())).std(1)),
    ],
    ids=["index", "constant matrix", "products", "joined constant", "Boolean mask", "mT", "norm", "quotient"],
)
def test_deeplift_sums_with_constants_anywhere(forward: Callable[[Any, Tensor], Tensor]) -> None:
    network, images = small(forward), pixels(8)
    with torch.no_grad():
        difference = (network(images) - network(torch.zeros_like(images))).gather(1, TARGETS[:, None])[:, 0]
    maps = deeplift(network, images, TARGETS, generator=generator(), rule="rescale")
    exact(maps.sum((1, 2, 3)), difference, tolerance=1e-8, floor=1e-12)


def test_lrp_refuses_gates_that_are_no_factors() -> None:
    network = small(lambda net, x: net.head(net.a(x).mean(1)).softmax(1))
    with pytest.raises(ValueError, match=r"^lrp_epsilon: found '\w+', a softmax or gate that is no factor"):
        lrp_epsilon(network, pixels(8), TARGETS, generator=generator())


@pytest.mark.parametrize(
    ("function", "written_out"),
    [
        (functional.silu, lambda x: torch.sigmoid(x) * x),
        (functional.hardswish, lambda x: x * functional.relu6(x + 3) / 6),
        (functional.hardswish, lambda x: x * (functional.relu6(x + 3.0) / 6.0)),
        (functional.hardsigmoid, lambda x: (x + 3).clamp(0, 6) / 6),
    ],
    ids=["silu", "hardswish", "hardswish by hardsigmoid", "hardsigmoid"],
)
def test_written_out_activations_are_activations(
    function: Callable[[Tensor], Tensor], written_out: Callable[[Tensor], Tensor]
) -> None:
    maps = [
        lrp_epsilon(small(partial(forward_of, each)), pixels(8), TARGETS, generator=generator())
        for each in (function, written_out)
    ]
    exact(maps[1], maps[0])


def forward_of(function: Callable[[Tensor], Tensor], net: Any, x: Tensor) -> Tensor:
    return net.head((net.b(x) * function(3 * net.a(x))).mean(1))


def test_a_rearranged_gate_receives_no_relevance() -> None:
    """The map is that of a gate with the same values in the other order of operations."""
    maps = [
        lrp_epsilon(small(forward), pixels(8), TARGETS, generator=generator())
        for forward in (
            lambda net, x: net.head((net.a(x) * torch.sigmoid(net.b(x).mean(1))[:, None]).mean(1)),
            lambda net, x: net.head((net.a(x) * torch.sigmoid(net.b(x).mean(1)[:, None])).mean(1)),
        )
    ]
    exact(maps[0], maps[1])

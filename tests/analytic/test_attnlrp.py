"""AttnLRP against the authors' library, conservation of relevance, and settings that equal other methods."""

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
from lxt_network import lxt_logits
from support import (
    CLASSES,
    attention_classifier,
    classifier,
    cyclic_targets,
    exact,
    generator,
    random_images,
    skip_classifier,
    with_random_state,
)
from torch import Tensor, fx, nn
from torch.nn import functional
from zennit.composites import LayerMapComposite
from zennit.layer import Sum
from zennit.rules import Epsilon, Gamma, Norm, Pass

from saliency_assay.methods.canonical import canonical, normalized
from saliency_assay.methods.layers import Add
from saliency_assay.methods.relevance import PREPARED, attnlrp
from saliency_assay.methods.relevance_rules import LinearNorm, Proportional
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.timm_networks import timm_network

IMAGES, TARGETS = random_images(3), cyclic_targets(3)
EPSILON, PATCH, HEADS = 1e-12, 4, 2
RULE_EPSILON = {"epsilon": EPSILON, "gamma_linear": 0.0, "gamma_convolution": 0.0}


def explain(
    model: nn.Module, images: Tensor = IMAGES, targets: Tensor = TARGETS, **parameters: float
) -> Tensor:
    return attnlrp(model, images, targets, generator=generator(), **parameters)


def swin() -> Classifier:
    options: dict[str, Any] = {"img_size": 16, "patch_size": 2, "window_size": 4, "embed_dim": 8}
    options |= {"name": "swin_tiny_patch4_window7_224", "depths": (2, 2), "num_heads": (2, 2)}
    network = timm_network(classes=CLASSES, channels=3, generator=generator(), **options)
    return classifier(with_random_state(network, 1), "norm")


def test_equals_lxt() -> None:
    model = attention_classifier().requires_grad_(False)
    pixels = normalized(model, IMAGES).requires_grad_()
    logits = lxt_logits(model.network, pixels, EPSILON)
    exact(logits.detach(), model(IMAGES))
    start = logits.detach() * functional.one_hot(TARGETS, CLASSES)
    expected = torch.autograd.grad(logits, pixels, start)[0]
    exact(explain(model, **RULE_EPSILON), expected, tolerance=1e-5, floor=1e-7 * float(expected.abs().max()))


class Recorder(fx.Interpreter):
    """Runs a network and keeps the value of each node."""

    def __init__(self, network: fx.GraphModule) -> None:
        super().__init__(network, garbage_collect_values=False)

    def absorbed(self, start: Tensor) -> Iterator[Tensor]:
        """The relevance that each node does not pass on to what depends on the image, by its formula, ``[N, ...]``."""
        nodes = [node for node in self.module.graph.nodes if node.op not in ("placeholder", "output")]
        nodes = [node for node in nodes if getattr(self.env[node], "requires_grad", False)]
        values = [self.env[node] for node in nodes]
        (logits,) = (self.env[node.args[0]] for node in self.module.graph.nodes if node.op == "output")
        relevances = torch.autograd.grad(logits, values, start, allow_unused=True)
        for node, value, relevance in zip(nodes, values, relevances, strict=True):
            inputs = [self.env[source] for source in node.all_input_nodes]
            constants = [each for each in inputs if isinstance(each, Tensor) and not each.requires_grad]
            layer = self.module.get_submodule(node.target) if node.op == "call_module" else None
            if node.target is torch.cat:
                rows = [torch.full_like(each, float(not each.requires_grad)) for each in inputs]
                yield torch.cat(rows, *node.args[1:], **node.kwargs) * relevance
            if not isinstance(layer, Proportional):
                continue
            inner = layer.layer
            if isinstance(inner, nn.Softmax):
                (x,) = inputs
                yield relevance - x * (relevance - value * relevance.sum(-1, keepdim=True))
            elif isinstance(inner, Add):
                yield sum(constants, torch.zeros_like(value)) / value * relevance
            elif isinstance(inner, nn.Linear | nn.Conv2d | LinearNorm) and inner.bias is not None:
                bias = inner.bias.reshape(-1, 1, 1) if isinstance(inner, nn.Conv2d) else inner.bias
                yield bias / value * relevance


@pytest.mark.parametrize(
    "build",
    [attention_classifier, partial(attention_classifier, pool="mean"), swin],
    ids=["class", "mean", "swin"],
)
def test_relevance_is_conserved(build: Callable[[], Classifier]) -> None:
    model = build().requires_grad_(False)
    images = random_images(3, size=16 if build is swin else 12)
    maps = explain(model, images, **RULE_EPSILON)
    _, network = PREPARED[canonical(model, images)]["attnlrp"]
    recorder = Recorder(network)
    with torch.enable_grad():
        logits = recorder.run(normalized(model, images).requires_grad_())
    start = logits.detach() * functional.one_hot(TARGETS, CLASSES)
    absorbed = sum(each.reshape(len(images), -1).sum(1) for each in recorder.absorbed(start))
    assert bool((absorbed.abs() > 0.01 * start.sum(1).abs()).all())
    exact((maps.sum((1, 2, 3)) + absorbed).detach(), start.sum(1), tolerance=1e-6)


class StackedAdd(nn.Module):
    """Addition as a sum over the last dimension, to which a hook of zennit can attach."""

    def __init__(self) -> None:
        super().__init__()
        self.sum = Sum(-1)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return self.sum(torch.stack([a, b], -1))


@pytest.mark.parametrize("name", ["gamma_linear", "gamma_convolution"])
def test_gamma_is_that_of_zennit(name: str) -> None:
    model = skip_classifier()
    model.network.head.bias.data.uniform_(-1, 1, generator=generator())
    rule = Gamma(0.3, stabilizer=EPSILON)
    kind, other = (nn.Linear, nn.Conv2d) if name == "gamma_linear" else (nn.Conv2d, nn.Linear)
    layer_map = [
        *((kind, rule), (other, Epsilon(EPSILON)), (nn.ReLU, Pass())),
        *((nn.AdaptiveAvgPool2d, Norm(EPSILON)), (Sum, Norm(EPSILON))),
    ]
    network = copy.deepcopy(canonical(model, IMAGES))
    for path, layer in list(network.named_modules()):
        if isinstance(layer, Add):
            network.add_submodule(path, StackedAdd())
    pixels = normalized(model, IMAGES).requires_grad_()
    with LayerMapComposite(layer_map).context(network):
        logits = network(pixels)
        start = logits.detach() * functional.one_hot(TARGETS, CLASSES)
        expected = torch.autograd.grad(logits, pixels, start)[0]
    maps = explain(model, **{**RULE_EPSILON, name: 0.3})
    exact(maps, expected, tolerance=1e-6, floor=1e-9 * float(expected.abs().max()))


class Masked(nn.Module):
    """Attention in which a token does not attend to the tokens after it."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.head = nn.Conv2d(3, 8, PATCH, PATCH), nn.Linear(8, CLASSES)
        self.register_buffer("mask", torch.full((9, 9), -torch.inf).triu(1))

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        mixed = functional.scaled_dot_product_attention(tokens, tokens, tokens, attn_mask=self.mask)
        return self.head(mixed[:, 1])


def test_masked_tokens_have_no_relevance() -> None:
    network = Masked().double().requires_grad_(False)
    maps = explain(classifier(network, ""), **RULE_EPSILON)
    seen = maps[:, :, :PATCH, : 2 * PATCH]  # the first two of nine patches
    assert bool(maps.isfinite().all())
    assert seen.abs().sum() > 0
    exact(seen.abs().sum(), maps.abs().sum())

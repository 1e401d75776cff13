"""LibraGrad against autograd on a network that is written out, completeness, and LRP-ε."""

from typing import Any

import pytest
import torch
from support import (
    CLASSES,
    attention_classifier,
    classifier,
    cyclic_targets,
    exact,
    generator,
    random_images,
    with_random_state,
)
from torch import Tensor, nn
from torch.nn import functional

from saliency_assay.methods.libragrad import libragrad
from saliency_assay.methods.relevance import lrp_epsilon
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.timm_networks import timm_network

IMAGES, TARGETS = random_images(3), cyclic_targets(3)
PATCH, HEADS = 4, 2


def on_patches(model: Classifier, images: Tensor = IMAGES) -> Tensor:
    """The values of the patches, ``[N, patches]``."""
    maps = libragrad(model, images, TARGETS, generator=generator(), upsampling="nearest")
    return maps[:, 0, ::PATCH, ::PATCH].flatten(1)


def written_out(model: Classifier) -> tuple[Tensor, Tensor]:
    """The tokens ``[N, T, d]`` and the logits, with everything detached that counts as a constant."""
    network: Any = model.network

    def norm(tokens: Tensor, layer: nn.LayerNorm) -> Tensor:
        deviation = (tokens.var(-1, correction=0, keepdim=True) + layer.eps).sqrt().detach()
        return (tokens - tokens.mean(-1, keepdim=True)) / deviation * layer.weight + layer.bias

    embedded = network.embedding(network.patches(model.network_input(IMAGES)).flatten(2).transpose(1, 2))
    tokens = embedded = embedded.detach().requires_grad_()
    for block in network.blocks:
        query, key, value = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for part in block.attention.qkv(norm(tokens, block.norm1)).chunk(3, -1)
        )
        weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1).detach()
        tokens = tokens + block.attention.projection((weights @ value).transpose(1, 2).flatten(2))
        hidden = block.mlp[0](norm(tokens, block.norm2))
        gate = (1 + torch.erf(hidden / 2**0.5)) / 2
        tokens = tokens + block.mlp[2](hidden * gate.detach())
    tokens = norm(tokens, network.norm)
    return embedded, network.head(tokens[:, 0] if network.pool == "class" else tokens.mean(1))


@pytest.mark.parametrize("pool", ["class", "mean"])
def test_equals_the_network_written_out(pool: str) -> None:
    model = attention_classifier(pool=pool)
    tokens, logits = written_out(model)
    exact(logits.detach(), model(IMAGES).detach())
    (gradient,) = torch.autograd.grad(logits.gather(1, TARGETS[:, None]).sum(), tokens)
    exact(on_patches(model), (tokens * gradient).sum(2)[:, -9:].detach(), tolerance=1e-9)

    # The pixels' part is that of LRP-ε; position embeddings and the bias of the patch embedding have the rest.
    pixels = lrp_epsilon(model, IMAGES, TARGETS, generator=generator(), epsilon=1e-12)
    network: Any = model.network
    constants = network.patches.bias + network.embedding.position[:, -9:]
    rest = (constants * gradient[:, -9:]).sum(2).detach()
    by_patch = functional.avg_pool2d(pixels.sum(1, keepdim=True), PATCH).flatten(1) * PATCH**2
    exact(on_patches(model), by_patch + rest, tolerance=1e-6)


@pytest.mark.parametrize("pool", ["class", "mean"])
def test_tokens_and_biases_sum_to_the_logit(pool: str) -> None:
    model = attention_classifier(pool=pool)
    maps = on_patches(model)
    for i, target in enumerate(TARGETS.tolist()):
        tokens, logits = written_out(model)
        biases = [
            bias for name, bias in model.named_parameters() if name.endswith("bias") and "patches" not in name
        ]
        gradient, *slopes = torch.autograd.grad(logits[i, target], [tokens, *biases])
        class_token = (tokens * gradient)[i, :-9].sum()
        absorbed = sum((bias * slope).sum() for bias, slope in zip(biases, slopes, strict=True))
        assert abs(absorbed) > 0.01 * abs(logits[i, target])
        exact((maps[i].sum() + class_token + absorbed).detach(), logits[i, target].detach(), tolerance=1e-9)


class QuickGelu(nn.Module):
    """The activation of CLIP."""

    def forward(self, values: Tensor) -> Tensor:
        return values * torch.sigmoid(1.702 * values)


class Gated(nn.Module):
    """A transformer without biases, with a gated MLP: a product of two activations."""

    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, PATCH, PATCH, bias=False)
        self.norm1, self.norm2 = nn.LayerNorm(8, bias=False), nn.LayerNorm(8, bias=False)
        self.gate, self.up, self.down, self.qkv = (nn.Linear(8, n, bias=False) for n in (8, 8, 8, 24))
        self.activation, self.head = activation, nn.Linear(8, CLASSES, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        query, key, value = self.qkv(self.norm1(tokens)).chunk(3, -1)
        tokens = tokens + functional.scaled_dot_product_attention(query, key, value)
        normed = self.norm2(tokens)
        tokens = tokens + self.down(self.activation(self.gate(normed)) * self.up(normed))
        return self.head(tokens.mean(1))


@pytest.mark.parametrize(
    "activation",
    [
        *(nn.GELU(), nn.GELU("tanh"), nn.SiLU(), nn.Mish(), nn.Hardswish(), nn.ReLU(), nn.PReLU()),
        *(QuickGelu(), nn.Identity()),
    ],
    ids=repr,
)
def test_without_biases_a_map_sums_to_the_logit(activation: nn.Module) -> None:
    model = classifier(with_random_state(Gated(activation).double(), 1), "")
    logits = model(IMAGES).gather(1, TARGETS[:, None])[:, 0]
    exact(on_patches(model).sum(1), logits.detach(), tolerance=1e-9)


class WithSoftmax(Gated):
    """Probabilities in place of logits."""

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images).softmax(1)


def test_networks_without_a_rule_are_refused() -> None:
    cases = [
        (Gated(nn.Tanh()), r"found Tanh \('activation'\) in Gated, which has no rule"),
        (WithSoftmax(nn.GELU()), r"found 'softmax.*' in WithSoftmax, a softmax or gate that is no factor"),
    ]
    for network, message in cases:
        model = classifier(with_random_state(network.double(), 1), "")
        with pytest.raises(ValueError, match=f"^libragrad: {message}"):
            on_patches(model)
    options: dict[str, Any] = {"name": "swin_tiny_patch4_window7_224", "img_size": 32, "window_size": 4}
    network = timm_network(classes=CLASSES, channels=3, generator=generator(), **options)
    with pytest.raises(ValueError, match=r"^libragrad: found \[3, 8, 8, 96\] before .* expected tokens"):
        on_patches(classifier(network.double(), ""), random_images(3, size=32))

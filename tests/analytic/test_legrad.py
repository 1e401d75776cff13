"""LeGrad against autograd on a network that is written out, a closed form, and the blocks of other libraries."""

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
from torch import Tensor, fx, nn
from torch.nn import functional
from torchvision.models import VisionTransformer as TorchvisionTransformer

from saliency_assay.methods.attention_layers import attention_layers
from saliency_assay.methods.canonical import canonical
from saliency_assay.methods.legrad import legrad
from saliency_assay.methods.residual_stream import block_outputs, embedded_patches
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.timm_networks import timm_network

IMAGES, TARGETS = random_images(3), cyclic_targets(3)
PATCH, HEADS = 4, 2


def on_patches(model: Classifier, **parameters: Any) -> Tensor:
    """The values of the patches, ``[N, patches]``."""
    maps = legrad(model, IMAGES, TARGETS, generator=generator(), upsampling="nearest", **parameters)
    return maps[:, 0, ::PATCH, ::PATCH].flatten(1)


def rescaled(values: Tensor) -> Tensor:
    low, high = values.amin(1, keepdim=True), values.amax(1, keepdim=True)
    return (values - low) / (high - low)


def written_out(model: Classifier, pooling: str) -> Tensor:
    network: Any = model.network
    tokens = network.embedding(network.patches(model.network_input(IMAGES)).flatten(2).transpose(1, 2))
    total = torch.zeros(tokens.shape[:2], dtype=torch.float64)
    for block in network.blocks:
        query, key, value = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for part in block.attention.qkv(block.norm1(tokens)).chunk(3, -1)
        )
        weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1).detach().requires_grad_()
        tokens = tokens + block.attention.projection((weights @ value).transpose(1, 2).flatten(2))
        tokens = tokens + block.mlp(block.norm2(tokens))
        if pooling == "mean":
            pooled = network.norm(tokens.mean(1))
        elif network.pool == "class":
            pooled = network.norm(tokens)[:, 0]
        else:
            pooled = network.norm(tokens).mean(1)
        score = network.head(pooled).gather(1, TARGETS[:, None]).sum()
        (gradient,) = torch.autograd.grad(score, weights, retain_graph=True)
        total += gradient.clamp(min=0).mean((1, 2))
    return rescaled(total[:, -9:])


@pytest.mark.parametrize("pool", ["class", "mean"])
@pytest.mark.parametrize("pooling", ["mean", "network"])
def test_equals_the_network_written_out(pool: str, pooling: str) -> None:
    model = attention_classifier(pool=pool)
    exact(on_patches(model, pooling=pooling), written_out(model, pooling), tolerance=1e-9, floor=1e-12)


class OneLayer(nn.Module):
    """x + A x for embedded patches x, with uniform attention A, and a linear layer over the first token."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.head = nn.Conv2d(3, 8, PATCH, PATCH), nn.Linear(8, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        heads = tokens[:, None]
        tokens = tokens + functional.scaled_dot_product_attention(0 * heads, heads, heads)[:, 0]
        return self.head(tokens[:, 0])


@pytest.mark.parametrize("pooling", ["mean", "network"])
def test_one_layer_is_the_positive_part_of_the_head_on_each_token(pooling: str) -> None:
    network = OneLayer().double()
    model = classifier(with_random_state(network, 1), "")
    tokens = network.patches(model.network_input(IMAGES)).flatten(2)  # [N, 8, 9]
    contributions = (network.head.weight[TARGETS][:, None] @ tokens)[:, 0].clamp(min=0)
    exact(on_patches(model, pooling=pooling), rescaled(contributions).detach(), floor=1e-12)


def test_a_map_that_is_constant_is_zero() -> None:
    model = attention_classifier()
    model.network.head.weight.data.zero_()
    assert not on_patches(model).any()


def timm_vit(name: str, **options: Any) -> nn.Module:
    options |= {"img_size": 12, "patch_size": PATCH, "embed_dim": 8, "depth": 2, "num_heads": HEADS}
    return timm_network(classes=CLASSES, channels=3, generator=generator(), name=name, **options)


def torchvision_vit() -> nn.Module:
    return TorchvisionTransformer(12, PATCH, num_layers=2, num_heads=HEADS, hidden_dim=8, mlp_dim=16)


@pytest.mark.parametrize(
    ("network", "blocks"),
    [
        (timm_vit("vit_tiny_patch16_224"), "blocks"),
        (timm_vit("vit_tiny_patch16_224", global_pool="avg", pre_norm=True, init_values=0.1), "blocks"),
        (timm_vit("deit_tiny_distilled_patch16_224"), "blocks"),
        (torchvision_vit(), "encoder.layers"),
    ],
    ids=["timm", "pre-norm", "distilled", "torchvision"],
)
def test_blocks_are_those_of_the_network(network: nn.Module, blocks: str) -> None:
    seen: list[Tensor] = []
    model = with_random_state(network, 1)
    form = canonical(model, IMAGES)
    layers = list(model.get_submodule(blocks).children())
    layers[0].register_forward_pre_hook(lambda layer, inputs: seen.append(inputs[0]))
    for layer in layers:
        layer.register_forward_hook(lambda layer, inputs, output: seen.append(output))
    with torch.no_grad():
        model(IMAGES)
        softmaxes = [softmax for softmax, _ in attention_layers(form)]
        nodes = [embedded_patches(form, softmaxes[0]), *block_outputs(form, softmaxes)]
        run = fx.Interpreter(form, garbage_collect_values=False)
        run.run(IMAGES)
    for node, value in zip(nodes, seen, strict=True):
        exact(run.env[node], value)


class NoResidual(OneLayer):
    """Attention without a residual connection."""

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        heads = tokens[:, None]
        return self.head(functional.scaled_dot_product_attention(heads, heads, heads)[:, 0, 0])


def test_attention_without_a_residual_connection_is_refused() -> None:
    model = classifier(NoResidual().double(), "")
    with pytest.raises(ValueError, match=r"^legrad: found attention without a residual .* in NoResidual"):
        on_patches(model)

"""Attention methods against plain re-derivations, closed forms, and the weights that PyTorch itself returns."""

from collections.abc import Callable
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
)
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models import VisionTransformer as TorchvisionTransformer

from saliency_assay.methods.attention import (
    attention_rollout,
    gradient_weighted_attention,
    raw_attention,
    transformer_attribution,
)
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.timm_networks import timm_network

METHODS = (raw_attention, attention_rollout, gradient_weighted_attention, transformer_attribution)
EVERY_METHOD = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
IMAGES, TARGETS = random_images(3), cyclic_targets(3)
PATCH, HEADS = 4, 2


def on_patches(
    method: Callable[..., Tensor], model: Classifier, images: Tensor = IMAGES, **parameters: Any
) -> Tensor:
    """The values of the patches, ``[N, patches]``."""
    maps = method(model, images, TARGETS, generator=generator(), upsampling="nearest", **parameters)
    return maps[:, 0, ::PATCH, ::PATCH].flatten(1)


def small_timm(name: str, **options: Any) -> Classifier:
    network = timm_network(classes=CLASSES, channels=3, generator=generator(), name=name, **options)
    return classifier(network.double(), "")


class Written:
    """The network of ``attention_classifier`` for one image, step by step, with everything that a method reads."""

    def __init__(self, model: Classifier, image: Tensor) -> None:
        network: Any = model.network
        self.network = network
        tokens = network.embedding(
            network.patches(model.network_input(image[None])).flatten(2).transpose(1, 2)
        )
        self.weights: list[Tensor] = []
        self.steps: list[dict[str, Tensor]] = []
        for block in network.blocks:
            step = {"in": tokens, "norm1": block.norm1(tokens)}
            query, key, value = (
                part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
                for part in block.attention.qkv(step["norm1"]).chunk(3, -1)
            )
            step |= {"query": query, "key": key, "value": value}
            step["scores"] = query @ key.mT / query.shape[-1] ** 0.5
            weights = step["scores"].softmax(-1).requires_grad_()
            self.weights.append(weights)
            step["mixed"] = (weights @ value).transpose(1, 2).flatten(2)
            step["attended"] = block.attention.projection(step["mixed"])
            step["between"] = tokens + step["attended"]
            step["norm2"] = block.norm2(step["between"])
            step["hidden"] = functional.gelu(block.mlp[0](step["norm2"]))
            step["fed"] = block.mlp[2](step["hidden"])
            tokens = step["between"] + step["fed"]
            self.steps.append(step)
        self.tokens = network.norm(tokens)
        self.read = (
            torch.ones(tokens.shape[1]) / tokens.shape[1]
            if network.pool == "mean"
            else torch.eye(tokens.shape[1])[0]
        )
        self.logits = network.head(self.tokens[:, 0] if network.pool == "class" else self.tokens.mean(1))[0]

    def gradients(self, target: int) -> list[Tensor]:
        """Gradients of a logit for the attention weights."""
        return list(torch.autograd.grad(self.logits[target], self.weights, retain_graph=True))

    def relevances(self, target: int) -> list[Tensor]:
        """Relevance of the attention weights by the rules of Chefer et al. (CVPR 2021)."""
        tokens = self.tokens[0]
        pooled = tokens[0] if self.network.pool == "class" else tokens.mean(0)
        at_pooled = z_plus(pooled, self.network.head.weight, torch.eye(CLASSES)[target].double())
        relevance = self.read[:, None] * tokens / pooled * at_pooled
        relevances = []
        for block, step in zip(reversed(self.network.blocks), reversed(self.steps), strict=True):
            step = {name: value[0] for name, value in step.items()}
            kept, fed = shares(step["between"], step["fed"], relevance)
            fed = rows(step["hidden"], block.mlp[2].weight, fed)
            relevance = kept + rows(step["norm2"], block.mlp[0].weight, fed)
            kept, attended = shares(step["in"], step["attended"], relevance)
            mixed = (
                rows(step["mixed"], block.attention.projection.weight, attended)
                .unflatten(-1, (HEADS, -1))
                .transpose(0, 1)
            )
            weights, value = halves(step["scores"].softmax(-1), step["value"], mixed)
            relevances.append(weights)
            query, key = halves(step["query"], step["key"].mT, weights)
            parts = torch.cat([part.transpose(0, 1).flatten(1) for part in (query, key.mT, value)], 1)
            relevance = kept + rows(step["norm1"], block.attention.qkv.weight, parts)
        return relevances[::-1]


def z_plus(values: Tensor, weight: Tensor, relevance: Tensor) -> Tensor:
    """Shares in proportion to the positive contributions, neuron by neuron."""
    total = torch.zeros_like(values)
    for j in range(len(relevance)):
        contributions = (values * weight[j]).clamp(min=0)
        if contributions.sum() > 0:
            total += contributions / contributions.sum() * relevance[j]
    return total


def rows(values: Tensor, weight: Tensor, relevance: Tensor) -> Tensor:
    return torch.stack([z_plus(token, weight, r) for token, r in zip(values, relevance, strict=True)])


def halves(a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    """Half of the relevance of a matrix product for each factor."""
    terms = a[..., :, :, None] * b[..., None, :, :]  # [heads, n, k, m]
    distributed = terms / terms.sum(-2, keepdim=True) * relevance[..., :, None, :] / 2
    return distributed.sum(-1), distributed.sum(-3)


def shares(a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    """The relevance of two terms, scaled to their shares in the total."""
    of_a, of_b = a / (a + b) * relevance, b / (a + b) * relevance
    total = of_a.sum().abs() + of_b.sum().abs()
    return tuple(each * (each.sum().abs() / total * relevance.sum() / each.sum()) for each in (of_a, of_b))  # type: ignore[return-value]


def expected_rows(method: Callable[..., Tensor], written: Written, target: int) -> Tensor:
    """The method by multiplying whole matrices, from the first layer to the last."""
    weights = [matrix[0].detach() for matrix in written.weights]
    identity = torch.eye(weights[0].shape[-1], dtype=torch.float64)
    if method is raw_attention:
        return written.read.double() @ weights[-1].mean(0)
    if method is attention_rollout:
        matrices = [matrix.mean(0) / 2 + identity / 2 for matrix in weights]
    else:
        gradients = [gradient[0] for gradient in written.gradients(target)]
        factors = weights if method is gradient_weighted_attention else written.relevances(target)
        matrices = [
            identity + (factor * gradient).clamp(min=0).mean(0)
            for factor, gradient in zip(factors, gradients, strict=True)
        ]
    product = identity
    for matrix in matrices:
        product = matrix @ product
    return written.read.double() @ product


@EVERY_METHOD
@pytest.mark.parametrize("pool", ["class", "mean"])
def test_equals_a_plain_derivation(method: Callable[..., Tensor], pool: str) -> None:
    model = attention_classifier(pool=pool)
    values = on_patches(method, model)
    for i, target in enumerate(TARGETS.tolist()):
        written = Written(model, IMAGES[i])
        exact(written.logits.detach(), model(IMAGES[i : i + 1])[0].detach())
        expected = expected_rows(method, written, target)
        exact(values[i], expected[-values.shape[1] :].detach(), tolerance=1e-9)
    assert values.std() > 0


def test_rollout_of_uniform_attention() -> None:
    model = attention_classifier()
    for block in model.network.blocks:
        block.attention.qkv.weight.data[:16] = 0  # queries and keys
        block.attention.qkv.bias.data[:16] = 0
    tokens = 10
    exact(on_patches(raw_attention, model), torch.full((3, 9), 1 / tokens, dtype=torch.float64))
    # In each of two layers, half of a token's row is its own, and half is shared equally by all tokens.
    exact(
        on_patches(attention_rollout, model), torch.full((3, 9), (1 - 0.5**2) / tokens, dtype=torch.float64)
    )


def test_weights_are_those_of_multihead_attention() -> None:
    network = TorchvisionTransformer(
        **{"image_size": 12, "patch_size": PATCH, "num_layers": 2, "num_heads": HEADS},
        **{"hidden_dim": 8, "mlp_dim": 16, "num_classes": CLASSES},
    )
    assert not network.heads[0].weight.any()  # as torchvision initializes it
    model = classifier(network.double(), "")
    attention = network.encoder.layers[-1].self_attention
    inputs: list[Tensor] = []
    attention.register_forward_pre_hook(lambda layer, arguments: inputs.append(arguments[0]))
    model(IMAGES)
    _, weights = attention(*inputs[-1:] * 3, need_weights=True)
    exact(on_patches(raw_attention, model), weights[:, 0, 1:].detach())


def test_a_distilled_network_reads_two_tokens() -> None:
    options = {"img_size": 12, "patch_size": PATCH, "embed_dim": 8, "depth": 2, "num_heads": HEADS}
    model = small_timm("deit_tiny_distilled_patch16_224", **options)
    seen: list[Tensor] = []
    attention = model.network.blocks[-1].attn
    attention.fused_attn = False
    attention.attn_drop.register_forward_hook(lambda layer, inputs, output: seen.append(output))
    model(IMAGES)
    exact(on_patches(raw_attention, model), seen[0].mean(1)[:, :2, 2:].mean(1).detach())


class Parallel(nn.Module):
    """Two attentions of the same tokens, side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, PATCH, PATCH)
        self.first, self.second = (nn.MultiheadAttention(8, HEADS, batch_first=True) for _ in range(2))
        self.head = nn.Linear(8, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        mixed = self.first(tokens, tokens, tokens)[0] + self.second(tokens, tokens, tokens)[0]
        return self.head(mixed.mean(1))


def test_attention_that_cannot_be_rolled_out_is_refused() -> None:
    """Within windows, side by side, and with another grid than the classifier's."""
    swin = small_timm("swin_tiny_patch4_window7_224", img_size=32, window_size=4)
    refused = r"^attention_rollout: found attention"
    with pytest.raises(ValueError, match=rf"{refused} \[12, 3, 16, 16\] .* \[3, heads, tokens, tokens\]"):
        attention_rollout(swin, random_images(3, size=32), TARGETS, generator=generator())
    with pytest.raises(ValueError, match=rf"{refused} .* in Parallel, which does not follow"):
        attention_rollout(classifier(Parallel(), ""), IMAGES, TARGETS, generator=generator())
    model = attention_classifier()
    model.token_grid = (4, 4)
    with pytest.raises(ValueError, match=r"^token_grid: found 4 × 4 for 10 tokens"):
        attention_rollout(model, IMAGES, TARGETS, generator=generator())


class TokensFirst(nn.Module):
    """Tokens ``[T, N, width]`` with a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.head = nn.Conv2d(3, 8, PATCH, PATCH), nn.Linear(8, CLASSES)
        self.attention = nn.MultiheadAttention(8, HEADS)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).permute(2, 0, 1)
        tokens = tokens + self.attention(tokens, tokens, tokens, need_weights=False)[0]
        return self.head(tokens.mean(0))


def test_sums_over_an_image_need_images_in_the_first_dimension() -> None:
    model = classifier(TokensFirst(), "")
    gradient_weighted_attention(model, IMAGES, TARGETS, generator=generator())
    with pytest.raises(ValueError, match=r"^transformer_attribution: .* images are not the first dimension"):
        transformer_attribution(model, IMAGES, TARGETS, generator=generator())

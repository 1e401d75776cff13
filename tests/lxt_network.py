"""The project's vision transformer in functions of lxt, the library of AttnLRP's authors."""

from typing import Any

import lxt.explicit.functional as lxt
import torch
from lxt.explicit.rules import identity
from torch import Tensor, nn
from torch.nn import functional

from saliency_assay.models.vit import VisionTransformer


def lxt_logits(network: VisionTransformer, images: Tensor, epsilon: float) -> Tensor:
    """Logits of normalized images, whose gradient, started with relevance, is relevance by AttnLRP with the rule ε."""

    def layer(tokens: Tensor, linear: nn.Linear | nn.Conv2d) -> Tensor:
        return lxt.linear_epsilon(tokens, linear.weight.flatten(1), linear.bias, epsilon)

    def norm(tokens: Tensor, layer: nn.LayerNorm) -> Tensor:
        # Not ``lxt.layer_norm``, which does not pass on an ε.
        return lxt.layer_norm_grad_fn.apply(tokens, layer.weight, layer.bias, layer.eps, epsilon)

    def add(a: Tensor, b: Tensor) -> Tensor:
        return lxt.add2(a, b, False, epsilon)

    def attend(tokens: Tensor, attention: Any) -> Tensor:
        split = layer(tokens, attention.qkv).unflatten(-1, (3, attention.heads, -1))
        query, key, value = split.permute(2, 0, 3, 1, 4)
        scores = lxt.mul2(lxt.matmul(query, key.mT, False, epsilon), query.shape[-1] ** -0.5)
        mixed = lxt.matmul(lxt.softmax(scores, -1), value, False, epsilon)
        return layer(mixed.transpose(1, 2).flatten(2), attention.projection)

    embedding: Any = network.embedding
    patch = network.patches.kernel_size
    tokens = layer(functional.unfold(images, patch, stride=patch).transpose(1, 2), network.patches)
    tokens = torch.cat([embedding.token.expand(len(images), -1, -1), tokens], 1)
    tokens = add(tokens, embedding.position)
    blocks: Any = network.blocks
    for block in blocks:
        tokens = add(tokens, attend(norm(tokens, block.norm1), block.attention))
        hidden = identity(functional.gelu, layer(norm(tokens, block.norm2), block.mlp[0]))
        tokens = add(tokens, layer(hidden, block.mlp[2]))
    return layer(norm(tokens, network.norm)[:, 0], network.head)

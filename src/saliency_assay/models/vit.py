"""Vision transformer of Dosovitskiy et al. (2021), in a size for small images."""

from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn import functional

from saliency_assay.models.initialization import initialized
from saliency_assay.registry.limits import Limits, PositiveInt


class Embedding(nn.Module):
    """Class token and position embedding, both learned, normally distributed with standard deviation 0.02 at first."""

    def __init__(self, tokens: int, width: int, with_class: bool) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.empty(1, 1, width)) if with_class else None
        self.position = nn.Parameter(torch.empty(1, tokens + with_class, width))

    def sample(self, generator: torch.Generator) -> None:
        """Resample the parameters."""
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.02, generator=generator)

    def forward(self, patches: Tensor) -> Tensor:
        """Return ``patches`` ``[N, T, D]`` behind the class token, if there is one, with their positions added."""
        if self.token is not None:
            patches = torch.cat([self.token.expand(patches.shape[0], -1, -1), patches], 1)
        return patches + self.position


class Attention(nn.Module):
    """Multi-head self-attention (section 3.1 and appendix A)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return tokens ``[N, T, D]`` mixed with one another."""
        heads = self.qkv(tokens).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(heads[0], heads[1], heads[2])
        out: Tensor = self.projection(mixed.transpose(1, 2).flatten(2))
        return out


class Block(nn.Module):
    """Attention and a hidden layer, each with a normalization before it and a residual connection (equations 2, 3)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return tokens ``[N, T, D]``."""
        tokens = tokens + self.attention(self.norm1(tokens))
        out: Tensor = tokens + self.mlp(self.norm2(tokens))
        return out


class VisionTransformer(nn.Module):
    """Patches, blocks, and one linear layer over the class token or the mean of all tokens."""

    def __init__(
        self,
        classes: int,
        channels: int,
        size: int,
        patch: int,
        width: int,
        depth: int,
        heads: int,
        pool: str,
    ) -> None:
        super().__init__()
        self.size, self.pool = size, pool
        self.patches = nn.Conv2d(channels, width, patch, patch)
        self.embedding = Embedding((size // patch) ** 2, width, pool == "class")
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits ``[N, classes]`` of normalized images ``[N, channels, size, size]``."""
        for side in (2, 3):
            expected = f"images: expected {self.size} pixels per side, as in image_size"
            torch._assert(images.shape[side] == self.size, expected)
        tokens = self.embedding(self.patches(images).flatten(2).transpose(1, 2))
        tokens = self.norm(self.blocks(tokens))
        logits: Tensor = self.head(tokens[:, 0] if self.pool == "class" else tokens.mean(1))
        return logits


def vit(
    *,
    classes: int,
    channels: int,
    generator: torch.Generator,
    image_size: PositiveInt = 32,
    patch: PositiveInt = 4,
    width: Annotated[int, Limits(minimum=1, maximum=4096)] = 96,
    depth: Annotated[int, Limits(minimum=1, maximum=64)] = 6,
    heads: Annotated[int, Limits(minimum=1, maximum=64)] = 3,
    pool: Annotated[str, Limits(choices=("class", "mean"))] = "class",
) -> nn.Module:
    """Build a vision transformer for images of ``image_size`` pixels per side.

    Raises:
        ValueError: the size is not a multiple of ``patch``, or ``width`` not one of ``heads``.
    """
    if image_size % patch:
        raise ValueError(f"image_size: found {image_size}, expected a multiple of patch, {patch}")
    if width % heads:
        raise ValueError(f"width: found {width}, expected a multiple of heads, {heads}")
    return initialized(
        lambda: VisionTransformer(classes, channels, image_size, patch, width, depth, heads, pool), generator
    )

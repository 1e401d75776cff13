"""ConvNeXt of Liu et al. (2022), in a size for small images."""

from typing import Annotated

import torch
from torch import Tensor, nn

from saliency_assay.models.initialization import initialized
from saliency_assay.registry.limits import Limits


class ChannelNorm(nn.Module):
    """LayerNorm over the channels of feature maps."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=1e-6)

    def forward(self, maps: Tensor) -> Tensor:
        """Normalize ``[N, C, H, W]`` at each position."""
        out: Tensor = self.norm(maps.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return out


class Block(nn.Module):
    """Depthwise convolution and a hidden layer at each position, with a residual connection (figure 4).

    It has no layer scale, which serves networks of many more blocks.
    """

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, kernel, padding=kernel // 2, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, maps: Tensor) -> Tensor:
        """Return feature maps ``[N, C, H, W]``."""
        residual = self.mlp(self.norm(self.depthwise(maps).permute(0, 2, 3, 1))).permute(0, 3, 1, 2)
        out: Tensor = maps + residual
        return out


class ConvNeXt(nn.Module):
    """A stem of patches of 2 × 2, three stages, and one linear layer over the normalized spatial mean."""

    def __init__(self, classes: int, channels: int, width: int, depth: int, kernel: int) -> None:
        super().__init__()
        stages: list[nn.Module] = []
        before = channels
        for stage in range(3):
            after = width * 2**stage
            # The norm stands before each reduction but the first, and behind that (section 2.6).
            reduction = [nn.Conv2d(before, after, 2, 2)]
            layers = [*reduction, ChannelNorm(after)] if stage == 0 else [ChannelNorm(before), *reduction]
            stages.append(nn.Sequential(*layers, *(Block(after, kernel) for _ in range(depth))))
            before = after
        self.stages = nn.Sequential(*stages)
        self.norm, self.head = nn.LayerNorm(before, eps=1e-6), nn.Linear(before, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits ``[N, classes]`` of normalized images ``[N, channels, H, W]`` of at least 8 pixels per side."""
        logits: Tensor = self.head(self.norm(self.stages(images).mean((2, 3))))
        return logits


def convnext(
    *,
    classes: int,
    channels: int,
    generator: torch.Generator,
    width: Annotated[int, Limits(minimum=1, maximum=1024)] = 32,
    depth: Annotated[int, Limits(minimum=1, maximum=64)] = 2,
    kernel: Annotated[int, Limits(minimum=1, maximum=31)] = 7,
) -> nn.Module:
    """Build a ConvNeXt of three stages with ``depth`` blocks each, and kernels of an odd size.

    Raises:
        ValueError: ``kernel`` is even.
    """
    if kernel % 2 == 0:
        raise ValueError(f"kernel: found {kernel}, expected an odd number")
    return initialized(lambda: ConvNeXt(classes, channels, width, depth, kernel), generator)

"""Residual networks with a separate module for each ReLU.

Layers and state-dict names are torchvision's, so that its weights load unchanged; ``resnet20`` has the names of
published weights for CIFAR-10. There are two differences. Each ReLU is a separate module, called once per forward pass
and not in place: otherwise guided backpropagation and DeepLIFT would be wrong without an error. All initial weights are
sampled from the generator that is passed in.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn import functional

from saliency_assay.models.initialization import initialized
from saliency_assay.registry.limits import Limits


class Subsample(nn.Module):
    """Shortcut without parameters: every ``stride``-th position, zeros in added channels (section 3.3, option A)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        before = (outputs - inputs) // 2
        self.stride, self.padding = stride, (before, outputs - inputs - before)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x`` ``[N, inputs, H, W]`` as ``[N, outputs, H/stride, W/stride]``, zeros around its channels."""
        return functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, *self.padding))


class BasicBlock(nn.Module):
    """Two 3×3 convolutions and a shortcut (He et al. 2016, figure 5, left)."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _convolution(inputs, width, 3, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu1 = nn.ReLU()
        self.conv2 = _convolution(width, width, 3)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu2 = nn.ReLU()
        self.downsample = self.shortcut(inputs, width, stride)

    @staticmethod
    def shortcut(inputs: int, outputs: int, stride: int) -> nn.Module | None:
        """Return the module of the shortcut; None for the identity."""
        return _projection(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return features ``[N, width, H/stride, W/stride]`` of ``x`` ``[N, inputs, H, W]``."""
        residual = self.relu1(self.bn1(self.conv1(x)))
        residual = self.bn2(self.conv2(residual))
        shortcut = x if self.downsample is None else self.downsample(x)
        out: Tensor = self.relu2(residual + shortcut)
        return out


class PlainShortcutBlock(BasicBlock):
    """Basic block with a shortcut without parameters."""

    @staticmethod
    def shortcut(inputs: int, outputs: int, stride: int) -> nn.Module | None:
        """Return option A if the shape changes; None for the identity."""
        return None if inputs == outputs and stride == 1 else Subsample(inputs, outputs, stride)


class Bottleneck(nn.Module):
    """1×1, 3×3 and 1×1 convolutions and a shortcut (figure 5, right), with the stride in the 3×3 convolution."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _convolution(inputs, width, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu1 = nn.ReLU()
        self.conv2 = _convolution(width, width, 3, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu2 = nn.ReLU()
        self.conv3 = _convolution(width, self.expansion * width, 1)
        self.bn3 = nn.BatchNorm2d(self.expansion * width)
        self.relu3 = nn.ReLU()
        self.downsample = _projection(inputs, self.expansion * width, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return features ``[N, 4·width, H/stride, W/stride]`` of ``x`` ``[N, inputs, H, W]``."""
        residual = self.relu1(self.bn1(self.conv1(x)))
        residual = self.relu2(self.bn2(self.conv2(residual)))
        residual = self.bn3(self.conv3(residual))
        shortcut = x if self.downsample is None else self.downsample(x)
        out: Tensor = self.relu3(residual + shortcut)
        return out


def resnet8(
    *,
    classes: int,
    channels: int,
    generator: torch.Generator,
    width: Annotated[int, Limits(minimum=1, maximum=512)] = 16,
    stem_stride: Annotated[int, Limits(minimum=1, maximum=4)] = 1,
) -> nn.Sequential:
    """Return the CIFAR variant with one block per stage: a 3×3 stem without pooling, stages of width w, 2w, 4w.

    ``layer3`` has 1/4 of the stem's resolution, which is ``1/stem_stride`` of the image's.
    """

    def stem() -> dict[str, nn.Module]:
        return _cifar_stem(channels, width, stem_stride)

    return _resnet(stem, BasicBlock, (1, 1, 1), width, classes, generator)


def resnet20(
    *,
    classes: int,
    channels: int,
    generator: torch.Generator,
    width: Annotated[int, Limits(minimum=1, maximum=512)] = 16,
) -> nn.Sequential:
    """Return the CIFAR network of section 4.2 with n = 3: stages of three blocks of width w, 2w, 4w, with option A.

    ``layer3`` has 1/4 of the image's resolution; the head is called ``linear``.
    """

    def stem() -> dict[str, nn.Module]:
        return _cifar_stem(channels, width, 1)

    return _resnet(stem, PlainShortcutBlock, (3, 3, 3), width, classes, generator, head="linear")


def resnet18(*, classes: int, channels: int, generator: torch.Generator) -> nn.Sequential:
    """Return ResNet-18; ``layer4`` has 1/32 of the image's resolution."""
    return _resnet(lambda: _imagenet_stem(channels), BasicBlock, (2, 2, 2, 2), 64, classes, generator)


def resnet50(*, classes: int, channels: int, generator: torch.Generator) -> nn.Sequential:
    """Return ResNet-50; ``layer4`` has 1/32 of the image's resolution."""
    return _resnet(lambda: _imagenet_stem(channels), Bottleneck, (3, 4, 6, 3), 64, classes, generator)


def _resnet(
    stem: Callable[[], dict[str, nn.Module]],
    block: type[BasicBlock] | type[Bottleneck],
    blocks: Sequence[int],
    width: int,
    classes: int,
    generator: torch.Generator,
    *,
    head: str = "fc",
) -> nn.Sequential:
    """Return stem, stages ``layer1``, ``layer2``, … of doubling width, spatial mean, and the linear layer ``head``."""

    def make() -> nn.Sequential:
        layers, features = stem(), width
        for stage, count in enumerate(blocks):
            inner, stride = width * 2**stage, 1 if stage == 0 else 2
            outputs = inner * block.expansion
            layers[f"layer{stage + 1}"] = nn.Sequential(
                block(features, inner, stride), *(block(outputs, inner, 1) for _ in range(count - 1))
            )
            features = outputs
        layers |= {"avgpool": nn.AdaptiveAvgPool2d(1), "flatten": nn.Flatten()}
        layers[head] = nn.Linear(features, classes)
        return nn.Sequential(OrderedDict(layers))

    return initialized(make, generator)


def _cifar_stem(channels: int, width: int, stride: int) -> dict[str, nn.Module]:
    return {
        "conv1": _convolution(channels, width, 3, stride),
        "bn1": nn.BatchNorm2d(width),
        "relu": nn.ReLU(),
    }


def _imagenet_stem(channels: int) -> dict[str, nn.Module]:
    return {
        "conv1": nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False),
        "bn1": nn.BatchNorm2d(64),
        "relu": nn.ReLU(),
        "maxpool": nn.MaxPool2d(3, stride=2, padding=1),
    }


def _convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)


def _projection(inputs: int, outputs: int, stride: int) -> nn.Sequential | None:
    """Return a projection if the shape changes (option B); None for the identity."""
    if inputs == outputs and stride == 1:
        return None
    return nn.Sequential(_convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

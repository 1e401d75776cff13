"""Residual networks whose ReLUs can be hooked one by one.

Layers and state-dict names are torchvision's, so its weights load unchanged. What differs: every ReLU is a
module of its own, called once in a forward and never in place, because guided backpropagation and DeepLIFT are
silently wrong otherwise; and every weight comes from the generator that is passed in.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn


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
        self.downsample = _shortcut(inputs, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Features ``[N, inputs, H, W]`` to ``[N, width, H/stride, W/stride]``."""
        residual = self.relu1(self.bn1(self.conv1(x)))
        residual = self.bn2(self.conv2(residual))
        shortcut = x if self.downsample is None else self.downsample(x)
        out: Tensor = self.relu2(residual + shortcut)
        return out


class Bottleneck(nn.Module):
    """1×1, 3×3 and 1×1 convolutions and a shortcut (figure 5, right), the stride on the 3×3."""

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
        self.downsample = _shortcut(inputs, self.expansion * width, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Features ``[N, inputs, H, W]`` to ``[N, 4·width, H/stride, W/stride]``."""
        residual = self.relu1(self.bn1(self.conv1(x)))
        residual = self.relu2(self.bn2(self.conv2(residual)))
        residual = self.bn3(self.conv3(residual))
        shortcut = x if self.downsample is None else self.downsample(x)
        out: Tensor = self.relu3(residual + shortcut)
        return out


def resnet8(
    *, classes: int, channels: int, generator: torch.Generator, width: int = 16, stem_stride: int = 1
) -> nn.Sequential:
    """The CIFAR variant with one block a stage: a 3×3 stem without pooling, stages of width w, 2w, 4w.

    ``layer3`` has a quarter of the stem's resolution, which is ``1/stem_stride`` of the image's.
    """

    def stem() -> dict[str, nn.Module]:
        return {
            "conv1": _convolution(channels, width, 3, stem_stride),
            "bn1": nn.BatchNorm2d(width),
            "relu": nn.ReLU(),
        }

    return _resnet(stem, BasicBlock, (1, 1, 1), width, classes, generator)


def resnet18(*, classes: int, channels: int, generator: torch.Generator) -> nn.Sequential:
    """ResNet-18; ``layer4`` has 1/32 of the image's resolution."""
    return _resnet(lambda: _imagenet_stem(channels), BasicBlock, (2, 2, 2, 2), 64, classes, generator)


def resnet50(*, classes: int, channels: int, generator: torch.Generator) -> nn.Sequential:
    """ResNet-50; ``layer4`` has 1/32 of the image's resolution."""
    return _resnet(lambda: _imagenet_stem(channels), Bottleneck, (3, 4, 6, 3), 64, classes, generator)


def initialise(network: nn.Module, generator: torch.Generator) -> None:
    """Draw every weight anew, in the order of ``network.modules()``.

    Convolutions: He et al. 2015, normal with variance 2 / fan-out. Linear layers: uniform within
    ±1/√fan-in, biases too. BatchNorm: the identity.

    Raises:
        TypeError: a layer of another type that holds parameters.
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d) and module.bias is None:
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu", generator=generator)
        elif isinstance(module, nn.Linear):
            bound = module.in_features**-0.5
            for parameter in module.parameters():
                nn.init.uniform_(parameter, -bound, bound, generator=generator)
        elif isinstance(module, nn.BatchNorm2d):
            module.reset_parameters()  # draws nothing
        elif any(True for _ in module.parameters(recurse=False)):
            raise TypeError(
                f"no initialisation for {module}; known: Conv2d without bias, Linear, BatchNorm2d"
            )


def _resnet(
    stem: Callable[[], dict[str, nn.Module]],
    block: type[BasicBlock] | type[Bottleneck],
    blocks: Sequence[int],
    width: int,
    classes: int,
    generator: torch.Generator,
) -> nn.Sequential:
    """Stem, stages ``layer1``, ``layer2``, … each twice as wide as the one before, spatial mean, ``fc``."""
    with torch.device("meta"):  # layers draw their first weights from the global generator anywhere else
        layers, features = stem(), width
        for stage, count in enumerate(blocks):
            inner, stride = width * 2**stage, 1 if stage == 0 else 2
            outputs = inner * block.expansion
            layers[f"layer{stage + 1}"] = nn.Sequential(
                block(features, inner, stride), *(block(outputs, inner, 1) for _ in range(count - 1))
            )
            features = outputs
        layers |= {"avgpool": nn.AdaptiveAvgPool2d(1), "flatten": nn.Flatten()}
        layers["fc"] = nn.Linear(features, classes)
        network = nn.Sequential(OrderedDict(layers))
    network.to_empty(device="cpu")
    initialise(network, generator)
    return network


def _imagenet_stem(channels: int) -> dict[str, nn.Module]:
    return {
        "conv1": nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False),
        "bn1": nn.BatchNorm2d(64),
        "relu": nn.ReLU(),
        "maxpool": nn.MaxPool2d(3, stride=2, padding=1),
    }


def _convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Sequential | None:
    """A projection where the shape changes (option B), None where the shortcut is the identity."""
    if inputs == outputs and stride == 1:
        return None
    return nn.Sequential(_convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

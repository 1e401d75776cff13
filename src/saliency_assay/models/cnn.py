"""Convolutional networks of two papers, and VGG16, with a separate module for each ReLU.

In both papers, the head requires a fixed resolution of the last block. Adaptive average pooling to that resolution
makes other image sizes possible, and is the identity for the papers' image size. VGG16 has torchvision's layers and
state-dict names, so that torchvision's weights load unchanged.
"""

from collections import OrderedDict
from typing import Annotated

import torch
from torch import Tensor, nn

from saliency_assay.models.initialization import initialized
from saliency_assay.registry.limits import Limits
from saliency_assay.runtime.distributed import gathered

MOMENTUM = 0.1  # PyTorch's default for the running statistics of BatchNorm


def reliability_cnn(
    *,
    classes: int,
    channels: int,
    generator: torch.Generator,
    width: Annotated[int, Limits(minimum=1, maximum=512)] = 32,
    pooled: Annotated[int, Limits(minimum=1, maximum=16)] = 4,
    dropout: Annotated[float, Limits(minimum=0, maximum=0.9)] = 0.2,
    center: bool = True,
) -> nn.Sequential:
    """Return three blocks of two 3×3 convolutions, of width w, 2w, 4w, and a linear layer (Tomsett et al. 2020).

    No layer has a bias, and BatchNorm has no learned shift. With ``center``, BatchNorm still subtracts the mean;
    without it, BatchNorm only divides by the root mean square, so that the network in evaluation mode is positively
    homogeneous: f(a·x) = a·f(x) for a > 0 and normalized images x.
    """

    def make() -> nn.Sequential:
        layers: dict[str, nn.Module] = {}
        inputs = channels
        for block in range(3):
            outputs = width * 2**block
            layers[f"block{block + 1}"] = _block(inputs, outputs, dropout, center=center)
            inputs = outputs
        layers |= {"avgpool": nn.AdaptiveAvgPool2d(pooled), "flatten": nn.Flatten()}
        layers["fc"] = nn.Linear(inputs * pooled**2, classes, bias=False)
        return nn.Sequential(OrderedDict(layers))

    return initialized(make, generator)


def mnist_cnn(
    *,
    classes: int,
    channels: int,
    generator: torch.Generator,
    width: Annotated[int, Limits(minimum=1, maximum=512)] = 32,
    hidden: Annotated[int, Limits(minimum=1, maximum=16384)] = 1024,
) -> nn.Sequential:
    """Return two 5×5 convolutions of width w and 2w and a hidden layer (released code of Yeh et al. 2019)."""

    def make() -> nn.Sequential:
        layers = {
            "conv1": nn.Conv2d(channels, width, 5, padding=2),
            "relu1": nn.ReLU(),
            "pool1": nn.MaxPool2d(2),
            "conv2": nn.Conv2d(width, 2 * width, 5, padding=2),
            "relu2": nn.ReLU(),
            "pool2": nn.MaxPool2d(2),
            "avgpool": nn.AdaptiveAvgPool2d(7),
            "flatten": nn.Flatten(),
            "fc1": nn.Linear(2 * width * 7**2, hidden),
            "relu3": nn.ReLU(),
            "fc2": nn.Linear(hidden, classes),
        }
        return nn.Sequential(OrderedDict(layers))

    return initialized(make, generator)


def lenet(*, classes: int, channels: int, generator: torch.Generator) -> nn.Sequential:
    """Return LeNet-5 with ReLU and max pooling (LeCun et al. 1998; Hedström et al. 2023, released weights)."""

    def make() -> nn.Sequential:
        layers = {
            "conv1": nn.Conv2d(channels, 6, 5, padding=2),
            "relu1": nn.ReLU(),
            "pool1": nn.MaxPool2d(2),
            "conv2": nn.Conv2d(6, 16, 5),
            "relu2": nn.ReLU(),
            "pool2": nn.MaxPool2d(2),
            "avgpool": nn.AdaptiveAvgPool2d(5),
            "flatten": nn.Flatten(),
            "fc1": nn.Linear(16 * 5**2, 120),
            "relu3": nn.ReLU(),
            "fc2": nn.Linear(120, 84),
            "relu4": nn.ReLU(),
            "fc3": nn.Linear(84, classes),
        }
        return nn.Sequential(OrderedDict(layers))

    return initialized(make, generator)


class ScaleNorm(nn.Module):
    """BatchNorm that divides by the root mean square without subtracting the mean.

    The BatchNorm ``norm`` stores the statistics and is applied in evaluation mode. Its running mean stays 0, and its
    running variance is the running mean square.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = _batch_norm_without_shift(channels)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x`` ``[N, channels, H, W]`` with each channel divided by its root mean square.

        The mean square is that of the batch in training mode, and the running average in evaluation mode.
        """
        if not self.training:
            scaled: Tensor = self.norm(x)
            return scaled
        # Under bf16 autocast, statistics need the precision of float32.
        square = x.to(torch.promote_types(x.dtype, torch.float32)).square().mean((0, 2, 3))
        square = gathered(square).mean(0)  # of the whole batch, if several processes share it
        running = self.norm.get_buffer("running_var")
        # Same momentum as BatchNorm: running ← (1 − m) · running + m · square.
        running.lerp_(square.detach().to(running), MOMENTUM)
        scale = self.norm.weight * (square + self.norm.eps).rsqrt()
        return x * scale.to(x)[:, None, None]


def _block(inputs: int, outputs: int, dropout: float, *, center: bool) -> nn.Sequential:
    norm = _batch_norm_without_shift if center else ScaleNorm
    layers = {
        "conv1": nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        "bn1": norm(outputs),
        "relu1": nn.ReLU(),
        "conv2": nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        "bn2": norm(outputs),
        "relu2": nn.ReLU(),
        "pool": nn.MaxPool2d(2),
        "dropout": nn.Dropout(dropout),
    }
    return nn.Sequential(OrderedDict(layers))


def _batch_norm_without_shift(channels: int) -> nn.BatchNorm2d:
    """Return a BatchNorm with a learned scale and no learned shift."""
    norm = nn.BatchNorm2d(channels, momentum=MOMENTUM)
    norm.register_parameter("bias", None)
    return norm


CONVOLUTIONS = (2, 2, 3, 3, 3)  # number of convolutions in each block, configuration D


def vgg16(
    *,
    classes: int,
    channels: int,
    generator: torch.Generator,
    width: Annotated[int, Limits(minimum=1, maximum=512)] = 64,
    hidden: Annotated[int, Limits(minimum=1, maximum=16384)] = 4096,
    pooled: Annotated[int, Limits(minimum=1, maximum=16)] = 7,
) -> nn.Sequential:
    """Return VGG16: 3×3 convolutions of width w, 2w, 4w, 8w, 8w and two hidden layers (Simonyan & Zisserman 2014).

    The sides of the images must be at least 32 pixels. The output of ``features`` has 1/32 of their resolution and is
    average-pooled to ``pooled × pooled``.
    """
    return initialized(lambda: _vgg(classes, channels, width, hidden, pooled, norm=False), generator)


def vgg16_bn(
    *,
    classes: int,
    channels: int,
    generator: torch.Generator,
    width: Annotated[int, Limits(minimum=1, maximum=512)] = 64,
    hidden: Annotated[int, Limits(minimum=1, maximum=16384)] = 4096,
    pooled: Annotated[int, Limits(minimum=1, maximum=16)] = 7,
) -> nn.Sequential:
    """Return ``vgg16`` with BatchNorm after each convolution."""
    return initialized(lambda: _vgg(classes, channels, width, hidden, pooled, norm=True), generator)


def _vgg(classes: int, channels: int, width: int, hidden: int, pooled: int, *, norm: bool) -> nn.Sequential:
    features: list[nn.Module] = []
    inputs = channels
    for block, count in enumerate(CONVOLUTIONS):
        outputs = width * min(2**block, 8)
        for _ in range(count):
            features.append(nn.Conv2d(inputs, outputs, 3, padding=1))
            features += [nn.BatchNorm2d(outputs)] if norm else []
            features.append(nn.ReLU())
            inputs = outputs
        features.append(nn.MaxPool2d(2))
    classifier = nn.Sequential(
        nn.Linear(inputs * pooled**2, hidden),
        nn.ReLU(),
        nn.Dropout(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Dropout(),
        nn.Linear(hidden, classes),
    )
    layers = {
        "features": nn.Sequential(*features),
        "avgpool": nn.AdaptiveAvgPool2d(pooled),
        "flatten": nn.Flatten(),
        "classifier": classifier,
    }
    return nn.Sequential(OrderedDict(layers))

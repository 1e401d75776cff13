"""Plain convolutional networks, every ReLU a module of its own: those of two papers, and VGG16.

The two flatten their last block, so their head has a fixed resolution. Builders do not take one: the block is averaged
to the resolution that it has on the paper's images, which leaves those as they are and lets other sizes through.
VGG16's layers and state-dict names are torchvision's, so its weights load unchanged.
"""

from collections import OrderedDict

import torch
from torch import Tensor, nn

from saliency_assay.models.initialisation import drawn
from saliency_assay.runtime.distributed import gathered

MOMENTUM = 0.1  # PyTorch's default for running statistics


def reliability_cnn(
    *,
    classes: int,
    channels: int,
    generator: torch.Generator,
    width: int = 32,
    pooled: int = 4,
    dropout: float = 0.2,
    centre: bool = True,
) -> nn.Sequential:
    """Three blocks of two 3×3 convolutions, of width w, 2w, 4w, and one linear layer (Tomsett et al. 2020, Methods).

    No layer has a bias and BatchNorm has no learned shift, but with ``centre`` its running mean still shifts. Without,
    it divides by the root mean square alone: in evaluation, logits of normalised images are f(a·x) = a·f(x), a > 0.
    """

    def make() -> nn.Sequential:
        layers: dict[str, nn.Module] = {}
        inputs = channels
        for block in range(3):
            outputs = width * 2**block
            layers[f"block{block + 1}"] = _block(inputs, outputs, dropout, centre=centre)
            inputs = outputs
        layers |= {"avgpool": nn.AdaptiveAvgPool2d(pooled), "flatten": nn.Flatten()}
        layers["fc"] = nn.Linear(inputs * pooled**2, classes, bias=False)
        return nn.Sequential(OrderedDict(layers))

    return drawn(make, generator)


def mnist_cnn(
    *, classes: int, channels: int, generator: torch.Generator, width: int = 32, hidden: int = 1024
) -> nn.Sequential:
    """Two 5×5 convolutions of width w and 2w and a hidden layer, as released with Yeh et al. 2019."""

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

    return drawn(make, generator)


class ScaleNorm(nn.Module):
    """BatchNorm that divides by the root mean square and shifts nothing.

    In evaluation it is the BatchNorm ``norm``, whose running mean stays 0 and whose running variance is the mean
    square.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = _unshifted(channels)

    def forward(self, x: Tensor) -> Tensor:
        """``[N, channels, H, W]``, each channel over its root mean square in the batch, or in running average."""
        if not self.training:
            scaled: Tensor = self.norm(x)
            return scaled
        square = x.to(torch.promote_types(x.dtype, torch.float32)).square().mean((0, 2, 3))
        square = gathered(square).mean(0)  # of the whole batch, where several processes share it
        running = self.norm.get_buffer("running_var")
        running.lerp_(square.detach().to(running), MOMENTUM)
        scale = self.norm.weight * (square + self.norm.eps).rsqrt()
        return x * scale.to(x)[:, None, None]


def _block(inputs: int, outputs: int, dropout: float, *, centre: bool) -> nn.Sequential:
    norm = _unshifted if centre else ScaleNorm
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


def _unshifted(channels: int) -> nn.BatchNorm2d:
    """BatchNorm with a learned scale and no learned shift."""
    norm = nn.BatchNorm2d(channels, momentum=MOMENTUM)
    norm.register_parameter("bias", None)
    return norm


CONVOLUTIONS = (2, 2, 3, 3, 3)  # of each block, in configuration D


def vgg16(
    *,
    classes: int,
    channels: int,
    generator: torch.Generator,
    width: int = 64,
    hidden: int = 4096,
    pooled: int = 7,
) -> nn.Sequential:
    """Five blocks of 3×3 convolutions of width w, 2w, 4w, 8w, 8w, then two hidden layers (Simonyan & Zisserman 2014).

    Images of 32 pixels and more; ``features`` has 1/32 of their resolution and is averaged to ``pooled × pooled``.
    """
    return drawn(lambda: _vgg(classes, channels, width, hidden, pooled, norm=False), generator)


def vgg16_bn(
    *,
    classes: int,
    channels: int,
    generator: torch.Generator,
    width: int = 64,
    hidden: int = 4096,
    pooled: int = 7,
) -> nn.Sequential:
    """``vgg16`` with BatchNorm after each convolution."""
    return drawn(lambda: _vgg(classes, channels, width, hidden, pooled, norm=True), generator)


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

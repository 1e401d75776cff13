"""VGG16, with and without BatchNorm, every ReLU a module of its own.

Layers and state-dict names are torchvision's, so its weights load unchanged.
"""

from collections import OrderedDict

import torch
from torch import nn

from saliency_assay.models.initialisation import drawn

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

"""Builders of networks with a mistake each, for the list in ``mistakes.py``; configurations name them."""

import sys
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from saliency_assay.models.vit import vit


class Plain(nn.Module):
    """Two convolutions with ``activation``, pooling to ``pooled`` positions, and a linear head of ``inputs``."""

    def __init__(
        self,
        classes: int,
        channels: int,
        activation: type[nn.Module] = nn.ReLU,
        inputs: int = 4,
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 4, 3, padding=1)
        self.act1 = activation()
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1)
        self.act2 = activation()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(inputs, classes)

    def forward(self, images: Tensor) -> Any:
        maps = self.act2(self.conv2(self.act1(self.conv1(images))))
        return self.head(self.pool(maps).flatten(1))


def plain(*, classes: int, channels: int, generator: torch.Generator, **options: Any) -> nn.Module:
    return Plain(classes, channels, **options)


def state_dict(*, classes: int, channels: int, generator: torch.Generator) -> Any:
    return Plain(classes, channels).state_dict()


def probabilities(*, classes: int, channels: int, generator: torch.Generator, end: str) -> nn.Module:
    return nn.Sequential(Plain(classes, channels), nn.Sigmoid() if end == "sigmoid" else nn.Softmax(1))


def leaving(*, classes: int, channels: int, generator: torch.Generator) -> nn.Module:
    sys.exit()


def without_pooling(*, classes: int, channels: int, generator: torch.Generator) -> nn.Module:
    network = Plain(classes, channels, inputs=4 * 32 * 32)
    network.pool = nn.Identity()  # type: ignore[assignment]
    return network


def three_channels(*, classes: int, channels: int, generator: torch.Generator) -> nn.Module:
    return Plain(classes, 3)


def thousand_classes(*, classes: int, channels: int, generator: torch.Generator) -> nn.Module:
    return Plain(1000, channels)


def feature_maps(*, classes: int, channels: int, generator: torch.Generator) -> nn.Module:
    return nn.Conv2d(channels, classes, 1)


def gelu(*, classes: int, channels: int, generator: torch.Generator) -> nn.Module:
    return Plain(classes, channels, nn.GELU)


def local_norm(*, classes: int, channels: int, generator: torch.Generator) -> nn.Module:
    network = Plain(classes, channels)
    network.act2 = nn.LocalResponseNorm(2)
    return network


class InTraining(Plain):
    """Returns its loss terms in training."""

    def forward(self, images: Tensor) -> Any:
        logits = super().forward(images)
        return {"logits_of_head": logits} if self.training else logits


def in_training(*, classes: int, channels: int, generator: torch.Generator) -> nn.Module:
    return InTraining(classes, channels)


class Branching(Plain):
    """Normalizes dark images only."""

    def forward(self, images: Tensor) -> Any:
        return super().forward(images + 1 if images.mean() < 0 else images)


def branching(*, classes: int, channels: int, generator: torch.Generator) -> nn.Module:
    return Branching(classes, channels)


class Detached(Plain):
    """Has a quantized input, which passes no gradient."""

    def forward(self, images: Tensor) -> Any:
        return super().forward((images.detach() * 16).round())


def detached(*, classes: int, channels: int, generator: torch.Generator) -> nn.Module:
    return Detached(classes, channels)


class Functional(Plain):
    """A valid network: its branch on shapes and its mean need no module, and it samples while it is built."""

    def __init__(self, classes: int, channels: int) -> None:
        super().__init__(classes, channels)
        # Values of tensors do not exist on the device ``meta``.
        self.scale = [value.item() for value in torch.linspace(0.5, 1, 2)]

    def forward(self, images: Tensor) -> Any:
        maps = functional.relu(self.conv1(images)) * self.scale[1]
        return self.head(maps.mean((2, 3)))


def functional_network(*, classes: int, channels: int, generator: torch.Generator) -> nn.Module:
    return Functional(classes, channels)


def zero_head(*, classes: int, channels: int, generator: torch.Generator) -> nn.Module:
    """A valid vision transformer whose head is zero until it is trained."""
    size = {"image_size": 8, "patch": 2, "width": 8, "depth": 2, "heads": 2}
    network = vit(classes=classes, channels=channels, generator=generator, **size)
    nn.init.zeros_(network.get_submodule("head").weight)  # type: ignore[arg-type]
    return network

"""Networks of torchvision by name, with random weights; see ``families`` for their layers."""

from typing import Any

import torch
from torch import nn

from saliency_assay.registry.records import unknown
from saliency_assay.runtime.environment import optional


def torchvision_network(
    *, classes: int, channels: int, generator: torch.Generator, name: str, **options: Any
) -> nn.Module:
    """Build a classification network of torchvision, with random weights from the global generator.

    Args:
        classes: number of classes.
        channels: number of image channels, which must be 3.
        generator: not used, because torchvision samples weights with PyTorch's global generator.
        name: name in ``torchvision.models``, such as ``convnext_tiny``.
        **options: arguments of its builder, such as ``image_size``.

    Raises:
        ValueError: torchvision has no such network, the images do not have three channels, or an option is not valid.
    """
    with optional("torchvision"):
        from torchvision import models

    if name not in models.list_models(module=models):
        raise ValueError(f"torchvision: {unknown('network', name, models.list_models(module=models))}")
    if channels != 3:
        raise ValueError(f"torchvision/{name}: found images of {channels} channels, expected 3; or use timm")
    try:
        network: nn.Module = models.get_model(name, weights=None, num_classes=classes, **options)
    except TypeError as error:
        raise ValueError(f"torchvision/{name}: {error}; expected arguments of its builder") from error
    return network

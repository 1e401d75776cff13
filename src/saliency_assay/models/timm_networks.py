"""Networks of timm by name, with random weights; see ``families`` for their layers."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from saliency_assay.registry.records import unknown


def timm_network(
    *, classes: int, channels: int, generator: torch.Generator, name: str, **options: Any
) -> nn.Module:
    """Build a network of timm, with random weights from the global generator.

    Args:
        classes: number of classes.
        channels: number of image channels.
        generator: not used, because timm samples weights with PyTorch's global generator.
        name: name in timm, such as ``vit_small_patch16_224``.
        **options: arguments of ``timm.create_model``, such as ``img_size``.

    Raises:
        ValueError: timm is not installed or has no such network, or an option is not valid.
    """
    timm = _timm()
    for option in options:
        if option.startswith(("pretrained", "checkpoint", "cache")):
            raise ValueError(f"timm/{name}: found {option!r}; expected weights, the path of a file")
    if not timm.is_model(name):
        raise ValueError(f"timm: {unknown('network', name, timm.list_models())}")
    try:
        network: nn.Module = timm.create_model(
            name, pretrained=False, num_classes=classes, in_chans=channels, **options
        )
    except TypeError as error:
        raise ValueError(f"timm/{name}: {error}; expected arguments of timm.create_model") from error
    return network


def timm_normalization(name: str) -> tuple[Sequence[float], Sequence[float]] | None:
    """Return the mean and standard deviation that published weights of a network expect; None if timm knows none."""
    config = _timm().get_pretrained_cfg(name)
    return (config.mean, config.std) if config is not None else None


def _timm() -> Any:
    try:
        import timm
    except ImportError:
        raise ValueError("timm is not installed; run .venv/bin/pip install timm") from None
    return timm

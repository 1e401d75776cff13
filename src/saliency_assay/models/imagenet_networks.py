"""Networks trained on ImageNet whose weights are Python packages, so that no other download is needed."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from saliency_assay.models.timm_networks import timm_network


def imagenet_network(
    *, classes: int, channels: int, generator: torch.Generator, name: str, **options: Any
) -> nn.Module:
    """Build a network of ``families.IMAGENET_NETWORKS`` with random weights; ``renamed`` fits the package's to it.

    Args:
        classes: number of classes.
        channels: number of image channels.
        generator: not used, see ``timm_networks.timm_network``.
        name: name of the network, such as ``efficientnet_lite0``.
        **options: arguments of ``timm.create_model``.

    Raises:
        ValueError: as ``timm_network``.
    """
    return timm_network(classes=classes, channels=channels, generator=generator, name=f"tf_{name}", **options)


def renamed(state: Mapping[str, Tensor], network_state: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Return the weights of a package under the names of timm's network, in whose order they are.

    Weights that already have these names are returned unchanged.

    Raises:
        ValueError: the tensors are not those of the network, in its order.
    """
    if state.keys() & network_state.keys():
        return state
    shapes, expected = ([tuple(tensor.shape) for tensor in each.values()] for each in (state, network_state))
    # The head has another number of classes, if the network is trained further.
    head = {"classifier.weight", "classifier.bias"}
    differs = [
        name
        for name, shape, other in zip(network_state, shapes, expected, strict=False)
        if shape != other and name not in head
    ]
    if len(shapes) != len(expected) or differs:
        raise ValueError(
            f"found {len(shapes)} tensors, expected {len(expected)} in the order of timm's network"
        )
    return dict(zip(network_state, state.values(), strict=True))

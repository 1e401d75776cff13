"""Initialization of networks: all weights are sampled from one generator."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import nn

N = TypeVar("N", bound=nn.Module)


def initialized(make: Callable[[], N], generator: torch.Generator) -> N:
    """Return the network that ``make`` builds, on the CPU, with all weights sampled from ``generator``."""
    with torch.device("meta"):  # on other devices, layers would sample weights from the global generator
        network = make()
    # ``network.to_empty`` would import SymPy for meta tensors, which takes two seconds in every job with a model.
    state = network.state_dict()
    network.load_state_dict(
        {name: torch.empty(t.shape, dtype=t.dtype) for name, t in state.items()}, assign=True
    )
    initialize(network, generator)
    return network


def initialize(network: nn.Module, generator: torch.Generator) -> None:
    """Resample all weights, in the order of ``network.modules()``.

    Convolutions: He et al. 2015, normal with variance 2 / fan-out, biases 0. Linear layers: weights and biases uniform
    within ±1/√fan-in. Norms: the identity. Other layers with parameters: their method ``sample(generator)``.

    Raises:
        TypeError: a layer of another type has parameters.
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu", generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Linear):
            bound = module.in_features**-0.5
            for parameter in module.parameters():
                nn.init.uniform_(parameter, -bound, bound, generator=generator)
        elif isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            for name, parameter in module.named_parameters():
                nn.init.constant_(parameter, 1.0 if name == "weight" else 0.0)
        elif isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
        elif callable(sample := getattr(module, "sample", None)):
            sample(generator)
        elif any(True for _ in module.parameters(recurse=False)):
            raise TypeError(f"no initialization for {module}; valid: Conv2d, Linear, BatchNorm2d, LayerNorm")

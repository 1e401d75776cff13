"""State of a network: what it consists of, and whether that has changed since an earlier look."""

from collections.abc import Hashable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, is_dataclass
from itertools import chain
from types import SimpleNamespace
from typing import Any
from weakref import ref

import torch
from torch import Tensor, nn

ROW = 4096
_PLAIN = {bool, int, float, str, type(None)}


@dataclass(frozen=True)
class State:
    """Fingerprint of a network, equal to a later one unless the network was changed in between.

    It detects layers that are added, removed or change their settings, mode or hooks, tensors that are replaced, moved
    or converted, and writes that autograd counts, but not writes through ``Parameter.data``: see ``checksums``.
    """

    layers: tuple[Hashable, ...]
    tensors: tuple[Hashable, ...]
    memory: tuple[Tensor, ...] = field(compare=False)
    """The tensors' memory, kept alive so that no other tensor is allocated at its address."""


def state_of(network: nn.Module) -> State:
    """Return the comparable state of ``network``, without keeping the network alive."""
    tensors = list(chain(network.parameters(), network.buffers()))
    return State(
        tuple(
            (name, ref(layer), *vars(layer), *map(_comparable, vars(layer).values()))
            for name, layer in network.named_modules()
        ),
        tuple(map(identity, tensors)),
        tuple(tensor.detach() for tensor in tensors),
    )


def copy_of(network: nn.Module) -> nn.Module:
    """Return a deep copy, also of a network that keeps results of its last pass, such as computed weights."""
    results: dict[int, Tensor] = {}

    def collect(value: object) -> None:
        if isinstance(value, Tensor) and value.grad_fn is not None:
            results[id(value)] = value.detach().clone()
        elif isinstance(value, dict | list | tuple):
            for entry in value.values() if isinstance(value, dict) else value:
                collect(entry)

    for module in network.modules():
        collect([value for name, value in vars(module).items() if name != "_modules"])
    with torch.no_grad():  # otherwise, weights of TorchScript would be copied as results of an operation
        return deepcopy(network, {**results})


def checksums(network: nn.Module) -> Tensor:
    """Return a sum over each floating-point parameter and buffer that depends on the order of its values."""
    sums = [
        _checksum(tensor.detach().flatten())
        for tensor in chain(network.parameters(), network.buffers())
        if tensor.is_floating_point() and tensor.numel()
    ]
    return torch.stack([each.to(sums[0].device) for each in sums]) if sums else torch.empty(0)


def _checksum(values: Tensor) -> Tensor:
    """Return a weighted sum; rows of ``ROW`` values are summed by a matrix product, which reads them once."""
    values = values.float() if values.element_size() < 4 else values
    whole = len(values) // ROW * ROW
    rows = values[:whole].view(-1, ROW) @ torch.linspace(1, 2, ROW, dtype=values.dtype, device=values.device)
    terms = torch.cat([rows, values[whole:]]).double()
    return terms @ torch.arange(1, len(terms) + 1, dtype=terms.dtype, device=terms.device)


def tensors_of(network: nn.Module) -> dict[str, Tensor]:
    """Return the tensors of the state dict, without other entries, such as those of quantized layers."""
    return {name: value for name, value in network.state_dict().items() if isinstance(value, Tensor)}


def identities(network: nn.Module) -> dict[str, Hashable]:
    """Return for each tensor of the state dict what identifies it and the number of writes to it."""
    return {name: identity(tensor) for name, tensor in tensors_of(network).items()}


def other_values(tensor: Tensor) -> Tensor:
    """Return a tensor of the same shape and type with other values, to try whether they matter."""
    values = tensor.detach()
    return ~values if values.dtype == torch.bool else (values * 2 + 1).to(values.dtype)


def changed(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> list[str]:
    """Return the names of tensors with other values, or that are missing; NaN is equal to itself."""
    return [
        name
        for name, old in before.items()
        # The first comparison is fast, the second one also takes NaN as equal to itself.
        if name not in after
        or (
            not torch.equal(old, after[name])
            and not torch.allclose(old, after[name], rtol=0, atol=0, equal_nan=True)
        )
    ]


def identity(tensor: Tensor) -> Hashable:
    """Return what identifies a tensor, with the number of writes to it."""
    # A tensor created in inference mode does not count writes, so its state is never equal to another one.
    version = object() if tensor.is_inference() else tensor._version
    memory = tensor.data_ptr(), tensor.device, tensor.dtype, tensor.shape, tensor.stride()
    return *memory, tensor.requires_grad, version


def _comparable(value: Any, depth: int = 4) -> Hashable:
    """Return numbers and strings unchanged, containers by their entries, otherwise the identity."""
    if type(value) in _PLAIN:
        plain: Hashable = value
        return plain
    if type(value) is Tensor and value.layout == torch.strided:
        return identity(value)
    is_record = isinstance(value, SimpleNamespace) or (is_dataclass(value) and not isinstance(value, type))
    if is_record and hasattr(value, "__dict__"):  # which dataclasses with slots lack
        value = vars(value)
    if depth == 0 or not isinstance(value, dict | tuple | list):
        return id(value)
    entries = chain.from_iterable(value.items()) if isinstance(value, dict) else value
    return tuple(_comparable(entry, depth - 1) for entry in entries)

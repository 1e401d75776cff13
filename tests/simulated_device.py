"""A device that exists only in tests: its tensors live on the CPU, but behave like those of a GPU.

Tensors of the device cannot meet tensors of the CPU, random numbers on it need a generator of the device, and every
operation is counted: launches, and waits for the device. What is counted is what PyTorch asks of a GPU, one launch for
each operation that computes, so the counts of two programs can be compared although a real GPU may need more launches
for one of them.

The tensors report PyTorch's device ``meta``, for which no other tensor has values.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map_only

DEVICE = torch.device("meta")
SOURCE = "src/saliency_assay/"
WAITS = {
    "aten::_linalg_svd": "convergence",
    "aten::_local_scalar_dense": "value of a tensor",
    "aten::nonzero": "shape that depends on values",
    "aten::masked_select": "shape that depends on values",
    "aten::repeat_interleave": "shape that depends on values",
    "aten::_unique2": "shape that depends on values",
    "aten::unique_dim": "shape that depends on values",
    "aten::unique_consecutive": "shape that depends on values",
    "aten::bincount": "shape that depends on values",
    "aten::equal": "comparison",
}
"""Operations for which the program waits, and why."""
COPIES, INDEXING = ("aten::_to_copy", "aten::copy_"), ("aten::index", "aten::index_put_", "aten::index_put")
"""Operations whose tensors may be on two devices."""
TO_DEVICE, FROM_DEVICE, BY_MASK = "copy to the device", "copy from the device", "index by truth values"
FREE = {
    "aten::detach",
    "aten::alias",
    "aten::_unsafe_view",
    "aten::lift_fresh",
    "aten::empty",
    "aten::empty_like",
}
"""Operations without a launch that are not views, or are called otherwise."""


class SimulatedTensor(Tensor):
    """A tensor of the simulated device, with its values in ``value`` on the CPU."""

    value: Tensor

    @staticmethod
    def __new__(cls, value: Tensor) -> "SimulatedTensor":
        wrapper: SimulatedTensor = Tensor._make_wrapper_subclass(
            cls,
            value.shape,
            strides=value.stride(),
            storage_offset=value.storage_offset(),
            dtype=value.dtype,
            device=DEVICE,
        )
        wrapper.value = value
        return wrapper

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"SimulatedTensor({self.value})"

    def tolist(self) -> Any:
        return self.cpu().tolist()  # PyTorch refuses subclasses

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # Outside of a simulation, uncounted.
        return Simulation().__torch_dispatch__(func, types, args, kwargs)


class Simulation(TorchDispatchMode):
    """Runs the operations of the simulated device and counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.launches = Counter[str]()
        self.waits = Counter[str]()
        self.generators: dict[int, torch.Generator] = {}
        """Generators of the device by address, because operations get other Python objects of them."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = func.name().partition(".")[0]
        flat = tree_flatten((args, kwargs))[0]
        tensors = [value for value in flat if isinstance(value, Tensor)]
        simulated = [tensor for tensor in tensors if isinstance(tensor, SimulatedTensor)]
        target = kwargs.get("device")
        creates = target is not None and torch.device(target) == DEVICE
        if not simulated and not creates:
            return func(*args, **kwargs)
        hosts = [tensor for tensor in tensors if not isinstance(tensor, SimulatedTensor) and tensor.ndim]
        self._check(func, name, hosts, bool(simulated), kwargs)
        self._count(func, name, args, kwargs, hosts, target)
        if creates:
            kwargs["device"] = torch.device("cpu")
        leaves = target is not None and not creates
        values = tree_map_only(SimulatedTensor, lambda tensor: tensor.value, (args, kwargs))
        result = func(*values[0], **values[1])
        if leaves or (name == "aten::copy_" and not isinstance(args[0], SimulatedTensor)):
            # The copy to the host must not share memory with the device.
            return args[0] if name == "aten::copy_" else result.clone()
        if creates and hosts and name == "aten::_to_copy":
            result = result.clone()
        wrapped = tree_map_only(Tensor, SimulatedTensor, result)
        return return_and_correct_aliasing(
            func, args, kwargs | ({"device": DEVICE} if creates else {}), wrapped
        )

    def _check(self, func: Any, name: str, hosts: list[Tensor], has_simulated: bool, kwargs: Any) -> None:
        """Raise the error of a GPU for tensors of two devices, or a generator of another device."""
        if has_simulated and hosts and name not in (*COPIES, *INDEXING):
            raise RuntimeError(f"{func}: expected all tensors to be on the same device")
        generator = kwargs.get("generator")
        if generator is not None and generator._cdata not in self.generators:
            raise RuntimeError(f"{func}: expected a generator of the device")

    def _count(self, func: Any, name: str, args: Any, kwargs: Any, hosts: list[Tensor], target: Any) -> None:
        non_blocking = kwargs.get("non_blocking", len(args) > 2 and args[2])
        if name in WAITS:
            self._wait(WAITS[name])
        elif name in COPIES:
            to_host = not hosts if name == "aten::_to_copy" else not isinstance(args[0], SimulatedTensor)
            crosses = bool(hosts) or (target is not None and torch.device(target) != DEVICE)
            if crosses and not non_blocking:
                self._wait(FROM_DEVICE if to_host else TO_DEVICE)
        elif name in INDEXING:
            indices = [index for index in args[1] if index is not None]
            if any(index.dtype in (torch.bool, torch.uint8) for index in indices):
                self._wait(BY_MASK)
            elif hosts:
                self._wait(TO_DEVICE)
        if not func.is_view and name not in FREE:
            self.launches[name] += 1

    def _wait(self, reason: str) -> None:
        """Count a wait by the innermost function of the project that caused it."""
        frame = sys._getframe()
        while frame.f_back and SOURCE not in frame.f_code.co_filename:
            frame = frame.f_back
        module = frame.f_code.co_filename.partition(SOURCE)[2].removesuffix(".py").replace("/", ".")
        self.waits[f"{module}:{frame.f_code.co_qualname} {reason} {frame.f_lineno}"] += 1


def to_simulated(module: nn.Module) -> nn.Module:
    """Move a module to the simulated device, in place."""
    for child in module.modules():
        for name, parameter in child._parameters.items():
            if parameter is not None:
                moved = nn.Parameter(SimulatedTensor(parameter.data), parameter.requires_grad)
                child._parameters[name] = moved
        for name, buffer in child._buffers.items():
            if buffer is not None:
                child._buffers[name] = SimulatedTensor(buffer)
    return module


@contextmanager
def simulated() -> Iterator[Simulation]:
    """Simulate the device within the context, and yield the counts."""
    from_data, as_data, new = torch.tensor, torch.as_tensor, Tensor.new_tensor

    class Generator(torch.Generator):
        def __new__(cls, device: Any = "cpu") -> "Generator":
            created = super().__new__(cls)
            if torch.device(device) == DEVICE:
                simulation.generators[created._cdata] = created
            return created

    # PyTorch gives no values to tensors from data on its device ``meta``.
    def tensor(data: Any, *, device: Any = None, **options: Any) -> Tensor:
        return _on(device, from_data(data, **options))

    def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
        if isinstance(data, SimulatedTensor):
            return data.to(dtype=dtype, device=device)
        return _on(device, as_data(data, dtype=dtype))

    def new_tensor(self: Tensor, data: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
        if not isinstance(self, SimulatedTensor):
            return new(self, data, dtype=dtype, device=device)
        return _on(device or DEVICE, from_data(data, dtype=dtype or self.dtype))

    def _on(device: Any, created: Tensor) -> Tensor:
        return created if device is None else created.to(device)

    with (
        Simulation() as simulation,
        patch.object(torch, "Generator", Generator),
        patch.object(torch, "tensor", tensor),
        patch.object(torch, "as_tensor", as_tensor),
        patch.object(Tensor, "new_tensor", new_tensor),
    ):
        yield simulation

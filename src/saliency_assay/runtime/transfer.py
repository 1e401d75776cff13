"""Copies between the CPU and a device."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor


def to_device(values: Tensor, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """Return a tensor of the CPU on ``device``, as ``dtype`` if given, without waiting for the device.

    A copy from memory that is not pinned would wait for all work that a GPU has been given before.
    """
    return pinned(values, device).to(device, dtype, non_blocking=True)


def pinned(values: Tensor, device: torch.device) -> Tensor:
    """Return a tensor of the CPU in pinned memory if ``device`` is a GPU, from which copies are asynchronous."""
    return values.pin_memory() if device.type == "cuda" and values.device.type == "cpu" else values


def on_cpu(batches: Iterable[Tensor]) -> Iterator[Tensor]:
    """Yield the tensors on the CPU; from a GPU, each is copied while the GPU computes the next one.

    The copies are in ordinary memory, so that a caller may keep all of them.
    """
    pending: tuple[Tensor, torch.cuda.Event] | None = None
    for values in batches:
        if not values.is_cuda:
            yield values.cpu()
            continue
        copy = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
        copy.copy_(values.contiguous(), non_blocking=True)
        done = torch.cuda.current_stream(values.device).record_event()
        if pending:
            pending[1].synchronize()
            yield pending[0].clone()
        pending = copy, done
    if pending:
        pending[1].synchronize()
        yield pending[0].clone()

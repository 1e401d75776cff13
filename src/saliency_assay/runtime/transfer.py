"""Copies from the CPU to a device."""

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

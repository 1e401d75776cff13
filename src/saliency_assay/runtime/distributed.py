"""One training in several processes of one machine: who takes which images, and what all of them add up to.

One process is the plain case: nothing is sent, and every number is bit for bit what it would be without this module.
"""

import ctypes
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist

from saliency_assay.runtime.gpus import requested_gpus
from saliency_assay.runtime.launch import launch, launched, rank

PR_SET_PDEATHSIG = 1  # linux/prctl.h


@contextmanager
def joined(device: torch.device, threads: int, resources: Mapping[str, Any]) -> Iterator[torch.device]:
    """Be one of the job's processes, on a ``device`` of its own; a job that is to be several starts them here.

    How many is the resource ``processes``, or else, on GPUs, ``gpu``, or else one: no parameters, because the results
    are the same up to the order of floating-point sums. They share the job's ``threads``, at least one each.

    Raises:
        ValueError: fewer than one process; fewer GPUs here than processes.
    """
    wanted = _wanted(device, resources)
    if wanted > 1 and not launched():
        launch(wanted)
    if wanted == 1:
        yield device
        return
    # Processes that outlive the one which started them would go on beside the next attempt.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    torch.set_num_threads(max(1, threads // wanted))
    on_gpu = device.type == "cuda"
    if on_gpu:
        device = torch.device("cuda", rank())
        torch.cuda.set_device(device)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # one machine: no need to know its name
    dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo")
    yield device
    # Not after a fault: the others would miss this process before it has said why it fails.
    dist.destroy_process_group()


def _wanted(device: torch.device, resources: Mapping[str, Any]) -> int:
    on_gpu = device.type == "cuda"
    name = "processes" if resources.get("processes") is not None else "gpu"
    given = resources["processes"] if name == "processes" else (requested_gpus(resources) or 1)
    wanted = int(given) if on_gpu or name == "processes" else 1
    if wanted < 1 and name == "processes":
        raise ValueError(f"resource processes: found {wanted}, expected at least 1")
    visible = torch.cuda.device_count() if on_gpu else wanted
    if wanted > max(1, visible):
        raise ValueError(
            f"resource {name}: found {wanted}, expected at most {visible}, the GPUs that are here"
        )
    return max(1, wanted)


def processes() -> int:
    """Return the number of processes that train together."""
    return dist.get_world_size() if dist.is_initialized() else 1


def leading() -> bool:
    """Return True in the process that writes: the first of several, or the only one."""
    return rank() == 0


def own(values: Tensor) -> Tensor:
    """Return this process's part of ``values`` ``[n, …]``; the parts of all are all of them, in order."""
    return values.tensor_split(processes())[rank()] if processes() > 1 else values


def own_rows(steps: int, batch_size: int) -> Tensor:
    """Return the places, int64, that this process takes of an epoch of ``steps`` batches: contiguous rows of each
    batch.

    Raises:
        ValueError: batches that do not part evenly.
    """
    if batch_size % processes():
        raise ValueError(
            f"batch_size: found {batch_size}, expected a multiple of {processes()}, the number of processes"
        )
    shape = (steps, processes(), batch_size // processes())
    return torch.arange(steps * batch_size).reshape(shape)[:, rank()].flatten()


def summed(values: Tensor) -> Tensor:
    """Return the sum of every process's ``values``, in all of them."""
    if processes() == 1:
        return values
    total = values.clone()
    dist.all_reduce(total)
    return total


def gathered(values: Tensor) -> Tensor:
    """Every process's ``values``, stacked ``[processes, …]``; gradients flow back to each."""
    if processes() == 1:
        return values[None]
    stacked: Tensor = _Gather.apply(values)
    return stacked


def anyone(flag: bool) -> bool:
    """Return whether ``flag`` is set in any process; by way of main memory, so that no GPU is waited for."""
    if processes() == 1:
        return flag
    return bool(summed(torch.tensor(int(flag))))


class _Gather(torch.autograd.Function):
    """Stack and, for gradients, its adjoint: the sum over processes of what each finds for this one's part."""

    @staticmethod
    def forward(context: Any, values: Tensor) -> Tensor:
        parts = [torch.empty_like(values) for _ in range(processes())]
        dist.all_gather(parts, values)
        return torch.stack(parts)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        return summed(gradient.contiguous())[rank()]

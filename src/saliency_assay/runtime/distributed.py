"""Data-parallel training in several processes of one machine: division of batches, and sums over processes.

With a single process there is no communication, and all results are bit for bit the same as without this module.
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
    """Join the job's process group and yield the device of this process; start the processes if there are several.

    Their number is the resource ``processes`` or, if that is not set, the resource ``gpu`` on GPUs and one on a CPU. It
    is not a parameter, because the results are the same up to the order of floating-point sums. The processes share the
    job's ``threads``, at least one each.

    Raises:
        ValueError: fewer than one process, or more processes than visible GPUs.
    """
    process_count = _requested_processes(device, resources)
    if process_count > 1 and not launched():
        launch(process_count)
    if process_count == 1:
        yield device
        return
    # Without this, processes that outlive a killed launcher would keep running during the next attempt.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    torch.set_num_threads(max(1, threads // process_count))
    on_gpu = device.type == "cuda"
    if on_gpu:
        device = torch.device("cuda", rank())
        torch.cuda.set_device(device)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # loopback: all processes are on one machine
    dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo")
    yield device
    # Skipped after an exception: the other processes would lose the connection and report that before the cause.
    dist.destroy_process_group()


def _requested_processes(device: torch.device, resources: Mapping[str, Any]) -> int:
    on_gpu = device.type == "cuda"
    name = "processes" if resources.get("processes") is not None else "gpu"
    requested = resources["processes"] if name == "processes" else (requested_gpus(resources) or 1)
    count = int(requested) if on_gpu or name == "processes" else 1
    if count < 1 and name == "processes":
        raise ValueError(f"resource processes: found {count}, expected at least 1")
    visible = torch.cuda.device_count() if on_gpu else count
    if count > max(1, visible):
        raise ValueError(
            f"resource {name}: found {count}, expected at most {visible}, the number of visible GPUs"
        )
    return max(1, count)


def processes() -> int:
    """Return the number of processes that train together, 1 without a process group."""
    return dist.get_world_size() if dist.is_initialized() else 1


def leading() -> bool:
    """Return True in the process that writes files: the first of several, or a single one."""
    return rank() == 0


def own(values: Tensor) -> Tensor:
    """Return this process's contiguous rows of ``values`` ``[n, …]``; over all processes, each row occurs once."""
    return values.tensor_split(processes())[rank()] if processes() > 1 else values


def own_rows(steps: int, batch_size: int) -> Tensor:
    """Return indices, int64, of this process's rows in an epoch of ``steps`` batches: contiguous rows of each batch.

    Raises:
        ValueError: the batch size is not a multiple of the number of processes.
    """
    if batch_size % processes():
        raise ValueError(
            f"batch_size: found {batch_size}, expected a multiple of {processes()}, the number of processes"
        )
    shape = (steps, processes(), batch_size // processes())
    return torch.arange(steps * batch_size).reshape(shape)[:, rank()].flatten()


def summed(values: Tensor) -> Tensor:
    """Return the sum of ``values`` over all processes, in every process."""
    if processes() == 1:
        return values
    total = values.clone()
    dist.all_reduce(total)
    return total


def gathered(values: Tensor) -> Tensor:
    """Return the ``values`` of all processes, stacked ``[processes, …]``; gradients flow back to each process."""
    if processes() == 1:
        return values[None]
    stacked: Tensor = _Gather.apply(values)
    return stacked


def anyone(flag: bool) -> bool:
    """Return True if ``flag`` is set in any process; also a barrier. In host memory, to avoid a GPU synchronization."""
    if processes() == 1:
        return flag
    return bool(summed(torch.tensor(int(flag))))


class _Gather(torch.autograd.Function):
    """All-gather with gradient: the backward pass is the adjoint, the sum over processes of this process's gradient."""

    @staticmethod
    def forward(context: Any, values: Tensor) -> Tensor:
        by_process = [torch.empty_like(values) for _ in range(processes())]
        dist.all_gather(by_process, values)
        return torch.stack(by_process)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        return summed(gradient.contiguous())[rank()]

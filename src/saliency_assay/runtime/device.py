"""Selection of a job's device and number of threads."""

import ctypes
import logging
import os
import platform
import socket
import sys
from collections.abc import Mapping
from typing import Any

import torch

from saliency_assay.runtime.gpus import SUBMITTED, pin, requested_gpus, shared_gpus
from saliency_assay.runtime.launch import launched

log = logging.getLogger(__name__)
# Environment variables that identify the cluster's job, node and GPUs, written to the log.
PLACE = ("SLURM_JOB_ID", "SLURMD_NODENAME", "CUDA_VISIBLE_DEVICES")
# Of mallopt(3): M_MMAP_MAX, so that no block has a mapping of its own, and M_TRIM_THRESHOLD.
MALLOPT = {-4: 0, -1: 2**31 - 1}


def prepare(name: str, threads: int, resources: Mapping[str, Any] | None = None) -> torch.device:
    """Return the device for ``auto``, ``cpu`` or ``cuda``, and set torch's CPU threads to ``threads``.

    Results on a CPU are reproducible bit for bit only with the same number of threads. Device and threads are logged,
    with the cluster's job, node and GPUs if present. On a machine with several GPUs, the job is pinned to as many as
    its ``resources`` request, by default one. ``auto`` selects the CPU for a job that requests ``gpu: 0``.

    Raises:
        ValueError: no GPU is available, and the device is ``cuda`` or the job requests a GPU of a cluster.
    """
    torch.set_num_threads(threads)
    requested = requested_gpus(resources or {})
    use_gpu = name == "cuda" or (name == "auto" and requested != 0)
    if use_gpu and not launched():  # processes started by ``launch`` inherit the GPUs of their launcher
        pin(max(requested or 1, int((resources or {}).get("processes") or 1)))
    available = use_gpu and torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ValueError("device: found 'cuda', but no GPU is available; valid: auto, cpu")
    if use_gpu and not available:
        _explain_missing_gpu(requested)
    device = torch.device("cuda" if available else "cpu")
    if device.type == "cpu":
        reuse_freed_memory()
    cluster_info = [f"{key}={os.environ[key]}" for key in PLACE if key in os.environ]
    log.info("%s", ", ".join([f"device {device}", f"threads {threads}", *cluster_info]))
    return device


def reuse_freed_memory() -> None:
    """Let glibc keep up to 2 GB of freed memory, so that the next pass of a model reuses the memory of the last one.

    By default, glibc returns every freed block above 32 MB to the kernel, which clears the pages of the next one. A
    forward pass of a small network then takes 1.3 to 1.6 times as long (``benchmarks/allocator.py``). Does nothing with
    another C library.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        for parameter, value in MALLOPT.items():
            libc.mallopt(parameter, value)


def _explain_missing_gpu(requested: int | None) -> None:
    """Raise an error if a GPU of a cluster would be reserved but unused; warn if a GPU of this machine is unusable."""
    host = socket.gethostname()
    if SUBMITTED in os.environ and requested:
        raise ValueError(
            f"device: the job requests a GPU, but PyTorch finds none on {host}; check the node's driver and "
            "PyTorch's CUDA version, or run on CPUs: gpu: 0 in the profile, or device: cpu in the configuration"
        )
    if gpus := shared_gpus():
        line = (
            f"device: this job runs on the CPU, because PyTorch cannot use {', '.join(gpus)} on {host}; check "
            "the driver and PyTorch's CUDA version, or set device: cpu"
        )
        log.warning("%s", line)
        if not launched():
            print(line, file=sys.__stderr__, flush=True)  # sys.stderr is redirected to the job's log


def resident_bytes(resources: Mapping[str, Any]) -> int:
    """Return the limit in bytes for images kept on the device, from the resource ``resident_limit`` in megabytes.

    It is a resource and not a parameter, because it does not change results and must not cause a rerun.
    """
    return int(resources.get("resident_limit", 8000)) * 1_000_000

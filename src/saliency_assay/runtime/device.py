"""Device of a job's tensors, and the number of threads that it may use."""

import logging
import os
import socket
import sys
from collections.abc import Mapping
from typing import Any

import torch

from saliency_assay.runtime.gpus import SUBMITTED, pin, requested_gpus, shared_gpus
from saliency_assay.runtime.launch import launched

log = logging.getLogger(__name__)
# Where a cluster put the job: for who reads its log.
PLACE = ("SLURM_JOB_ID", "SLURMD_NODENAME", "CUDA_VISIBLE_DEVICES")


def prepare(name: str, threads: int, resources: Mapping[str, Any] | None = None) -> torch.device:
    """Return the device called ``auto``, ``cpu`` or ``cuda``, with torch's CPU threads set to ``threads``.

    The number of threads is part of what makes CPU results repeat bit for bit. Both are in the log, with the cluster's
    job, node and GPUs where there are any. On a machine with several GPUs the job gets as many of its own as its
    ``resources`` request, by default one. ``auto`` is the CPU for a job that requests ``gpu: 0``.

    Raises:
        ValueError: ``cuda`` where there is no GPU; ``auto`` on a cluster for a job that requests a GPU and sees none.
    """
    torch.set_num_threads(threads)
    requested = requested_gpus(resources or {})
    wanted = name == "cuda" or (name == "auto" and requested != 0)
    if wanted and not launched():  # several processes inherit the GPUs of the one that started them
        pin(max(requested or 1, int((resources or {}).get("processes") or 1)))
    available = wanted and torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ValueError("device: found 'cuda', but no GPU is available here; valid: auto, cpu")
    if wanted and not available:
        _explain_missing_gpu(requested)
    device = torch.device("cuda" if available else "cpu")
    place = [f"{key}={os.environ[key]}" for key in PLACE if key in os.environ]
    log.info("%s", ", ".join([f"device {device}", f"threads {threads}", *place]))
    return device


def _explain_missing_gpu(requested: int | None) -> None:
    """Refuse to occupy a cluster's GPU with work on the CPU; warn where a GPU of this machine cannot be used."""
    host = socket.gethostname()
    if SUBMITTED in os.environ and requested:
        raise ValueError(
            f"device: the job requests a GPU, and PyTorch finds none on {host}; check the node's driver and PyTorch's "
            "CUDA version, or run on CPUs: gpu: 0 in the profile, or device: cpu in the configuration"
        )
    if gpus := shared_gpus():
        line = (
            f"device: this job runs on the CPU: PyTorch cannot use {', '.join(gpus)} on {host}; check the driver and "
            "PyTorch's CUDA version, or set device: cpu"
        )
        log.warning("%s", line)
        if not launched():
            print(line, file=sys.__stderr__, flush=True)  # standard error itself is the job's log


def resident_bytes(resources: Mapping[str, Any]) -> int:
    """Return the bytes of images that a job may keep on its device: its resource ``resident_limit`` is in megabytes.

    A resource, not a parameter: where images are kept changes no result, and is no reason to make one again.
    """
    return int(resources.get("resident_limit", 8000)) * 1_000_000

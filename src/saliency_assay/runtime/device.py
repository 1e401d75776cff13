"""Device of a job's tensors, and its number of threads."""

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
# Environment variables that are written to the log: the cluster's job, node and GPUs.
PLACE = ("SLURM_JOB_ID", "SLURMD_NODENAME", "CUDA_VISIBLE_DEVICES")


def prepare(name: str, threads: int, resources: Mapping[str, Any] | None = None) -> torch.device:
    """Return the device for ``auto``, ``cpu`` or ``cuda``, and set torch's CPU threads to ``threads``.

    CPU results are bit for bit reproducible only with the same number of threads. Device and threads are logged, with
    the cluster's job, node and GPUs if present. On a machine with several GPUs, the job is pinned to as many as its
    ``resources`` request, by default one. ``auto`` is the CPU for a job that requests ``gpu: 0``.

    Raises:
        ValueError: ``cuda`` without a GPU, or ``auto`` on a cluster for a job that requests a GPU if none is visible.
    """
    torch.set_num_threads(threads)
    requested = requested_gpus(resources or {})
    use_gpu = name == "cuda" or (name == "auto" and requested != 0)
    if use_gpu and not launched():  # several processes inherit the GPUs of the one that started them
        pin(max(requested or 1, int((resources or {}).get("processes") or 1)))
    available = use_gpu and torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ValueError("device: found 'cuda', but no GPU is available here; valid: auto, cpu")
    if use_gpu and not available:
        _explain_missing_gpu(requested)
    device = torch.device("cuda" if available else "cpu")
    cluster_info = [f"{key}={os.environ[key]}" for key in PLACE if key in os.environ]
    log.info("%s", ", ".join([f"device {device}", f"threads {threads}", *cluster_info]))
    return device


def _explain_missing_gpu(requested: int | None) -> None:
    """Raise an error if a cluster's GPU would be occupied unused; warn if a GPU of this machine cannot be used."""
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
            print(line, file=sys.__stderr__, flush=True)  # sys.stderr is redirected to the job's log


def resident_bytes(resources: Mapping[str, Any]) -> int:
    """Return the limit in bytes for images kept on the device, from the resource ``resident_limit`` in megabytes.

    It is a resource and not a parameter, because it changes no result and must not cause a rerun.
    """
    return int(resources.get("resident_limit", 8000)) * 1_000_000

"""Where a job's tensors live, and how many threads it may use."""

import logging
import os
from collections.abc import Mapping
from typing import Any

import torch

log = logging.getLogger(__name__)
# Where a cluster put the job: for who reads its log.
PLACE = ("SLURM_JOB_ID", "SLURMD_NODENAME", "CUDA_VISIBLE_DEVICES")


def prepare(name: str, threads: int) -> torch.device:
    """The device called ``auto``, ``cpu`` or ``cuda``, with torch's CPU threads set to ``threads``.

    The number of threads is part of what makes CPU results repeat bit for bit. Both are in the log, with the cluster's
    job, node and GPUs where there are any.

    Raises:
        ValueError: ``cuda`` where there is no GPU.
    """
    torch.set_num_threads(threads)
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ValueError("device: found 'cuda', but no GPU is available here; valid: auto, cpu")
    device = torch.device("cuda" if available and name != "cpu" else "cpu")
    place = [f"{key}={os.environ[key]}" for key in PLACE if key in os.environ]
    log.info("%s", ", ".join([f"device {device}", f"threads {threads}", *place]))
    return device


def resident_bytes(resources: Mapping[str, Any]) -> int:
    """How many bytes of images a job may keep whole on its device: its resource ``resident_limit`` is in megabytes.

    A resource, not a parameter: where images are kept changes no result, and is no reason to make one again.
    """
    return int(resources.get("resident_limit", 8000)) * 1_000_000

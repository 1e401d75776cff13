"""Assignment of GPUs to jobs: pinning on this machine; on a cluster, checks of what jobs request.

This module does not import torch: the Snakefile imports it to count GPUs, and jobs are pinned before CUDA is
initialized.
"""

import fcntl
import logging
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import product, takewhile
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

VISIBLE = "CUDA_VISIBLE_DEVICES"
SHARED = "SALIENCY_ASSAY_GPUS"
"""Environment variable of the jobs of a local run: the GPUs that they share, in the form of CUDA_VISIBLE_DEVICES."""
SUBMITTED = "SALIENCY_ASSAY_SUBMITTED"
"""Environment variable of jobs that run on a cluster, where the scheduler assigns GPUs."""
MOST_ON_ONE = 1000  # jobs per GPU
OPTION = re.compile(r"--(gres|gpus(?:-per-\w+)?)[= ](\S+)")
"""Options of Slurm that request GPUs: ``--gres=gpu:a100:2``, ``--gpus=2``, ``--gpus-per-node=a100:2``."""
QUOTES = str.maketrans("", "", "'\"")
NAME = re.compile(r"[0-9]+|(?:GPU|MIG)-.+")

_pinned: list[str] = []
"""GPUs that this process has reserved."""


def visible_gpus() -> list[str]:
    """Return the GPUs that CUDA would use, in the form of CUDA_VISIBLE_DEVICES; none if they cannot be listed."""
    if VISIBLE in os.environ:
        names = (name.strip() for name in os.environ[VISIBLE].split(","))
        # As CUDA does, ignore an invalid name and all names after it.
        return list(dict.fromkeys(takewhile(NAME.fullmatch, names)))
    try:
        listed = subprocess.run(
            ["nvidia-smi", "--list-gpus"], check=True, capture_output=True, text=True, timeout=60
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    # MIG instances (partitions of a GPU) are listed after their GPU and are used in its place.
    gpus: list[list[str]] = []
    for name in re.findall(r"\(UUID: ([^)]+)\)", listed):
        if name.startswith("MIG-") and gpus:
            gpus[-1] = [*(other for other in gpus[-1] if other.startswith("MIG-")), name]
        else:
            gpus.append([name])
    return [name for names in gpus for name in names]


def share_gpus(*, main: bool, local: bool, submitted: bool) -> list[str]:
    """Return the GPUs that the jobs of a local run share, and pass them to the jobs in environment variables.

    Args:
        main: True in the Snakemake process that the user started; False in those that it starts for jobs.
        local: True if the jobs run on this machine.
        submitted: True in the Snakemake process of a job on a cluster.
    """
    if main:
        os.environ.pop(SHARED, None)
        os.environ.pop(SUBMITTED, None)
        if local and (names := visible_gpus()):
            os.environ[SHARED] = ",".join(names)
    elif submitted:
        os.environ[SUBMITTED] = "1"
    return shared_gpus()


def shared_gpus() -> list[str]:
    """Return the GPUs that this run's jobs share; none on a cluster or on a machine without GPUs."""
    return os.environ.get(SHARED, "").split(",") if os.environ.get(SHARED) else []


def requested_gpus(resources: Mapping[str, Any]) -> int | None:
    """Return the number of GPUs that a job requests by ``gpu`` or by Slurm's options; None if by neither."""
    if (number := resources.get("gpu")) is not None:
        return int(number)
    options = f"--gres={resources.get('gres', '')} {resources.get('slurm_extra', '')}".translate(QUOTES)
    counts = [
        int(count) if (count := value.rpartition(":")[2]).isdecimal() else 1
        for option, values in OPTION.findall(options)
        for value in values.split(",")
        if option != "gres" or value.partition(":")[0] == "gpu"
    ]
    return max(counts, default=None)


def check_requests(jobs: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Check that every submitted job that can use a GPU specifies its number of GPUs, even if that is 0.

    Args:
        jobs: rule name and resources of each job.

    Raises:
        ValueError: the number is missing for some jobs; the message names their rules.
    """
    if rules := sorted({rule for rule, resources in jobs if requested_gpus(resources) is None}):
        raise ValueError(
            f"set-resources: found no gpu for {', '.join(rules)}; valid: in the profile, for each of them, gpu: 1, or "
            "gpu: 0 to run on CPUs (--set-resources on the command line replaces all of the profile's)"
        )


def pin(number: int) -> None:
    """Restrict CUDA to ``number`` of the GPUs that this run's jobs share: those used by the fewest other jobs.

    The function never waits: if the user allows more simultaneous jobs than there are GPUs, jobs share GPUs. Call it
    before CUDA is initialized. Without GPUs, or on a cluster, where the scheduler assigns them, it does nothing; nor
    does it at a second call, as of the next part of a combined job, which has CUDA's GPUs for good.
    """
    if _pinned:
        return
    names = shared_gpus()
    number = min(number, len(names))
    if number < 1:
        return
    try:
        selected = _reserve(names, number)
        _pinned.extend(selected)
    except OSError as error:
        log.warning("no GPU is reserved for this job: %s", error)
        selected = [names[(os.getpid() + offset) % len(names)] for offset in range(number)]
    os.environ[VISIBLE] = ",".join(sorted(selected, key=names.index))


def _reserve(names: Sequence[str], number: int) -> list[str]:
    """Reserve the least used GPUs until this process ends.

    Each GPU has numbered lock files. The n-th job on a GPU locks the n-th of them, so that the GPU with the lowest free
    number has the fewest jobs. The kernel releases the locks even if the process is killed.
    """
    folder = Path(tempfile.gettempdir(), f"saliency_assay_gpus_{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    selected: list[str] = []
    for slot, name in product(range(MOST_ON_ONE), names):
        if name not in selected and _try_lock(folder / f"{name.replace('/', '_')}.{slot}"):
            selected.append(name)
        if len(selected) == number:
            return selected
    raise OSError(f"{folder}: {MOST_ON_ONE} jobs use each GPU")


def _try_lock(path: Path) -> bool:
    """Lock a file until this process ends; return False if another process has locked it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    # Keep the lock if the launcher of several processes replaces this process (exec).
    os.set_inheritable(descriptor, True)
    return True

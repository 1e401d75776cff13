"""GPUs of a job: one of this machine's, pinned, or those that a cluster's scheduler assigns.

Free of torch: the Snakefile imports this to count GPUs, and jobs are pinned before CUDA is initialized.
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
"""Environment variable of a local run's jobs: the GPUs that they share, named as in CUDA_VISIBLE_DEVICES."""
SUBMITTED = "SALIENCY_ASSAY_SUBMITTED"
"""Environment variable of jobs that run on a cluster, where the scheduler assigns GPUs."""
MOST_ON_ONE = 1000
OPTION = re.compile(r"--(gres|gpus(?:-per-\w+)?)[= ](\S+)")
"""Options of Slurm that request GPUs: ``--gres=gpu:a100:2``, ``--gpus=2``, ``--gpus-per-node=a100:2``."""
QUOTES = str.maketrans("", "", "'\"")
NAME = re.compile(r"[0-9]+|(?:GPU|MIG)-.+")


def visible_gpus() -> list[str]:
    """Return the GPUs that CUDA would use here, as CUDA_VISIBLE_DEVICES names them; none if they cannot be counted."""
    if VISIBLE in os.environ:
        names = (name.strip() for name in os.environ[VISIBLE].split(","))
        # CUDA, too, ignores what follows an invalid name.
        return list(dict.fromkeys(takewhile(NAME.fullmatch, names)))
    try:
        listed = subprocess.run(
            ["nvidia-smi", "--list-gpus"], check=True, capture_output=True, text=True, timeout=60
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    # The parts of a divided GPU follow it, and are used in its place.
    gpus: list[list[str]] = []
    for name in re.findall(r"\(UUID: ([^)]+)\)", listed):
        if name.startswith("MIG-") and gpus:
            gpus[-1] = [*(part for part in gpus[-1] if part.startswith("MIG-")), name]
        else:
            gpus.append([name])
    return [name for names in gpus for name in names]


def share_gpus(*, main: bool, local: bool, submitted: bool) -> list[str]:
    """Return the GPUs that the jobs of a local run share, and tell the jobs by their environment.

    Args:
        main: this is the Snakemake that a user started, not one that it started for a job.
        local: its jobs run on this machine.
        submitted: this is the Snakemake of a job on a cluster.
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
    """Return the GPUs that this run's jobs share; none on a cluster, and where there are none."""
    return os.environ.get(SHARED, "").split(",") if os.environ.get(SHARED) else []


def requested_gpus(resources: Mapping[str, Any]) -> int | None:
    """Return how many GPUs a job requests, by ``gpu`` or by Slurm's own options; None if its resources do not say."""
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
    """Refuse to submit jobs that can use a GPU with resources that do not say if they get one.

    Args:
        jobs: rule and resources of each.

    Raises:
        ValueError: there are some; the line names their rules.
    """
    if rules := sorted({rule for rule, resources in jobs if requested_gpus(resources) is None}):
        raise ValueError(
            f"set-resources: found no gpu for {', '.join(rules)}; valid: in the profile, for each of them, gpu: 1, or "
            "gpu: 0 to run on CPUs (--set-resources on the command line replaces all of the profile's)"
        )


def pin(number: int) -> None:
    """Restrict CUDA to ``number`` of the GPUs that this run's jobs share: those that the fewest other jobs use.

    Nothing waits: where a user allows more jobs at once than there are GPUs, jobs share them. Call it before CUDA is
    initialized. It does nothing on a cluster, where the scheduler assigns GPUs, and where there are none.
    """
    names = shared_gpus()
    number = min(number, len(names))
    if number < 1:
        return
    try:
        chosen = _least_used(names, number)
    except OSError as error:
        log.warning("no GPU is reserved for this job: %s", error)
        chosen = [names[(os.getpid() + offset) % len(names)] for offset in range(number)]
    os.environ[VISIBLE] = ",".join(sorted(chosen, key=names.index))


def _least_used(names: Sequence[str], number: int) -> list[str]:
    """Reserve GPUs until this process ends, however it ends: the n-th job on a GPU holds that GPU's n-th lock."""
    folder = Path(tempfile.gettempdir(), f"saliency_assay_gpus_{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    chosen: list[str] = []
    for place, name in product(range(MOST_ON_ONE), names):
        if name not in chosen and _lock(folder / f"{name.replace('/', '_')}.{place}"):
            chosen.append(name)
        if len(chosen) == number:
            return chosen
    raise OSError(f"{folder}: {MOST_ON_ONE} jobs use each GPU")


def _lock(path: Path) -> bool:
    """Lock a file for as long as this process lives; return False if another process has locked it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    os.set_inheritable(descriptor, True)  # the launcher of several processes takes this one's place
    return True

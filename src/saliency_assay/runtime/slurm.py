"""What a cluster still works on in this folder: a second run beside it would write the same files."""

import getpass
import os
import shutil
import subprocess
import time
from pathlib import Path

OF_SNAKEMAKE = "rule_"
"""How its Slurm executor begins the comment of each job; a job that Snakemake itself runs in has none."""
SKIP = "SALIENCY_ASSAY_SKIP_SQUEUE"
"""Environment variable: set to start although Slurm does not say which jobs are in its queue."""
ATTEMPTS = 3
PAUSE = 5.0  # seconds between two attempts to ask Slurm


def running_jobs(folder: Path) -> list[str]:
    """Return the numbers of the Slurm jobs that an earlier run in ``folder`` left in the queue.

    There are none where there is no Slurm.

    Raises:
        ValueError: Slurm does not answer, and an earlier run was interrupted while it had jobs on a cluster.
    """
    if SKIP in os.environ or (shutil.which("squeue") is None and not _note(folder).exists()):
        return []
    lines = (line.split("|", 2) for line in _queue(folder).splitlines() if line.count("|") >= 2)
    return [
        job for job, comment, where in lines if comment.startswith(OF_SNAKEMAKE) and Path(where) == folder
    ]


def check_alone(folder: Path) -> None:
    """Refuse to start beside the jobs of an earlier run, which go on when their Snakemake is killed.

    Raises:
        ValueError: there are some, or there may be; the line says what to do.
    """
    if jobs := running_jobs(folder):
        numbers = " ".join(jobs)
        raise ValueError(
            f"Slurm jobs of an earlier run still work in {folder}: {numbers}; wait until they end, "
            f"or stop them with: scancel {numbers} (a training saves its state, and goes on from it)"
        )


def begin_submitting(folder: Path) -> None:
    """Note that a run in ``folder`` submits jobs to Slurm; the note stays if the run is killed."""
    if shutil.which("squeue"):  # other schedulers are not queried, so a note would only refuse the next run
        _note(folder).parent.mkdir(exist_ok=True)
        _note(folder).touch()


def end_submitting(folder: Path) -> None:
    """Remove that note: the run has seen all of its jobs end."""
    _note(folder).unlink(missing_ok=True)


def _note(folder: Path) -> Path:
    return folder / ".snakemake/saliency_assay_submitting"


def _queue(folder: Path) -> str:
    """Return the user's jobs in the queue, one a line."""
    command = ["squeue", "--noheader", f"--user={getpass.getuser()}", "--format=%i|%k|%Z"]
    reason = ""
    for attempt in range(ATTEMPTS):
        time.sleep(PAUSE if attempt else 0)
        try:
            return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
        except (OSError, subprocess.SubprocessError) as error:
            reason = getattr(error, "stderr", None) or str(error)
        if not _note(folder).exists():  # such as on a workstation where Slurm is installed and not set up
            return ""
    raise ValueError(
        f"squeue: {' '.join(reason.split())}; jobs of an interrupted run may still work in {folder}; "
        f"try again when Slurm answers, or if none do, start with {SKIP}=1"
    )

"""Check for Slurm jobs of an earlier run in a folder, because a second run would write the same files."""

import getpass
import os
import shutil
import subprocess
import time
from pathlib import Path

COMMENT_PREFIX = "rule_"
"""Prefix of the comment that Snakemake's Slurm executor gives each job; a job that runs Snakemake itself has none."""
SKIP = "SALIENCY_ASSAY_SKIP_SQUEUE"
"""Environment variable: if set, a run starts without listing Slurm's queue."""
ATTEMPTS = 3
PAUSE = 5.0  # seconds between two calls of squeue


def running_jobs(folder: Path) -> list[str]:
    """Return the ids of the Slurm jobs that an earlier run in ``folder`` left in the queue; empty without Slurm.

    Raises:
        ValueError: Slurm does not respond, and an earlier run was interrupted while it submitted jobs.
    """
    if SKIP in os.environ or (shutil.which("squeue") is None and not _marker(folder).exists()):
        return []
    lines = (line.split("|", 2) for line in _queue(folder).splitlines() if line.count("|") >= 2)
    return [
        job
        for job, comment, job_folder in lines
        if comment.startswith(COMMENT_PREFIX) and Path(job_folder) == folder
    ]


def check_no_other_run(folder: Path) -> None:
    """Check that no jobs of an earlier run are in the queue, where they continue if their Snakemake is killed.

    Raises:
        ValueError: there are or may be such jobs; the message contains the remedy.
    """
    if jobs := running_jobs(folder):
        numbers = " ".join(jobs)
        raise ValueError(
            f"Slurm jobs of an earlier run are still running in {folder}: {numbers}; wait until they end, "
            f"or stop them with: scancel {numbers} (a training saves its state and resumes from it)"
        )


def begin_submitting(folder: Path) -> None:
    """Create the marker file of a run in ``folder`` that submits jobs to Slurm; it remains if the run is killed."""
    if shutil.which("squeue"):  # other schedulers are not queried, so a marker would only block the next run
        _marker(folder).parent.mkdir(exist_ok=True)
        _marker(folder).touch()


def end_submitting(folder: Path) -> None:
    """Delete the marker file after all jobs of the run have ended."""
    _marker(folder).unlink(missing_ok=True)


def _marker(folder: Path) -> Path:
    return folder / ".snakemake/saliency_assay_submitting"


def _queue(folder: Path) -> str:
    """Return the output of squeue: the user's jobs, one per line."""
    command = ["squeue", "--noheader", f"--user={getpass.getuser()}", "--format=%i|%k|%Z"]
    reason = ""
    for attempt in range(ATTEMPTS):
        time.sleep(PAUSE if attempt else 0)
        try:
            return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
        except (OSError, subprocess.SubprocessError) as error:
            reason = getattr(error, "stderr", None) or str(error)
        # Without a marker no run submitted jobs, as on a workstation where Slurm is not configured.
        if not _marker(folder).exists():
            return ""
    raise ValueError(
        f"squeue: {' '.join(reason.split())}; jobs of an interrupted run may still be running in {folder}; "
        f"try again when Slurm responds or, if there are none, start with {SKIP}=1"
    )

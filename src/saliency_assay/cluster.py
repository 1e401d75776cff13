"""What a cluster still works on in this folder: a second run beside it would write the same files."""

import getpass
import shutil
import subprocess
from pathlib import Path

OF_SNAKEMAKE = "rule_"
"""How its Slurm executor begins the comment of each job; a job that Snakemake itself runs in has none."""


def running_jobs(folder: Path) -> list[str]:
    """Numbers of the Slurm jobs that an earlier run in ``folder`` left in the queue; none where there is no Slurm."""
    if shutil.which("squeue") is None:
        return []
    asked = ["squeue", "--noheader", f"--user={getpass.getuser()}", "--format=%i|%k|%Z"]
    done = subprocess.run(asked, check=False, capture_output=True, text=True)
    lines = (line.split("|", 2) for line in done.stdout.splitlines() if line.count("|") >= 2)
    return [
        job for job, comment, where in lines if comment.startswith(OF_SNAKEMAKE) and Path(where) == folder
    ]


def check_alone(folder: Path) -> None:
    """Refuse to start beside the jobs of an earlier run, which go on when their Snakemake is killed.

    Raises:
        ValueError: there are some; the line says what to do.
    """
    if jobs := running_jobs(folder):
        numbers = " ".join(jobs)
        raise ValueError(
            f"Slurm jobs of an earlier run still work in {folder}: {numbers}; wait until they end, "
            f"or stop them with: scancel {numbers} (a training saves its state, and goes on from it)"
        )

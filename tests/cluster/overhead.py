"""Overhead of a job on a Slurm of one machine: run as a program, as root, on an idle machine.

The seconds of a job in Slurm from its start to its end, less those of the scripts in it by Snakemake's benchmark files.
"""

import csv
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from filelock import FileLock
from slurm import GROUPS, LOCK, Slurm, missing
from studies import PROFILE, small_study


def main() -> None:
    if reason := missing():
        sys.exit(reason)
    with FileLock(LOCK), TemporaryDirectory() as folder:
        cluster = Slurm(Path(folder, "slurm"))
        try:
            checkout = small_study(Path(folder, "project"))
            running = checkout.start(profile=PROFILE)
            output, _ = running.communicate()
            if running.returncode:
                sys.exit(output)
            jobs = cluster.jobs()
        finally:
            cluster.stop()
        scripts = [seconds(file) for file in (checkout.root / "results/benchmarks").rglob("*.tsv")]
    in_slurm = [job.end - job.start for job in jobs]
    single = [job.end - job.start for job in jobs if job.first_rule not in GROUPS]
    print(f"{len(jobs)} Slurm jobs for {len(scripts)} of Snakemake's, {sum(in_slurm):.0f} s in them")
    print(
        f"{sum(scripts):.0f} s in the scripts, and beside them "
        f"{(sum(in_slurm) - sum(scripts)) / len(jobs):.1f} s a Slurm job"
    )
    print(f"median of a Slurm job that is no group: {median(single):.0f} s")
    print(
        f"{max(job.end for job in jobs) - min(job.start for job in jobs):.0f} s from the first start to the last end"
    )


def seconds(file: Path) -> float:
    with file.open(encoding="utf-8", newline="") as lines:
        return sum(float(row["s"]) for row in csv.DictReader(lines, delimiter="\t"))


if __name__ == "__main__":
    main()

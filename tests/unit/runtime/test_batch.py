"""Submission of jobs to batch systems, with simulated commands."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from saliency_assay.runtime import batch

RESOURCES = {
    "mem_mb": 4000,
    "runtime": 90,
    "gpu": 2,
    "queue": "long",
    "account": "group",
    "options": "-x 'a b'",
}
WORDS = {
    "pbs": ["qsub", "select=1:ncpus=4:mem=4000mb:ngpus=2", "walltime=5400", "-q long", "-A group"],
    "sge": ["qsub -terse", "h_rt=5400", "h_vmem=1000M", "-pe smp 4", "gpu=2", "-q long", "-P group"],
    "lsf": ["bsub", "-n 4", "-M 4000MB", "-W 90", "-wa TERM", "-gpu num=2", "-q long", "-P group"],
    "htcondor": ["condor_submit -terse", "-"],
}
PRINTED = {
    "pbs": ("123.server\n", "123.server"),
    "sge": ("123\n", "123"),
    "lsf": ("Job <123> is submitted to queue <long>.\n", "123"),
    "htcondor": ("123.0 - 123.0\n", "123.0"),
}


@pytest.fixture
def jobscript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script of a job of Snakemake in the working directory, which fails."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "snakejob.train.1.sh"
    properties = {"rule": "train", "threads": 4, "resources": RESOURCES}
    file.write_text(f"#!/bin/sh\n# properties = {json.dumps(properties)}\npwd > where\nexit 3\n")
    return file


@pytest.mark.parametrize("system", batch.SYSTEMS)
def test_a_job_is_submitted_with_its_requests(
    system: str, jobscript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[list[str], str]] = []

    def run(command: list[str], **options: Any) -> "subprocess.CompletedProcess[str]":
        calls.append((command, options["input"]))
        return subprocess.CompletedProcess(command, 0, PRINTED[system][0], "")

    monkeypatch.setattr(subprocess, "run", run)
    assert batch.submit(system, jobscript) == PRINTED[system][1]
    [(command, description)] = calls
    text = " ".join(command)
    for words in WORDS[system]:
        assert words in text
    assert "a b" in command
    if system == "htcondor":
        assert "request_memory = 4000MB\n" in description
        assert "request_gpus = 2\n" in description
        assert description.endswith("queue\n")
    else:
        assert command[-1].endswith("snakejob.train.1.batch.sh")


def test_a_job_without_a_gpu_requests_none(jobscript: Path) -> None:
    text = jobscript.read_text().replace('"gpu": 2', '"gpu": 0')
    jobscript.write_text(text)
    for name in ("pbs", "sge", "lsf"):
        system = batch.SYSTEMS[name]
        command = " ".join(system.submit(batch.read_job(jobscript, system.job_variable)))
        assert not any(words in command for words in ("ngpus", "gpu=", "-gpu "))


def test_the_status_is_the_exit_status_that_the_job_recorded(
    jobscript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "GRACE", 0.0)
    in_queue = [True]

    def is_in_queue(system: batch.System, job: str) -> bool:
        return in_queue[0]

    monkeypatch.setattr(batch, "_is_in_queue", is_in_queue)
    job = batch.read_job(jobscript, "PBS_JOBID")
    assert batch.status("pbs", "7.server") == "running"
    in_queue[0] = False
    assert batch.status("pbs", "7.server") == "failed"  # killed with its node
    done = subprocess.run(
        ["sh", job.script], cwd="/", env={**os.environ, "PBS_JOBID": "7.server"}, check=False
    )
    assert done.returncode == 3
    assert Path("where").read_text().strip() == str(Path.cwd())
    assert batch.status("pbs", "7.server") == "failed"
    jobscript.write_text(jobscript.read_text().replace("exit 3", "exit 0"))
    subprocess.run(["sh", job.script], env={**os.environ, "PBS_JOBID": "8.server"}, check=True)
    assert batch.status("pbs", "8.server") == "success"


def test_a_refused_job_is_one_line(jobscript: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **options: Any) -> "subprocess.CompletedProcess[str]":
        return subprocess.CompletedProcess(command, 1, "", "qsub: Unknown queue\n")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(ValueError, match=r"^qsub .*: exit status 1: qsub: Unknown queue$"):
        batch.submit("pbs", jobscript)
    assert batch.main(["submit", "moab", str(jobscript)]) == 1

"""GPUs that a run shares out among its jobs: counted without CUDA, and reserved by processes that are real."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from saliency_assay.runtime.gpus import (
    SHARED,
    SUBMITTED,
    VISIBLE,
    check_requests,
    pin,
    requested_gpus,
    share_gpus,
    visible_gpus,
)
from saliency_assay.runtime.provenance import SOURCE

PIN = """
import os, sys
from saliency_assay.runtime.gpus import pin
pin(int(sys.argv[1]))
pin(int(sys.argv[1]))  # as the second part of a combined job
if len(sys.argv) > 2:  # as what starts several processes does
    os.execv("/bin/sh", ["/bin/sh", "-c", "echo $CUDA_VISIBLE_DEVICES; read -r line"])
print(os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
sys.stdin.read()
"""
A100 = "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6)\n"
DIVIDED = (
    "GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-0e1bd4c2)\n"
    "  MIG 3g.20gb     Device  0: (UUID: MIG-d0b1)\n"
    "  MIG 3g.20gb     Device  1: (UUID: MIG-a7c9)\n"
)


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No GPU, no run, locks of this test alone, and no trace of any of it afterwards."""
    for name in (VISIBLE, SHARED, SUBMITTED):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


class Job:
    """A process that has pinned itself to GPUs, until it ends."""

    def __init__(self, number: int, *, replaced: bool = False) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PIN, str(number), *(["exec"] if replaced else [])],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        self.gpus = self.process.stdout.readline().strip()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def started() -> Iterator[list[Job]]:
    """Jobs, which are ended."""
    jobs: list[Job] = []
    yield jobs
    for job in jobs:
        job.end()


def start(started: list[Job], number: int = 1, **options: bool) -> Job:
    started.append(Job(number, **options))
    return started[-1]


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("1, 3", ["1", "3"]),
        ("GPU-8932f937,MIG-d0b1", ["GPU-8932f937", "MIG-d0b1"]),
        ("", []),
        ("-1", []),
        ("0,-1,1", ["0"]),
        ("NoDevFiles", []),
    ],
)
def test_a_users_choice_of_gpus_is_respected(
    value: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VISIBLE, value)
    assert visible_gpus() == names


@pytest.mark.parametrize(
    ("listed", "status", "names"),
    [
        (A100, 0, ["GPU-5d5ba0d6"]),
        (A100 + DIVIDED, 0, ["GPU-5d5ba0d6", "MIG-d0b1", "MIG-a7c9"]),
        ("No devices found.\n", 6, []),
        (None, 0, []),
    ],
)
def test_gpus_are_counted_by_the_drivers_program(
    listed: str | None, status: int, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if listed is not None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\nprintf '%s' '{listed}'\nexit {status}\n")
        program.chmod(0o755)
    assert visible_gpus() == names


def test_only_jobs_of_a_local_run_share_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VISIBLE, "0,1")
    assert share_gpus(main=True, local=True, submitted=False) == ["0", "1"]
    monkeypatch.setenv(VISIBLE, "1")  # as in a job, which is pinned
    assert share_gpus(main=False, local=True, submitted=False) == ["0", "1"]
    assert SUBMITTED not in os.environ
    assert share_gpus(main=True, local=False, submitted=False) == []
    assert share_gpus(main=False, local=False, submitted=True) == []
    assert SUBMITTED in os.environ
    assert share_gpus(main=True, local=True, submitted=False) == ["1"]
    assert SUBMITTED not in os.environ


def test_nothing_is_pinned_where_nothing_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a cluster, whose scheduler has chosen."""
    monkeypatch.setenv(VISIBLE, "2,3")
    pin(1)
    assert os.environ[VISIBLE] == "2,3"


def test_each_job_gets_a_gpu_of_its_own(started: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHARED, "0,GPU-a,MIG-GPU-b/1/0")
    jobs = [start(started) for _ in range(3)]
    assert [job.gpus for job in jobs] == ["0", "GPU-a", "MIG-GPU-b/1/0"]
    jobs[1].end()  # by SIGKILL
    assert start(started).gpus == "GPU-a"


def test_a_job_may_take_several(started: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHARED, "3,0,2")
    assert start(started, 1).gpus == "3"
    assert start(started, 2).gpus == "0,2"
    assert start(started, 2).gpus == "3,0"
    assert start(started, 9).gpus == "3,0,2"


def test_the_program_that_replaces_a_job_keeps_its_gpus(
    started: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several processes are started by a program that takes the place of the first one."""
    monkeypatch.setenv(SHARED, "0,1,2")
    assert start(started, 2, replaced=True).gpus == "0,1"
    assert start(started).gpus == "2"


def test_jobs_share_where_no_lock_can_be_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHARED, "0,1")
    (tmp_path / f"saliency_assay_gpus_{os.getuid()}").write_text("no folder")
    pin(1)
    assert os.environ[VISIBLE] == str(os.getpid() % 2)


@pytest.mark.parametrize(
    ("resources", "number"),
    [
        ({"gpu": 4, "slurm_extra": "--signal=TERM@120"}, 4),
        ({"gpu": 0}, 0),
        ({"gres": "gpu:a100:1"}, 1),
        ({"gres": "gpu:4"}, 4),
        ({"gres": "'gpu'"}, 1),
        ({"gres": "nvme:1"}, None),
        ({"slurm_extra": "--gpus-per-node=1"}, 1),
        ({"slurm_extra": "'--signal=TERM@120 --gpus=a100:2'"}, 2),
        ({"slurm_extra": "--gres=nvme:1,gpu:a100"}, 1),
        ({"slurm_extra": "--exclude=gpu07 --partition=gpu"}, None),
        ({"slurm_extra": "--signal=TERM@120", "slurm_partition": "gpu"}, None),
        ({"mem_mb": 4000}, None),
    ],
)
def test_what_a_job_requests(resources: dict[str, Any], number: int | None) -> None:
    assert requested_gpus(resources) == number


def test_jobs_without_a_number_of_gpus_are_not_submitted() -> None:
    check_requests([("train", {"gpu": 1}), ("score", {"gpu": 0}), ("respond", {"gres": "gpu:1"})])
    with pytest.raises(ValueError, match=r"^set-resources: found no gpu for score, train; valid: [^\n]*$"):
        check_requests([("train", {"mem_mb": 1}), ("respond", {"gpu": 1}), ("train", {}), ("score", {})])

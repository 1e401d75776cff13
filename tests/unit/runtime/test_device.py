"""The device of a job."""

import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from saliency_assay.runtime import gpus
from saliency_assay.runtime.device import prepare
from saliency_assay.runtime.gpus import SHARED, SUBMITTED
from saliency_assay.runtime.launch import FAULT


@pytest.fixture(autouse=True)
def threads() -> Iterator[int]:
    before = torch.get_num_threads()
    yield before
    torch.set_num_threads(before)


def gpu(monkeypatch: pytest.MonkeyPatch, *, there: bool) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)


@pytest.mark.parametrize(
    ("name", "there", "device"),
    [
        ("auto", False, "cpu"),
        ("auto", True, "cuda"),
        ("cpu", False, "cpu"),
        ("cpu", True, "cpu"),
        ("cuda", True, "cuda"),
    ],
)
def test_device(monkeypatch: pytest.MonkeyPatch, name: str, there: bool, device: str) -> None:
    gpu(monkeypatch, there=there)
    assert prepare(name, 1) == torch.device(device)


def test_cuda_without_a_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu(monkeypatch, there=False)
    with pytest.raises(ValueError, match=r"^device: found 'cuda', .*valid: auto, cpu$"):
        prepare("cuda", 1)


@pytest.mark.parametrize("resources", [{"gpu": 1}, {"gres": "gpu:1"}])
def test_a_job_of_a_cluster_does_not_occupy_a_gpu_that_it_cannot_use(
    monkeypatch: pytest.MonkeyPatch, resources: dict[str, Any]
) -> None:
    monkeypatch.setenv(SUBMITTED, "1")
    gpu(monkeypatch, there=False)
    with pytest.raises(ValueError, match=rf"^device: .* {socket.gethostname()}; .*gpu: 0[^\n]*$"):
        prepare("auto", 1, resources)
    assert prepare("cpu", 1, resources).type == "cpu"
    gpu(monkeypatch, there=True)
    assert prepare("auto", 1, resources).type == "cuda"


@pytest.mark.parametrize("submitted", [False, True])
def test_a_job_that_requests_no_gpu_runs_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch, submitted: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """Even where it sees one, as on a node that does not hide the GPUs of other jobs."""
    if submitted:
        monkeypatch.setenv(SUBMITTED, "1")
    gpu(monkeypatch, there=True)
    assert prepare("auto", 1, {"gpu": 0}).type == "cpu"
    assert prepare("cuda", 1, {"gpu": 0}).type == "cuda"
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("shared", "lines"), [("", 0), ("0,1", 1)])
def test_a_gpu_of_this_machine_that_cannot_be_used_is_mentioned(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    shared: str,
    lines: int,
) -> None:
    """And where there is none, nothing is: the local profile requests one everywhere."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shared)
    monkeypatch.setenv(SHARED, shared)
    gpu(monkeypatch, there=False)
    assert prepare("auto", 1, {"gpu": 1}).type == "cpu"
    assert len(capfd.readouterr().err.splitlines()) == lines
    assert sum(record.levelname == "WARNING" for record in caplog.records) == lines


def test_a_job_is_pinned_before_cuda_is_initialized(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[str] = []

    def is_available() -> bool:
        seen.append(os.environ["CUDA_VISIBLE_DEVICES"])
        return True

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(torch.cuda, "is_available", is_available)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    monkeypatch.setenv(SHARED, "0,1,2")
    prepare("auto", 1, {"gpu": 1})
    prepare("cuda", 1, {"gpu": 2})  # the next part of a combined job, which keeps its GPU
    monkeypatch.setattr(gpus, "_pinned", [])  # another job
    prepare("cuda", 1, {"gpu": 2})
    monkeypatch.setenv(FAULT, "one of several processes")  # which have the GPUs of the one that started them
    prepare("auto", 1, {"gpu": 2})
    assert seen == ["0", "0", "1,2", "1,2"]


def test_threads_are_set() -> None:
    for count in (2, 1):
        prepare("cpu", count)
        assert torch.get_num_threads() == count


def test_the_log_names_where_a_job_ran(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    with caplog.at_level("INFO"):
        prepare("cpu", 3)
    assert caplog.messages == ["device cpu, threads 3, SLURM_JOB_ID=4711, CUDA_VISIBLE_DEVICES=1"]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_a_job_on_a_cpu_reuses_the_memory_of_the_last_pass() -> None:
    program = """
import resource, torch
from saliency_assay.runtime import gpus
from saliency_assay.runtime.device import prepare
prepare("cpu", 1)
def work():
    for _ in range(20):
        torch.ones(16 << 20)  # 64 MB, a block that glibc by default returns to the kernel at once
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
print(-work() + work())
"""
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    # A block has 16,384 pages of 4 KB. A few are new wherever a small object has split the freed one.
    assert int(printed) < 20 * 16384 / 4, "pages were cleared again"

"""The device that a configuration asks for."""

from collections.abc import Iterator

import pytest
import torch

from saliency_assay.device import prepare


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


def test_no_gpu_where_one_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu(monkeypatch, there=False)
    with pytest.raises(ValueError, match="device") as error:
        prepare("cuda", 1)
    assert str(error.value) == "device: found 'cuda', but no GPU is available here; valid: auto, cpu"


@pytest.mark.parametrize("count", [1, 2])
def test_threads_are_set(count: int) -> None:
    prepare("cpu", count)
    assert torch.get_num_threads() == count


def test_the_log_says_where_a_job_ran(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    with caplog.at_level("INFO"):
        prepare("cpu", 3)
    assert caplog.messages == ["device cpu, threads 3, SLURM_JOB_ID=4711, CUDA_VISIBLE_DEVICES=1"]

"""A run does not begin beside Slurm jobs that an earlier one left behind."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from saliency_assay.runtime.slurm import (
    ATTEMPTS,
    SKIP,
    begin_submitting,
    check_no_other_run,
    end_submitting,
    running_jobs,
)

QUEUE = """\
7|rule_train_wildcards_f_o_0|{here}
8|rule_study_plot_scores|{here}
9|rule_train_wildcards_f_o_0|{elsewhere}
10|(null)|{here}
11||{here}
"""


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a simulated ``squeue``, the only program on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def squeue(folder: Path, output: str, status: int = 0) -> None:
    program = folder / "squeue"
    (folder / "output").write_text(output)
    stream = " >&2" if status else ""
    program.write_text(
        f'#!/bin/sh\nwhile read -r line; do echo "$line"{stream}; done < {folder}/output\nexit {status}\n'
    )
    program.chmod(0o755)


def test_jobs_of_this_folder_are_named(queue: Path, tmp_path: Path) -> None:
    here = tmp_path / "a|b"  # a folder may hold what separates the columns
    squeue(queue, QUEUE.format(here=here, elsewhere=tmp_path / "b"))
    assert running_jobs(here) == ["7", "8"]
    with pytest.raises(ValueError, match=r"^[^\n]*: 7 8;[^\n]*scancel 7 8 [^\n]*$") as error:
        check_no_other_run(here)
    assert str(here) in str(error.value)


def test_no_job_of_this_folder_is_no_reason(queue: Path, tmp_path: Path) -> None:
    assert running_jobs(tmp_path) == []  # no Slurm
    squeue(queue, QUEUE.format(here=tmp_path / "a", elsewhere=tmp_path / "b"))
    check_no_other_run(tmp_path)


def test_no_slurm_is_a_reason_after_an_interrupted_run(
    queue: Path, tmp_path: Path, pauses: list[float]
) -> None:
    """Such as in a shell that has not loaded the cluster's programs."""
    squeue(queue, "")
    begin_submitting(tmp_path)
    (queue / "squeue").unlink()
    with pytest.raises(ValueError, match=f"squeue: .*{SKIP}"):
        check_no_other_run(tmp_path)


def test_an_interrupted_run_on_another_scheduler_is_no_reason(queue: Path, tmp_path: Path) -> None:
    begin_submitting(tmp_path)
    check_no_other_run(tmp_path)


DOWN = "slurm_load_jobs error: Unable to contact slurm controller\n"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that are waited, which do not pass."""
    waited: list[float] = []
    monkeypatch.setattr("saliency_assay.runtime.slurm.time", SimpleNamespace(sleep=waited.append))
    return waited


def test_a_slurm_that_does_not_answer_is_a_reason_after_an_interrupted_run(
    queue: Path, tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    squeue(queue, DOWN, status=1)
    begin_submitting(tmp_path)
    with pytest.raises(ValueError, match=SKIP) as error:
        check_no_other_run(tmp_path)
    message = str(error.value)
    assert message.startswith(f"squeue: {DOWN.strip()}; ")
    assert str(tmp_path) in message
    assert len(message.splitlines()) == 1
    assert sum(seconds > 0 for seconds in pauses) == ATTEMPTS - 1
    monkeypatch.setenv(SKIP, "1")
    check_no_other_run(tmp_path)


def test_the_answer_of_a_second_attempt_counts(
    queue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    squeue(queue, DOWN, status=1)
    begin_submitting(tmp_path)
    answer = QUEUE.format(here=tmp_path, elsewhere=tmp_path / "b")
    comes_up = SimpleNamespace(sleep=lambda seconds: squeue(queue, answer) if seconds else None)
    monkeypatch.setattr("saliency_assay.runtime.slurm.time", comes_up)
    assert running_jobs(tmp_path) == ["7", "8"]


@pytest.mark.parametrize("earlier", [False, True], ids=["never used", "all jobs ended"])
def test_a_slurm_that_does_not_answer_is_no_reason_where_no_job_can_be_left(
    queue: Path, tmp_path: Path, pauses: list[float], earlier: bool
) -> None:
    """Such as on a workstation on which Slurm is installed and not set up."""
    squeue(queue, DOWN, status=1)
    if earlier:
        begin_submitting(tmp_path)
        end_submitting(tmp_path)
    check_no_other_run(tmp_path)

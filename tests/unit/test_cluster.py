"""A run does not begin beside Slurm jobs that an earlier one left behind."""

from pathlib import Path

import pytest

from saliency_assay.cluster import check_alone, running_jobs

QUEUE = """\
7|rule_train_wildcards_f_o_0|{here}
8|rule_study_plot_scores|{here}
9|rule_train_wildcards_f_o_0|{elsewhere}
10|(null)|{here}
11||{here}
"""


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a ``squeue`` of one's own, the only program there is."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def squeue(folder: Path, said: str, status: int = 0) -> None:
    program = folder / "squeue"
    (folder / "said").write_text(said)
    program.write_text(
        f'#!/bin/sh\nwhile read -r line; do echo "$line"; done < {folder}/said\nexit {status}\n'
    )
    program.chmod(0o755)


def test_jobs_of_this_folder_are_named(queue: Path, tmp_path: Path) -> None:
    here = tmp_path / "a|b"  # a folder may hold what separates the columns
    squeue(queue, QUEUE.format(here=here, elsewhere=tmp_path / "b"))
    assert running_jobs(here) == ["7", "8"]
    with pytest.raises(ValueError, match="Slurm jobs of an earlier run") as error:
        check_alone(here)
    told = str(error.value)
    assert f"still work in {here}: 7 8;" in told
    assert "scancel 7 8 " in told
    assert len(told.splitlines()) == 1


def test_jobs_of_another_folder_are_no_reason(queue: Path, tmp_path: Path) -> None:
    squeue(queue, QUEUE.format(here=tmp_path / "a", elsewhere=tmp_path / "b"))
    check_alone(tmp_path)


def test_no_slurm_is_no_reason(queue: Path, tmp_path: Path) -> None:
    assert running_jobs(tmp_path) == []


def test_a_slurm_that_does_not_answer_is_no_reason(queue: Path, tmp_path: Path) -> None:
    """The executor will say what is wrong with it."""
    squeue(queue, "slurm_load_jobs error: Unable to contact slurm controller\n", status=1)
    check_alone(tmp_path)

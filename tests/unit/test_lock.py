"""One run at a time in a results folder."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mounts import mounted

from saliency_assay.runtime import lock
from saliency_assay.runtime.atomic import machine
from saliency_assay.runtime.lock import NAME, RUN, hold, release
from saliency_assay.runtime.provenance import SOURCE

HOLD = """
import sys
from pathlib import Path
from saliency_assay.runtime.lock import hold
try:
    hold(Path(sys.argv[1]))
except ValueError as error:
    sys.exit(str(error))
print("held", flush=True)
sys.stdin.read()
"""


def start(results: Path) -> "subprocess.Popen[str]":
    """A process that takes the folder, says so, and holds it until its standard input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(results)],
        cwd=results.parent,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline().strip()


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of results with nothing in it; what this process takes is given back."""
    monkeypatch.setenv(RUN, "")
    path = tmp_path / "of/results"
    yield path
    release(path / NAME, os.getpid())


def kill(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


@pytest.fixture
def other(results: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the folder."""
    results.parent.mkdir()
    process = start(results)
    assert said(process) == "held"
    yield process
    kill(process)


def test_a_folder_is_made_held_and_given_back(results: Path) -> None:
    hold(results)
    content = json.loads((results / NAME).read_text())
    assert content["host"] == socket.gethostname()
    assert content["folder"] == str(Path.cwd())
    assert os.environ[RUN] == content["run"]
    assert f":{os.getpid()}:" in content["run"]
    release(results / NAME, os.getpid() + 1)  # a fork ends
    assert (results / NAME).exists()
    release(results / NAME, os.getpid())
    assert list(results.iterdir()) == []


def test_who_works_in_a_folder_is_told(other: "subprocess.Popen[str]", results: Path) -> None:
    with pytest.raises(ValueError, match="another run works in") as error:
        hold(results)
    assert str(error.value) == (
        f"results: another run works in {results}: process {other.pid} on {socket.gethostname()}, started in "
        f"{results.parent}; wait until it ends, stop it with: kill {other.pid}, or choose another folder"
    )


def test_it_is_free_once_that_has_ended(other: "subprocess.Popen[str]", results: Path) -> None:
    other.communicate()
    assert list(results.iterdir()) == []
    hold(results)


def test_it_is_free_once_that_was_killed(other: "subprocess.Popen[str]", results: Path) -> None:
    kill(other)
    assert (results / NAME).exists()
    hold(results)
    assert f":{os.getpid()}:" in (results / NAME).read_text()


def test_jobs_that_a_killed_run_left_are_told(other: "subprocess.Popen[str]", results: Path) -> None:
    run = json.loads((results / NAME).read_text())["run"]
    kill(other)
    job = subprocess.Popen(["sleep", "60"], env={**os.environ, RUN: run})
    try:
        while RUN.encode() not in Path(f"/proc/{job.pid}/environ").read_bytes():
            time.sleep(0.01)  # a process that has just begun has none yet
        line = f"processes of a run that was killed still work in {results}: {job.pid}; .* kill {job.pid}$"
        with pytest.raises(ValueError, match=line):
            hold(results)
    finally:
        job.kill()
        job.wait()
    hold(results)


def test_slurm_jobs_that_a_killed_run_left_are_looked_for_where_it_worked(
    other: "subprocess.Popen[str]", results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill(other)
    asked = []
    monkeypatch.setattr(lock, "check_alone", asked.append)
    hold(results)
    assert asked == [results.parent]


def test_another_process_of_that_number_is_not_the_run(results: Path) -> None:
    results.mkdir(parents=True)
    run = f"{machine()}:{os.getppid()}:1"
    (results / NAME).write_text(json.dumps({"run": run, "host": "here", "folder": "/"}))
    hold(results)


def test_of_another_host_nothing_is_known(results: Path) -> None:
    results.mkdir(parents=True)
    there = {"run": "node7 pid:[1]:12:34", "host": "node7", "folder": "/home/me/study"}
    (results / NAME).write_text(json.dumps(there))
    line = (
        f"another run works in {results}: process 12 on node7, started in /home/me/study; wait until it ends, "
        f"or choose another folder; if it was killed, delete {results / NAME}"
    )
    with pytest.raises(ValueError, match=re.escape(line)):
        hold(results)
    assert json.loads((results / NAME).read_text()) == there


@pytest.mark.parametrize("content", ["{", "[]", '{"run": "a"}', '{"run": "a", "host": "b", "folder": "c"}'])
def test_something_else_of_that_name_is_left_alone(results: Path, content: str) -> None:
    results.mkdir(parents=True)
    (results / NAME).write_text(content)
    line = re.escape(f"results: {results / NAME} is no lock of a run; delete it if none works in that folder")
    with pytest.raises(ValueError, match=line):
        hold(results)
    assert (results / NAME).read_text() == content


def test_of_many_that_start_at_once_one_works(results: Path) -> None:
    """Over the lock of a killed run, which each of them may take."""
    results.parent.mkdir()
    first = start(results)
    assert said(first) == "held"
    kill(first)
    started = [start(results) for _ in range(6)]
    told = [said(process) for process in started]
    assert sorted(told) == ["", "", "", "", "", "held"]
    (holder,) = [process for process, word in zip(started, told, strict=True) if word]
    for process in started:
        if process is not holder:
            assert f"process {holder.pid} on " in process.communicate()[1]
    holder.communicate()
    assert list(results.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    line = re.escape(f"results: cannot write in {tmp_path}/disk/results: Read-only file system; ")
    with (
        mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "ro", "tmpfs") as folder,
        pytest.raises(ValueError, match=line),
    ):
        hold(folder / "results")


def test_a_file_in_its_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("mine")
    with pytest.raises(
        ValueError, match=r"results: cannot write in .*/results: File exists; valid: a folder that"
    ):
        hold(tmp_path / "results")

"""One run at a time in a results folder."""

import errno
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mounts import mounted

from saliency_assay.runtime import lock, run_lock
from saliency_assay.runtime.atomic import machine
from saliency_assay.runtime.lock import NAME, hold
from saliency_assay.runtime.provenance import SOURCE
from saliency_assay.runtime.run_lock import LOCK, share_run_lock

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


JOB = """
import sys
from saliency_assay.runtime.run_lock import share_run_lock
with share_run_lock():
    print("working", flush=True)
    sys.stdin.read()
"""


def start(results: Path, program: str = HOLD) -> "subprocess.Popen[str]":
    """Start a process that takes the folder, prints so, and holds it until its standard input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", program, str(results)],
        cwd=results.parent,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline().strip()


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Calls that this process is to make at its end, made at the end of the test."""
    calls: list[Any] = []
    monkeypatch.setattr(lock.atexit, "register", lambda *call: calls.append(call))
    yield calls
    for function, *arguments in calls:
        function(*arguments)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registered: list[Any]) -> Path:
    """A folder of results with nothing in it; what this process holds is released."""
    monkeypatch.setenv(LOCK, "")
    return tmp_path / "of/results"


def kill(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


@pytest.fixture
def other(results: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the folder."""
    results.parent.mkdir()
    process = start(results)
    assert output_line(process) == "held"
    yield process
    kill(process)


def test_a_folder_is_made_held_and_released(results: Path, registered: list[Any]) -> None:
    hold(results)
    assert json.loads((results / NAME).read_text()) == {
        "machine": machine(), "host": socket.gethostname(), "process": os.getpid(), "folder": str(Path.cwd()),
    }  # fmt: skip
    assert os.environ[LOCK] == str(results / NAME)
    ((release, file, process),) = registered
    release(file, process + 1)  # a fork ends
    assert (results / NAME).exists()
    release(file, process)
    assert list(results.iterdir()) == []


def test_a_folder_in_use_names_its_process(other: "subprocess.Popen[str]", results: Path) -> None:
    with pytest.raises(ValueError, match="another run uses") as error:
        hold(results)
    message = str(error.value)
    assert message.startswith(
        f"results: another run uses {results}: process {other.pid} on {socket.gethostname()},"
    )
    assert f"started in {results.parent};" in message
    assert f"kill {other.pid}," in message
    other.communicate()  # ends it
    assert list(results.iterdir()) == []
    hold(results)


def test_jobs_that_a_killed_run_left_are_waited_for(
    other: "subprocess.Popen[str]", results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LOCK, str(results / NAME))
    jobs = [start(results, JOB) for _ in range(2)]
    assert [output_line(job) for job in jobs] == ["working", "working"]
    kill(other)
    line = rf"results: jobs of a killed run are still running in {results}; .*fuser {results / NAME}"
    for job in jobs:
        with pytest.raises(ValueError, match=line):
            hold(results)
        kill(job)
    hold(results)


def test_a_job_on_another_machine_shares_no_lock(
    other: "subprocess.Popen[str]", results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LOCK, str(results / NAME))
    monkeypatch.setattr(run_lock, "machine", lambda: "node7")
    with share_run_lock():
        kill(other)
        hold(results)


@pytest.mark.parametrize("path", [None, "", "no/such/file", "content"])
def test_a_job_without_a_run_shares_no_lock(
    path: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "content").write_text("[]")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(LOCK, raising=False)
    if path is not None:
        monkeypatch.setenv(LOCK, path)
    with share_run_lock():
        pass


def test_without_locks_of_the_file_system_nobody_is_taken_for_dead(
    other: "subprocess.Popen[str]", results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*arguments: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    kill(other)
    monkeypatch.setattr(run_lock.fcntl, "lockf", unsupported)
    with pytest.raises(ValueError, match=rf"if it was killed, delete {results / NAME}$"):
        hold(results)
    (results / NAME).unlink()
    hold(results)


def test_slurm_jobs_that_a_killed_run_left_are_looked_for_where_it_worked(
    other: "subprocess.Popen[str]", results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill(other)
    folders = []
    monkeypatch.setattr(lock, "check_no_other_run", folders.append)
    hold(results)
    assert folders == [results.parent]


def test_of_another_host_nothing_is_known(results: Path) -> None:
    results.mkdir(parents=True)
    there = {"machine": "node7 pid:[1]", "host": "node7", "process": 12, "folder": "/home/me/study"}
    (results / NAME).write_text(json.dumps(there))
    line = rf"{results}: process 12 on node7, started in /home/me/study; .*delete {results / NAME}$"
    with pytest.raises(ValueError, match=line):
        hold(results)
    assert json.loads((results / NAME).read_text()) == there


@pytest.mark.parametrize("content", ["{", "[]", '{"machine": "a"}'])
def test_something_else_of_that_name_is_left_alone(results: Path, content: str) -> None:
    results.mkdir(parents=True)
    (results / NAME).write_text(content)
    with pytest.raises(ValueError, match=f"results: {results / NAME}: not a lock file"):
        hold(results)
    assert (results / NAME).read_text() == content


def test_of_many_that_start_at_once_one_works(results: Path) -> None:
    """Over the lock of a killed run, which each of them may take."""
    results.parent.mkdir()
    first = start(results)
    assert output_line(first) == "held"
    kill(first)
    started = [start(results) for _ in range(4)]
    lines = [output_line(process) for process in started]
    assert sorted(lines) == ["", "", "", "held"]
    (holder,) = [process for process, line in zip(started, lines, strict=True) if line]
    for process in started:
        if process is not holder:
            assert f"process {holder.pid} on " in process.communicate()[1]
    holder.communicate()
    assert list(results.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    line = f"results: cannot write in {tmp_path}/disk/results: Read-only file system; "
    with (
        mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "ro", "tmpfs") as folder,
        pytest.raises(ValueError, match=line),
    ):
        hold(folder / "results")

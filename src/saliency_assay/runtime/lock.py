"""One run at a time in a results folder, from whichever working directory: Snakemake's own lock is of that alone.

The lock is a file in the results folder that names the run's host, process and working directory. A run that was
killed leaves it; on the same host that is seen, and the lock is taken over once nothing of that run works any more.
"""

import atexit
import fcntl
import json
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import IO

from saliency_assay.runtime.atomic import machine
from saliency_assay.runtime.cluster import check_alone

NAME = ".lock"
RUN = "SALIENCY_ASSAY_RUN"
"""Environment variable of all processes of a run: which one it is."""


def hold(results: Path) -> None:
    """Take the results folder for this process, until it ends; the folder is made if there is none.

    Raises:
        ValueError: another run works in it, or the folder cannot be written; the line says what to do.
    """
    path = results / NAME
    try:
        results.mkdir(parents=True, exist_ok=True)
        while not _taken(path):
            pass
    except OSError as error:
        raise ValueError(
            f"results: cannot write in {results.absolute()}: {error.strerror}; valid: a folder that can be written"
        ) from None
    atexit.register(release, path, os.getpid())


def check_writable(folder: Path) -> None:
    """That Snakemake can keep its notes in the working directory: it ends in a traceback where it cannot.

    Raises:
        ValueError: it cannot.
    """
    notes = folder / ".snakemake"
    if not os.access(notes if notes.is_dir() else folder, os.W_OK):
        raise ValueError(
            f"{folder}: Snakemake cannot write its notes, .snakemake, in the working directory; start it in one that "
            "can be written, with --snakefile, --profile and --configfile pointing here"
        )


def release(path: Path, process: int) -> None:
    """Give the folder back, if this is the ``process`` that took it and not one forked from it."""
    if os.getpid() == process:
        with suppress(OSError):
            path.unlink()


def _taken(path: Path) -> bool:
    """Whether the lock is ours now; not if it vanished meanwhile."""
    with path.open("a+", encoding="utf-8") as file:
        # Only for as long as it takes to read and write: not all network file systems know it across hosts.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        if not _is_still(path, file):
            return False
        file.seek(0)
        _check_free(path, file.read())
        file.truncate(0)
        os.environ[RUN] = run = f"{machine()}:{os.getpid()}:{_started(os.getpid())}"
        json.dump({"run": run, "host": socket.gethostname(), "folder": str(Path.cwd())}, file)
    return True


def _is_still(path: Path, file: IO[str]) -> bool:
    """Whether an open file still is the one of that name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _check_free(path: Path, content: str) -> None:
    """That nobody works in the folder.

    Raises:
        ValueError: somebody does, or somebody on another host may.
    """
    if not content:  # just made, by us
        return
    try:
        holder: dict[str, str] = json.loads(content)
        run, host, folder = (str(holder[key]) for key in ("run", "host", "folder"))
        place, process, started = run.rsplit(":", 2)
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"results: {path.absolute()} is no lock of a run; delete it if none works in that folder"
        ) from None
    results = path.parent.absolute()
    who = f"another run works in {results}: process {process} on {host}, started in {folder}"
    if place != machine():
        raise ValueError(
            f"results: {who}; wait until it ends, or choose another folder; if it was killed, delete {results / NAME}"
        )
    if _started(int(process)) == started:
        raise ValueError(
            f"results: {who}; wait until it ends, stop it with: kill {process}, or choose another folder"
        )
    # Killed. Its jobs may go on: on this machine, and on the cluster.
    if left := _processes_of(run):
        numbers = " ".join(map(str, left))
        raise ValueError(
            f"results: processes of a run that was killed still work in {results}: {numbers}; "
            f"wait until they end, or stop them with: kill {numbers}"
        )
    check_alone(Path(folder))


def _started(process: int) -> str:
    """When a process began, in the kernel's ticks: tells it from a later one of its number. Empty if there is none."""
    try:
        state, *fields = Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else fields[18]


def _processes_of(run: str) -> list[int]:
    """Processes on this machine that a run has started."""
    mark, found = f"{RUN}={run}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return sorted(found)

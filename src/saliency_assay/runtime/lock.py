"""One run at a time in a results folder, from whichever working directory: Snakemake's own lock is of that alone.

The lock is a file in the results folder that names the run's machine, process and working directory. On one machine the
kernel holds it: a lock of the file goes with the process, also when that is killed, and jobs that a killed run left
still share it (``run_lock``).
"""

import atexit
import json
import os
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from saliency_assay.runtime.atomic import machine
from saliency_assay.runtime.run_lock import JOBS, LOCK, RUN, TURN, lock, unlock
from saliency_assay.runtime.slurm import check_alone

NAME = ".lock"


def hold(results: Path) -> None:
    """Take the results folder for this process, until it ends; the folder is made if there is none.

    Raises:
        ValueError: another run works in it, or the folder cannot be written; the line says what to do.
    """
    path = results / NAME
    try:
        results.mkdir(parents=True, exist_ok=True)
        while not (file := _take(path)):
            pass
    except OSError as error:
        raise ValueError(
            f"results: cannot write in {results.absolute()}: {error.strerror}; valid: a folder that can be written"
        ) from None
    os.environ[LOCK] = str(path.absolute())
    atexit.register(release, file, os.getpid())


def check_writable(folder: Path) -> None:
    """Check that Snakemake can keep its notes in the working directory: it ends in a traceback where it cannot.

    Raises:
        ValueError: it cannot.
    """
    notes = folder / ".snakemake"
    if not os.access(notes if notes.is_dir() else folder, os.W_OK):
        raise ValueError(
            f"{folder}: Snakemake cannot write its notes, .snakemake, in the working directory; start it in one that "
            "can be written, with --snakefile, --profile and --configfile pointing here"
        )


def release(file: IO[str], process: int) -> None:
    """Give the folder back, if this is the ``process`` that took it and not one forked from it."""
    if os.getpid() == process and not file.closed:
        with suppress(OSError):
            Path(file.name).unlink()
        file.close()


def _take(path: Path) -> IO[str] | None:
    """Return the lock file, open and locked; None if it vanished meanwhile.

    Raises:
        ValueError: somebody works in the folder, or somebody on another machine may.
    """
    with ExitStack() as stack:
        file = stack.enter_context(path.open("a+", encoding="utf-8"))
        with suppress(OSError):  # not all network file systems have locks
            lock(file, TURN, wait=True)
        if not _is_still(path, file):
            return None
        file.seek(0)
        if content := file.read():
            _check_free(path, file, content)
        with suppress(OSError):
            lock(file, RUN)
        file.truncate(0)
        place = {"machine": machine(), "host": socket.gethostname(), "folder": str(Path.cwd())}
        json.dump({**place, "process": os.getpid()}, file)
        file.flush()
        with suppress(OSError):
            unlock(file, TURN)
        stack.pop_all()
    return file


def _is_still(path: Path, file: IO[str]) -> bool:
    """Return True if an open file still is the one of that name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _check_free(path: Path, file: IO[str], content: str) -> None:
    """Check that the run that wrote ``content`` to the lock file has ended, and all of its jobs with it.

    Raises:
        ValueError: it has not, or on another machine may not have.
    """
    try:
        holder = json.loads(content)
        where, host, folder, process = (str(holder[key]) for key in ("machine", "host", "folder", "process"))
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"results: {path.absolute()} is no lock of a run; delete it if none works in that folder"
        ) from None
    results = path.parent.absolute()
    who = f"another run works in {results}: process {process} on {host}, started in {folder}"
    here = where == machine()
    try:
        lock(file, RUN)
    except BlockingIOError:
        stop = f"stop it with: kill {process}, or" if here else "or"
        raise ValueError(f"results: {who}; wait until it ends, {stop} choose another folder") from None
    except OSError:
        here = False  # without locks this machine's processes are as unknown as another one's
    if not here:
        raise ValueError(
            f"results: {who}; wait until it ends, or choose another folder; if it was killed, delete {results / NAME}"
        )
    try:
        lock(file, JOBS)
    except BlockingIOError:
        raise ValueError(
            f"results: jobs of a run that was killed still work in {results}; wait until they end, or stop them "
            f"(fuser {results / NAME} lists them)"
        ) from None
    unlock(file, JOBS)
    check_alone(Path(folder))

"""Lock of a results folder for one run at a time; Snakemake's own lock covers only its working directory.

The lock is a file in the results folder that contains the run's machine, process and working directory. Within one
machine, locks of the kernel on this file show whether the run is alive: they end with its process, even if it is
killed. Jobs hold a shared lock (``run_lock``), so that jobs that outlive a killed run are noticed.
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
from saliency_assay.runtime.slurm import check_no_other_run

NAME = ".lock"


def hold(results: Path) -> None:
    """Lock the results folder for this process until it ends; create the folder if it does not exist.

    Raises:
        ValueError: see ``acquire``.
    """
    file = acquire(results)
    os.environ[LOCK] = str((results / NAME).absolute())
    atexit.register(release, file, os.getpid())


def acquire(results: Path) -> IO[str]:
    """Return the lock file of the results folder, open and locked; create the folder if it does not exist.

    Raises:
        ValueError: another run uses the folder, or the folder is not writable; the message contains the remedy.
    """
    try:
        results.mkdir(parents=True, exist_ok=True)
        while not (file := _acquire(results / NAME)):
            pass
    except OSError as error:
        raise ValueError(
            f"results: cannot write in {results.absolute()}: {error.strerror}; valid: a writable folder"
        ) from None
    return file


def check_writable(folder: Path) -> None:
    """Check that Snakemake can write to the working directory; otherwise it would end with a traceback.

    Raises:
        ValueError: the working directory is not writable.
    """
    state = folder / ".snakemake"
    if not os.access(state if state.is_dir() else folder, os.W_OK):
        raise ValueError(
            f"{folder}: Snakemake cannot write its folder .snakemake in the working directory; start it in a "
            "writable one, with --snakefile, --profile and --configfile pointing here"
        )


def release(file: IO[str], process: int) -> None:
    """Release the lock if this is the ``process`` that acquired it, not one forked from it."""
    if os.getpid() == process and not file.closed:
        with suppress(OSError):
            Path(file.name).unlink()
        file.close()


def _acquire(path: Path) -> IO[str] | None:
    """Return the lock file, open and locked; None if another process deleted it while this one waited.

    Raises:
        ValueError: another run uses the folder, or a run on another machine may use it.
    """
    with ExitStack() as stack:
        file = stack.enter_context(path.open("a+", encoding="utf-8"))
        with suppress(OSError):  # not all network file systems support locks
            lock(file, TURN, wait=True)
        if not _still_exists(path, file):
            return None
        file.seek(0)
        if content := file.read():  # the record of a run that was killed or is alive
            _check_free(path, file, content)
        with suppress(OSError):
            lock(file, RUN)
        file.truncate(0)
        run = {"machine": machine(), "host": socket.gethostname(), "folder": str(Path.cwd())}
        json.dump({**run, "process": os.getpid()}, file)
        file.flush()
        with suppress(OSError):
            unlock(file, TURN)
        stack.pop_all()
    return file


def _still_exists(path: Path, file: IO[str]) -> bool:
    """Return True if ``path`` still refers to the open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _check_free(path: Path, file: IO[str], content: str) -> None:
    """Check that the run that wrote ``content`` to the lock file has ended, with all of its jobs.

    Raises:
        ValueError: the run has not ended, or it was on another machine and may not have ended.
    """
    try:
        holder = json.loads(content)
        run_machine, host, folder, process = (
            str(holder[key]) for key in ("machine", "host", "folder", "process")
        )
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"results: {path.absolute()}: not a lock file; delete it if no run uses this folder"
        ) from None
    results = path.parent.absolute()
    description = f"another run uses {results}: process {process} on {host}, started in {folder}"
    same_machine = run_machine == machine()
    try:
        lock(file, RUN)
    except BlockingIOError:
        advice = f"stop it with: kill {process}, or" if same_machine else "or"
        raise ValueError(
            f"results: {description}; wait until it ends, {advice} choose another folder"
        ) from None
    except OSError:
        # Without file locks, as on another machine, it is unknown if the run is alive.
        same_machine = False
    if not same_machine:
        raise ValueError(
            f"results: {description}; wait until it ends, or choose another folder; "
            f"if it was killed, delete {results / NAME}"
        )
    try:
        lock(file, JOBS)
    except BlockingIOError:
        raise ValueError(
            f"results: jobs of a killed run are still running in {results}; wait until they end, or stop them "
            f"(fuser {results / NAME} lists them)"
        ) from None
    unlock(file, JOBS)
    check_no_other_run(Path(folder))

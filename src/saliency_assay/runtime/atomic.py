"""Atomic writing of files, which get their final name only when they are complete.

A writer uses a temporary name in the target's folder, ``.NAME.MACHINE-PROCESS.SUFFIX``, which no other process uses:
two writers of one target never touch each other's file, and the last rename wins. The next writer of the same target
deletes the temporary files of killed writers.
"""

import hashlib
import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

ABANDONED = 24 * 3600.0
"""Seconds without a change after which the writer of a temporary file is presumed dead, if it is on another machine."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path, which is then renamed to ``path``, or deleted if the block raises an exception."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    temporary = temporary_path(path, "tmp")
    try:
        yield temporary
        # Otherwise a power failure after the rename could leave a file of the right name without its content.
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def temporary_path(path: Path, suffix: str) -> Path:
    """Return the hidden name that this process uses for an unfinished ``path``, in the same folder."""
    return path.with_name(f".{path.name}.{machine_digest()}-{os.getpid()}.{suffix}")


def remove_leftovers(path: Path) -> None:
    """Delete the temporary files and folders of ``path`` whose writers were killed.

    A writer on this machine was killed if its process no longer exists. Processes on other machines are not visible, so
    their files are deleted after ``ABANDONED`` seconds without a change.
    """
    prefix = f".{path.name}."
    for entry in path.parent.iterdir():
        machine, _, process = entry.name.removeprefix(prefix).partition(".")[0].partition("-")
        if not (entry.name.startswith(prefix) and process.isdecimal()):
            continue
        same_machine = machine == machine_digest()
        with suppress(OSError):  # another writer may delete it first, or it belongs to another user
            if not Path("/proc", process).exists() if same_machine else _seconds_unchanged(entry) > ABANDONED:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def machine() -> str:
    """Return a name within which process ids are unique: host and PID namespace, as containers may share a host."""
    with suppress(OSError):
        return f"{socket.gethostname()} {Path('/proc/self/ns/pid').readlink()}"
    return socket.gethostname()


@cache
def machine_digest() -> str:
    """Return ``machine()`` as eight hexadecimal digits."""
    return hashlib.sha256(machine().encode()).hexdigest()[:8]


def _seconds_unchanged(path: Path) -> float:
    times = [path.stat().st_mtime, *(entry.stat().st_mtime for entry in path.rglob("*"))]
    return time.time() - max(times)

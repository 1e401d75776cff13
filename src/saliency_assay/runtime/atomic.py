"""Files that get their final name only when they are complete.

A writer works under a temporary name beside its target, ``.NAME.MACHINE-PROCESS.SUFFIX``, which no other process uses:
two writers of one target never touch each other's file, and the last rename wins. What a killed writer left is deleted
by the next writer of the same target.
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
"""Seconds without a change after which a temporary name of another machine counts as left by a killed writer."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path; afterwards rename it to ``path``, or delete it if the block failed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    temporary = temporary_path(path, "tmp")
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def temporary_path(path: Path, suffix: str) -> Path:
    """Return this process's hidden name for an unfinished ``path``, in the same folder."""
    return path.with_name(f".{path.name}.{machine_digest()}-{os.getpid()}.{suffix}")


def remove_leftovers(path: Path) -> None:
    """Delete the temporary files and folders of ``path`` whose writers were killed.

    A writer on this machine was killed if its process is gone. Processes of other machines are not visible: theirs are
    deleted once nothing in them has changed for ``ABANDONED`` seconds.
    """
    prefix = f".{path.name}."
    for found in path.parent.iterdir():
        machine, _, process = found.name.removeprefix(prefix).partition(".")[0].partition("-")
        if not (found.name.startswith(prefix) and process.isdecimal()):
            continue
        here = machine == machine_digest()
        with suppress(OSError):  # another writer deletes it, too, or it is another user's
            if not Path("/proc", process).exists() if here else _unchanged(found) > ABANDONED:
                shutil.rmtree(found) if found.is_dir() else found.unlink()


def machine() -> str:
    """Return the name within which process ids are unique: containers may share their host's name, not its ids."""
    with suppress(OSError):
        return f"{socket.gethostname()} {Path('/proc/self/ns/pid').readlink()}"
    return socket.gethostname()


@cache
def machine_digest() -> str:
    """Return ``machine()`` as eight hexadecimal digits."""
    return hashlib.sha256(machine().encode()).hexdigest()[:8]


def _unchanged(path: Path) -> float:
    changes = [path.stat().st_mtime, *(entry.stat().st_mtime for entry in path.rglob("*"))]
    return time.time() - max(changes)

"""Kernel locks on bytes of a run's lock file, and the shared lock of each job, which need few imports."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from saliency_assay.runtime.atomic import machine

LOCK = "SALIENCY_ASSAY_LOCK"
"""Environment variable of all processes of a run: the path of its lock file."""
RUN, JOBS, TURN = 0, 1, 2
"""Bytes of the lock file: a run locks ``RUN``, its jobs share ``JOBS``, and ``TURN`` guards access to the file."""
_shared: list[bool] = []
"""Not empty while this process shares the lock."""


def lock(file: IO[str], byte: int, *, shared: bool = False, wait: bool = False) -> None:
    """Lock one byte of an open file for this process, until it unlocks it, closes the file or ends.

    Raises:
        BlockingIOError: another process has locked it.
        OSError: the file system does not support locks.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.lockf(file, kind if wait else kind | fcntl.LOCK_NB, 1, byte)
    except PermissionError as error:  # some systems raise it instead of BlockingIOError
        raise BlockingIOError(*error.args) from None


def unlock(file: IO[str], byte: int) -> None:
    """Unlock one byte of an open file."""
    fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)


@contextmanager
def share_run_lock() -> Iterator[None]:
    """Share the job lock of the run that started this process, which shows that jobs are alive if the run is killed.

    On machines other than the run's, nothing is locked: there the cluster's scheduler lists the jobs. Within a block
    that already shares the lock, this does nothing, because closing the file a second time would end the lock.
    """
    if _shared:
        yield
        return
    with ExitStack() as stack:
        _shared.append(True)
        stack.callback(_shared.clear)
        with suppress(OSError, ValueError, KeyError, TypeError):
            file = stack.enter_context(Path(os.environ[LOCK]).open(encoding="utf-8"))
            if json.load(file)["machine"] == machine():
                lock(file, JOBS, shared=True)
        yield

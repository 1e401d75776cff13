"""Launch of a job as several processes of one machine, with a single error report.

This module does not import torch, because every job imports it and few use several processes, which ``launcher``
starts.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TextIO

FAULT = "SALIENCY_ASSAY_FAULT"
"""Environment variable of each of several processes: file for the error line of the first one that fails."""


def launched() -> bool:
    """Return True in the processes that ``launch`` has started."""
    return FAULT in os.environ


def rank() -> int:
    """Return the rank of this process in its job, from 0."""
    return int(os.environ["RANK"]) if launched() else 0


def launch(processes: int) -> NoReturn:
    """Restart this script in several ``processes``; their launcher replaces this process and keeps its id."""
    command = [sys.executable, "-m", "saliency_assay.runtime.launcher", str(processes), *sys.argv]
    os.execv(sys.executable, command)


def tell(line: str, terminal: TextIO) -> None:
    """Print the error ``line`` of this job on the ``terminal``; of several processes, only the first to fail.

    An error in one process soon causes lost connections in the others, and bad input causes the same error in all.
    """
    if not launched():
        print(line, file=terminal, flush=True)
        return
    with suppress(FileExistsError), Path(os.environ[FAULT]).open("x", encoding="utf-8") as file:
        file.write(f"{line}\n")

"""Launch of a job as several processes of one machine, with a single error report.

Every job imports this module, and few use several processes: only ``launcher``, which starts them, imports torch.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TextIO

FAULT = "SALIENCY_ASSAY_FAULT"
"""Environment variable of the processes of a job: file for the error line of the first process that fails."""


def launched() -> bool:
    """Return True in a process that ``launch`` has started."""
    return FAULT in os.environ


def rank() -> int:
    """Return the rank of this process in its job, from 0."""
    return int(os.environ["RANK"]) if launched() else 0


def launch(processes: int) -> NoReturn:
    """Restart this script in several ``processes``; the launcher replaces this process and keeps its process id."""
    command = [sys.executable, "-m", "saliency_assay.runtime.launcher", str(processes), *sys.argv]
    os.execv(sys.executable, command)


def print_once(line: str, terminal: TextIO) -> None:
    """Print the error ``line`` of this job on the ``terminal``; of several processes, only that of the first to fail.

    The others would only repeat it: invalid input causes the same error in all processes, and an error in one process
    causes lost connections in the others.
    """
    if not launched():
        print(line, file=terminal, flush=True)
        return
    with suppress(FileExistsError), Path(os.environ[FAULT]).open("x", encoding="utf-8") as file:
        file.write(f"{line}\n")

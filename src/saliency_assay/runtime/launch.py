"""A job in several processes of one machine: started in place of the first one, and heard with one voice.

Free of torch: every job imports this, and few ever are several processes. ``launcher`` starts them.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TextIO

FAULT = "SALIENCY_ASSAY_FAULT"
"""Environment variable of each of several processes: the file for the line that says why the first of them failed."""


def launched() -> bool:
    """Return True if this is one of the processes that ``launch`` has started."""
    return FAULT in os.environ


def rank() -> int:
    """Return the rank of this process among the job's, from 0."""
    return int(os.environ["RANK"]) if launched() else 0


def launch(processes: int) -> NoReturn:
    """Run this script anew in so many ``processes``; what starts them takes this process's place and id."""
    command = [sys.executable, "-m", "saliency_assay.runtime.launcher", str(processes), *sys.argv]
    os.execv(sys.executable, command)


def tell(line: str, terminal: TextIO) -> None:
    """Say on the ``terminal`` why this job fails; of several processes only the first to fail is heard.

    A fault in one of them soon is a lost connection in the others, and all of them find the same fault in bad input.
    """
    if not launched():
        print(line, file=terminal, flush=True)
        return
    with suppress(FileExistsError), Path(os.environ[FAULT]).open("x", encoding="utf-8") as file:
        file.write(f"{line}\n")

"""What every script does first: a log of its own, and faults as one line on standard error."""

import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from saliency_assay.runtime.environment import check_environment, counting
from saliency_assay.runtime.launch import rank, tell
from saliency_assay.runtime.run_lock import share_run_lock

LONGEST = 1500  # characters of an error line; the log has all of them


@contextmanager
def job(rule: str, log: str, settings: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Run a rule's work with its log open, in the environment that its ``settings`` were planned with.

    Everything written to standard error and through ``logging`` goes to ``log``, and so does the traceback of a
    fault. The fault's message, which our own errors keep to one line, also goes to the real standard error. Of several
    processes (``launch``) the first has the log, the others have ``log.process1`` and so on beside it.

    Raises:
        SystemExit: with status 1, for any exception, and for an exit that says nothing is wrong.
    """
    terminal = sys.stderr
    print_anything()
    path = Path(f"{log}.process{rank()}" if rank() else log)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Names in data files may hold anything, half of a character included; a log must take all of it.
    with (
        path.open("w", buffering=1, encoding="utf-8", errors="backslashreplace") as file,
        redirect_stderr(file),
    ):
        try:
            packages = (settings or {}).get("environment", {})
            with share_run_lock(), _logging_to(file), counting(packages):
                check_environment(packages)
                yield
        except SystemExit as error:
            if error.code:  # a training that was told to end, with its state saved
                raise
            traceback.print_exc()
            tell(f"{rule}: exited before its work was done; a function of one's own may not exit", terminal)
            raise SystemExit(1) from None
        except Exception as error:
            traceback.print_exc()
            tell(f"{rule}: {in_one_line(error)}", terminal)
            raise SystemExit(1) from None


def print_anything() -> None:
    """Let standard output show letters that its encoding lacks as their escapes: not all terminals are UTF-8."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def in_one_line(error: Exception) -> str:
    """What an error line says: our own messages as they are, others with their kind and the place they come from."""
    message = printable(str(error).strip())
    if message and isinstance(error, ValueError | OSError):
        line = message.splitlines()[0]
        return line if len(line) <= LONGEST else f"{line[: LONGEST - 300]} … {line[-300:]}"
    place = traceback.extract_tb(error.__traceback__)[-1]
    said = f"{type(error).__name__}{': ' if message else ''}{message.splitlines()[0] if message else ''}"
    return f"{said} ({Path(place.filename).name}, line {place.lineno})"


def printable(text: str) -> str:
    """``text`` with control characters as Python writes them: what a data file holds does not steer a terminal."""
    shown = (
        character if character.isprintable() or character == "\n" else ascii(character)[1:-1]
        for character in text
    )
    return "".join(shown)


@contextmanager
def _logging_to(file: TextIO) -> Iterator[None]:
    """Within the block, ``logging`` from INFO on and all warnings go to ``file``."""
    root, handler = logging.getLogger(), logging.StreamHandler(file)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.captureWarnings(capture=True)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.setLevel(level)
        root.removeHandler(handler)

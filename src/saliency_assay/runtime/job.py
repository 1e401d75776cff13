"""The context in which every script works: its log, its files, and faults as one line on standard error."""

import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, redirect_stderr
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, TypeVar

from saliency_assay.runtime.environment import check_environment, counting
from saliency_assay.runtime.launch import rank, tell
from saliency_assay.runtime.run_lock import share_run_lock

T = TypeVar("T")

LONGEST = 1500  # characters of an error line; the log has all of them


class Files:
    """The input or output files of a rule as paths: by name, by place, or all of them in their order.

    A name that stands for several files gives the list of them.
    """

    def __init__(self, files: Any) -> None:
        self._files = files

    def __getattr__(self, name: str) -> Any:
        return _paths(getattr(self._files, name))

    def __getitem__(self, key: int | str) -> Any:
        return _paths(self._files[key])

    def __iter__(self) -> Iterator[Path]:
        return map(Path, self._files)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the file or files called ``name``, ``default`` where the rule has none."""
        return _paths(self._files.get(name, default))

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield each name with its file or files."""
        return ((name, _paths(files)) for name, files in self._files.items())


def _paths(files: Any) -> Any:
    if files is None:
        return None
    return Path(files) if isinstance(files, str | Path) else [Path(file) for file in files]


@dataclass(frozen=True)
class Job:
    """A running job: what Snakemake gives its script, and what is open until it ends."""

    settings: dict[str, Any]
    input: Files
    output: Files
    wildcards: Any
    threads: int
    resources: Mapping[str, Any]
    stack: ExitStack

    def open(self, context: AbstractContextManager[T]) -> T:
        """Enter ``context``, such as an open store; it is left when the job ends."""
        return self.stack.enter_context(context)


@contextmanager
def run_job(snakemake: Any, key: str = "") -> Iterator[Job]:
    """Run a script's work with its log open, in the environment that its settings were planned with.

    Everything written to standard error and through ``logging`` goes to the rule's log, and so does the traceback of a
    fault. The fault's message, which our own errors keep to one line, also goes to the real standard error, after the
    name of the rule and the ``key`` of the configuration that the job is for. Of several processes (``launch``) the
    first has the log, the others have ``log.process1`` and so on beside it.

    Args:
        snakemake: the object of this name in a script.
        key: such as ``metrics.aopc``.

    Raises:
        SystemExit: with status 1, for any exception, and for an exit that says nothing is wrong.
    """
    name = f"{snakemake.rule}: {key}" if key else snakemake.rule
    settings = snakemake.params.settings
    with _logged(name, snakemake.log[0], settings.get("environment", {})), ExitStack() as stack:
        yield Job(
            settings,
            Files(snakemake.input),
            Files(snakemake.output),
            snakemake.wildcards,
            snakemake.threads,
            snakemake.resources,
            stack,
        )


@contextmanager
def _logged(name: str, log: str, packages: Mapping[str, str]) -> Iterator[None]:
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
            with share_run_lock(), _logging_to(file), counting(packages):
                check_environment(packages)
                yield
        except SystemExit as error:
            if error.code:  # a training that was told to end, with its state saved
                raise
            traceback.print_exc()
            tell(f"{name}: exited before its work was done; a function of one's own may not exit", terminal)
            raise SystemExit(1) from None
        except Exception as error:
            traceback.print_exc()
            tell(f"{name}: {in_one_line(error)}", terminal)
            raise SystemExit(1) from None


def print_anything() -> None:
    """Let standard output show letters that its encoding lacks as their escapes: not all terminals are UTF-8."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def in_one_line(error: Exception) -> str:
    """Return the text of an error line: our own messages as they are, others with their type and origin."""
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

"""Context manager of every script: opens the log, provides input and output paths, and reports errors in one line."""

import logging
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, redirect_stderr
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, TypeVar

from saliency_assay.runtime.environment import check_environment, counting
from saliency_assay.runtime.failures import failure_of, forget, record, results_of
from saliency_assay.runtime.launch import print_once, rank
from saliency_assay.runtime.run_lock import share_run_lock

T = TypeVar("T")

LONGEST = 1500  # characters of an error line; the log contains the complete message


class Files:
    """Input or output files of a rule as paths, by name, by position, or in order.

    A name of several files returns a list.
    """

    def __init__(self, files: Any) -> None:
        self._files = files

    def __getattr__(self, name: str) -> Any:
        return _as_paths(getattr(self._files, name))

    def __getitem__(self, key: int | str) -> Any:
        return _as_paths(self._files[key])

    def __iter__(self) -> Iterator[Path]:
        return map(Path, self._files)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the file or files called ``name``, or ``default`` if the rule has none."""
        return _as_paths(self._files.get(name, default))

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield each name with its file or files."""
        return ((name, _as_paths(files)) for name, files in self._files.items())


def _as_paths(files: Any) -> Any:
    if files is None:
        return None
    return Path(files) if isinstance(files, str | Path) else [Path(file) for file in files]


@dataclass(frozen=True)
class Job:
    """A running job: the values that Snakemake passes to its script, and the contexts that stay open until it ends."""

    settings: dict[str, Any]
    input: Files
    output: Files
    wildcards: Any
    threads: int
    resources: Mapping[str, Any]
    stack: ExitStack

    def open(self, context: AbstractContextManager[T]) -> T:
        """Enter ``context``, such as an open store, and exit it when the job ends."""
        return self.stack.enter_context(context)


@contextmanager
def run_job(snakemake: Any, key: str = "") -> Iterator[Job]:
    """Run the body of a script with its log open, after checking that the installed packages are those of the plan.

    Standard error, ``logging`` and the traceback of an exception are written to the rule's log. The log's last line is
    then the name of the rule, the ``key`` and the message of the exception, which is one line for the project's own
    errors. This line is also written to the original standard error, and the message to a record in the results folder
    (``runtime.failures``). Of several processes (``launch``), the first writes to the log, the others to
    ``LOG.process1`` and so on.

    Args:
        snakemake: the object of this name in a script.
        key: key of the configuration entry that the job computes, such as ``metrics.aopc``.

    Raises:
        SystemExit: status 1, after any exception, or if the script exits with status 0 before its end.
    """
    name = f"{snakemake.rule}: {key}" if key else snakemake.rule
    settings = snakemake.params.settings
    results = results_of(snakemake)

    def on_failure(reason: str) -> None:
        if results:
            record(results, failure_of(snakemake, reason))

    environment = settings.get("environment", {})
    with _log_and_report(name, snakemake.log[0], environment, on_failure), ExitStack() as stack:
        yield Job(
            settings,
            Files(snakemake.input),
            Files(snakemake.output),
            snakemake.wildcards,
            snakemake.threads,
            snakemake.resources,
            stack,
        )
    if results:
        forget(results, failure_of(snakemake))


@contextmanager
def _log_and_report(
    name: str, log: str, packages: Mapping[str, str], on_failure: Callable[[str], None]
) -> Iterator[None]:
    terminal = sys.stderr
    print_anything()
    path = Path(f"{log}.process{rank()}" if rank() else log)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Names in data files may contain any characters, even a lone surrogate; the log must accept all of them.
    with (
        path.open("w", buffering=1, encoding="utf-8", errors="backslashreplace") as file,
        redirect_stderr(file),
    ):
        try:
            with share_run_lock(), _send_logging_to(file), counting(packages):
                check_environment(packages)
                yield
        except SystemExit as error:
            if error.code:  # such as a training that saved its state after SIGTERM
                raise
            reason = "exited before its work was done; custom functions must not call exit"
            on_failure(reason)
            _report(f"{name}: {reason}", terminal)
            raise SystemExit(1) from None
        except Exception as error:
            reason = in_one_line(error)
            on_failure(reason)
            _report(f"{name}: {reason}", terminal)
            raise SystemExit(1) from None


def _report(line: str, terminal: TextIO) -> None:
    """Write the traceback of the current exception and ``line`` to the log, and ``line`` to the terminal."""
    traceback.print_exc()
    print(line, file=sys.stderr)
    print_once(line, terminal)


def print_anything() -> None:
    """Make standard output escape the characters that its encoding lacks, because not all terminals use UTF-8."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def in_one_line(error: Exception) -> str:
    """Return the text of an error line: the message, for unexpected exceptions with their type and location.

    The location is the innermost one outside of installed packages, such as the line of a custom function.
    """
    message = printable(str(error).strip())
    if message and isinstance(error, ValueError | OSError):
        line = message.splitlines()[0]
        return line if len(line) <= LONGEST else f"{line[: LONGEST - 300]} … {line[-300:]}"
    frames = traceback.extract_tb(error.__traceback__)
    location = ([frame for frame in frames if "site-packages" not in frame.filename] or frames)[-1]
    summary = f"{type(error).__name__}{': ' if message else ''}{message.splitlines()[0] if message else ''}"
    return f"{summary} ({Path(location.filename).name}, line {location.lineno})"


def printable(text: str) -> str:
    """Return ``text`` with control characters escaped, so that names in data files cannot control the terminal."""
    characters = (
        character if character.isprintable() or character == "\n" else ascii(character)[1:-1]
        for character in text
    )
    return "".join(characters)


@contextmanager
def _send_logging_to(file: TextIO) -> Iterator[None]:
    """Write ``logging`` from level INFO on and all warnings to ``file`` within the context."""
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

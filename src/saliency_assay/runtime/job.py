"""Context manager of every script: opens the log, provides input and output paths, and reports errors in one line."""

import logging
import sys
import traceback
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, redirect_stderr, suppress
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn, TextIO, TypeVar

from saliency_assay.runtime import failure
from saliency_assay.runtime.environment import check_environment, counting
from saliency_assay.runtime.failure import Failure
from saliency_assay.runtime.launch import launched, print_once, rank
from saliency_assay.runtime.run_lock import share_run_lock

T = TypeVar("T")

LONGEST = 1500  # characters of an error line; the log contains the complete message


class Files:
    """Input or output files of a rule as paths, by name, by position, or in order.

    A name of several files returns a list. Files ``without`` a usable result are left out.
    """

    def __init__(self, files: Any, without: Collection[str] = ()) -> None:
        self._files = files
        self._without = without

    def __getattr__(self, name: str) -> Any:
        return self._paths(getattr(self._files, name))

    def __getitem__(self, key: int | str) -> Any:
        return self._paths(self._files[key])

    def __iter__(self) -> Iterator[Path]:
        return iter(self._paths(list(self._files)))

    def all(self) -> list[Path]:
        """Return all files, with those that are left out."""
        return list(map(Path, self._files))

    def get(self, name: str, default: Any = None) -> Any:
        """Return the file or files called ``name``, or ``default`` if the rule has none."""
        files = self._files.get(name)
        is_left_out = isinstance(files, str) and files in self._without
        return default if files is None or is_left_out else self._paths(files)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield each name with its file or files."""
        return ((name, self.get(name)) for name, _ in self._files.items() if self.get(name) is not None)

    def every(self, name: str) -> Any:
        """Return the files called ``name`` with those that are left out."""
        return _as_paths(self._files.get(name))

    def _paths(self, files: Any) -> Any:
        if isinstance(files, str | Path):
            return Path(files)
        return [Path(file) for file in files if file not in self._without]


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
    failed: Mapping[Path, Failure]
    """Inputs in which a failure of a method or metric is recorded."""

    def located(self, value: Any) -> Any:
        """Return a part of ``settings`` with the paths of inputs as they are in this job.

        Inputs in the storage of ``--default-storage-provider`` are copied to other paths, of which these are the end.
        """
        paths = [path.parts for path in self.input.all()]
        ends = {"/".join(parts[start:]): "/".join(parts) for parts in paths for start in range(len(parts))}

        def replace(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {key: replace(each) for key, each in value.items()}
            if isinstance(value, list):
                return list(map(replace, value))
            return ends.get(value, value) if isinstance(value, str) else value

        return replace(value)

    def open(self, context: AbstractContextManager[T]) -> T:
        """Enter ``context``, such as an open store, and exit it when the job ends."""
        return self.stack.enter_context(context)


@contextmanager
def run_job(snakemake: Any, key: str = "", *, needs: Collection[str] | None = None) -> Iterator[Job]:
    """Run the body of a script with its log open, after checking that the installed packages are those of the plan.

    Standard error, ``logging`` and the traceback of an exception are written to the rule's log. The log's last line is
    then the name of the rule, the ``key`` and the message of the exception, which is one line for the project's own
    errors. This line is also written to the original standard error. Of several processes (``launch``), the first
    writes to the log, the others to ``LOG.process1`` and so on.

    An exception of a method or metric is recorded in the outputs of its job, which then succeeds (``runtime.failure``).
    A job of the same method or metric that reads the failure does not run, but passes it on to its outputs. Any other
    job has only the other inputs: a method that failed for a metric in one file, such as a shard or seed, is left out
    of all its files for this metric, and of ``settings["methods"]``. If no file with one of the names ``needs`` is left
    (by default, with any name), this job passes the failure on, too. Other names do not affect ``settings``.

    Args:
        snakemake: the object of this name in a script.
        key: key of the configuration entry that the job computes, such as ``metrics.aopc``.
        needs: names of the inputs without which the script cannot run; None for all.

    Raises:
        SystemExit: status 0 if the job passes a failure on; status 1 after any exception that is not recorded, or if
            the script exits with status 0 before its end.
    """
    name = f"{snakemake.rule}: {key}" if key else snakemake.rule
    settings = snakemake.params.settings
    failed = {path: each for path in map(Path, snakemake.input) if (each := failure.read(path))}
    entries = {failure.entry_of(str(path)) for path in failed} - {None}
    without = {file for file in snakemake.input if Path(file) in failed or failure.entry_of(file) in entries}
    if without:
        groups = _needed(snakemake.input, needs)
        if failure.is_of_method_or_metric(_wildcards(snakemake)) or any(map(without.issuperset, groups)):
            _pass_on(snakemake, next(iter(failed.values())))
        lost = [entry[0] for group in groups for file in without & group if (entry := failure.entry_of(file))]
        if lost and "methods" in settings:
            settings = {**settings, "methods": [each for each in settings["methods"] if each not in lost]}
    with _log_and_report(name, snakemake), ExitStack() as stack:
        yield Job(
            settings,
            Files(snakemake.input, without),
            Files(snakemake.output),
            snakemake.wildcards,
            snakemake.threads,
            snakemake.resources,
            stack,
            failed,
        )


def _needed(files: Any, needs: Collection[str] | None) -> list[set[str]]:
    """Return the inputs with each name in ``needs``; for None with each name, and those without a name."""
    groups = {name: {group} if isinstance(group, str) else set(group) for name, group in files.items()}
    unnamed = set(files).difference(*groups.values())
    needed = [group for name, group in groups.items() if needs is None or name in needs]
    return [group for group in [*needed, *([unnamed] if needs is None else [])] if group]


def _pass_on(snakemake: Any, cause: Failure) -> NoReturn:
    """Record the failure of another job in the outputs of a job that cannot run without its results, and exit."""
    settings, log = snakemake.params.settings, Path(snakemake.log[0])
    labels = settings.get("names") or settings.get("labels") or {}
    log.parent.mkdir(parents=True, exist_ok=True)
    with share_run_lock():
        log.write_text(f"not run, because {cause.rule} failed: {cause.reason}\n", encoding="utf-8")
        failure.write(map(Path, snakemake.output), cause, labels)
    raise SystemExit(0)


@contextmanager
def _log_and_report(name: str, snakemake: Any) -> Iterator[None]:
    terminal, packages = sys.stderr, snakemake.params.settings.get("environment", {})
    print_anything()
    path = Path(f"{snakemake.log[0]}.process{rank()}" if rank() else snakemake.log[0])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Names in data files may contain any characters, even a lone surrogate; the log must accept all of them.
        with (
            path.open("w", buffering=1, encoding="utf-8", errors="backslashreplace") as file,
            redirect_stderr(file),
        ):
            is_prepared = False
            try:
                with share_run_lock(), _send_logging_to(file), counting(packages):
                    check_environment(packages)
                    is_prepared = True
                    yield
            except SystemExit as error:
                if error.code:  # such as a training that saved its state after SIGTERM
                    raise
                reason = "exited before its work was done; custom functions must not call exit"
                _report(f"{name}: {reason}", terminal)
                raise SystemExit(1) from None
            except Exception as error:
                reason, wildcards = in_one_line(error), _wildcards(snakemake)
                is_own = failure.is_of_method_or_metric(wildcards) and not launched()
                if not (is_prepared and is_own and failure.is_recorded(error)):
                    _report(f"{name}: {reason}", terminal)
                    raise SystemExit(1) from None
                # The terminal's output holds lines back that begin with the name of a rule.
                _report(
                    f"Not computed: {' '.join([snakemake.rule, *wildcards.values()])}: {reason}", terminal
                )
                record = Failure(snakemake.rule, wildcards, reason, place_of(error), _traceback())
                failure.write(map(Path, snakemake.output), record, {})
    except OSError as error:  # of the log itself, as on a full disk; errors of the job are caught above
        print_once(f"{name}: {path}: {in_one_line(error)}", terminal)
        raise SystemExit(1) from None


def _traceback() -> str:
    """Return the traceback of the current exception, without the random name that Snakemake gives to the script."""
    return traceback.format_exc().replace(sys.argv[0], "script")


def _wildcards(snakemake: Any) -> dict[str, str]:
    """Return the wildcards of a job that are not empty."""
    return {name: str(value) for name, value in snakemake.wildcards.items() if str(value)}


def _report(line: str, terminal: TextIO) -> None:
    """Write the traceback of the current exception and ``line`` to the log, and ``line`` to the terminal."""
    with suppress(OSError):  # the disk of the log may be full
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
    summary = f"{type(error).__name__}{': ' if message else ''}{message.splitlines()[0] if message else ''}"
    return f"{summary} ({place_of(error)})"


def place_of(error: Exception) -> str:
    """Return the innermost line outside of installed packages, such as that of a custom function."""
    frames = traceback.extract_tb(error.__traceback__)
    location = ([frame for frame in frames if "site-packages" not in frame.filename] or frames)[-1]
    return f"{Path(location.filename).name}, line {location.lineno}"


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

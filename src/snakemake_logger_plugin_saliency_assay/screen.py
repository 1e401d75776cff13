"""Output of a run: lines of text and, on a terminal, a block below them that is updated in place."""

import fcntl
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress

from .state import Run

RED, YELLOW = "31", "33"
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
MOST_JOBS = 12  # lines of running jobs


class Screen:
    """Lines written to a file ``descriptor``, in color if ``color``, and a block of lines below them if ``live``."""

    def __init__(self, descriptor: int, *, live: bool, color: bool) -> None:
        self.descriptor, self.live, self.color = descriptor, live, color
        self.block: Sequence[str] = ()

    def show(self, lines: Iterable[str], style: str = "") -> None:
        """Print ``lines`` above the block; control characters are removed."""
        printed = [self._styled(_printable(line), style) for line in lines]
        if printed:
            self._write([*printed], self.block)

    def update(self, block: Sequence[str]) -> None:
        """Replace the block."""
        if self.live:
            self._write((), block)

    def size(self) -> tuple[int, int]:
        """Return the terminal's columns and lines."""
        try:
            return os.get_terminal_size(self.descriptor)
        except OSError:
            return 80, 24

    def _styled(self, line: str, style: str) -> str:
        return f"\x1b[{style}m{line}\x1b[0m" if style and self.color else line

    def _write(self, lines: Sequence[str], block: Sequence[str]) -> None:
        erase = f"\x1b[{len(self.block)}A\r\x1b[J" if self.block else ""
        # Without automatic wrapping, a line of wide characters cannot take two rows.
        below = "".join(f"{line}\n" for line in block)
        below = f"\x1b[?7l{below}\x1b[?7h" if below else ""
        self.block = block
        text = erase + "".join(f"{line}\n" for line in lines) + below
        remaining = memoryview(text.encode(sys.stderr.encoding, "replace"))
        with suppress(OSError):  # the reader of the pipe has ended
            while remaining:
                remaining = remaining[os.write(self.descriptor, remaining) :]


class Capture:
    """Standard error of this process and its jobs, and optionally standard output, captured in a file.

    Jobs inherit these streams, and their output would end up within the block.
    """

    def __init__(self, *, output: bool) -> None:
        self.file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        # Jobs write at the same time; without O_APPEND, some file systems let one overwrite another's line.
        flags = fcntl.fcntl(self.file, fcntl.F_GETFL)
        fcntl.fcntl(self.file, fcntl.F_SETFL, flags | os.O_APPEND)
        self.position, self.rest = 0, b""
        sys.stdout.flush()
        sys.stderr.flush()
        self.saved = {descriptor: os.dup(descriptor) for descriptor in ((1, 2) if output else (2,))}
        for descriptor in self.saved:
            os.dup2(self.file.fileno(), descriptor)

    def lines(self) -> list[str]:
        """Return the lines that have been completed since the last call."""
        chunk = b""
        while read := os.pread(self.file.fileno(), 1 << 20, self.position):
            self.position += len(read)
            chunk += read
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        return [line.decode(errors="backslashreplace").rpartition("\r")[2] for line in lines]

    def end(self) -> list[str]:
        """Restore the streams, and return the lines that ``lines`` has not returned."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        for descriptor, saved in self.saved.items():
            os.dup2(saved, descriptor)
            os.close(saved)
        lines = self.lines()
        self.file.close()
        return [*lines, self.rest.decode(errors="backslashreplace")] if self.rest else lines


def block_of(run: Run, columns: int, rows: int) -> list[str]:
    """Return the block of a run for a terminal of ``columns`` × ``rows``: running jobs, counts and a progress bar."""
    width = max(columns - 1, 20)
    jobs, most = list(run.running.values()), max(min(MOST_JOBS, rows - 6), 1)
    lines = [""]  # below what has been printed
    for job in jobs if len(jobs) <= most else jobs[: most - 1]:
        right = f"  {job.progress():>15}{duration(run.clock() - job.start):>13}"
        space = width - len(right) - 2
        name = job.name if len(job.name) <= space else f"{job.name[: max(space - 1, 0)]}…"
        lines.append(f"  {name:<{max(space, 0)}}{right}"[:width])
    if len(jobs) > most:
        lines.append(f"  and {len(jobs) - most + 1} more")
    share = len(run.done) / max(run.total, 1)
    times = f" {share:4.0%}  {times_of(run)}".replace("%", " %")
    size = max(min(width - len(times), 40), 0)
    bar = f"{'━' * int(share * size):╌<{size}}"
    return [*lines, counts_of(run)[:width], f"{bar}{times}"[:width]]


def counts_of(run: Run) -> str:
    """Return the numbers of jobs in words."""
    failed = f", {len(run.failed)} failed" if run.failed else ""
    running = f"{len(run.running)} {run.running_word}"
    return f"{len(run.done)} of {jobs_of(run.total)} done, {running}, {run.left} left{failed}"


def times_of(run: Run) -> str:
    """Return the elapsed and the remaining time in words."""
    left = run.seconds_left()
    return f"{duration(run.elapsed)} elapsed" + (f", about {rounded(left)} left" if left else "")


def jobs_of(number: int) -> str:
    """Return a number of jobs in words."""
    return f"{number} job" if number == 1 else f"{number} jobs"


def duration(seconds: float) -> str:
    """Return seconds in words of two units, such as ``1 min 12 s``."""
    minutes, whole = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole} s" if minutes else f"{whole} s"


def rounded(seconds: float) -> str:
    """Return an estimate of at least ``10 s`` in words of one unit, or two from an hour on."""
    if seconds < 55:
        return f"{max(round(seconds, -1), 10):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _printable(line: str) -> str:
    plain = ESCAPE.sub("", line).expandtabs()
    return "".join(character if character.isprintable() else "�" for character in plain)

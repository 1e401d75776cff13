"""Output of a run: lines of text and, on a terminal, a line below them that is updated in place."""

import os
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress

RED, YELLOW = "31", "33"


class Screen:
    """Lines written to a file ``descriptor``, in color if ``color``, and a line of status below them if ``live``."""

    def __init__(self, descriptor: int, *, live: bool, color: bool) -> None:
        self.descriptor, self.live, self.color, self.status = descriptor, live, color, ""

    def show(self, lines: Iterable[str], style: str = "") -> None:
        """Print ``lines`` above the status."""
        begin, end = (f"\x1b[{style}m", "\x1b[0m") if style and self.color else ("", "")
        if text := "".join(f"{begin}{line}{end}\n" for line in lines):
            self._write(text)

    def update(self, status: str) -> None:
        """Replace the status, which is cut at the terminal's width."""
        if self.live:
            self.status = status[: os.get_terminal_size(self.descriptor).columns - 1]
            self._write("")

    def _write(self, text: str) -> None:
        text = f"\r\x1b[K{text}{self.status}" if self.live else text
        with suppress(OSError):  # the reader of the pipe has ended
            os.write(self.descriptor, text.encode(sys.stderr.encoding, "replace"))


class Capture:
    """Standard error of this process and its jobs, and optionally standard output, captured in a file.

    Jobs inherit these streams, and their output would end up within the status.
    """

    def __init__(self, *, output: bool) -> None:
        self.file, self.rest = tempfile.NamedTemporaryFile(), b""  # noqa: SIM115
        # Jobs write at the same time; without O_APPEND, some file systems let one overwrite another's line.
        written = os.open(self.file.name, os.O_WRONLY | os.O_APPEND)
        self.saved = {descriptor: os.dup(descriptor) for descriptor in ((1, 2) if output else (2,))}
        self._redirect(dict.fromkeys(self.saved, written))

    def lines(self) -> list[str]:
        """Return the lines that have been completed since the last call."""
        *lines, self.rest = (self.rest + self.file.read()).split(b"\n")
        return [line.decode(errors="backslashreplace").rpartition("\r")[2] for line in lines]

    def end(self) -> list[str]:
        """Restore the streams, and return the lines that ``lines`` has not returned."""
        self._redirect(self.saved)
        lines = self.lines()
        self.file.close()
        return [*lines, self.rest.decode(errors="backslashreplace")] if self.rest else lines

    @staticmethod
    def _redirect(targets: dict[int, int]) -> None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        for descriptor, target in targets.items():
            os.dup2(target, descriptor)
        for target in set(targets.values()):
            os.close(target)

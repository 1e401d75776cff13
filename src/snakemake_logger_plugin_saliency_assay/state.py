"""State of a run: its jobs, the time left, and the causes of failures."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from itertools import takewhile
from pathlib import Path
from statistics import fmean

ERROR = re.compile(r"[a-z]\w*: \S")
"""Start of an error line: the name of a rule."""


class Run:
    """Jobs of a run by Snakemake's number, and in ``stats`` by rule, with their ``total``."""

    def __init__(self, stats: Mapping[str, int], clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self.clock, self.start = stats["total"], clock, clock()
        self.left = Counter[str]()  # jobs that are not done, by base rule
        for rule, count in stats.items():
            self.left[base_rule(rule)] += count if rule != "total" else 0
        self.running: dict[int, tuple[str, float]] = {}  # base rule, time of start or submission
        self.done, self.failed = set[int](), set[int]()
        self.seconds: dict[str, list[float]] = {}  # of jobs that are done, by base rule
        self.running_word = "running"

    def start_job(self, number: int, rule: str) -> None:
        """Add a running job; if it failed before, it no longer counts as failed."""
        self.failed.discard(number)
        self.running[number] = base_rule(rule), self.clock()

    def finish_job(self, number: int) -> None:
        """Count a job as done."""
        self.done.add(number)
        if number in self.running:
            rule, start = self.running.pop(number)
            self.left[rule] -= 1
            self.seconds.setdefault(rule, []).append(self.clock() - start)

    def fail_job(self, number: int) -> None:
        """Count a job as failed, until it starts again."""
        self.failed.add(number)
        self.running.pop(number, None)

    def elapsed(self) -> float:
        """Return the seconds since the start of the run."""
        return self.clock() - self.start

    def seconds_left(self) -> float | None:
        """Return the expected seconds until the end of the run, or None while too little is known.

        A job is expected to take the mean time of the jobs of its rule or, before one of them is done, of all jobs. If
        that applies to more than half of the jobs, there is no estimate.
        """
        done = [value for values in self.seconds.values() for value in values]
        unknown = sum(count for rule, count in self.left.items() if rule not in self.seconds)
        if not sum(done) or 2 * unknown > self.left.total():
            return None
        work = sum(count * fmean(self.seconds.get(rule, done)) for rule, count in self.left.items())
        return self.elapsed() * work / sum(done)

    def __str__(self) -> str:
        running, failed, seconds = len(self.running), len(self.failed), self.seconds_left()
        left = max(self.total - len(self.done) - running - failed, 0)
        return (
            f"{len(self.done)} of {self.total} jobs done, {running} {self.running_word}, {left} left"
            + (f", {failed} failed" if failed else "")
            + f"; {duration(self.elapsed())} elapsed"
            + (f", about {duration(10 * max(round(seconds / 10), 1))} left" if seconds else "")
        )


def duration(seconds: float) -> str:
    """Return seconds as ``h:mm:ss``."""
    return str(timedelta(seconds=int(seconds)))


def base_rule(rule: str) -> str:
    """Return the rule of the parts of a combined job, or else the ``rule`` itself."""
    return rule.partition("__")[0]


def error_lines(rule: str, logs: Iterable[str]) -> list[str]:
    """Return the error lines in the ``logs`` of a job; of a combined job, one for each part that failed.

    These are the lines at the end of a log that begin with the base rule and a colon, or else the last such line in it,
    or else the lines at its end that begin with another name and a colon.
    """
    for log in filter(Path.is_file, map(Path, logs)):
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        last = list(takewhile(ERROR.match, reversed(lines)))[::-1]
        prefix = f"{base_rule(rule)}: "
        own = [line for line in last if line.startswith(prefix)]
        own = own or [line for line in lines if line.startswith(prefix)][-1:]
        if own or last:
            return own or last
    return []

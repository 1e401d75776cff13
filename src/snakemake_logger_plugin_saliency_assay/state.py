"""State of a run: its jobs, their progress, the causes of failures, and the time left."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, takewhile
from pathlib import Path
from statistics import fmean

PROGRESS = re.compile(r"\b(epoch|maps) (\d+)/(\d+)|\b(\d+) of (\d+) (batches)\b")
PART = re.compile(r"\bpart (\d+) of (\d+): ")
ERROR = re.compile(r"[a-z]\w*: \S")
"""Start of an error line: the name of a rule."""
TAIL = 16384  # bytes at the end of a log that are searched
BENCHMARKS = 100  # files per rule that are read


@dataclass
class Job:
    """A job, with the time at which it started or was submitted."""

    rule: str
    wildcards: Mapping[str, str]
    log: str
    start: float

    @property
    def base(self) -> str:
        """The rule, or for a combined job the rule of its parts."""
        return base_rule(self.rule)

    @property
    def name(self) -> str:
        """The rule and the values of its wildcards, such as ``attribute digits seed0 digits gradient``."""
        values = (
            f"seed{value}" if key == "seed" else value.removeprefix(".")
            for key, value in self.wildcards.items()
            if value
        )
        return " ".join([*self.rule.split("__"), *values])

    def progress(self) -> str:
        """Return the progress in the job's log, such as ``epoch 7/20``, or an empty string."""
        text = tail(self.log)
        if parts := PART.findall(text):
            return "{} of {} parts".format(*parts[-1])
        found = PROGRESS.findall(text)
        if not found:
            return ""
        unit, done, total, batches_done, batches_total, batches = found[-1]
        return f"{unit or batches} {done or batches_done}/{total or batches_total}"


@dataclass
class Run:
    """Jobs of a run, updated by records of Snakemake's events. Times are seconds of ``clock``."""

    clock: Callable[[], float] = time.monotonic
    total: int = 0
    waiting: Counter[str] = field(default_factory=Counter)
    """Number of jobs of each rule that have not started."""
    jobs: dict[int, Job] = field(default_factory=dict)
    """Jobs that have started, by Snakemake's number."""
    running: dict[int, Job] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """Seconds of this run's finished jobs, by base rule."""
    benchmarks: dict[str, float] | None = None
    """Mean seconds of earlier jobs by rule; None before the first job."""
    start: float = 0.0
    running_word: str = "running"

    def begin(self, stats: Mapping[str, int]) -> None:
        """Start a run with the numbers of jobs in ``stats``: by rule, and ``total``."""
        self.waiting = Counter({rule: count for rule, count in stats.items() if rule != "total"})
        self.total, self.start = stats["total"], self.clock()

    def start_job(
        self, number: int, rule: str, wildcards: Mapping[str, str], logs: Iterable[str], benchmark: str | None
    ) -> None:
        """Add a running job; if it failed before, it no longer counts as failed."""
        job = Job(rule, dict(wildcards), next(iter(logs), ""), self.clock())
        self.jobs[number] = self.running[number] = job
        if number not in self.failed:
            self.waiting[rule] -= 1
        self.failed.discard(number)
        if self.benchmarks is None and benchmark:
            self.benchmarks = dict(mean_seconds(benchmark, self.waiting))

    def finish_job(self, number: int) -> None:
        """Count a job as done."""
        self.done.add(number)
        if job := self.running.pop(number, None):
            self.seconds.setdefault(job.base, []).append(self.clock() - job.start)

    def fail_job(self, number: int) -> None:
        """Count a job as failed, until it starts again."""
        self.failed.add(number)
        self.running.pop(number, None)

    @property
    def left(self) -> int:
        """Number of jobs that are neither done, running nor failed."""
        return max(self.total - len(self.done) - len(self.running) - len(self.failed), 0)

    @property
    def elapsed(self) -> float:
        """Seconds since the start of the run."""
        return self.clock() - self.start

    def seconds_left(self) -> float | None:
        """Return the expected seconds until the end of the run, or None while too little is known.

        A job is expected to take the mean time of its rule in this run, or else in the rule's benchmark files. Jobs of
        other rules are expected to take the mean time of all jobs; if they are more than half of the waiting jobs,
        there is no estimate. The expected number of simultaneous jobs is its mean so far.
        """
        known = (self.benchmarks or {}) | {rule: fmean(values) for rule, values in self.seconds.items()}
        waiting = {rule: count for rule, count in self.waiting.items() if count > 0}
        unknown = sum(count for rule, count in waiting.items() if base_rule(rule) not in known)
        if not known or 2 * unknown > sum(waiting.values()):
            return None
        finished = [value for values in self.seconds.values() for value in values]
        typical = fmean(finished or known.values())
        work = sum(count * known.get(base_rule(rule), typical) for rule, count in waiting.items())
        ages = [self.clock() - job.start for job in self.running.values()]
        for job, age in zip(self.running.values(), ages, strict=True):
            work += max(known.get(job.base, typical) - age, 0)
        at_once = (sum(finished) + sum(ages)) / max(self.elapsed, 1)
        return work / max(at_once, 1)


def base_rule(rule: str) -> str:
    """Return the rule of the parts of a combined job, or else the ``rule`` itself."""
    return rule.partition("__")[0]


def mean_seconds(benchmark: str, rules: Iterable[str]) -> Iterator[tuple[str, float]]:
    """Yield ``rules`` that have benchmark files, with their mean seconds; ``benchmark`` is any of the files."""
    folder, separator, _ = benchmark.partition("/benchmarks/")
    for rule in rules if separator else ():
        top = Path(f"{folder}{separator}{rule}")
        seconds = []
        for file in [top.with_suffix(".tsv"), *islice(top.rglob("*.tsv"), BENCHMARKS)]:
            try:
                seconds.append(float(file.read_text(encoding="utf-8").splitlines()[1].split("\t")[0]))
            except (OSError, ValueError, IndexError):
                continue
        if seconds:
            yield rule, fmean(seconds)


def error_lines(rule: str, logs: Iterable[str]) -> list[str]:
    """Return the error lines in the ``logs`` of a job; of a combined job, one for each part that failed.

    These are the lines at the end of a log that begin with the base rule and a colon, or else the last such line in it,
    or else the lines at its end that begin with another name and a colon.
    """
    for log in logs:
        lines = [line for line in tail(log).splitlines() if line.strip()]
        last = list(takewhile(ERROR.match, reversed(lines)))[::-1]
        prefix = f"{base_rule(rule)}: "
        own = [line for line in last if line.startswith(prefix)]
        own = own or [line for line in lines if line.startswith(prefix)][-1:]
        if own or last:
            return own or last
    return []


def tail(path: str) -> str:
    """Return the end of a text file, or an empty string if it cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            file.seek(0, 2)
            file.seek(max(file.tell() - TAIL, 0))
            return file.read().decode(errors="replace")
    except OSError:
        return ""

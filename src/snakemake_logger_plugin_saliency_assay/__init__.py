"""Snakemake's logger plugin ``saliency-assay``: progress of a run on the terminal, and errors with their causes."""

import logging
import os
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from .screen import RED, YELLOW, Capture, Screen
from .state import ERROR, Run, duration, error_lines

EXIT = re.compile(r"CalledProcessError.* (exit status \d+|died with <.*?>)", re.DOTALL)
REPEATED = (
    "Exiting because a job execution failed",
    "WorkflowError:\nAt least one job did not complete successfully",
)
"""Starts of errors that the last line of a run repeats."""
STOPPING = "Terminating processes on user request"
SHOWN = (
    *("Nothing to be done", "Will exit after", "Congratulations", "Unlocked", "Deleting", STOPPING),
    *("Creating report", "Report created", "Archiving", "Trying to restart job"),
)
"""Starts of messages that are shown although they are neither errors nor warnings."""
SILENCE = 30.0  # minimum seconds between lines of progress in a pipe, which are also 10 % of the jobs apart


class LogHandler(LogHandlerBase):
    """Handler of Snakemake's log records; Snakemake itself writes all of them to the log file.

    It is inactive if an option such as ``--dry-run``, ``--verbose``, ``--printshellcmds`` or ``--quiet`` requests
    Snakemake's own output.
    """

    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        settings: Any = self.common_settings
        quiet = {str(choice).rpartition(".")[2].lower() for choice in settings.quiet or ()} - {"host"}
        options = (settings.dryrun, settings.verbose, settings.debug_dag, settings.printshellcmds)
        self.is_active = not (quiet or any(options) or settings.show_failed_logs)
        self.run: Run | None = None
        self.capture: Capture | None = None
        self.stopped = threading.Event()
        self.is_stopping, self.exit = False, ""  # by the user; how the last process that failed ended
        self.jobs: dict[int, Mapping[str, Any]] = {}  # records of jobs that have started
        self.held: list[str] = []  # error lines that jobs have printed, until Snakemake reports the failure
        self.last_progress = (0.0, 0)  # elapsed seconds and jobs done at the last line of progress
        live = self.is_active and os.isatty(2) and os.environ.get("TERM", "dumb") != "dumb"
        color = live and not settings.nocolor and not os.environ.get("NO_COLOR")
        try:
            # A duplicate, because standard error itself is captured while jobs run.
            self.screen = Screen(os.dup(2), live=live, color=color)
        except OSError:  # standard error is closed
            self.is_active = False

    @property
    def writes_to_stream(self) -> bool:
        """True unless Snakemake should add its own stream handler."""
        return self.is_active

    def emit(self, record: logging.LogRecord) -> None:
        """Update the run and print what a user needs to know."""
        try:
            if self.is_active:
                self._handle(record)
        except Exception:
            self.handleError(record)  # Snakemake must not end because of it

    def close(self) -> None:
        """Restore standard error and print the outcome of the run."""
        self.stopped.set()
        assert self.lock
        with self.lock:
            if self.run and self.capture:
                self._end(self.run, self.capture)
        super().close()

    def _handle(self, record: Any) -> None:
        event = getattr(record, "event", None)
        if event == LogEvent.RUN_INFO and not self.run:
            self.run = Run(record.stats)
            if not self.screen.live:
                self.screen.show([f"jobs to run: {self.run.total}"])
            self.capture = Capture(output=self.screen.live and os.isatty(1))
            threading.Thread(target=self._tick, args=(self.run,), daemon=True).start()
        elif event in (None, LogEvent.ERROR):
            self._message(record.getMessage(), record.levelno)
        elif not self.run:
            pass  # of a dry run, or before the jobs are known
        elif event == LogEvent.JOB_INFO:
            self.jobs[record.jobid] = vars(record)
            self.run.start_job(record.jobid, record.rule_name)
        elif event == LogEvent.JOB_FINISHED:
            self.run.finish_job(record.job_id)
        elif event == LogEvent.RESOURCES_INFO and hasattr(record, "nodes"):
            self.run.running_word = "submitted"  # to a cluster, where a job may wait in the queue
        elif event == LogEvent.PROGRESS:
            self.run.total = record.total
        elif event == LogEvent.JOB_ERROR:
            # The message is such as the state of a Slurm job.
            self.exit = self.exit or " ".join((record.rule_msg or "").split())
            self._fail(self.run, {record.jobid: record.log})
        elif event == LogEvent.GROUP_ERROR:
            logs = {job["jobid"]: [*job["log"], *record.aux_logs] for job in record.job_error_info}
            self._fail(self.run, logs)

    def _message(self, text: str, level: int) -> None:
        """Print a message of Snakemake without an event of a job, if it is an error, a warning or in ``SHOWN``."""
        if level >= logging.ERROR and (ended := EXIT.search(text)):
            self.exit = ended[1]  # the error of the job follows
        elif level >= logging.WARNING and not text.startswith(REPEATED):
            self.screen.show(text.splitlines(), RED if level >= logging.ERROR else YELLOW)
        elif text.startswith(SHOWN):
            self.is_stopping |= text.startswith(STOPPING)
            self.screen.show(text.splitlines())

    def _fail(self, run: Run, logs: Mapping[int, Sequence[str]]) -> None:
        """Report failed jobs, given by number with their logs; of a group, only those with an error line."""
        self._print(self.capture.lines() if self.capture else ())
        rules = {number: run.running[number][0] for number in logs if number in run.running}
        causes = {number: error_lines(rule, logs[number]) for number, rule in rules.items()}
        is_cause_known = any(causes.values())
        for number, rule in rules.items():
            run.fail_job(number)
            own = [line for line in self.held if line.startswith(f"{rule}: ")]
            cause = causes[number] or own[:1]
            if not cause and (is_cause_known or self.is_stopping):
                continue
            ended = f"{rule}: ended without an error message{f' ({self.exit})' if self.exit else ''}"
            self.screen.show(cause or [ended], RED)
            self.held = [line for line in self.held if line not in cause]
            job = self.jobs[number]
            wildcards = "".join(f", {key}={value}" for key, value in job["wildcards"].items() if value)
            files = (f"    log: {file}" for file in logs[number])
            self.screen.show([f"    rule {job['rule_name']}{wildcards}", *files])
        self.exit = ""

    def _print(self, lines: Iterable[str]) -> None:
        """Print the output of jobs, but not yet their error lines, nor tracebacks of jobs that the user interrupts."""
        new = [] if self.is_stopping else [*lines]
        self.held += filter(ERROR.match, new)
        self.screen.show(line for line in new if not ERROR.match(line))

    def _tick(self, run: Run) -> None:
        assert self.lock
        while not self.stopped.wait(1):
            with self.lock:
                if self.capture:
                    self._refresh(run, self.capture)

    def _refresh(self, run: Run, capture: Capture) -> None:
        self._print(capture.lines())
        self.screen.update(str(run))
        elapsed, done = self.last_progress
        is_due = run.elapsed() - elapsed >= SILENCE and run.total > len(run.done) >= done + run.total / 10
        if is_due and not self.screen.live:
            self.last_progress = run.elapsed(), len(run.done)
            self.screen.show([str(run)])

    def _end(self, run: Run, capture: Capture) -> None:
        self.capture = None
        self._print(capture.end())
        self.screen.show(self.held, RED)
        self.screen.update("")
        failed = f", {len(run.failed)} failed," if run.failed and not self.is_stopping else ""
        self.screen.show([f"{len(run.done)} of {run.total} jobs done{failed} in {duration(run.elapsed())}"])
        for handler in logging.getLogger("snakemake.logging").handlers if len(run.done) < run.total else ():
            if isinstance(handler, logging.FileHandler):
                self.screen.show([f"Snakemake's log: {os.path.relpath(handler.baseFilename)}"])

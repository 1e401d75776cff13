"""Snakemake's logger plugin ``saliency-assay``: progress of a run on the terminal, and errors with their causes."""

import logging
import os
import re
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from .screen import RED, YELLOW, Capture, Screen, block_of, counts_of, duration, jobs_of, times_of
from .state import ERROR, Run, base_rule, error_lines, tail

EXIT = re.compile(r"CalledProcessError.* (exit status \d+|died with <.*?>)", re.DOTALL)
FAILED_PART = re.compile(r"^failed, see (.+)$", re.MULTILINE)
"""Line of a combined job's log that names the log of a failed part."""
REPEATED = (
    "Exiting because a job execution failed",
    "WorkflowError:\nAt least one job did not complete successfully",
)
"""Starts of errors that the last line of a run repeats."""
STOPPING = "Terminating processes on user request"
SHOWN = (
    *("Nothing to be done", "Will exit after", "Congratulations", "Unlocked", "Deleting", STOPPING),
    *("Creating report", "Report created", "Archiving"),
)
"""Starts of messages that are shown although they are neither errors nor warnings."""
HELD = 30.0  # seconds after which an error line is printed although no job has failed
SILENCE = 30.0  # minimum seconds between two progress lines, which are also at least 10 % of the jobs apart


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
        self.run, self.is_stopping = Run(), False
        self.capture: Capture | None = None
        self.guard = threading.RLock()
        self.held: list[tuple[float, str]] = []  # time and text of error lines whose job has not failed yet
        self.exit = ""  # how the last process that failed ended
        self.last_progress = (0.0, 0)  # elapsed seconds and jobs done at the last line of progress
        self.stopped = threading.Event()
        self.ticker = threading.Thread(target=self._tick, daemon=True)
        if self.is_active:
            live = os.isatty(2) and os.environ.get("TERM", "dumb") != "dumb"
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
        """Update the run and print what a user needs to know; errors of this plugin never reach Snakemake."""
        with self.guard:
            try:
                if self.is_active:
                    self._handle(record)
            except Exception as error:
                self._give_up(error, record)

    def close(self) -> None:
        """Restore standard error and print the outcome of the run."""
        self.stopped.set()
        if self.capture:
            self.ticker.join(2)
            try:
                with self.guard:
                    self._end()
            except Exception as error:
                self._give_up(error)
        super().close()

    def _handle(self, record: Any) -> None:
        event = getattr(record, "event", None)
        if event == LogEvent.RUN_INFO and not self.capture:
            self.run.begin(record.stats)
            if not self.screen.live:
                self.screen.show([f"{jobs_of(self.run.total)} to run"])
            self.capture = Capture(output=self.screen.live and os.isatty(1))
            self.ticker.start()
        elif event == LogEvent.JOB_INFO:
            self.run.start_job(record.jobid, record.rule_name, record.wildcards, record.log, record.benchmark)
        elif event == LogEvent.JOB_FINISHED:
            self.run.finish_job(record.job_id)
        elif event == LogEvent.RESOURCES_INFO and hasattr(record, "nodes"):
            self.run.running_word = "submitted"  # to a cluster, where a job may wait in the queue
        elif event == LogEvent.PROGRESS:
            self.run.total = record.total
        elif event == LogEvent.JOB_ERROR:
            self.exit = self.exit or " ".join(
                (record.rule_msg or "").split()
            )  # such as the state of a Slurm job
            self._fail({record.jobid: (record.rule_name, record.log)})
        elif event == LogEvent.GROUP_ERROR:
            self._fail(
                {
                    job["jobid"]: (job["rule_name"], [*job["log"], *record.aux_logs])
                    for job in record.job_error_info
                }
            )
        elif event in (None, LogEvent.ERROR):
            self._message(record.getMessage(), record.levelno)

    def _message(self, text: str, level: int) -> None:
        """Print a message of Snakemake without an event of a job, if it is an error, a warning or in ``SHOWN``."""
        if level >= logging.ERROR:
            if ended := EXIT.search(text):
                self.exit = ended[1]  # the error of the job follows
            elif not text.startswith(REPEATED):
                self.screen.show(text.splitlines(), RED)
        elif level >= logging.WARNING:
            self.screen.show(text.splitlines(), YELLOW)
        elif text.startswith(SHOWN):
            self.is_stopping |= text.startswith(STOPPING)
            self._collect()
            self.screen.show(text.splitlines())
        elif restarted := re.match(r"Trying to restart job (\d+)", text):
            if job := self.run.jobs.get(int(restarted[1])):
                self.screen.show([f"{job.name}: trying again"])

    def _fail(self, failures: dict[int, tuple[str, list[str]]]) -> None:
        """Report failed jobs, given by number with rule and logs; of a group, only those with an error line."""
        new = {number: failure for number, failure in failures.items() if number in self.run.running}
        causes = {number: self._causes(rule, logs) for number, (rule, logs) in new.items()}
        is_cause_known = any(causes.values())
        for number, (rule, logs) in new.items():
            self.run.fail_job(number)
            if causes[number] or not (is_cause_known or self.is_stopping):
                job = self.run.jobs[number]
                ended = f" ({self.exit})" if self.exit else ""
                self.screen.show(
                    causes[number] or [f"{job.base}: ended without an error message{ended}"], RED
                )
                wildcards = "".join(f", {key}={value}" for key, value in job.wildcards.items() if value)
                of_parts = FAILED_PART.findall(tail(job.log))
                self.screen.show(
                    [f"    rule {rule}{wildcards}", *(f"    log: {log}" for log in [*logs, *of_parts])]
                )
        self.exit = ""

    def _causes(self, rule: str, logs: list[str]) -> list[str]:
        """Return the error lines of a job: as printed by it, or else in its log."""
        self._collect()
        held = [line for _, line in self.held]
        others = tuple(f"{job.base}: " for job in self.run.running.values())
        own = [line for line in held if line.startswith(f"{base_rule(rule)}: ")]
        # The parts of a combined job may be of other rules.
        own = own or [line for line in held if not line.startswith(others)]
        lines = error_lines(rule, logs)
        if own and not set(own) & set(lines):
            lines = own[:1]
        self.held = [(since, line) for since, line in self.held if line not in lines]
        return lines

    def _collect(self) -> None:
        """Print the new output of jobs, but hold error lines back until Snakemake reports the failure."""
        lines = self.capture.lines() if self.capture else []
        if self.is_stopping:  # the traceback of each job that the user interrupts
            return
        now = time.monotonic()
        self.held += [(now, line) for line in lines if ERROR.match(line)]
        self.screen.show(line for line in lines if not ERROR.match(line))

    def _tick(self) -> None:
        while not self.stopped.wait(1):
            with self.guard:
                try:
                    if self.is_active:
                        self._refresh()
                except Exception as error:
                    self._give_up(error)

    def _refresh(self) -> None:
        self._collect()
        late = [line for since, line in self.held if time.monotonic() - since > HELD]
        self.held = [(since, line) for since, line in self.held if line not in late]
        self.screen.show(late, RED)
        run, (elapsed, done) = self.run, self.last_progress
        if self.screen.live:
            self.screen.update(block_of(run, *self.screen.size()))
        elif run.elapsed - elapsed >= SILENCE and run.total > len(run.done) >= done + run.total / 10:
            self.last_progress = run.elapsed, len(run.done)
            self.screen.show([f"{counts_of(run)}, {times_of(run)}"])

    def _end(self) -> None:
        self._collect()
        self.screen.update(())
        assert self.capture
        lines, self.capture = self.capture.end(), None
        self.screen.show((line for _, line in self.held), RED)
        self.screen.show(() if self.is_stopping else lines)
        run = self.run
        if len(run.done) >= run.total:
            self.screen.show([f"{jobs_of(run.total)} done in {duration(run.elapsed)}"])
        else:
            failed = f", {len(run.failed)} failed," if run.failed and not self.is_stopping else ""
            text = f"{len(run.done)} of {jobs_of(run.total)} done{failed} in {duration(run.elapsed)}"
            self.screen.show([text, *(f"Snakemake's log: {file}" for file in _log_files())])

    def _give_up(self, error: Exception, record: logging.LogRecord | None = None) -> None:
        """Let Snakemake print its own output after an error of this plugin, which ``record`` caused."""
        self.is_active = False
        self.stopped.set()
        lines = [line for _, line in self.held]
        with suppress(Exception):
            if self.capture:
                capture, self.capture = self.capture, None
                lines += capture.end()
        with suppress(Exception):
            self.screen.update(())
            self.screen.show(lines)
        with suppress(Exception):
            from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter, logger

            quiet = self.common_settings.quiet
            handler = ColorizingTextHandler(self.common_settings.nocolor, sys.stderr, DefaultFormatter(quiet))
            handler.addFilter(DefaultFilter(quiet, False, False, False, False))
            logger.addHandler(handler)
            logger.warning(
                f"saliency-assay: the terminal's output failed ({error!r}); Snakemake's own follows"
            )
            if record and record.levelno >= logging.WARNING and handler.filter(record):
                handler.handle(record)


def _log_files() -> Iterable[str]:
    """Return the files to which Snakemake writes its log."""
    handlers = logging.getLogger("snakemake.logging").handlers
    files = [handler.baseFilename for handler in handlers if isinstance(handler, logging.FileHandler)]
    return [os.path.relpath(file) for file in files]

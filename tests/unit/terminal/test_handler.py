"""What the plugin prints of Snakemake's log records where standard error is no terminal."""

import logging
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from snakemake.settings.enums import Quietness
from snakemake.settings.types import OutputSettings
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_saliency_assay import LogHandler


def running() -> LogHandler:
    """A handler of a run of three trainings, two of which are running.

    It is no fixture, because pytest replaces standard error between the setup and the call of a test.
    """
    handler = LogHandler(OutputSettings(), None)
    emit(handler, event=LogEvent.RUN_INFO, stats={"train": 3, "total": 3})
    for number in (1, 2):
        start(handler, number)
    return handler


def emit(handler: LogHandler, message: str = "", level: int = logging.INFO, **fields: Any) -> None:
    record = logging.LogRecord("snakemake", level, __file__, 1, message, None, None)
    vars(record).update(fields)
    handler.handle(record)


def start(handler: LogHandler, number: int, *, log: str = "train.log") -> None:
    job = {"jobid": number, "rule_name": "train", "wildcards": {"model": "f_o", "seed": str(number)}}
    emit(handler, event=LogEvent.JOB_INFO, log=[log], benchmark=None, **job)


def fail(handler: LogHandler, number: int, log: str = "train.log", message: str | None = None) -> None:
    emit(
        handler,
        "Error in rule train",
        logging.ERROR,
        event=LogEvent.JOB_ERROR,
        jobid=number,
        rule_name="train",
        rule_msg=message,
        log=[log],
    )


def lines(capfd: pytest.CaptureFixture[str], handler: LogHandler) -> list[str]:
    """All lines of the run, but the first."""
    handler.close()
    out, err = capfd.readouterr()
    assert out == ""
    first, *others = err.splitlines()
    assert first == "jobs to run: 3"
    return others


DETAILS = "    rule train, model=f_o, seed={}"
LOG = "    log: train.log"


def test_the_cause_that_a_job_prints_stands_once_and_before_the_job(
    capfd: pytest.CaptureFixture[str],
) -> None:
    handler = running()
    os.write(2, b"libgomp warns\ntrain: models.a: two\n")
    emit(
        handler,
        "RuleException:\nCalledProcessError in file x:\n'train' returned exit status 1.",
        logging.ERROR,
    )
    fail(handler, 2)
    emit(handler, event=LogEvent.JOB_FINISHED, job_id=1)
    emit(handler, "Exiting because a job execution failed. Look above for error messages", logging.ERROR)
    emit(handler, "WorkflowError:\nAt least one job did not complete successfully.", logging.ERROR)
    warning, *error, outcome = lines(capfd, handler)
    assert warning == "libgomp warns"
    assert error == ["train: models.a: two", DETAILS.format(2), LOG]
    assert outcome == "1 of 3 jobs done, 1 failed, in 0:00:00"


def test_jobs_that_fail_at_once_have_the_causes_of_their_logs(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    handler = running()
    for number, cause in ((1, "one"), (2, "two")):
        (tmp_path / str(number)).write_text(f"Traceback\nValueError: {cause}\ntrain: {cause}\n")
        os.write(2, f"train: {cause}\n".encode())
    for number in (2, 1):
        fail(handler, number, str(tmp_path / str(number)))
    assert [line for line in lines(capfd, handler) if line[0] == "t"] == ["train: two", "train: one"]


def test_a_job_without_a_cause_has_its_exit_status_or_state(capfd: pytest.CaptureFixture[str]) -> None:
    handler = running()
    emit(handler, "CalledProcessError in file x:\n'train' died with <Signals.SIGKILL: 9>.", logging.ERROR)
    fail(handler, 1)
    fail(handler, 2, message="SLURM status is: 'OUT_OF_MEMORY'")
    causes = [line for line in lines(capfd, handler) if line.startswith("train")]
    assert causes == [
        "train: ended without an error message (died with <Signals.SIGKILL: 9>)",
        "train: ended without an error message (SLURM status is: 'OUT_OF_MEMORY')",
    ]


def test_of_a_group_the_job_with_a_cause_is_reported_once(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    handler = running()
    (tmp_path / "slurm").write_text("train: two\nsrun: error: node1: task 0: Exited with exit code 1\n")
    infos = [
        {"jobid": 1, "rule_name": "train", "log": ["train.log"]},
        {"jobid": 2, "rule_name": "train", "log": ["train.log", str(tmp_path / "slurm")]},
    ]
    emit(handler, "", logging.ERROR, event=LogEvent.GROUP_ERROR, job_error_info=infos, aux_logs=[])
    fail(handler, 1)
    fail(handler, 2)
    *error, outcome, _ = [*lines(capfd, handler), ""]
    assert error == ["train: two", DETAILS.format(2), LOG, f"    log: {tmp_path / 'slurm'}"]
    assert outcome == "0 of 3 jobs done, 2 failed, in 0:00:00"


def test_a_job_that_is_tried_again_and_works_has_not_failed(capfd: pytest.CaptureFixture[str]) -> None:
    handler = running()
    fail(handler, 1)
    emit(handler, "Trying to restart job 1.")
    start(handler, 1)
    start(handler, 3)
    for number in (1, 2, 3):
        emit(handler, event=LogEvent.JOB_FINISHED, job_id=number)
    *_, restarted, outcome = lines(capfd, handler)
    assert restarted == "Trying to restart job 1."
    assert outcome == "3 of 3 jobs done in 0:00:00"


def test_a_line_of_progress_needs_time_and_jobs(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = running()
    assert handler.run
    assert handler.capture
    refresh = partial(handler._refresh, handler.run, handler.capture)
    emit(handler, event=LogEvent.RESOURCES_INFO, nodes=100)
    refresh()
    emit(handler, event=LogEvent.JOB_FINISHED, job_id=1)
    refresh()  # too early
    monkeypatch.setattr("snakemake_logger_plugin_saliency_assay.SILENCE", 0.0)
    refresh()
    refresh()  # no other job is done
    assert [line.partition(" left")[0] for line in lines(capfd, handler)[:-1]] == [
        "1 of 3 jobs done, 1 submitted, 1"
    ]


def test_warnings_and_errors_of_snakemake_are_printed_and_other_messages_are_not(
    capfd: pytest.CaptureFixture[str],
) -> None:
    handler = running()
    emit(handler, "Select jobs to execute...")
    emit(handler, "squeue failed", logging.WARNING)
    emit(handler, "MissingOutputException:\nJob 1 completed, but files are missing", logging.ERROR)
    assert lines(capfd, handler)[:-1] == [
        "squeue failed",
        "MissingOutputException:",
        "Job 1 completed, but files are missing",
    ]


def test_jobs_that_the_user_interrupts_have_not_failed(capfd: pytest.CaptureFixture[str]) -> None:
    handler = running()
    stopping = "Terminating processes on user request, this might take some time."
    os.write(2, b"Traceback (most recent call last):\nKeyboardInterrupt\n")
    emit(handler, stopping)
    fail(handler, 1)
    assert lines(capfd, handler) == [stopping, "0 of 3 jobs done in 0:00:00"]


def test_a_fault_of_the_plugin_does_not_end_the_run(capfd: pytest.CaptureFixture[str]) -> None:
    handler = running()
    emit(handler, event=LogEvent.JOB_INFO)  # without the fields of a job
    emit(handler, "squeue failed", logging.WARNING)
    printed = lines(capfd, handler)
    assert "squeue failed" in printed
    assert any(re.match("AttributeError.*jobid", line) for line in printed)


@pytest.mark.parametrize(
    ("settings", "active"),
    [
        ({}, True),
        ({"quiet": {Quietness.HOST}}, True),
        ({"quiet": {Quietness.HOST, Quietness.RULES}}, False),
        ({"quiet": {Quietness.ALL}}, False),
        ({"dryrun": True}, False),
        ({"verbose": True}, False),
        ({"printshellcmds": True}, False),
        ({"show_failed_logs": True}, False),
    ],
)
def test_options_that_ask_for_snakemakes_output_get_it(
    settings: dict[str, Any], active: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    handler = LogHandler(OutputSettings(**settings), None)
    assert handler.writes_to_stream == active  # else Snakemake adds a handler of its own
    emit(handler, "an error", logging.ERROR)
    handler.close()
    assert capfd.readouterr().err == ("an error\n" if active else "")

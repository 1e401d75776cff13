"""Records of failed jobs."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jobs import snakemake_of

from saliency_assay.runtime.failures import Failure, clear, failures_of_run, record
from saliency_assay.runtime.job import run_job

WILDCARDS = {"model": "m", "method": "gradient", "shard": ""}


def job_of(tmp_path: Path) -> SimpleNamespace:
    job = snakemake_of("attribute", tmp_path / "job.log", {}, **WILDCARDS)
    job.config = {"results": f"{tmp_path}/results/"}
    return job


def failed(rule: str, wildcards: dict[str, str], **settings: Any) -> SimpleNamespace:
    params = SimpleNamespace(get={"settings": settings}.get)
    return SimpleNamespace(rule=SimpleNamespace(name=rule), wildcards_dict=wildcards, params=params)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("an error\nand details"), "an error"),
        (SystemExit(0), "exited before its work was done; custom functions must not call exit"),
    ],
)
def test_a_failed_job_leaves_a_record_until_it_succeeds(
    tmp_path: Path, error: BaseException, reason: str
) -> None:
    with pytest.raises(SystemExit), run_job(job_of(tmp_path)):
        raise error
    expected = Failure("attribute", {"model": "m", "method": "gradient"}, reason)
    assert failures_of_run(tmp_path / "results", []) == [expected]
    assert failures_of_run(tmp_path / "results", [failed("attribute", WILDCARDS)]) == [expected]
    with run_job(job_of(tmp_path)):
        pass
    assert failures_of_run(tmp_path / "results", []) == []


def test_a_job_that_saves_its_state_and_ends_is_no_failure(tmp_path: Path) -> None:
    with pytest.raises(SystemExit), run_job(job_of(tmp_path)):
        raise SystemExit(143)
    assert failures_of_run(tmp_path / "results", []) == []


def test_a_killed_job_is_a_failure_without_a_reason(tmp_path: Path) -> None:
    [failure] = failures_of_run(tmp_path, [failed("attribute", WILDCARDS)])
    assert failure == Failure("attribute", {"model": "m", "method": "gradient"})
    assert failures_of_run(tmp_path, []) == [failure]  # recorded for the next run
    clear(tmp_path)
    clear(tmp_path)
    assert failures_of_run(tmp_path, []) == []


def test_a_combined_job_has_failed_by_its_parts(tmp_path: Path) -> None:
    parts = [
        {"rule": "attribute", "wildcards": {**WILDCARDS, "method": name}} for name in ("gradient", "lrp")
    ]
    combined = failed("attribute__m", {}, parts=parts)
    assert [failure.rule for failure in failures_of_run(tmp_path / "killed", [combined])] == ["attribute__m"]
    part = Failure("attribute", {"model": "m", "method": "lrp"}, "no")
    record(tmp_path, part)
    assert failures_of_run(tmp_path, [combined]) == [part]

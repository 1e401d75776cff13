"""The default limit on job starts is removed; a user's limit and other schedulers stay as they are."""

from types import SimpleNamespace
from typing import Any

import pytest
from snakemake.cli import get_argument_parser
from snakemake.scheduling.job_scheduler import JobRateLimiter
from snakemake.settings.types import MaxJobsPerTimespan

from saliency_assay.pipeline.snakemake_internals import remove_default_limit


def workflow(limiter: Any) -> SimpleNamespace:
    return SimpleNamespace(scheduler=SimpleNamespace(job_rate_limiter=limiter))


def test_the_default_of_the_installed_snakemake_is_removed() -> None:
    limited = workflow(JobRateLimiter(get_argument_parser().parse_args([]).max_jobs_per_timespan))
    assert remove_default_limit(limited)
    assert limited.scheduler.job_rate_limiter is None
    assert not remove_default_limit(limited)


@pytest.mark.parametrize("limit", ["100/1m", "10/1s"])
def test_a_limit_of_the_user_stays(limit: str) -> None:
    limiter = JobRateLimiter(MaxJobsPerTimespan.parse_choice(limit))
    limited = workflow(limiter)
    assert not remove_default_limit(limited)
    assert limited.scheduler.job_rate_limiter is limiter


@pytest.mark.parametrize(
    "other", [SimpleNamespace(), workflow(None), workflow(object())], ids=["no scheduler", "none", "another"]
)
def test_other_versions_of_snakemake_are_left_as_they_are(other: SimpleNamespace) -> None:
    before = vars(other).copy()
    assert not remove_default_limit(other)
    assert vars(other) == before


def test_a_limiter_that_cannot_be_replaced_stays() -> None:
    class Scheduler:
        @property
        def job_rate_limiter(self) -> SimpleNamespace:
            return SimpleNamespace(max_jobs=100, timespan=1)

    assert not remove_default_limit(SimpleNamespace(scheduler=Scheduler()))

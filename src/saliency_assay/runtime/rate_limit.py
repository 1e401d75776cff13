"""Removal of Snakemake's default limit on job starts, with which its scheduler runs more often after every job."""

from contextlib import suppress
from typing import Any

DEFAULT = (100, 1)
"""Jobs and seconds of the default of ``--max-jobs-per-timespan``."""


def remove_default_limit(workflow: Any) -> bool:
    """Remove the default limit on job starts from the scheduler of a running Snakemake workflow.

    With a limit, each pass of the scheduler of Snakemake 9.27 schedules another pass after the limit's timespan while
    jobs are ready, even if the limit is not reached. Each finished job starts such a chain of passes, and none of them
    ends. A limit set by the user is kept. If Snakemake lacks these attributes, nothing is changed.

    Returns:
        True if a limit was removed.
    """
    with suppress(AttributeError):
        scheduler = workflow.scheduler
        limiter = scheduler.job_rate_limiter
        if (limiter.max_jobs, limiter.timespan) == DEFAULT:
            scheduler.job_rate_limiter = None
            return True
    return False

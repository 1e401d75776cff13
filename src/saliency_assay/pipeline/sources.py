"""Check before the first job that the user's files exist which the jobs of a run read."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from saliency_assay.runtime.user_files import UserFiles


def check_sources(workflow: Any, files: UserFiles) -> None:
    """Check the files and folders that the settings of the planned jobs request.

    The configuration accepts those that existed in an earlier run, so that its results can be used without the data.

    Args:
        workflow: Snakemake's workflow, which has planned the jobs.
        files: the files of its configuration.

    Raises:
        ValueError: some do not exist; the message has a line with the place in the configuration for each of them.
    """
    if not files.gone:  # the settings of thousands of jobs take seconds
        return
    files.requested.clear()
    for rule, wildcards in _jobs(workflow):
        rule.params.settings(wildcards)
    # Sorted, since the planned jobs have no order.
    if problems := sorted({source.problem for source in files.requested if not source.exists}):
        raise ValueError("\n".join(problems))


def _jobs(workflow: Any) -> Iterator[tuple[Any, Mapping[str, str]]]:
    """Yield rule and wildcards of each planned job, for a combined job those of the parts without results.

    Its other parts may be unchanged.
    """
    for job in workflow.dag.needrun_jobs():
        settings = job.params.get("settings") or {}
        for part in settings.get("parts", ()):
            if not all(Path(file).exists() for file in part["output"]["files"]):
                yield workflow.get_rule(part["rule"]), part["wildcards"]
        if settings and "parts" not in settings:
            yield job.rule, job.wildcards

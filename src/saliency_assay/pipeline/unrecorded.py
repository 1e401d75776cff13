"""Results whose settings Snakemake does not know, so that it cannot tell whether they are up to date."""

from pathlib import Path
from typing import Any


def unrecorded_text(workflow: Any) -> str:
    """Return a sentence on results whose settings Snakemake does not know, so that no change reruns them; else ``""``.

    Snakemake keeps the settings of jobs in the working directory, by the path of each result as it is spelled.
    """
    planned = set(workflow.dag.needrun_jobs())
    kept = [file for job in workflow.dag.jobs if job not in planned for file in job.output]
    unknown = [str(file) for file in kept if Path(file).exists() and not workflow.persistence.metadata(file)]
    if not unknown:
        return ""
    return (
        f"{len(unknown)} result files, such as {unknown[0]}, have no record in {Path('.snakemake').resolve()}: changes "
        "of configuration or code since they were made are unknown. Start in the folder of the run that made them, with"
        " the same spelling of results; or recompute them with --forceall"
    )

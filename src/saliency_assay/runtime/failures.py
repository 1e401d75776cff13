"""Records of failed jobs in the results folder, by which ``make run`` leaves their methods out of the report."""

import json
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.provenance import fingerprint

RECORDS = ".state/failures"
"""Folder of the records in the results folder."""
RESULTS = "results"
"""Default of the key ``results``."""
KILLED = "ended without an error message"


@dataclass(frozen=True)
class Failure:
    """A failed job; ``wildcards`` without those that are empty."""

    rule: str
    wildcards: Mapping[str, str] = field(default_factory=dict)
    reason: str = KILLED

    def file(self, results: Path) -> Path:
        """Return the file of its record."""
        return results / RECORDS / f"{fingerprint([self.rule, self.wildcards])[:16]}.json"


def failure_of(snakemake: Any, reason: str = "") -> Failure:
    """Return the failure of the job of a script, whose object ``snakemake`` this is."""
    return Failure(snakemake.rule, _filled(snakemake.wildcards.items()), reason)


def results_of(snakemake: Any) -> Path | None:
    """Return the results folder of the job of a script; None in a test without a configuration."""
    configuration = getattr(snakemake, "config", None)
    return None if configuration is None else Path(configuration.get("results") or RESULTS)


def record(results: Path, failure: Failure) -> None:
    """Write the record of a failure; an error, such as that of a full disk, is ignored, because the job has failed."""
    with suppress(OSError), replacing(failure.file(results)) as temporary:
        temporary.write_text(json.dumps(asdict(failure)), encoding="utf-8")


def forget(results: Path, failure: Failure) -> None:
    """Delete the record that an earlier attempt of a job has left."""
    with suppress(OSError):
        failure.file(results).unlink(missing_ok=True)


def clear(results: Path) -> None:
    """Delete the records of an earlier run."""
    shutil.rmtree(results / RECORDS, ignore_errors=True)


def failures_of_run(results: Path, failed_jobs: Iterable[Any]) -> list[Failure]:
    """Return the failures of a run: all records, and the failed jobs that left none, such as killed ones; record these.

    Args:
        results: results folder.
        failed_jobs: Snakemake's jobs that failed. A combined job has left a record if one of its parts has.
    """
    files = sorted((results / RECORDS).glob("*.json"))
    failures = [Failure(**json.loads(file.read_text(encoding="utf-8"))) for file in files]
    recorded = {failure.file(results) for failure in failures}
    for job in failed_jobs:
        failure = Failure(job.rule.name, _filled(job.wildcards_dict.items()))
        parts = (job.params.get("settings") or {}).get("parts", [])
        possible = [Failure(part["rule"], _filled(part["wildcards"].items())) for part in parts]
        if recorded.isdisjoint(each.file(results) for each in [failure, *possible]):
            failures.append(failure)
            record(results, failure)  # for the next run, if it leaves out other methods only
    return failures


def _filled(wildcards: Iterable[tuple[str, Any]]) -> dict[str, str]:
    return {name: str(value) for name, value in wildcards if str(value)}

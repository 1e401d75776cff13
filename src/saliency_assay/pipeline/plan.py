"""Estimate of a configuration before it runs: jobs, models, hours and storage of each study.

Jobs are those that Snakemake plans. Hours come from jobs that have run, by Snakemake's benchmark files; what nothing
has measured is said to be unknown.
"""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod
from pathlib import Path
from statistics import fmean
from typing import Any

from saliency_assay.runtime.shards import NAMED

UNKNOWN = "?"
MORE = "+"
SMALLEST = 0.001
COLUMNS = {
    "jobs": "jobs",
    "models": "models",
    "device": "model hours",  # of jobs that run a model, on a GPU where there is one
    "other": "other hours",
    "storage": "storage, GB",
}
COUNTED = re.compile(r"^(\w+) +(\d+)$")


@dataclass(frozen=True)
class Study:
    """A study to be planned."""

    name: str
    jobs: Mapping[str, int]
    """By rule, see ``job_counts``."""
    like: Mapping[str, Sequence[Sequence[Any]]]
    """For rules whose time the study decides: folders of benchmarks, first come, and how many of their jobs one is. The
    jobs of all parts of a set are one there."""
    models_each: Mapping[str, int]
    """Models that one job of a rule trains."""
    storage: float | None
    """Bytes, None where they are not known."""


def job_counts(printed: str) -> dict[str, int]:
    """Jobs by rule from what ``snakemake --dry-run`` prints: the table below ``Job stats``, without targets.

    Raises:
        ValueError: there is no such table.
    """
    _, found, table = printed.partition("Job stats:\n")
    if not found:
        raise ValueError("the dry run of snakemake printed no job stats")
    rows = (COUNTED.match(line.strip()) for line in table.partition("\ntotal ")[0].splitlines())
    return {row[1]: int(row[2]) for row in rows if row}


def seconds_of(rule: str, study: Study, benchmarks: Path) -> float | None:
    """Mean seconds of a job of ``rule``, by the first of what it is ``like`` that has run; None if nothing has.

    A rule that is like nothing takes what its jobs take in any study.
    """
    for folder, times in study.like.get(rule, [(rule, 1)]):
        if measured := _seconds(benchmarks / folder):
            return float(times) * fmean(measured)
    return None


def _seconds(folder: Path) -> list[float]:
    """Return the column ``s`` of all benchmark files below ``folder``; of a part what all would take."""
    found: list[float] = []
    for file in sorted(folder.rglob("*.tsv")):
        part = NAMED.search(file.name)
        parts = int(part[2]) if part else 1
        with file.open(encoding="utf-8", newline="") as lines:
            found += [parts * float(row["s"]) for row in csv.DictReader(lines, delimiter="\t")]
    return found


def mask_bytes(images: int, shape: Sequence[int], masks: int) -> int:
    """Bytes of a store of ``masks`` masks for each of ``images`` of ``shape`` C, H, W: bits, colours, and one flag."""
    channels, *size = shape
    return images * (ceil(masks * prod(size) / 8) + masks * channels + 1)


def storage_of(shape: Sequence[int], mask_stores: Iterable[tuple[int, int]], maps: int, weights: int) -> int:
    """Bytes of images uint8 of ``shape`` N, C, H, W, stores of masks, ``maps`` maps in float32, and ``weights``.

    ``mask_stores`` are pairs: how many stores, and how many masks of each image one holds. Maps are counted with all
    channels.
    """
    count, *image = shape
    masks = sum(stores * mask_bytes(count, image, each) for stores, each in mask_stores)
    return count * prod(image) + masks + 4 * prod(image) * maps + weights


def row_of(study: Study, on_device: Iterable[str], benchmarks: Path) -> dict[str, Any]:
    """Return a row of the plan: ``COLUMNS``, hours and storage as (value, whether anything of it is not known).

    ``unmeasured`` are the rules of which hours are not known.
    """
    seconds = {rule: seconds_of(rule, study, benchmarks) for rule in study.jobs}
    held = set(on_device)
    hours = {}
    for name, here in (("device", held & seconds.keys()), ("other", seconds.keys() - held)):
        known = [(seconds[rule] or 0) * study.jobs[rule] / 3600 for rule in here]
        hours[name] = (sum(known), any(seconds[rule] is None for rule in here))
    return {
        "study": study.name,
        "jobs": sum(study.jobs.values()),
        "models": sum(jobs * study.models_each.get(rule, 0) for rule, jobs in study.jobs.items()),
        **hours,
        "storage": ((study.storage or 0) / 1e9, study.storage is None),
        "unmeasured": [rule for rule, value in seconds.items() if value is None],
    }


def plan_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the plan as a table of fixed width, one line a study, and below it what is not known and why."""
    cells = [[row["study"], *(_cell(row[name]) for name in COLUMNS)] for row in rows]
    table = [["", *COLUMNS.values()], *cells]
    widths = [max(len(line[place]) for line in table) + 2 for place in range(len(table[0]))]
    lines = []
    for name, *numbers in table:
        right = [cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True)]
        lines.append("".join([name.ljust(widths[0]), *right]))
    missing = sorted({rule for row in rows for rule in row["unmeasured"]})
    if missing:
        lines.append(f"hours marked {MORE} or {UNKNOWN}: no job has run yet of {', '.join(missing)}")
    if any(row["storage"][1] for row in rows):
        lines.append(f"storage marked {UNKNOWN}: the data set or the first model has not been made yet")
    return "\n".join(lines)


def _cell(found: int | tuple[float, bool]) -> str:
    if isinstance(found, int):
        return f"{found:,}"
    value, incomplete = found
    if incomplete and not value:
        return UNKNOWN
    text = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    if 0 < value < SMALLEST:
        text = f"<{SMALLEST}"
    return f"{text}{MORE if incomplete else ''}"

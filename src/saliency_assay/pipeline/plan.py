"""Estimate of the jobs, models, hours and storage of each study before a configuration is run.

Jobs are those that Snakemake plans. Hours are estimated from the benchmark files of jobs that have run; hours without
such a measurement are marked as unknown.
"""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod
from pathlib import Path
from statistics import fmean
from typing import Any

from saliency_assay.runtime.shards import SUFFIX

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
    """Numbers of one study from which its row of the plan is computed."""

    name: str
    jobs: Mapping[str, int]
    """Number of jobs by rule, see ``job_counts``."""
    like: Mapping[str, Sequence[Sequence[Any]]]
    """For rules whose time depends on the study: pairs of a benchmark folder and a factor, in order of preference.

    The factor is the duration of one job of the rule divided by that of one job in the folder, where the jobs of all
    shards of a set count as one.
    """
    models_each: Mapping[str, int]
    """Number of models that one job of a rule trains."""
    storage: float | None
    """Bytes of storage; None if unknown."""


def job_counts(printed: str) -> dict[str, int]:
    """Return the number of jobs by rule from the output of ``snakemake --dry-run``: its table ``Job stats``.

    Raises:
        ValueError: the output has no such table.
    """
    _, heading, table = printed.partition("Job stats:\n")
    if not heading:
        raise ValueError("the dry run of snakemake printed no table of job stats")
    rows = (COUNTED.match(line.strip()) for line in table.partition("\ntotal ")[0].splitlines())
    return {row[1]: int(row[2]) for row in rows if row}


def seconds_of(rule: str, study: Study, benchmarks: Path) -> float | None:
    """Return the estimated seconds of a job of ``rule``; None without a measurement.

    The estimate is the mean of the first folder in ``study.like`` with benchmarks. Rules without an entry there use the
    benchmarks of their jobs in all studies.
    """
    for folder, times in study.like.get(rule, [(rule, 1)]):
        if measured := _benchmark_seconds(benchmarks / folder):
            return float(times) * fmean(measured)
    return None


def _benchmark_seconds(folder: Path) -> list[float]:
    """Return the column ``s`` of all benchmark files below ``folder``, for one shard times the number of shards."""
    seconds: list[float] = []
    for file in sorted(folder.rglob("*.tsv")):
        shard = SUFFIX.search(file.name)
        shards = int(shard[2]) if shard else 1
        with file.open(encoding="utf-8", newline="") as lines:
            seconds += [shards * float(row["s"]) for row in csv.DictReader(lines, delimiter="\t")]
    return seconds


def mask_bytes(images: int, shape: Sequence[int], masks: int) -> int:
    """Return the bytes of a store with ``masks`` masks for each of ``images`` images of ``shape`` C, H, W.

    An image has one bit for each mask and pixel, one byte for each mask and channel (fill colors), and one flag.
    """
    channels, *size = shape
    return images * (ceil(masks * prod(size) / 8) + masks * channels + 1)


def storage_of(shape: Sequence[int], mask_stores: Iterable[tuple[int, int]], maps: int, weights: int) -> int:
    """Return the bytes of uint8 images of ``shape`` N, C, H, W, mask stores, float32 maps, and ``weights`` bytes.

    ``mask_stores`` are pairs of a number of stores and the number of masks of each image in one of them. ``maps`` is
    the number of maps, which are counted with all channels.
    """
    count, *image = shape
    masks = sum(stores * mask_bytes(count, image, masks_per_image) for stores, masks_per_image in mask_stores)
    return count * prod(image) + masks + 4 * prod(image) * maps + weights


def row_of(study: Study, on_device: Iterable[str], benchmarks: Path) -> dict[str, Any]:
    """Return a row of the plan: ``COLUMNS``, with hours and storage as pairs (value, True if incomplete).

    The entry ``unmeasured`` lists the rules without a measured time.
    """
    seconds = {rule: seconds_of(rule, study, benchmarks) for rule in study.jobs}
    device_rules = set(on_device)
    hours = {}
    for name, rules in (("device", device_rules & seconds.keys()), ("other", seconds.keys() - device_rules)):
        measured = [(seconds[rule] or 0) * study.jobs[rule] / 3600 for rule in rules]
        hours[name] = (sum(measured), any(seconds[rule] is None for rule in rules))
    return {
        "study": study.name,
        "jobs": sum(study.jobs.values()),
        "models": sum(jobs * study.models_each.get(rule, 0) for rule, jobs in study.jobs.items()),
        **hours,
        "storage": ((study.storage or 0) / 1e9, study.storage is None),
        "unmeasured": [rule for rule, value in seconds.items() if value is None],
    }


def plan_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the plan as a table of fixed width with one line for each study, and notes on unknown values below it."""
    cells = [[row["study"], *(_cell_text(row[name]) for name in COLUMNS)] for row in rows]
    table = [["", *COLUMNS.values()], *cells]
    widths = [max(len(line[column]) for line in table) + 2 for column in range(len(table[0]))]
    lines = []
    for name, *numbers in table:
        aligned = [cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True)]
        lines.append("".join([name.ljust(widths[0]), *aligned]))
    missing = sorted({rule for row in rows for rule in row["unmeasured"]})
    if missing:
        lines.append(
            f"hours marked {MORE} or {UNKNOWN}: no job has run yet of the rules {', '.join(missing)}"
        )
    if any(row["storage"][1] for row in rows):
        lines.append(
            f"storage marked {UNKNOWN}: the data set or the weights of the first model do not exist yet"
        )
    return "\n".join(lines)


def _cell_text(quantity: int | tuple[float, bool]) -> str:
    """Return a count, or a value with a mark if it is incomplete, as text."""
    if isinstance(quantity, int):
        return f"{quantity:,}"
    value, incomplete = quantity
    if incomplete and not value:
        return UNKNOWN
    text = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    if 0 < value < SMALLEST:
        text = f"<{SMALLEST}"
    return f"{text}{MORE if incomplete else ''}"

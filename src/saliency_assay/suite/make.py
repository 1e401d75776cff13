"""Computation of the reference scores, and of a tenth of them to compare with."""

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.api.choices import bind
from saliency_assay.studies.validity.degrade import Degraded
from saliency_assay.studies.validity.known_order import ALL, known_order_table
from saliency_assay.studies.validity.rescoring import ORIGINAL
from saliency_assay.suite import VERSION
from saliency_assay.suite.scores import LoadedTask, TaskScores, reference, score
from saliency_assay.suite.tasks import ASSETS, TASKS, MissingData, Task

SHARE = 10
"""One in this many methods is computed again by ``check``."""
DEGRADED, DEGRADATIONS, LEVELS = ("gradient_x_input", "gradcam"), ("noise", "removal"), (0.5, 1.0)
"""Methods whose maps are degraded to measure the validity of metrics, and how."""
TOLERANCE = 1e-4
"""Largest difference of a score, relative to the standard deviation of all scores, that counts as equal."""


def task_list() -> str:
    """Return a line for each task."""
    lines = [f"suite {VERSION}"]
    for task in TASKS:
        counts = f"{len(task.methods)} methods, {len(task.metrics)} metrics"
        lines.append(f"{task.name:12} {task.model}; {task.images}; {counts}")
        if task.needs_data:
            try:
                LoadedTask.load(task, Path("data"))
            except MissingData as error:
                lines.append(f"{'':12} {error}")
    return "\n".join(lines)


def make(tasks: Sequence[Task], data: Path, output: Path) -> int:
    """Compute the reference scores of tasks and store them in the package; return the exit status."""
    for loaded in _loaded(tasks, data):
        name, methods = loaded.task.name, loaded.task.methods
        scores = score(loaded, methods, output / name)
        scores.known_order = known_order(loaded, output / name / "degraded")
        scores.save(ASSETS / VERSION)
        files = [ASSETS / VERSION / f"{name}.{suffix}" for suffix in ("json", "parquet")]
        size = sum(file.stat().st_size for file in files) / 1e3
        print(f"{name}: {len(scores.methods)} methods, {len(scores.table)} scores, {size:.0f} kB")
        print("".join(f"  {failure}\n" for failure in scores.failures), end="")
    return 0


def check(tasks: Sequence[Task], data: Path, output: Path) -> int:
    """Compute the scores of every tenth method of each task again; return 1 if some differ from the reference."""
    status = 0
    for loaded in _loaded(tasks, data):
        name = loaded.task.name
        methods = {each: loaded.task.methods[each] for each in [*loaded.task.methods][::SHARE]}
        lines = differences(reference(name), score(loaded, methods, output / f"{name}_again"))
        status = max(status, int(bool(lines)))
        print(f"{name}: {', '.join(methods)}: {'differs' if lines else 'equal'}")
        print("".join(f"  {line}\n" for line in lines), end="")
    return status


def _loaded(tasks: Sequence[Task], data: Path) -> Iterator[LoadedTask]:
    """Yield the tasks whose data are there: all, if ``tasks`` are given, and otherwise those of the suite.

    Raises:
        MissingData: data of one of ``tasks`` are missing.
    """
    for task in tasks or TASKS:
        try:
            yield LoadedTask.load(task, data)
        except MissingData as error:
            if tasks:
                raise MissingData(f"{task.name}: {error}") from None
            print(f"{task.name}: left out: {error}", file=sys.stderr)


def known_order(loaded: LoadedTask, folder: Path) -> list[dict[str, Any]]:
    """Return how well each score agrees with the known order of degraded maps; see ``TaskScores.known_order``."""
    methods: dict[str, dict[str, Any]] = {}
    tests = {}
    for base in DEGRADED:
        bound = bind(base, loaded.model, has_mean=True)
        function = partial(bound.function, **bound.arguments)
        for degradation, level in (("", 0.0), *product(DEGRADATIONS, LEVELS)):
            name = f"{base}-{degradation}-{level:g}" if degradation else base
            method = Degraded(function, degradation, level, seed=0) if degradation else function
            methods[name] = {"method": method}
            tests[name] = (base, degradation or ORIGINAL, level)
    result = loaded.benchmark(methods, folder)
    parts = zip(*(tests[name] for name in result.scores["method"]), strict=True)
    scores = result.scores.assign(**dict(zip(("method", "test", "level"), parts, strict=True)))
    table = known_order_table(scores, result.directions, level=0.95)
    averages = table[(table["method"] == ALL) & (table["degradation"] == ALL)]
    columns = ["metric", "variant", "micro", "micro_low", "micro_high"]
    return [dict(zip(columns, row, strict=True)) for row in averages[columns].to_numpy().tolist()]


def differences(before: TaskScores, again: TaskScores) -> list[str]:
    """Return in words how scores differ from those of the reference, and what may be the cause."""
    lines = [
        f"{name}: found {getattr(again, name)[:12]}, expected {getattr(before, name)[:12]}"
        for name in ("suite", "images", "model")
        if getattr(before, name) != getattr(again, name)
    ]
    keys = ["method", "metric", "variant", "seed", "image"]
    tables = [each.table.astype({"method": str, "metric": str, "variant": str}) for each in (before, again)]
    names = {each.name for each in again.methods}
    old = tables[0][tables[0]["method"].isin(names)]
    both = pd.merge(old, tables[1], on=keys, how="outer", suffixes=("_before", "_again"), indicator=True)
    missing = both["_merge"] != "both"
    if missing.any():
        lines.append(f"{int(missing.sum())} scores are only in one of both")
    both = both[~missing]
    spread = old.groupby(["metric", "variant"])["score"].std()
    scale = spread.reindex(pd.MultiIndex.from_frame(both[["metric", "variant"]])).to_numpy()
    one, two = both["score_before"].to_numpy(np.float64), both["score_again"].to_numpy(np.float64)
    with np.errstate(invalid="ignore"):
        same = (np.abs(one - two) <= TOLERANCE * np.where(scale > 0, scale, 1)) | (
            np.isnan(one) & np.isnan(two)
        )
    for (method, metric), rows in both[~same].groupby(["method", "metric"]):
        largest = np.nanmax(np.abs(rows["score_before"] - rows["score_again"]))
        lines.append(f"{method}, {metric}: {len(rows)} scores differ, by up to {largest:.2g}")
    if lines:
        lines += [
            f"{package}: {before.versions.get(package)} in the reference, {version} here"
            for package, version in again.versions.items()
            if before.versions.get(package) != version
        ]
        lines += [
            f"the code of {name} has changed"
            for name, digest in again.code.items()
            if before.code.get(name) != digest
        ]
    return lines

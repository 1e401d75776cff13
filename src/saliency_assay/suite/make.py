"""Computation of the reference scores, and of a tenth of them to compare with."""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from saliency_assay.suite import VERSION
from saliency_assay.suite.scores import TaskScores, reference, score
from saliency_assay.suite.tasks import ASSETS, TASKS, MissingData, Task

SHARE = 10
"""One in this many methods is computed again by ``check``."""
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
                task.load_images(Path("data"))
                task.load_model(Path("data"))
            except MissingData as error:
                lines.append(f"{'':12} {error}")
    return "\n".join(lines)


def make(tasks: Sequence[Task], data: Path, output: Path, *, required: bool) -> int:
    """Compute the reference scores of tasks and store them in the package; return the exit status."""
    for task in tasks:
        try:
            scores = score(task, task.methods, output / task.name, data=data)
        except MissingData as error:
            if required:
                raise
            print(f"{task.name}: left out: {error}", file=sys.stderr)
            continue
        scores.save(ASSETS / VERSION)
        size = sum(
            (ASSETS / VERSION / f"{task.name}.{suffix}").stat().st_size for suffix in ("json", "parquet")
        )
        print(f"{task.name}: {len(scores.methods)} methods, {len(scores.table)} scores, {size / 1e3:.0f} kB")
        for failure in scores.failures:
            print(f"  {failure}")
    return 0


def check(tasks: Sequence[Task], data: Path, output: Path, *, required: bool) -> int:
    """Compute the scores of every tenth method of each task again; return 1 if some differ from the reference."""
    status = 0
    for task in tasks:
        names = [*task.methods][::SHARE]
        try:
            again = score(
                task, {name: task.methods[name] for name in names}, output / f"check_{task.name}", data=data
            )
        except MissingData as error:
            if required:
                raise
            print(f"{task.name}: left out: {error}", file=sys.stderr)
            continue
        lines = differences(reference(task.name), again)
        status = max(status, int(bool(lines)))
        print(f"{task.name}: {', '.join(names)}: {'equal' if not lines else ''}")
        print("".join(f"  {line}\n" for line in lines), end="")
    return status


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

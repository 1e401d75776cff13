"""Entries of methods into the reference suite: files that ``saliency-assay enter`` writes, and their checks."""

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from saliency_assay.suite import VERSION
from saliency_assay.suite.scores import TaskScores, reference
from saliency_assay.suite.tasks import TASKS

ENTRY = "entry.json"
LARGEST = 50 << 20
"""Bytes of an unpacked entry."""
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,59}")
SAME = ("suite", "images", "model", "targets")
"""Fields in which an entry equals the reference."""


def read_entry(path: Path) -> tuple[dict[str, Any], list[TaskScores]]:
    """Return the description in an entry, and its scores on each task.

    Raises:
        ValueError: it is not a file of ``saliency-assay enter``, or not of this version of the suite.
    """
    valid = {ENTRY, *(f"{task.name}.{suffix}" for task in TASKS for suffix in ("json", "parquet"))}
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            names = {member.filename for member in members}
            if ENTRY not in names or names - valid or len(names) < len(members):
                raise ValueError(
                    f"{path}: found {', '.join(sorted(names - valid)) or 'other files'}, expected an entry"
                )
            if sum(member.file_size for member in members) > LARGEST:
                raise ValueError(f"{path}: found more than {LARGEST >> 20} MB, expected an entry")
            facts = json.loads(archive.read(ENTRY))
            if facts["suite"] != VERSION:
                raise ValueError(f"{path}: found suite {facts['suite']}, expected {VERSION}")
            with TemporaryDirectory() as folder:
                archive.extractall(folder)
                scores = [TaskScores.load(Path(folder), task) for task in map(str, facts["tasks"])]
    except (zipfile.BadZipFile, KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: is damaged: {type(error).__name__}: {error}") from None
    return facts, scores


def problems(path: Path) -> list[str]:
    """Return what is wrong with an entry, one line each; empty if it can be accepted."""
    try:
        facts, of_tasks = read_entry(path)
    except ValueError as error:
        return [str(error)]
    found = []
    if not of_tasks:
        found.append("tasks: found none, expected at least one")
    for scores in of_tasks:
        found += [f"{scores.task}: {problem}" for problem in _problems(scores, str(facts.get("name")))]
    return found


def _problems(scores: TaskScores, name: str) -> Iterator[str]:
    before = reference(scores.task)
    for field in SAME:
        if getattr(scores, field) != getattr(before, field):
            yield f"{field}: differs from the reference"
    methods = [each.name for each in scores.methods]
    if methods != [name] or not NAME.fullmatch(name):
        yield f"methods: found {methods}, expected one, the name of the entry"
    elif any(each.name == name for each in before.methods):
        yield f"name: found {name!r}, which the reference has"
    table, limits = (
        scores.table,
        {score: ends for each in before.metrics for score, ends in each.ranges.items()},
    )
    known = set(zip(before.table["metric"].astype(str), before.table["variant"].astype(str), strict=True))
    pairs = set(zip(table["metric"].astype(str), table["variant"].astype(str), strict=True))
    if extra := sorted(pairs - known):
        yield f"scores: found {extra[0]}, which the task does not have"
    if set(table["method"].astype(str)) - {name}:
        yield "scores: found those of other methods"
    if table.duplicated(["metric", "variant", "seed", "image"]).any():
        yield "scores: found two of an image"
    expected = set(range(len(before.targets)))
    for key, rows in table.groupby(["metric", "variant", "seed"], observed=True):
        if set(rows["image"]) != expected:
            yield f"scores: {key}: found {rows['image'].nunique()} images, expected {len(expected)}"
    for metric, rows in table.groupby("metric", observed=True):
        low, high = limits.get(str(metric), (-np.inf, np.inf))
        values = rows["score"].to_numpy(np.float64)
        values = values[~np.isnan(values)]
        rounding = 1e-6 * max(1.0, *(abs(end) for end in (low, high) if np.isfinite(end)), 0.0)
        outside = values[(values < low - rounding) | (values > high + rounding) | ~np.isfinite(values)]
        if len(outside):
            yield f"scores: {metric}: found {outside[0]:g}, expected {low:g} to {high:g}"


def entries(folder: Path) -> list[Path]:
    """Return the files of all entries in ``folder``, sorted."""
    return sorted(folder.glob("*.zip"))


def written(facts: dict[str, Any], scores: list[TaskScores]) -> bytes:
    """Return an entry as bytes: the scores, settings, versions and digests on each task, without images or maps."""
    content = io.BytesIO()
    with TemporaryDirectory() as folder, zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(ENTRY, json.dumps({**facts, "tasks": [each.task for each in scores]}, indent=1))
        for each in scores:
            each.save(Path(folder))
            for suffix in ("json", "parquet"):
                archive.write(Path(folder) / f"{each.task}.{suffix}", f"{each.task}.{suffix}")
    return content.getvalue()

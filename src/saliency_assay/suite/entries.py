"""Entries of methods into the reference suite: files that ``saliency-assay enter`` writes, and their checks."""

import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from saliency_assay.suite import VERSION
from saliency_assay.suite.scores import TaskScores, reference
from saliency_assay.suite.tasks import SEEDS, TASKS

ENTRY = "entry.json"
LARGEST = 50 << 20
"""Bytes of an unpacked entry."""
MOST_ROWS = 1_000_000
"""Scores of an entry on one task."""
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
            facts = json.loads(archive.read(ENTRY).decode("utf-8"))
            if facts["suite"] != VERSION:
                raise ValueError(f"{path}: found suite {facts['suite']}, expected {VERSION}")
            tasks = [str(task) for task in facts["tasks"]]
            if len(set(tasks)) < len(tasks):
                raise ValueError(f"{path}: tasks: found {', '.join(tasks)}, expected each once")
            with TemporaryDirectory() as folder:
                archive.extractall(folder)
                scores = [_loaded(Path(folder), task) for task in tasks]
    except (
        KeyError,
        TypeError,
        RuntimeError,
        OSError,
        zlib.error,
        zipfile.BadZipFile,
        UnicodeDecodeError,
    ) as error:
        raise ValueError(f"{path}: is damaged: {type(error).__name__}: {error}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: {ENTRY}: is damaged: {error}") from None
    return facts, scores


def _loaded(folder: Path, task: str) -> TaskScores:
    """Return the scores of a task in an unpacked entry.

    Raises:
        ValueError: they are damaged, too many, or those of another task.
    """
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    file = folder / f"{task}.parquet"
    if file.is_file() and (rows := pq.read_metadata(file).num_rows) > MOST_ROWS:
        raise ValueError(f"{file.name}: found {rows} rows, expected at most {MOST_ROWS}")
    scores = TaskScores.load(folder, task)
    if scores.task != task:
        raise ValueError(f"{task}.json: found the task {scores.task!r}, expected {task}")
    return scores


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
    if [each.name for each in scores.methods] != [name] or not NAME.fullmatch(name):
        yield f"methods: found {[each.name for each in scores.methods]}, expected one, the name of the entry"
        return
    [method] = scores.methods
    try:
        before.check_new(name, method.label)
    except ValueError as error:
        yield str(error)
    if method.is_baseline or method.member is not None or not isinstance(method.label, str):
        yield f"methods: {name}: found a baseline or a member of a family, expected a method"
    if not isinstance(scores.settings, dict) or set(scores.settings) != {name}:
        yield "settings: expected those of the method alone"
    metrics = {each.name for each in before.metrics}
    if other := [
        each for each in scores.failures if each.method != name or each.metric not in metrics | {""}
    ]:
        yield f"failures: found {other[0]}, expected those of the method"
    yield from _problems_of_table(scores, before, name)


def _problems_of_table(scores: TaskScores, before: TaskScores, name: str) -> Iterator[str]:
    table = scores.table
    if set(table["method"].astype(str)) != {name}:
        yield "scores: expected those of the method alone"
    if table.duplicated(["metric", "variant", "seed", "image"]).any():
        yield "scores: found two of an image"
    if (seeds := tuple(sorted(set(table["seed"].tolist())))) not in (SEEDS[:1], SEEDS):
        yield f"scores: found seeds {list(seeds)}, expected {list(SEEDS[:1])} or {list(SEEDS)}"
    known, found = (
        {*zip(each["metric"].astype(str), each["variant"].astype(str), strict=True)}
        for each in (before.table, table)
    )
    if found - known:
        yield f"scores: found {min(found - known)[0]}, which the task does not have"
    expected = set(range(len(before.targets)))
    for key, rows in table.groupby(["metric", "variant", "seed"], observed=True):
        if set(rows["image"]) != expected:
            yield f"scores: {key}: found {rows['image'].nunique()} images, expected {len(expected)}"
    limits = {score: ends for each in before.metrics for score, ends in each.ranges.items()}
    for metric, rows in table.groupby("metric", observed=True):
        low, high = limits.get(str(metric), (-np.inf, np.inf))
        values = rows["score"].dropna().to_numpy(np.float64)
        rounding = 1e-6 * max([1.0, *(abs(end) for end in (low, high) if np.isfinite(end))])
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

"""Sizes of the results of a run by kind, and deletion of those that can be made again."""

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from saliency_assay.pipeline.estimate import benchmark_seconds, duration_text
from saliency_assay.runs.results_folder import RunError, open_results
from saliency_assay.runtime.lock import acquire, release

PARTS = Path(".state/parts")
"""Outputs of the parts of combined jobs, hard links to results."""


@dataclass(frozen=True)
class Kind:
    """Results that can be made again."""

    patterns: tuple[str, ...]
    """Patterns of paths in the results folder; ``*`` also matches ``/``."""
    rules: tuple[str, ...]
    """Rules that make them, as patterns."""
    needed_for: str


KINDS = {
    "maps": Kind(("maps/*", "aggatt/*"), ("attribute", "score_grid"), "new metrics, galleries"),
    "curves": Kind(("curves/*",), ("score",), "figures of curves"),
    "responses": Kind(("responses/*",), ("respond",), "new methods under the same metric"),
    "masks": Kind(("remask/*/masks*.zarr.zip",), ("remask",), "further iterations of retraining"),
    "weights": Kind(
        ("models/*.pt", "finetuned/*", "remask/*.pt"),
        ("*train", "finetune"),
        "new maps; metrics that run a model",
    ),
    "data": Kind(
        ("data/*", "collections/*", "sources/*", "grids/*"),
        ("build_data", "collect_bam", "compose_bam", "compose_caption", "compose_grid"),
        "new maps, scores and galleries",
    ),
    "states": Kind((".state/*",), (), "unfinished trainings and masks"),
}
KEPT_STATE = (f"{PARTS.as_posix()}/*", ".state/digests.json", ".state/code.json", ".state/model_check")
"""Parts of the state that are not of unfinished jobs."""
OTHER = "other"


@dataclass(frozen=True)
class Usage:
    """Files of one kind."""

    files: tuple[Path, ...]
    size: int
    """Bytes on disk; a file with several hard links in the results folder counts once."""
    seconds: float
    """Time of the jobs that made them, from the benchmark files; 0 if none is recorded."""


def usage(results: Path) -> dict[str, Usage]:
    """Return files, sizes and times of each kind of results, and of all others as ``other``; empty kinds are left out.

    Raises:
        ValueError: the folder has no results.
    """
    open_results(results)
    files: dict[str, list[Path]] = {kind: [] for kind in (*KINDS, OTHER)}
    for file in sorted(path for path in results.rglob("*") if path.is_file() and not path.is_symlink()):
        files[_kind_of(file.relative_to(results).as_posix())].append(file)
    counted = set[tuple[int, int]]()
    used = {}
    for kind, of_kind in files.items():
        size = 0
        for status in (file.stat() for file in of_kind):
            if (status.st_dev, status.st_ino) not in counted:
                counted.add((status.st_dev, status.st_ino))
                size += 512 * status.st_blocks
        rules = KINDS[kind].rules if kind in KINDS else ()
        folders = [folder for rule in rules for folder in (results / "benchmarks").glob(rule)]
        seconds = sum(sum(benchmark_seconds(folder)) for folder in folders)
        if of_kind:
            used[kind] = Usage(tuple(of_kind), size, seconds)
    return used


def _kind_of(path: str) -> str:
    if any(fnmatch(path, pattern) for pattern in KEPT_STATE):
        return OTHER
    return next(
        (name for name, kind in KINDS.items() if any(fnmatch(path, pattern) for pattern in kind.patterns)),
        OTHER,
    )


def usage_text(used: dict[str, Usage]) -> str:
    """Return the table that ``saliency-assay prune`` prints."""
    lines = [f"{'kind':12}{'files':>9}{'MB':>12}  {'time to make again':20}needed for"]
    for kind, each in used.items():
        time = duration_text(each.seconds) if each.seconds else ""
        needed = KINDS[kind].needed_for if kind in KINDS else "reports, tables, logs; not deleted"
        lines.append(f"{kind:12}{len(each.files):9,}{each.size / 1e6:12,.1f}  {time:20}{needed}")
    return "\n".join(lines)


def prune(results: Path, kinds: Sequence[str], *, delete: bool) -> str:
    """Delete the results of ``kinds``, or only tell what would be deleted; return one line.

    Hard links to deleted files that combined jobs keep are deleted, too. A deleted file is made again when a job needs
    it, with all files on which it depends.

    Raises:
        ValueError: the folder has no results, a run uses it, or a kind is unknown.
    """
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise RunError(f"KIND: found {unknown[0]!r}; valid: {', '.join(KINDS)}")
    used = usage(results)
    chosen = [used[kind] for kind in dict.fromkeys(kinds) if kind in used]
    files = [file for each in chosen for file in each.files]
    text = f"{len(files):,} files, {sum(each.size for each in chosen) / 1e6:,.1f} MB"
    text += f", made in {duration_text(sum(each.seconds for each in chosen))}"
    if not delete:
        return f"would delete {text}; nothing was deleted, add --delete"
    lock = acquire(results)
    try:
        _delete(results, files)
    finally:
        release(lock, os.getpid())
    return f"deleted {text}"


def parts_with(results: Path, files: Iterable[Path]) -> list[Path]:
    """Return the folders of parts of combined jobs that keep a hard link to one of ``files``."""
    inodes = {_inode(file) for file in files}
    parts = (results / PARTS).glob("*")
    return [part for part in parts if not inodes.isdisjoint(map(_inode, part.iterdir()))]


def _inode(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_dev, status.st_ino


def _delete(results: Path, files: Iterable[Path]) -> None:
    for part in parts_with(results, files):
        shutil.rmtree(part)
    for file in files:
        file.unlink(missing_ok=True)
    for folder in sorted({file.parent for file in files}, reverse=True):
        while folder != results and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent

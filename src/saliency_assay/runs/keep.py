"""Snapshots of results folders, for comparisons with later runs."""

import os
import re
from pathlib import Path

from saliency_assay.runs.code_used import keep_code
from saliency_assay.runs.links import new_folder, place
from saliency_assay.runs.results_folder import USER_FILES, RunError, files_below, open_results
from saliency_assay.runtime.lock import acquire, release

INTERMEDIATE = ("sources", "collections", "responses", "finetuned", "remask")
"""Folders that neither comparisons nor the report read."""
WEIGHTS = ".pt"
NAME = re.compile(r"\w[\w.-]*")


def keep(results: Path, name: str, *, everything: bool = False) -> str:
    """Keep the results of a finished run in ``{results}_kept/{name}``.

    Args:
        results: the results folder.
        name: of the new folder.
        everything: True to keep weights of models and intermediate results, too.

    Returns:
        One line with the path, the number of files, their size and the part that is copied.

    Raises:
        ValueError: ``results`` has no results, a run uses it, or ``name`` is not a name or not new.
    """
    if not NAME.fullmatch(name):
        raise RunError(
            f"NAME: found {name!r}, expected letters, digits, '.', '_' and '-', first a letter or digit"
        )
    run, target = (
        open_results(results),
        results.absolute().with_name(f"{results.absolute().name}_kept") / name,
    )
    if os.path.lexists(target):
        raise RunError(f"NAME: {target} exists; choose another name, or delete it")
    lock = acquire(results)
    try:
        files = [file for file in files_below(results) if everything or _is_kept(file)]
        with new_folder(target) as temporary:
            copied = [file for file in files if place(results, file, temporary)]
            if (results / USER_FILES).is_file():
                place(results, USER_FILES.as_posix(), temporary)
            keep_code([run], temporary)
    finally:
        release(lock, os.getpid())
    total, new = (
        sum((target / file).stat().st_size for file in of_kind) / 1e6 for of_kind in (files, copied)
    )
    return f"{target}: {len(files):,} files, {total:,.1f} MB, of which {new:,.1f} MB are copies and not hard links"


def _is_kept(file: str) -> bool:
    return file.split("/")[0] not in INTERMEDIATE and not file.endswith(WEIGHTS)

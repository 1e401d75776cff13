"""Joining results folders with different studies."""

import filecmp
import json
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from saliency_assay.runs.code_used import keep_code
from saliency_assay.runs.links import new_folder
from saliency_assay.runs.results_folder import (
    CONFIGURATION,
    USER_FILES,
    Results,
    RunError,
    files_below,
    open_results,
    read_json,
)

SECTIONS = ("data", "models", "methods", "metrics", "studies")
"""Sections of the configuration whose entries are joined."""
MAY_DIFFER = ("results", "device")
"""Keys of the configuration that may differ: the device is that of the first run."""
TIMES = ("logs", "benchmarks", "costs")
"""Folders whose files may differ; the first run's are taken."""
OF_WHOLE_RUN = ("report.html", CONFIGURATION, "export")
"""Results of all studies together, which are written again; and files directly in ``figures``."""
MOST = 10
"""Number of conflicts that are listed."""


def merge(folders: Sequence[Path], output: Path) -> str:
    """Join results folders in the new folder ``output``, with a joint configuration.

    Files are copied with one time of modification, so that for Snakemake no input is newer than its outputs. What shows
    all studies together, such as the report, is left out.

    Returns:
        One line with the path, the numbers of files and studies, and the command that writes the report.

    Raises:
        ValueError: there are fewer than two folders, one of them has no results or no configuration, ``output``
            exists, or files or entries of the configuration differ. Nothing is written.
    """
    if len(folders) < 2:
        raise RunError(f"FOLDER: found {len(folders)}, expected at least two results folders")
    if os.path.lexists(output):
        raise RunError(f"--output: {output} exists, expected a new folder")
    runs = list(map(open_results, folders))
    for run in runs:
        if run.is_benchmark or not run.configuration:
            raise RunError(f"{run.folder}: found no {CONFIGURATION}, expected the results of a finished run")
    configuration, conflicts = _joint_configuration(runs)
    user_files, changed = _user_files(runs)
    conflicts += changed
    chosen = dict[str, Path]()
    for run in runs:
        for file in filter(_is_merged, files_below(run.folder)):
            earlier = chosen.setdefault(file, run.folder)
            if earlier is run.folder or file.split("/")[0] in TIMES:
                continue
            if not filecmp.cmp(earlier / file, run.folder / file, shallow=False):
                conflicts.append(f"{file} in {earlier} and {run.folder}")
    if conflicts:
        more = f" and {len(conflicts) - MOST} more" if len(conflicts) > MOST else ""
        raise RunError(
            f"found different content: {', '.join(conflicts[:MOST])}{more}; expected equal files and entries"
        )
    configuration["results"] = str(output)
    with new_folder(output) as temporary:
        now = time.time()
        for file, folder in chosen.items():
            target = temporary / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / file, target)
            os.utime(target, (now, now))
        text = yaml.safe_dump(configuration, sort_keys=False, allow_unicode=True)
        (temporary / CONFIGURATION).write_text(text, encoding="utf-8")
        keep_code(runs, temporary)
        (temporary / USER_FILES).write_text(json.dumps(user_files), encoding="utf-8")
    report = f"write the report with: saliency-assay report {output / CONFIGURATION}"
    return f"{output}: {len(chosen):,} files of {len(configuration['studies'])} studies; {report}"


def _is_merged(file: str) -> bool:
    first, *others = file.split("/")
    return first not in OF_WHOLE_RUN and (first != "figures" or len(others) > 1)


def _joint_configuration(runs: Sequence[Results]) -> tuple[dict[str, Any], list[str]]:
    """Return the configuration of all studies, and the keys and entries with different values."""
    configurations = [_with_methods(run.configuration) for run in runs]
    joint: dict[str, Any] = {}
    conflicts = dict[str, None]()
    for key in dict.fromkeys(key for each in configurations for key in each):
        values = [each.get(key) for each in configurations]
        joint[key] = values[0]
        if key in SECTIONS:
            joint[key] = {}
            for name, entry in (item for value in values for item in (value or {}).items()):
                if joint[key].setdefault(name, entry) != entry:
                    conflicts[f"{key}.{name} of the configurations"] = None
        elif key not in MAY_DIFFER and any(value != values[0] for value in values):
            conflicts[f"{key} of the configurations"] = None
    return joint, list(conflicts)


def _with_methods(configuration: Any) -> dict[str, Any]:
    """Return a configuration in which each study lists its methods; by default, it has all methods of its run."""
    methods = list(configuration.get("methods") or ())
    studies = {
        name: {"methods": list(methods), **study}
        for name, study in (configuration.get("studies") or {}).items()
    }
    return {**configuration, "studies": studies}


def _user_files(runs: Sequence[Results]) -> tuple[dict[str, Any], list[str]]:
    """Return what the runs know of the user's files, and the files that differ."""
    conflicts = [
        f"the file {path}, which the runs read"
        for path in dict.fromkeys(path for run in runs for path in run.user_files)
        if len({run.user_files[path] for run in runs if path in run.user_files}) > 1
    ]
    known = [read_json(run.folder / USER_FILES) for run in reversed(runs)]
    return {path: entry for of_run in known for path, entry in of_run.items()}, conflicts

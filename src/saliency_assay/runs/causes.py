"""Differences between two runs in what their results depend on: configuration, code, packages, data, models."""

from collections.abc import Mapping
from typing import Any

from saliency_assay.pipeline.dry_run import changes
from saliency_assay.runs.code_used import code_changes
from saliency_assay.runs.images import Pairs
from saliency_assay.runs.results_folder import Results, read_json

PLACES = ("results", "device")
"""Keys of the configuration that say where a run computes and writes, and not what."""


def causes(old: Results, new: Results, changed_sets: Mapping[str, Pairs]) -> dict[str, list[str]]:
    """Return lines on what changed, by heading; without headings under which nothing changed."""
    before, now = (
        {key: value for key, value in run.configuration.items() if key not in PLACES} for run in (old, new)
    )
    keys = changes(before, now) if before and now else []
    code = code_changes(old, new)
    found = {
        "Configuration": [change.text() for change in keys],
        "Code": [f"{file} ({count} result{'s' if count > 1 else ''})" for file, count in code.items()],
        "Packages": [change.text() for change in changes(_version_texts(old), _version_texts(new))],
        "Data": [*_data_lines(old, new, changed_sets), *_file_lines(old, new)],
        "Models": list(_model_lines(old, new)),
    }
    return {heading: lines for heading, lines in found.items() if lines}


def _version_texts(run: Results) -> dict[str, str]:
    return {name: ", ".join(sorted(versions)) for name, versions in sorted(run.versions.items())}


def _data_lines(old: Results, new: Results, changed_sets: Mapping[str, Pairs]) -> list[str]:
    return [
        f"{name}: {len(pairs)} of {new.data[name]['length']} images equal one of the"
        f" {old.data[name]['length']} old ones"
        for name, pairs in changed_sets.items()
    ]


def _file_lines(old: Results, new: Results) -> list[str]:
    files = old.user_files.keys() & new.user_files.keys()
    return [f"file {name} changed" for name in sorted(files) if old.user_files[name] != new.user_files[name]]


def _model_lines(old: Results, new: Results) -> list[str]:
    before, now = _weights(old), _weights(new)
    return [
        f"{name}: other weights{_accuracy_text(old, new, name)}"
        for name, digest in before.items()
        if now.get(name, digest) != digest
    ]


def _weights(run: Results) -> dict[str, str]:
    """Return the digest of the weights that computed maps, by model and seed, such as ``f_o/seed0``."""
    digests = {"/".join(file.split("/")[1:3]): store.get("model", "") for file, store in run.maps.items()}
    return {name: str(digest) for name, digest in digests.items() if digest}


def _accuracy_text(old: Results, new: Results, name: str) -> str:
    """Return text with the test accuracies of a model on its own data set; empty if they are equal or unknown."""
    before, now = (_accuracy(run, name) for run in (old, new))
    return f", test accuracy {before:.4f} → {now:.4f}" if before and now and before != now else ""


def _accuracy(run: Results, name: str) -> float | None:
    model: dict[str, Any] = (run.configuration.get("models") or {}).get(name.partition("/")[0]) or {}
    sets = read_json(run.folder / "models" / name / "evaluation.json")
    accuracy = sets.get(str(model.get("data")), {}).get("test", {}).get("accuracy")
    return None if accuracy is None else float(accuracy)

"""Differences between two runs in what their results depend on: configuration, code, packages, data, models."""

from collections.abc import Iterator, Mapping
from typing import Any

from saliency_assay.pipeline.dry_run import changes
from saliency_assay.runs.code_used import code_changes
from saliency_assay.runs.images import Pairs
from saliency_assay.runs.results_folder import Results, read_json
from saliency_assay.runtime.shards import BLOCK

PLACES = ("results", "device")
"""Keys of the configuration that say where a run computes and writes, and not what."""


def causes(old: Results, new: Results, changed_sets: Mapping[str, Pairs]) -> dict[str, list[str]]:
    """Return lines on what changed, by heading; without headings under which nothing changed."""
    before, now = (
        {key: value for key, value in run.configuration.items() if key not in PLACES} for run in (old, new)
    )
    keys = changes(before, now) if before and now else []
    code, versions = code_changes(old, new), _version_texts(old, new)
    found = {
        "Configuration": [change.text() for change in keys],
        "Code": [
            *(f"{file} ({count} result{'s' if count > 1 else ''})" for file, count in code.items()),
            *_digest_lines(old, new),
        ],
        "Packages": [change.text() for change in changes(versions[0], versions[1])],
        "Data": [*_input_lines(old, new), *_data_lines(old, new, changed_sets), *_file_lines(old, new)],
        "Models": list(_model_lines(old, new)),
    }
    return {heading: lines for heading, lines in found.items() if lines}


def _version_texts(old: Results, new: Results) -> list[dict[str, str]]:
    """Return the versions of the packages of each run.

    A benchmark records what its process has imported for whatever reason, so that only common packages are compared.
    """
    names = old.versions.keys() | new.versions.keys()
    if old.is_benchmark or new.is_benchmark:
        names = old.versions.keys() & new.versions.keys()
    return [
        {name: ", ".join(sorted(run.versions[name])) for name in sorted(names) if name in run.versions}
        for run in (old, new)
    ]


def _digest_lines(old: Results, new: Results) -> Iterator[str]:
    """Yield a line for each method and metric of two benchmarks whose settings or code differ."""
    if old.benchmark and new.benchmark:
        for name, before in old.benchmark.digests.items():
            now = new.benchmark.digests.get(name, before)
            if before and now and before != now:
                yield f"settings or code of {name}"


def _input_lines(old: Results, new: Results) -> Iterator[str]:
    """Yield a line if blocks of images of two benchmarks have other inputs."""
    if old.benchmark and new.benchmark:
        before, now = old.benchmark.inputs, new.benchmark.inputs
        pairs = [pair for pair in zip(before, now, strict=False) if all(pair)]
        if count := sum(digest not in before for _, digest in pairs):
            yield f"other images, targets or weights in {count} of {len(pairs)} blocks of up to {BLOCK} images"


def _data_lines(old: Results, new: Results, changed_sets: Mapping[str, Pairs]) -> list[str]:
    return [
        f"{name}: {len(pairs)} of {_image_count(new, name)} images equal one of the {_image_count(old, name)} old ones"
        for name, pairs in changed_sets.items()
    ]


def _image_count(run: Results, name: str) -> int:
    return run.benchmark.images if run.benchmark else int(run.data[name]["length"])


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

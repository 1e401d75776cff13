"""Last lines of a run: models that are not better than chance, the report's path, and what it lacks."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from saliency_assay.pipeline.partial import SENTENCES


def warnings(configuration: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each trained model that is not better than chance.

    Args:
        configuration: content of a valid configuration file, with relative paths from the working directory.
    """
    from saliency_assay.report.pages.chance import chance_caution  # imports SciPy

    for name, model in (configuration.get("models") or {}).items():
        files = sorted(
            Path(configuration.get("results", "results"), "models", name).glob("seed*/evaluation.json")
        )
        evaluations = [json.loads(file.read_text(encoding="utf-8")) for file in files]
        tested = [
            sets[model["data"]]["test"] for sets in evaluations if "test" in sets.get(model["data"], {})
        ]
        if caution := chance_caution(model.get("label", name), tested):
            yield caution


def not_computed(configuration: Mapping[str, Any]) -> list[str]:
    """Return the sentences on methods and metrics that the report lacks because their jobs failed."""
    file = Path(configuration.get("results", "results"), SENTENCES)
    sentences: list[str] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    return sentences


def print_outcome(file: Path) -> int:
    """Print the lines for a configuration file; return the exit status, 1 if the report lacks methods or metrics."""
    configuration = yaml.safe_load(file.read_text(encoding="utf-8"))
    for warning in warnings(configuration):
        print(f"Warning: {warning}")
    report = Path(configuration.get("results", "results"), "report.html")
    if report.exists():  # not after a dry run, or with other targets
        print("Report:", report.resolve())
    missing = not_computed(configuration)
    for sentence in missing:
        print(sentence)
    return 1 if missing else 0

"""Last lines of a run: models not shown to be better than chance, the path of the report or tables, what is missing."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from saliency_assay.runtime.project import RESULTS


def warnings(configuration: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each trained model that is not shown to be better than chance.

    Args:
        configuration: content of a valid configuration file, with relative paths from the working directory.
    """
    from saliency_assay.reliability.chance import chance_caution  # imports SciPy

    for name, model in (configuration.get("models") or {}).items():
        files = sorted(
            Path(configuration.get("results", RESULTS), "models", name).glob("seed*/evaluation.json")
        )
        evaluations = [json.loads(file.read_text(encoding="utf-8")) for file in files]
        tested = [
            sets[model["data"]]["test"] for sets in evaluations if "test" in sets.get(model["data"], {})
        ]
        if caution := chance_caution(model.get("label", name), tested):
            yield caution


def not_computed(results: Path, studies: Iterable[str]) -> list[str]:
    """Return the sentences on what the results of studies lack because methods or metrics failed."""
    sentences = dict[str, None]()
    for study in studies:
        file = results / "tables" / study / "not_computed.csv"
        if file.exists():
            with file.open(encoding="utf-8", newline="") as lines:
                sentences |= dict.fromkeys(row["sentence"] for row in csv.DictReader(lines))
    return list(sentences)


def print_outcome(file: Path, *, tables: bool = False) -> int:
    """Print the last lines of a run of a configuration file, or with ``tables`` those of the export of its tables.

    Returns:
        The exit status, 1 if the results lack methods or metrics.
    """
    configuration = yaml.safe_load(file.read_text(encoding="utf-8"))
    results = Path(configuration.get("results", RESULTS))
    if tables:
        print("Tables:", (results / "export").resolve())
    else:
        for warning in warnings(configuration):
            print(f"Warning: {warning}")
        report = results / "report.html"
        if report.exists():  # not with other targets
            print("Report:", report.resolve())
    missing = not_computed(results, configuration.get("studies") or ())
    for sentence in missing:
        print(sentence)
    return 1 if missing else 0

"""Last lines of ``make run``: the path of the report, and the models that are not better than chance.

``python -m saliency_assay.report.outcome CONFIG``
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml


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


def main() -> None:
    """Print the lines for the configuration file that the command line names."""
    configuration = yaml.safe_load(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for warning in warnings(configuration):
        print(f"Warning: {warning}")
    print("Report:", Path(configuration.get("results", "results"), "report.html").resolve())


if __name__ == "__main__":
    main()

"""Inputs and parameters of the rules of a configuration, without Snakemake."""

from pathlib import Path
from typing import Any

import yaml

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import read
from saliency_assay.pipeline.inputs import Inputs
from saliency_assay.pipeline.job_settings import JobSettings
from saliency_assay.pipeline.params import Params
from saliency_assay.pipeline.paths import Paths
from saliency_assay.pipeline.studies import Studies
from saliency_assay.runtime.provenance import SOURCE

ROOT = SOURCE.parent
SCRIPTS = ROOT / "workflow/scripts"
TINY: dict[str, Any] = yaml.safe_load((ROOT / "tests/workflow/tiny.yaml").read_text(encoding="utf-8"))
RETRAIN: dict[str, Any] = {
    "seeds": [0, 3],
    "data": {
        "digits": {"kind": "digits", "size": 8, "test_share": 0.5, "max_explained_images": 898, "shards": 2}
    },
    "models": {
        "digits": {
            "architecture": "resnet8",
            "data": "digits",
            "trained_on": "class",
            "training": {"epochs": 1},
        }
    },
    "methods": {"gradient": {}, "random": {}},
    "studies": {
        "retrain": {
            "kind": "retrain",
            "model": "digits",
            "methods": ["gradient", "random"],
            "protocols": ["roar", "iteroar"],
            "fills": ["zero", "mean"],
            "percentile": 90,
            "occluded": 0.3,
            "shards": 2,
            "leakage": {"repeats": 3, "iterations": [1, 3]},
        }
    },
}


def studies(configuration: dict[str, Any]) -> Studies:
    return Studies(read(configuration, catalog=CATALOG, source="some.yaml"), CATALOG.study_kinds)


def inputs(configuration: dict[str, Any], results: Path | str = "results") -> Inputs:
    of = studies({**configuration, "results": str(results)})
    return Inputs(of.config, Paths(of.config.results), of)


def params(configuration: dict[str, Any], results: Path | str = "results") -> Params:
    of = inputs(configuration, results)
    return Params(of, CATALOG, JobSettings(SCRIPTS, CATALOG.study_kinds.values()), configuration)

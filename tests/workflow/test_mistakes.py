"""Mistakes with models are reported before any training, all of them at once, and valid models are not refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkout import PROJECT, Checkout
from mistakes import BASE, MISTAKES, Mistake, custom, write_weights

from saliency_assay.catalog import CATALOG
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.read import read
from saliency_assay.methods.model_check import check_of, problems
from saliency_assay.pipeline.inputs import Inputs
from saliency_assay.pipeline.job_settings import JobSettings
from saliency_assay.pipeline.model_checks import ModelChecks
from saliency_assay.pipeline.params import Params
from saliency_assay.pipeline.paths import Paths
from saliency_assay.pipeline.studies import Studies


def settings_of(configuration: dict[str, Any]) -> dict[str, Any]:
    """The settings of the check, by way of JSON."""
    config = read(configuration, catalog=CATALOG, source="study.yaml")
    inputs = Inputs(config, Paths(config.results), Studies(config, CATALOG.study_kinds))
    params = Params(inputs, CATALOG, JobSettings(PROJECT / "workflow/scripts"), configuration)
    settings: dict[str, Any] = json.loads(json.dumps(ModelChecks(params).settings()))
    return settings


def lines_of(configuration: dict[str, Any]) -> list[str]:
    """The lines about a configuration: the first error that its reader finds, or all of its models."""
    try:
        settings = settings_of(configuration)
    except ConfigError as error:
        return [str(error).removeprefix("study.yaml: ")]
    return [
        line
        for entry in settings["models"]
        for line in problems(check_of(entry), settings["alternatives"])
    ]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the weights files."""
    monkeypatch.chdir(tmp_path)
    write_weights(tmp_path)
    return tmp_path


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_a_mistake_is_one_line(mistake: Mistake) -> None:
    lines = lines_of(mistake.configuration)
    matching = [line for line in lines if line.startswith(mistake.line)]
    assert len(matching) == 1, lines
    assert all("\n" not in line for line in lines)


def test_a_mistake_of_each_kind_is_documented() -> None:
    page = (PROJECT / "docs/troubleshooting.md").read_text()
    for mistake in MISTAKES:
        assert f"| {mistake.title} |" in page, mistake.title

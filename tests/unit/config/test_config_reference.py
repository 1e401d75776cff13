"""The JSON Schema and the reference page of the configuration, which are generated from its models."""

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from configurations import FOLDER, base, changed, without

from saliency_assay.config.fields import Settings
from saliency_assay.config.methods import Method
from saliency_assay.config.metrics import Metric
from tools.configuration_reference import COMMON, HEADINGS, page_text, schema_text

FILES = sorted(path for path in FOLDER.glob("*.yaml") if path.name != "schema.yaml")
VALIDATOR = jsonschema.Draft202012Validator(yaml.safe_load(schema_text()))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_editors_accept_the_configurations_that_are_shipped(path: Path) -> None:
    VALIDATOR.validate(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize(
    "raw",
    [
        changed("methds", {}),
        changed("data.a-b", {"kind": "digits"}),
        changed("data.digits.kind", "digit"),
        changed("data.digits.max_explained_images", 0),
        changed("data.digits", {"kind": "mnist"}),
        changed("data.bam.common_object", ""),
        changed("seeds", [0, 0]),
        changed("reliability.level", 1),
        changed("models.d.search", {"epochs": []}),
        changed("studies.digits.data", "digits"),
        changed("studies.bam.kind", "bamm"),
        without("models.d.trained_on"),
    ],
    ids=str,
)
def test_editors_refuse_what_the_models_refuse(raw: Any) -> None:
    assert VALIDATOR.is_valid(base())
    assert not VALIDATOR.is_valid(raw)


def subclasses(model: type[Settings]) -> set[type[Settings]]:
    return set(model.__subclasses__()).union(*map(subclasses, model.__subclasses__()))


def test_every_model_has_a_section_with_its_keys() -> None:
    models = {
        model
        for model in subclasses(Settings)
        if model.__module__.startswith("saliency_")
        and set(model.own_keys()) & set(model.__annotations__)
        and model not in (Method, Metric)  # whose keys their subclasses describe
    }
    assert {model.__name__ for model in models} == {model.__name__ for model in HEADINGS}
    sections = dict(re.findall(r"^##+ (.+)\n((?:.|\n)*?)(?=^##|\Z)", page_text(), re.MULTILINE))
    assert list(sections) == ["Display names", "Sweeps", *HEADINGS.values()]
    for model, heading in HEADINGS.items():
        keys = (set(model.__annotations__) & set(model.own_keys())) - set(COMMON)
        if "of kind" in heading:
            keys -= {"kind"}  # the heading states it
        assert set(re.findall(r"^\| `(\w+)` \|", sections[heading], re.MULTILINE)) == keys


def test_editors_accept_custom_functions() -> None:
    """Parameters may have any name, also those of keys of registered methods and metrics."""
    raw = yaml.safe_load((FOLDER / "config.yaml").read_text())
    raw["methods"]["mine"] = {"function": "mine:bright", "steps": 5, "base": "gradient"}
    raw["metrics"]["my_score"] = {"function": "mine:share", "direction": "higher", "training": {}}
    VALIDATOR.validate(raw)


@pytest.mark.parametrize(
    "row",
    [
        "| `shards` | integer ≥ 1; default `1` |",
        "| `resident_limit` | number > 0; default `8` |",
        "| `seeds` | list of integers ≥ 0; default `[0]` |",
        "| `classes` | list of 2 strings; required |",
        "| `device` | `auto`, `cpu`, `cuda`; default `auto` |",
        "| `level` | number > 0 and < 1; default `0.999` |",
        "| `leakage` | [leakage](#leakage) |",
        "| `images` | integer 1–1,000; default `50` |",
        "| `reductions` | mapping of names to `sum`, `abs_sum`",
        "| `coco` | string or list of [annotated images](#annotated-images); required |",
    ],
)
def test_rows_have_type_range_and_default(row: str) -> None:
    assert f"\n{row}" in page_text()

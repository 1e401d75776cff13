"""Studies of parts in the configuration, and the line that each mistake gets."""

import pytest
import yaml
from configurations import FILE, agrees, cases, fault

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import read

WHOLE = """
data: {birds: {kind: birds}, digits: {kind: digits}}
models:
  b: &model {architecture: resnet8, data: birds, trained_on: class}
  d: {<<: *model, data: digits}
methods: {gradient: {}, random: {}}
studies: {s: {kind: parts, model: b}}
"""

WRONG = """
model: e => studies.s.model: unknown model 'e' … valid: b
model: d => studies.s.model: found d, trained on images of kind digits … valid: a model trained on images of kind birds
dilation: -1 => studies.s.dilation: found -1 … at least 0
metrics: [deletion] => studies.s: unknown key 'metrics'
"""


def test_defaults() -> None:
    study = read(yaml.safe_load(WHOLE), catalog=CATALOG, source=FILE).studies["s"]
    assert (study.methods, study.data, study.models) == (("gradient", "random"), "birds", ("b",))
    assert study.model_dump()["dilation"] == 1


@pytest.mark.parametrize(("change", "expected"), cases(WRONG))
def test_what_is_wrong(change: str, expected: str) -> None:
    raw = yaml.safe_load(WHOLE)
    raw["studies"]["s"] |= yaml.safe_load(change)
    assert agrees(fault(raw, CATALOG), expected)


def test_a_bird_has_at_most_as_many_classes_as_combinations_of_parts() -> None:
    raw = yaml.safe_load(WHOLE)
    raw["data"]["birds"]["class_count"] = 769
    assert agrees(fault(raw, CATALOG), "data.birds.class_count: found 769")

"""Studies of validity in the configuration, and the line that each mistake gets."""

import pytest
import yaml
from configurations import FILE, agrees, cases, fault

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import read

WHOLE = """
data: {digits: {kind: digits}}
models: {d: {architecture: resnet8, data: digits, trained_on: class}}
methods: {gradient: {}, random: {}}
metrics: {deletion: {}}
studies: {s: {kind: validity, model: d}}
"""

WRONG = """
model: e => studies.s.model: unknown model 'e' … valid: d
metrics: [deletio] => studies.s.metrics: unknown metric of single maps 'deletio' … 'deletion'
degraded_methods: [edge] => studies.s.degraded_methods: unknown method 'edge' … valid: gradient
degradations: [sharpen] => studies.s.degradations.0: found 'sharpen' … valid: noise
input_noise: [5, 0.1] => studies.s.input_noise: found [5, 0.1] … valid: [small
{degradations: [], iterations: 0} => studies.s … no degradations and iterations: 0
model_noise: [1] => studies.s.model_noise: found [1] … 2 or more entries
metrics: [pointing_game]
    => studies.s.metrics: pointing_game … the set digits (models.d) … valid: image files with the key masks
"""


def test_defaults() -> None:
    study = read(yaml.safe_load(WHOLE), catalog=CATALOG, source=FILE).studies["s"]
    assert (study.metrics, study.methods, study.data) == (("deletion",), ("gradient", "random"), "digits")
    assert (study.images, study.levels, study.iterations) == (50, 5, 3)


@pytest.mark.parametrize(("change", "expected"), cases(WRONG))
def test_what_is_wrong(change: str, expected: str) -> None:
    raw = yaml.safe_load(WHOLE)
    raw["studies"]["s"] |= yaml.safe_load(change)
    assert agrees(fault(raw, CATALOG), expected)

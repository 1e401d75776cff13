"""Studies of validity in the configuration, and the line that each mistake gets."""

import pytest
import yaml
from configurations import FILE, cases

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import read
from saliency_assay.config.errors import ConfigError

WHOLE = """
data: {digits: {kind: digits}}
models: {d: {architecture: resnet8, data: digits, trained_on: class}}
methods: {gradient: {}, random: {}}
metrics: {deletion: {}}
studies: {s: {kind: validity, model: d}}
"""

WRONG = """
model: e
    studies.s.model: unknown model 'e'; valid: d

metrics: [deletio]
    studies.s.metrics: unknown metric of single maps 'deletio'; did you mean 'deletion'? valid: VALID

degraded_methods: [edge]
    studies.s.degraded_methods: unknown method 'edge'; valid: gradient, random

degradations: [sharpen]
    studies.s.degradations.0: found 'sharpen'; valid: noise, shuffle, removal, blur

input_noise: [5, 0.1]
    studies.s.input_noise: found [5, 0.1]; valid: [small, large] with small < large

model_noise: [1]
    studies.s.model_noise: found [1], expected 2 or more entries

metrics: [pointing_game]
    studies.s.metrics: pointing_game needs the object's mask, which the set digits (models.d) does not have; valid:
    image files with the key masks (docs/data.md)
"""


def test_defaults() -> None:
    study = read(yaml.safe_load(WHOLE), catalog=CATALOG, source=FILE).studies["s"]
    assert (study.metrics, study.methods, study.data) == (("deletion",), ("gradient", "random"), "digits")
    assert (study.images, study.levels, study.iterations) == (50, 5, 3)


@pytest.mark.parametrize(("change", "message"), cases(WRONG))
def test_what_is_wrong(change: str, message: str) -> None:
    raw = yaml.safe_load(WHOLE)
    raw["studies"]["s"] |= yaml.safe_load(change)
    with pytest.raises(ConfigError) as caught:
        read(raw, catalog=CATALOG, source=FILE)
    found = str(caught.value).removeprefix(f"{FILE}: ")
    assert found == message or ("VALID" in message and found.startswith(message.partition("VALID")[0]))


def test_a_study_needs_at_least_one_test() -> None:
    raw = yaml.safe_load(WHOLE)
    raw["studies"]["s"] |= {"degradations": [], "iterations": 0}
    with pytest.raises(ConfigError, match="no degradations and iterations: 0"):
        read(raw, catalog=CATALOG, source=FILE)

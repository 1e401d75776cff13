"""Designed networks in the configuration: what their models and studies accept."""

from typing import Any

import pytest
import yaml
from configurations import FILE, agrees, cases, fault

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import Configuration, read

WHOLE = """
data: {images: {kind: designed}, digits: {kind: digits}, other: {kind: designed}}
models:
  a: {architecture: designed/additive, data: images, trained_on: additive}
  b: {architecture: designed/saturated, data: images, trained_on: saturated, size: 32}
  c: {architecture: designed/counting, data: other, trained_on: counting}
  d: {architecture: resnet8, data: digits, trained_on: class}
methods: {truth: {}, gradient: {}, random: {}}
metrics: {truth_agreement: {}, deletion: {}, slopes: {metric: infidelity_square, explanation: local}}
studies:
  s: {kind: designed, models: [a, b], metrics: [truth_agreement, deletion]}
"""

WRONG_MODELS = """
weights: file.pt => models.a.weights: found a value, expected none … designed/additive
training: {epochs: 3} => models.a.training: found a value … set by hand
search: {learning_rate: [0.1, 0.2]} => models.a.search: found a value
normalization: {mean: [0, 0, 0], std: [1, 1, 1]} => models.a.normalization: found a value
classes: 5 => models.a.classes: found a value
output: softmax => models.a.output: found a value
multi_label: true => models.a.multi_label: found a value
width: 3 => models.a: unknown key 'width'
architecture: designed/additiv => models.a.architecture: unknown architecture 'designed/additiv' … 'designed/additive'
"""

WRONG_STUDIES = """
models: [a, d] => studies.s.models: found d, whose architecture is resnet8 … valid: a, b, c
models: [a, c] => studies.s.models: found models of the sets images and other
models: [e] => studies.s.models: unknown model 'e'
models: [] => studies.s.models: found [] … 1 or more
methods: [gradient] => studies.s.methods: found 0 entries of truth, expected one
metrics: [deletion] => studies.s.metrics: found 0 entries of truth_agreement, expected one
metrics: [truth_agreement, emprt] => studies.s.metrics: emprt takes a model with other weights … (models.a)
metrics: [truth_agreement, f_fidelity] => studies.s.metrics: f_fidelity takes a model with other weights
metrics: [truth_agreement, infidelity_noisy_baseline] => studies.s.metrics: found infidelity_noisy_baseline … local
metrics: [truth_agreement, slopes] => studies.s.metrics: found slopes … local explanations
"""


def raw() -> Any:
    return yaml.safe_load(WHOLE)


def reading(content: Any) -> Configuration:
    return read(content, catalog=CATALOG, source=FILE)


def test_models_are_not_trained_and_take_pixels() -> None:
    config = reading(raw())
    model = config.models["a"]
    assert (model.is_designed, model.is_trained, config.models["d"].is_trained) == (True, False, True)
    assert model.normalization is not None
    assert model.normalization.channels == ((0, 0, 0), (1, 1, 1))
    study = config.studies["s"]
    assert (study.data, study.models, study.metrics) == (
        "images",
        ("a", "b"),
        ("truth_agreement", "deletion"),
    )
    assert config.sets["images"].has_masks


@pytest.mark.parametrize(("change", "expected"), cases(WRONG_MODELS))
def test_keys_that_would_change_a_designed_network_are_refused(change: str, expected: str) -> None:
    content = raw()
    content["models"]["a"] |= yaml.safe_load(change)
    assert agrees(fault(content, CATALOG), expected)


@pytest.mark.parametrize(("change", "expected"), cases(WRONG_STUDIES))
def test_studies_of_other_models_or_without_the_truth_are_refused(change: str, expected: str) -> None:
    content = raw()
    content["studies"]["s"] |= yaml.safe_load(change)
    assert agrees(fault(content, CATALOG), expected)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"methods": ["truth"]}, "studies.d.methods: truth needs an exact importance … (models.d)"),
        (
            {"metrics": ["truth_agreement"], "methods": ["gradient"]},
            "studies.d.metrics: truth_agreement needs an exact importance … valid: designed/additive",
        ),
    ],
)
def test_the_truth_of_a_trained_network_is_refused(change: dict[str, Any], expected: str) -> None:
    content = raw()
    content["studies"]["d"] = {"kind": "fidelity", "model": "d", "metrics": ["deletion"], **change}
    assert agrees(fault(content, CATALOG), expected)


def test_designed_networks_are_not_retrained() -> None:
    content = raw()
    content["studies"] = {"r": {"kind": "retrain", "model": "a", "methods": ["gradient"]}}
    assert agrees(fault(content, CATALOG), "studies.r.model: found a, whose training.epochs is 0")

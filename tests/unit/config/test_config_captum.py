"""Classes of captum as entries under ``methods``."""

import subprocess
import sys
from typing import Any

import captum.attr
import pytest

from saliency_assay.adapters import captum as adapter
from saliency_assay.catalog import CATALOG
from saliency_assay.config import captum_classes
from saliency_assay.config.configuration import read
from saliency_assay.config.errors import ConfigError

STUDY: dict[str, Any] = {
    "data": {"digits": {"kind": "digits"}},
    "models": {"digits": {"architecture": "resnet8", "data": "digits", "trained_on": "class"}},
    "metrics": {"deletion": {}},
    "studies": {"digits": {"kind": "fidelity", "model": "digits"}},
}


def method_of(entry: dict[str, Any]) -> Any:
    raw = {**STUDY, "methods": {"theirs": entry, "random": {}}}
    return read(raw, catalog=CATALOG, source="study.yaml").methods["theirs"]


def test_an_entry_calls_the_adapter_with_its_arguments() -> None:
    method = method_of({"captum": "GradientShap", "n_samples": 20})
    assert method.function == "saliency_assay.adapters.captum:GradientShap"
    assert method.parameters == {"n_samples": 20}
    assert method.background == 100
    assert method_of({"captum": "GradientShap", "background": 10}).background == 10
    assert method_of({"captum": "IntegratedGradients", "n_steps": 5}).background == 0


def test_the_source_code_names_the_classes_and_arguments_that_captum_has() -> None:
    for name in captum_classes.captum_classes():
        described = captum_classes.captum_class(name)
        assert (described is None) == bool(adapter._problem(getattr(captum.attr, name))), name
        for argument in described.arguments if described and not described.takes_layer else ():
            adapter.method(name, **{argument: 1})


INVALID: dict[str, tuple[dict[str, Any], str]] = {
    "class": ({"captum": "GradientShapp"}, "captum.*GradientShap"),
    "neuron": ({"captum": "NeuronGradient"}, "captum"),
    "argument": ({"captum": "GradientShap", "samples": 4}, "samples.*n_samples"),
    "layer": ({"captum": "LayerGradCam"}, "layer"),
    "background": ({"captum": "Saliency", "background": 4}, "background"),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_entries_name_the_place(case: str) -> None:
    entry, place = INVALID[case]
    with pytest.raises(ConfigError, match=rf"methods\.theirs\.{place}"):
        method_of(entry)


def test_a_class_with_a_background_cannot_be_smoothed() -> None:
    methods = {"theirs": {"captum": "GradientShap"}, "smooth": {"method": "smoothgrad", "base": "theirs"}}
    with pytest.raises(ConfigError, match=r"methods\.smooth\.base: .*background"):
        read({**STUDY, "methods": methods}, catalog=CATALOG, source="study.yaml")


def test_without_captum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captum_classes, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"methods\.theirs\.captum.*pip install captum"):
        method_of({"captum": "Saliency"})


def test_reading_does_not_import_captum() -> None:
    code = """
import sys
from saliency_assay.config.captum_classes import captum_class
assert captum_class("GradientShap").needs_baselines
assert not {"torch", "captum"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)

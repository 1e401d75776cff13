"""Checks of a method's parameters when a run is planned: the same errors as from the method."""

from typing import Any

import pytest
from support import conv_classifier, cyclic_targets, generator, random_images

from saliency_assay.catalog import CATALOG
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.methods import Method, RegisteredMethod
from saliency_assay.methods import METHODS
from saliency_assay.registry.records import record_of, resolve

MISFITS: list[tuple[str, dict[str, Any]]] = [
    ("lrp_alpha_beta", {"alpha": 2, "beta": 2}),
    ("integrated_gradients", {"rule": "trapezoid", "steps": 1}),
    ("integrated_gradients_smoothgrad", {"rule": "trapezoid", "steps": 1}),
    ("kernel_shap", {"segments": 64, "samples": 100}),
    ("occlusion", {"window": 0.1, "stride": 0.2}),
    ("optimal_square", {"smallest": 5, "largest": 3}),
    ("extremal_perturbation", {"cell": 0.01, "sigma": 0.5}),
]


def method_of(name: str, parameters: dict[str, Any]) -> Method:
    method = RegisteredMethod.model_validate(parameters)
    method.complete(name, {}, CATALOG)
    return method


@pytest.mark.parametrize(("name", "parameters"), MISFITS, ids=[name for name, _ in MISFITS])
def test_the_plan_says_what_the_method_would(name: str, parameters: dict[str, Any]) -> None:
    images = random_images(2)
    function = resolve(record_of(METHODS, name, "method").function)
    with pytest.raises(ValueError, match=r"found") as own:
        function(conv_classifier(), images, cyclic_targets(2), generator=generator(), **parameters)
    with pytest.raises(ConfigError) as planned:
        method_of(name, parameters)
    assert str(planned.value) == f"methods.{name}.{own.value}"


def test_every_check_is_tried_here() -> None:
    assert {name for name, _ in MISFITS} == {method.name for method in METHODS if method.check}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_defaults_fit_together(method: Any) -> None:
    assert method_of(method.name, {}).function == method.function


@pytest.mark.parametrize("rule", ["middle", "gauss_legendre"])
def test_what_fits_is_let_through(rule: str) -> None:
    method_of("integrated_gradients", {"rule": rule, "steps": 1})
    method_of("kernel_shap", {"features": "superpixels", "segments": 64, "samples": 100})
    method_of("lrp_alpha_beta", {"alpha": 1, "beta": 0})

"""Checks of parameters of a method that limit each other."""

from typing import Any

import pytest

from saliency_assay.catalog import CATALOG
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.methods import Method, RegisteredMethod
from saliency_assay.methods import METHODS

MISFITS: list[tuple[str, dict[str, Any], str]] = [
    ("lrp_alpha_beta", {"alpha": 2, "beta": 2}, "alpha, beta: found 2"),
    ("integrated_gradients", {"rule": "trapezoid", "steps": 1}, "steps: found 1, expected at least 2"),
    (
        "integrated_gradients_smoothgrad",
        {"rule": "trapezoid", "steps": 1},
        "steps: found 1, expected at least 2",
    ),
    ("kernel_shap", {"segments": 64, "samples": 100}, "samples: found 100, expected at least 130"),
    ("occlusion", {"window": 0.1, "stride": 0.2}, "window, stride: found 0.1, 0.2"),
    ("optimal_square", {"smallest": 5, "largest": 3}, "largest: found 3, expected at least smallest, 5"),
    ("extremal_perturbation", {"cell": 0.01, "sigma": 0.5}, "sigma: found 0.5"),
]


def method_of(name: str, parameters: dict[str, Any]) -> Method:
    method = RegisteredMethod.model_validate(parameters)
    method.complete(name, {}, CATALOG)
    return method


@pytest.mark.parametrize(("name", "parameters", "message"), MISFITS)
def test_parameters_that_do_not_fit_together_are_refused(
    name: str, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=rf"^methods\.{name}\.{message}"):
        method_of(name, parameters)


def test_every_check_is_tried_here() -> None:
    assert {name for name, *_ in MISFITS} == {method.name for method in METHODS if method.check}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_defaults_fit_together(method: Any) -> None:
    assert method_of(method.name, {}).function == method.function


@pytest.mark.parametrize("rule", ["middle", "gauss_legendre"])
def test_what_fits_is_let_through(rule: str) -> None:
    method_of("integrated_gradients", {"rule": rule, "steps": 1})
    method_of("kernel_shap", {"features": "superpixels", "segments": 64, "samples": 100})
    method_of("lrp_alpha_beta", {"alpha": 1, "beta": 0})

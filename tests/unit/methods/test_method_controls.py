"""Records of controls: which methods are controls, and under which metrics no map has a better score."""

from dataclasses import replace
from typing import Any

import pytest

from saliency_assay.methods import METHODS
from saliency_assay.metrics import METRICS
from saliency_assay.registry.controls import LOWER_CONTROL, UPPER_CONTROL
from saliency_assay.registry.properties import FAITHFULNESS, PROPERTIES
from saliency_assay.registry.records import record_of


def defaults(name: str, records: Any, **changes: Any) -> dict[str, Any]:
    parameters = record_of(records, name, "record").parameters
    return {key: parameter.default for key, parameter in parameters.items()} | changes


def is_best(method: str, metric: str, measures: str = FAITHFULNESS, **changes: Any) -> bool:
    """With default parameters and, by prefix, ``changes`` of those of the method and of the metric."""
    of = {
        prefix: {key.removeprefix(prefix): value for key, value in changes.items() if key.startswith(prefix)}
        for prefix in ("method_", "metric_")
    }
    parameters = defaults(method, METHODS, **of["method_"]), defaults(metric, METRICS, **of["metric_"])
    return record_of(METHODS, method, "method").is_best(parameters[0], metric, measures, parameters[1])


def test_controls_name_what_they_are_best_for() -> None:
    names = {metric.name for metric in METRICS} | set(PROPERTIES)
    for method in METHODS:
        assert method.control in ("", LOWER_CONTROL, UPPER_CONTROL)
        assert bool(method.best_for) == (method.control == UPPER_CONTROL)
        assert set(method.best_for) <= names
    assert [method.name for method in METHODS if method.control == LOWER_CONTROL] == ["random"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"method_largest": 4}, False),
        ({"method_largest": 4, "metric_largest": 4}, True),
        ({"method_squares": 9, "metric_squares": 9}, False),
        ({"method_ridge": 0.1}, False),
        ({"metric_explanation": "local"}, False),
        ({"metric_rescale": True}, True),
    ],
)
def test_the_optimal_explanation_is_best_for_the_same_squares(
    changes: dict[str, Any], expected: bool
) -> None:
    assert is_best("optimal_square", "infidelity_square", **changes) is expected


def test_other_explanations_are_best_for_their_own_perturbation() -> None:
    assert is_best("optimal_halves", "infidelity_halves")
    assert not is_best("optimal_halves", "infidelity_halves", metric_explanation="local")
    assert not is_best("optimal_halves", "infidelity_square")
    assert is_best("optimal_noisy_baseline", "infidelity_noisy_baseline")
    assert not is_best("optimal_noisy_baseline", "infidelity_noisy_baseline", metric_protocol="released")
    assert is_best("object_mask", "mask_overlap")
    assert not is_best("object_mask", "deletion")
    assert not is_best("gradient", "deletion")


def test_a_control_may_be_best_for_a_property() -> None:
    truth = replace(
        record_of(METHODS, "gradient", "method"), control=UPPER_CONTROL, best_for={FAITHFULNESS: {}}
    )
    assert truth.is_best({}, "", FAITHFULNESS, {})
    assert not truth.is_best({}, "", "localization", {})

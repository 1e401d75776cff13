"""Valid settings of a retraining, and the arithmetic of τ, ρ, I and k."""

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pytest

from saliency_assay.studies.retrain.parameters import TRANSFORMS, iterations, pixels, transform_from
from saliency_assay.studies.retrain.retrain_study import RetrainStudy


def retraining(**settings: object) -> RetrainStudy:
    study = RetrainStudy.model_validate({"kind": "retrain", "model": "f_0", **settings})
    study.complete_masks()
    return study


# ------------------------------------------------------------------------------------------ arithmetic


@pytest.mark.parametrize(
    ("percentile", "occluded", "expected"),
    [
        (95, 0.5, 10),
        (95, 0.15, 3),  # 0.15 / 0.05 is 2.9999999999999996 in floats
        (50, 0.5, 1),
        (66.666666666667, 0.333333333333, 1),
        (np.float64(95), np.float64(0.5), 10),
    ],
)
def test_iterations_are_whole(percentile: float, occluded: float, expected: int) -> None:
    count = iterations(percentile, occluded)
    assert (count, type(count)) == (expected, int)


@pytest.mark.parametrize(
    ("percentile", "occluded", "message"),
    [
        (95, 0.52, "occluded: found 0.52 with percentile 95, expected a multiple of 0.05"),
        (99.9, 0.3005, "occluded: found 0.3005 with percentile 99.9, expected a multiple of 0.001"),
        (100, 0.5, "percentile: found 100, expected a number above 0 and below 100"),
        (float("nan"), 0.5, "percentile: found nan,"),
        (95, 1, "occluded: found 1, expected a number above 0 and below 1"),
        (95, "half", "occluded: found 'half',"),
    ],
)
def test_iterations_that_are_not_whole_are_refused(percentile: float, occluded: float, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        iterations(percentile, occluded)


def test_pixels_equal_decimal_arithmetic_that_rounds_halves_up() -> None:
    assert pixels(1000, 99.65) == 4  # floats have 3.4999999999999476
    assert type(pixels(64, np.float64(95))) is int
    for tenths in range(1, 1000, 7):
        share = 1 - Decimal(tenths) / 1000
        for area in (1, 10, 49, 50, 64, 100, 784, 1024, 50176):
            rounded = int((share * area).quantize(Decimal(1), ROUND_HALF_UP))
            assert pixels(area, tenths / 10) == max(1, rounded), (area, tenths)


# -------------------------------------------------------------------------------------------- settings


def test_a_method_may_have_a_reduction_of_its_own() -> None:
    study = retraining(reduction="abs_max", reductions={"gradcam": "positive_sum"})
    assert [study.reduction_of(name) for name in ("gradcam", "gradient")] == ["positive_sum", "abs_max"]


def test_leakage_is_of_the_first_and_the_last_masks_unless_others_are_named() -> None:
    assert retraining(leakage={}).leak_iterations == (1, 10)
    assert retraining(leakage={"repeats": 2}).repeats == 2
    assert retraining(leakage={"iterations": [4]}).repeats == 3
    assert retraining(leakage={}, occluded=0.05).leak_iterations == (1,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"occluded": 0.52}, "occluded: found 0.52 "),
        ({"leakage": {"iterations": [1, 11]}}, "leakage.iterations: found 11, .* 1 to 10$"),
        ({"occluded": 0.1, "leakage": {"iterations": [3]}}, "leakage.iterations: found 3, .* 1 to 2$"),
    ],
)
def test_settings_that_do_not_fit_together(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        retraining(**settings)


# ------------------------------------------------------------------------------------------ transforms


def test_transforms_have_valid_defaults() -> None:
    for kind, parameters in TRANSFORMS.items():
        assert all(parameter.problem(parameter.default) is None for parameter in parameters.values())
        defaults = {name: parameter.default for name, parameter in parameters.items()}
        assert transform_from({"kind": kind}) == {"kind": kind, **defaults}
    settings = {"kind": "noise", "share": 0.2}
    assert transform_from(settings) == settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"radius": 2}, "transform.kind: missing, valid: none, dilation"),
        ({"kind": "dilate"}, "transform.kind: unknown transform 'dilate'; did you mean 'dilation'"),
        ({"kind": "erosion", "radios": 2}, "transform: unknown key 'radios'; .* valid: kind, radius$"),
        ({"kind": "dilation", "radius": 1.5}, "transform.radius: found 1.5, expected an integer"),
    ],
)
def test_transforms_name_what_is_wrong(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        transform_from(settings)

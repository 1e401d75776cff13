"""Retrain studies and searches in the configuration: what is read, what defaults give, and what each mistake gets."""

from typing import Any

import pytest
import yaml
from configurations import agrees, cases, changed, fault, reading

from saliency_assay.studies.retrain.retrain_study import RetrainStudy

METHODS = ("gradient", "gradcam", "smooth")


def with_study(**entry: object) -> Any:
    """BASE with a retrain study ``r`` of a model of BAM's objects."""
    return changed("studies.r", {"kind": "retrain", "model": "f_o", **entry})


def with_search(search: object, **training: object) -> Any:
    """BASE with a search for the training of ``d``, which has validation images."""
    raw = changed("models.d.search", search)
    raw["models"]["d"]["training"] = {"validation_share": 0.25, **training}
    return raw


# --- studies --------------------------------------------------------------------------------------------------


def test_a_study_of_a_bam_set_with_the_papers_defaults() -> None:
    study = reading(with_study()).studies["r"]
    assert (study.kind, study.data, study.models, study.methods) == ("retrain", "bam_os", ("f_o",), METHODS)
    expected = {
        "protocols": ("iteroar",),
        "fills": ("zero", "mean"),
        "percentile": 95.0,
        "occluded": 0.5,
        "reduction": "sum",
        "reductions": {},
        "transform": {"kind": "none"},
        "repeats": 3,
        "leak_iterations": (),
        "iterations": 10,
    }
    assert {name: getattr(study, name) for name in expected} == expected


def test_every_key_of_a_study_is_read() -> None:
    keys = {
        "methods": ["smooth", "gradcam"],
        "protocols": ["roar", "roar_lerf", "iteroar"],
        "fills": ["mean"],
        "percentile": 90,
        "occluded": 0.3,
        "reduction": "abs_max",
        "reductions": {"gradcam": "positive_sum"},
        "transform": {"kind": "noise", "share": 0.25},
        "leakage": {"repeats": 4, "iterations": [3, 1]},
        "keep_maps": True,
        "shards": 4,
    }
    assert set(keys) == {*RetrainStudy.own_keys()} - {"kind", "label", "model"}
    study: Any = reading(with_study(**keys)).studies["r"]
    del keys["leakage"]
    values = {name: getattr(study, name) for name in keys}
    assert {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    } == keys
    assert (study.repeats, study.leak_iterations) == (4, (1, 3))


# Each line is a change to the study and what its message says after studies.r.
WRONG = """
model: fo => .model: unknown model 'fo' … 'f_o'
methods: [gradient, grad_cam] => .methods: unknown method 'grad_cam' … 'gradcam'
protocols: [] => .protocols: found [] … 1 or more entries
protocols: [iteroar, raor] => .protocols.1: found 'raor' … valid: iteroar
fills: [black] => .fills.0: found 'black' … valid: zero
percentile: 0 => .percentile: found 0 … above 0
percentile: 100 => .percentile: found 100 … below 100
occluded: 0 => .occluded: found 0 … above 0
occluded: 1 => .occluded: found 1 … below 1
occluded: 0.52 => .occluded: found 0.52 with percentile 95 … a multiple of 0.05
percentile: 99.7 => .occluded: found 0.5 with percentile 99.7 … a multiple of 0.003
reduction: squared => .reduction: found 'squared' … valid: sum
reductions: {gradcam: max} => .reductions.gradcam: found 'max' … valid: sum
reductions: {grad: sum} => .reductions: unknown method of the study 'grad' … 'gradient'
transform: {kind: dilate} => .transform.kind: unknown transform 'dilate' … 'dilation'
transform: {kind: erosion, radius: -1} => .transform.radius: found -1 … at least 0
shards: 0 => .shards: found 0 … at least 1
leakage: {repeats: 1} => .leakage.repeats: found 1 … at least 2
leakage: {iterations: [1, 11]} => .leakage.iterations: found 11 … integers from 1 to 10
leakage: {iterations: [0]} => .leakage.iterations.0: found 0 … at least 1
leakage: {iterations: []} => .leakage.iterations: found [] … 1 or more entries
leakage: {iterations: [2, 2]} => .leakage.iterations: found [2, 2] … no duplicate entries
"""


@pytest.mark.parametrize(("change", "expected"), cases(WRONG))
def test_what_is_wrong_with_a_study(change: str, expected: str) -> None:
    key, _, value = change.partition(": ")
    assert agrees(fault(with_study(**{key: yaml.safe_load(value)})), f"studies.r{expected}")


def test_masks_that_may_cover_an_image_leave_nothing_to_interpolate_from() -> None:
    grown = with_study(fills=["linear"], transform={"kind": "dilation"})
    assert agrees(fault(grown), "studies.r.fills: found 'linear' with transform 'dilation' … valid: zero")


def test_leaks_are_sought_in_iterations_that_there_are() -> None:
    """I = 0.4 · 100 / (100 − 80) = 2."""
    few = {"percentile": 80, "occluded": 0.4}
    study: Any = reading(with_study(**few, leakage={"iterations": [2]})).studies["r"]
    assert study.leak_iterations == (2,)
    message = fault(with_study(**few, leakage={"iterations": [3]}))
    assert agrees(message, "studies.r.leakage.iterations: found 3 … integers from 1 to 2")


def test_a_reduction_is_of_a_method_that_the_study_has() -> None:
    message = fault(with_study(methods=["gradient"], reductions={"gradcam": "sum"}))
    assert agrees(message, "studies.r.reductions: unknown method of the study 'gradcam' … valid: gradient")


def test_methods_that_the_architecture_cannot_serve() -> None:
    message = fault(with_study(model="d"))  # by default, all methods
    assert agrees(message, "studies.r.methods: gradcam needs a layer … mlp (models.d) … valid: resnet")
    assert reading(with_study(model="d", methods=["gradient"])).studies["r"].data == "digits"


def test_a_model_that_is_used_as_it_is_cannot_be_trained_again(tmp_path: Any) -> None:
    weights = tmp_path / "weights.pt"
    weights.touch()
    raw = with_study()
    raw["models"]["f_o"] |= {"weights": str(weights), "training": {"epochs": 0}}
    assert agrees(fault(raw), "studies.r.model: found f_o … training.epochs is 0")
    raw["models"]["f_o"]["training"]["epochs"] = 1
    assert reading(raw).studies["r"].models == ("f_o",)


# --- searches -------------------------------------------------------------------------------------------------


def test_trials_are_all_combinations_in_order() -> None:
    models = reading(with_search({"learning_rate": [0.2, 0.1], "epochs": [3, 5]})).models
    assert models["d"].trials == (
        {"learning_rate": 0.2, "epochs": 3},
        {"learning_rate": 0.2, "epochs": 5},
        {"learning_rate": 0.1, "epochs": 3},
        {"learning_rate": 0.1, "epochs": 5},
    )
    assert models["d"].training == {"epochs": 10, "learning_rate": 0.1, "validation_share": 0.25}
    assert models["f_o"].trials == ()


# Each line is a search for models.d and what its message says.
WRONG_SEARCH = """
{} => models.d.search: found {} … 1 or more entries
{epochs: [2], learning_rates: [0.1]} => models.d.search: unknown parameter 'learning_rates' … 'learning_rate'
{learning_rate: [0.1, -0.1]} => models.d.search.learning_rate: found -0.1 … at least 0
{learning_rate: [1e-3]} => models.d.search.learning_rate: found '1e-3' … a number
{epochs: [5, 0]} => models.d.search.epochs: found 0 … at least 1
{validation_share: [0.1, 0.2]}
    => models.d.search: found 'validation_share' … a fixed training.validation_share
"""


@pytest.mark.parametrize(("search", "expected"), cases(WRONG_SEARCH))
def test_what_is_wrong_with_a_search(search: str, expected: str) -> None:
    assert agrees(fault(with_search(yaml.safe_load(search))), expected)


@pytest.mark.parametrize("training", [{}, {"validation_share": 0}])
def test_a_search_needs_validation_images(training: dict[str, Any]) -> None:
    raw = changed("models.d.search", {"learning_rate": [0.1, 0.2]})
    raw["models"]["d"]["training"] = training
    assert agrees(fault(raw), "models.d.training.validation_share: found 0 … above 0")


def test_a_search_needs_a_training(tmp_path: Any) -> None:
    weights = tmp_path / "weights.pt"
    weights.touch()
    raw = with_search({"learning_rate": [0.1, 0.2]}, epochs=0)
    raw["models"]["d"]["weights"] = str(weights)
    assert agrees(fault(raw), "models.d.training.epochs: found 0 … at least 1")

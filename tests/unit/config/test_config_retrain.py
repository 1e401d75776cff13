"""Retrain studies and searches in the configuration: what is read, what defaults give, and what each mistake gets."""

from typing import Any

import pytest
import yaml
from configurations import cases, changed, fault, reading

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
    found = reading(with_study()).studies["r"]
    assert (found.kind, found.data, found.models, found.methods) == ("retrain", "bam_os", ("f_o",), METHODS)
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
    assert {name: getattr(found, name) for name in expected} == expected


def test_every_key_of_a_study_is_heard() -> None:
    given = {
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
    assert set(given) == {*RetrainStudy.own_keys()} - {"kind", "label", "model"}
    found = reading(with_study(**given)).studies["r"]
    assert found.methods == ("smooth", "gradcam")
    expected = {
        "protocols": ("roar", "roar_lerf", "iteroar"),
        "fills": ("mean",),
        "percentile": 90.0,
        "occluded": 0.3,
        "reduction": "abs_max",
        "reductions": {"gradcam": "positive_sum"},
        "transform": {"kind": "noise", "share": 0.25},
        "repeats": 4,
        "leak_iterations": (1, 3),
        "keep_maps": True,
        "shards": 4,
    }
    assert {name: getattr(found, name) for name in expected} == expected


# Each mistake is a change to the study, and below it the message, which begins with studies.r.
WRONG = """
kind: retrian
    .kind: found 'retrian'; valid: bam, caption, fidelity, gallery, retrain, validity

modle: f_o
    : unknown key 'modle'; did you mean 'model'? valid: fills, keep_maps, kind, label, leakage, methods, model,
    occluded, percentile, protocols, reduction, reductions, shards, transform

model: fo
    .model: unknown model 'fo'; did you mean 'f_o'? valid: d, f_o, f_s

methods: [gradient, grad_cam]
    .methods: unknown method 'grad_cam'; did you mean 'gradcam'? valid: gradcam, gradient, smooth

protocols: []
    .protocols: found [], expected 1 or more entries

protocols: [iteroar, raor]
    .protocols.1: found 'raor'; valid: iteroar, roar, roar_lerf

fills: [black]
    .fills.0: found 'black'; valid: zero, mean, linear

percentile: 0
    .percentile: found 0, expected above 0

percentile: 100
    .percentile: found 100, expected below 100

occluded: 0
    .occluded: found 0, expected above 0

occluded: 1
    .occluded: found 1, expected below 1

occluded: 0.52
    .occluded: found 0.52 with percentile 95, expected a multiple of 0.05

percentile: 99.7
    .occluded: found 0.5 with percentile 99.7, expected a multiple of 0.003

reduction: squared
    .reduction: found 'squared'; valid: sum, abs_sum, abs_max, positive_sum, squared_sum, visual

reductions: {gradcam: max}
    .reductions.gradcam: found 'max'; valid: sum, abs_sum, abs_max, positive_sum, squared_sum, visual

reductions: {grad: sum}
    .reductions: unknown method of the study 'grad'; did you mean 'gradcam'? valid: gradcam, gradient, smooth

transform: dilation
    .transform: found 'dilation', expected a mapping

transform: {kind: dilate}
    .transform.kind: unknown transform 'dilate'; did you mean 'dilation'? valid: convex_hull, dilation, erosion,
    noise, none, rotation, transposition

transform: {kind: erosion, radius: -1}
    .transform.radius: found -1, expected at least 0

keep_maps: 1
    .keep_maps: found 1, expected true or false

shards: 0
    .shards: found 0, expected at least 1

leakage: true
    .leakage: found true, expected a mapping

leakage: {repeat: 3}
    .leakage: unknown key 'repeat'; did you mean 'repeats'? valid: iterations, repeats

leakage: {repeats: 1}
    .leakage.repeats: found 1, expected at least 2

leakage: {iterations: [1, 11]}
    .leakage.iterations: found 11, expected integers from 1 to 10

leakage: {iterations: [0]}
    .leakage.iterations.0: found 0, expected at least 1

leakage: {iterations: 10}
    .leakage.iterations: found 10, expected a list

leakage: {iterations: []}
    .leakage.iterations: found [], expected 1 or more entries

leakage: {iterations: [2, 2]}
    .leakage.iterations: found [2, 2], expected no duplicate entries
"""


@pytest.mark.parametrize(("change", "message"), cases(WRONG))
def test_what_is_wrong_with_a_study(change: str, message: str) -> None:
    key, _, value = change.partition(": ")
    assert fault(with_study(**{key: yaml.safe_load(value)})) == f"studies.r{message}"


def test_masks_that_may_cover_an_image_leave_nothing_to_interpolate_from() -> None:
    grown = with_study(fills=["linear"], transform={"kind": "dilation"})
    assert fault(grown) == (
        "studies.r.fills: found 'linear' with transform 'dilation', which may leave no pixel to interpolate from; "
        "valid: zero, mean"
    )


def test_a_study_needs_a_model() -> None:
    raw = with_study()
    del raw["studies"]["r"]["model"]
    assert fault(raw) == "studies.r: key 'model' is missing; required: kind, model"


def test_leaks_are_sought_in_iterations_that_there_are() -> None:
    """I = 0.4 · 100 / (100 − 80) = 2."""
    few = {"percentile": 80, "occluded": 0.4}
    study: Any = reading(with_study(**few, leakage={"iterations": [2]})).studies["r"]
    assert study.leak_iterations == (2,)
    assert fault(with_study(**few, leakage={"iterations": [3]})) == (
        "studies.r.leakage.iterations: found 3, expected integers from 1 to 2"
    )


def test_a_reduction_is_of_a_method_that_the_study_has() -> None:
    assert fault(with_study(methods=["gradient"], reductions={"gradcam": "sum"})) == (
        "studies.r.reductions: unknown method of the study 'gradcam'; valid: gradient"
    )


def test_methods_that_the_architecture_cannot_serve() -> None:
    assert fault(with_study(model="d")) == (  # by default, all methods
        "studies.r.methods: gradcam needs a layer for class activation maps, which mlp (models.d) does not have; "
        "valid: resnet, vgg"
    )
    assert reading(with_study(model="d", methods=["gradient"])).studies["r"].data == "digits"
    raw = with_study(methods=["cam"])
    raw["methods"]["cam"] = {}
    assert reading(raw).studies["r"].methods == ("cam",)
    raw["models"]["f_o"]["architecture"] = "vgg"
    raw["studies"]["bam"]["methods"] = ["gradient"]
    assert fault(raw) == (
        "studies.r.methods: cam needs a head of average pooling and one linear layer, which vgg (models.f_o) does "
        "not have; valid: resnet"
    )


def test_a_model_that_is_used_as_it_is_cannot_be_trained_again(tmp_path: Any) -> None:
    weights = tmp_path / "weights.pt"
    weights.touch()
    raw = with_study()
    raw["models"]["f_o"] |= {"weights": str(weights), "training": {"epochs": 0}}
    assert fault(raw) == (
        "studies.r.model: found f_o, whose training.epochs is 0; expected a model with epochs, to be retrained"
    )
    raw["models"]["f_o"]["training"]["epochs"] = 1
    assert reading(raw).studies["r"].models == ("f_o",)


# --- searches -------------------------------------------------------------------------------------------------


def test_trials_are_all_combinations_in_order() -> None:
    found = reading(with_search({"learning_rate": [0.2, 0.1], "epochs": [3, 5]})).models
    assert found["d"].trials == (
        {"learning_rate": 0.2, "epochs": 3},
        {"learning_rate": 0.2, "epochs": 5},
        {"learning_rate": 0.1, "epochs": 3},
        {"learning_rate": 0.1, "epochs": 5},
    )
    assert found["d"].training == {"epochs": 10, "learning_rate": 0.1, "validation_share": 0.25}
    assert found["f_o"].trials == ()


# Each mistake is a search for models.d, and below it the message.
WRONG_SEARCH = """
{}
    models.d.search: found {}, expected 1 or more entries

{epochs: [2], learning_rates: [0.1]}
    models.d.search: unknown parameter 'learning_rates'; did you mean 'learning_rate'? valid: epochs,
    learning_rate, validation_share

{learning_rate: [0.1, -0.1]}
    models.d.search.learning_rate: found -0.1, expected at least 0

{learning_rate: [1e-3]}
    models.d.search.learning_rate: found '1e-3', expected a number (YAML reads 1e-3 as text, 1.0e-3 as a number)

{epochs: [5, 0]}
    models.d.search.epochs: found 0, expected at least 1: the search chooses by validation accuracy

{validation_share: [0.1, 0.2]}
    models.d.search: found 'validation_share', expected a fixed training.validation_share: the search chooses by
    validation accuracy
"""


@pytest.mark.parametrize(("search", "message"), cases(WRONG_SEARCH))
def test_what_is_wrong_with_a_search(search: str, message: str) -> None:
    assert fault(with_search(yaml.safe_load(search))) == message


@pytest.mark.parametrize("training", [{}, {"validation_share": 0}, {"validation_share": 0.0}])
def test_a_search_needs_validation_images(training: dict[str, Any]) -> None:
    raw = changed("models.d.search", {"learning_rate": [0.1, 0.2]})
    raw["models"]["d"]["training"] = training
    assert fault(raw) == (
        "models.d.training.validation_share: found 0, expected above 0: the search chooses by validation accuracy"
    )


def test_a_search_needs_a_training(tmp_path: Any) -> None:
    weights = tmp_path / "weights.pt"
    weights.touch()
    raw = with_search({"learning_rate": [0.1, 0.2]}, epochs=0)
    raw["models"]["d"]["weights"] = str(weights)
    assert fault(raw) == (
        "models.d.training.epochs: found 0, expected at least 1: the search chooses by validation accuracy"
    )

"""Metrics in the configuration: entries, functions of one's own, and what a fidelity study makes of them."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from configurations import CATALOG as FEW
from configurations import base, cases, changed, fault, reading, with_parameters

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import read
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.metrics import BOXES, OFFERED, Metric
from saliency_assay.metrics import Figure

FUNCTIONS = """raise RuntimeError("never run")


def plain(predict, images, targets, maps, *, generator):
    return maps


def tuned(predict, images, targets, maps, *, generator, level, power=1):
    return maps


def greedy(predict, images, targets, maps, *, generator, mask, explain, mean=None, randomized_model=None, level=1):
    return maps


def anything(predict, images, targets, maps, **parameters):
    return maps


def method(model, images, targets, *, generator):
    return images
"""

# Each mistake is a change to configurations.BASE, and below it the message.
WRONG = """
metrics.deletion.stepps: 3
    metrics.deletion: unknown key 'stepps'; did you mean 'steps'? valid: fill, label, metric, steps

metrics.few: {metric: deletio, steps: 3}
    metrics.few: unknown metric 'deletio'; did you mean 'deletion'? valid: deletion, idr, mcs, pointing_game

metrics.few: {steps: 3}
    metrics.few: unknown metric 'few'; valid: deletion, idr, mcs, pointing_game

metrics.few: {metric: 3}
    metrics.few.metric: found 3, expected a string

metrics.few: {metric: deletion, steps: exactly}
    metrics.few.steps: found 'exactly', expected an integer or 'exact'

metrics.few: {metric: deletion, steps: 0}
    metrics.few.steps: found 0, expected at least 1

metrics.few: {metric: deletion, fill: exact}
    metrics.few.fill: found 'exact', valid: black, mean

metrics.few: {metric: deletion, direction: lower}
    metrics.few.direction: found with a registered metric, which has its own; expected only with function

metrics.few: {metric: deletion, target: 0}
    metrics.few.target: found with a registered metric, which has its own; expected only with function

metrics.contrast: {metric: mcs}
    metrics.contrast.metric: found 'mcs', expected only for an entry of that name

metrics.mcs: {metric: idr}
    metrics.mcs: is the name of a registered metric of bam studies, expected another name

metrics.mine: {function: 'own_metrics:plain'}
    metrics.mine.direction: missing, expected higher or lower, or target, the ideal value, in its place

metrics.mine: {function: 'own_metrics:plain', direction: up}
    metrics.mine.direction: found 'up'; valid: higher, lower

metrics.mine: {function: 'own_metrics:plain', direction: higher, target: 1}
    metrics.mine: found both direction and target, expected one of them

metrics.mine: {function: 'own_metrics:plain', target: .inf}
    metrics.mine.target: found inf, expected a finite number

metrics.mine: {function: 'own_metrics:plain', direction: higher, metric: deletion}
    metrics.mine: found both function and metric, expected one of them

metrics.mine: {function: own_metrics, direction: higher}
    metrics.mine.function: found 'own_metrics', expected package.module:name

metrics.mine: {function: 'own_metrics:plian', direction: higher}
    metrics.mine.function: unknown function 'plian'; did you mean 'plain'? valid: anything, greedy, method,
    plain, tuned (in FILE)

metrics.mine: {function: 'own_metrics:method', direction: higher}
    metrics.mine.function: found arguments (model, images, targets, generator), expected (predict, images,
    targets, maps, *, generator, …)

metrics.mine: {function: 'own_metrics:plain', direction: higher, level: 2}
    metrics.mine.level: unknown parameter 'level'; valid: none

metrics.mine: {function: 'own_metrics:tuned', direction: higher, level: 2, powr: 3}
    metrics.mine.powr: unknown parameter 'powr'; did you mean 'power'? valid: level, power

metrics.mine: {function: 'own_metrics:tuned', direction: higher}
    metrics.mine.level: missing, the function has no default for it

metrics.mine: {function: 'own_metrics:greedy', direction: higher, mask: 3}
    metrics.mine.mask: found a value, expected none: the workflow passes it to the function
"""

# As above, of a fidelity study of the model d, the method gradient, and the metrics deletion and few.
WRONG_STUDY = """
metrics: [deletio]
    studies.s.metrics: unknown metric of single maps 'deletio'; did you mean 'deletion'? valid: deletion, few,
    pointing_game

metrics: [few, mcs]
    studies.s.metrics: unknown metric of single maps 'mcs'; valid: deletion, few, pointing_game

metrics: []
    studies.s.metrics: found [], expected 1 or more entries

metric: [few]
    studies.s: unknown key 'metric'; did you mean 'metrics'? valid: kind, label, methods, metrics, model, printed,
    printed_alpha, printed_correlation

model: digits
    studies.s.model: unknown model 'digits'; valid: d, f_o, f_s

printed: {gradeint: {few: 1}}
    studies.s.printed: unknown method 'gradeint'; did you mean 'gradient'? valid: gradient

printed: {gradient: {few_score: 1}}
    studies.s.printed.gradient: unknown score 'few_score'; did you mean 'deletion_score'? valid: deletion,
    deletion_score, few

printed: {gradient: {pointing_game_score: 1}}
    studies.s.printed.gradient: unknown score 'pointing_game_score'; valid: deletion, deletion_score, few

printed: {gradient: {few: much}}
    studies.s.printed.gradient.few: found 'much', expected a number

printed_alpha: {fwe: {without: 0.3}}
    studies.s.printed_alpha: unknown score 'fwe'; did you mean 'few'? valid: deletion, deletion_score, few

printed_alpha: {few: {with: 0.3}}
    studies.s.printed_alpha.few.with: the study has no baselines (methods that do not use the model);
    valid: without

printed_alpha: {few: {without: 2}}
    studies.s.printed_alpha.few.without: found 2, expected at most 1

printed_alpha: {few: {withuot: 0.3}}
    studies.s.printed_alpha.few: unknown key 'withuot'; did you mean 'without'? valid: with, without

printed_correlation: {few: {deletoin: {gradient: 0.3}}}
    studies.s.printed_correlation.few: unknown score 'deletoin'; did you mean 'deletion'? valid: deletion,
    deletion_score, few

printed_correlation: {few: {few: {gradient: 0.3}}}
    studies.s.printed_correlation.few: found 'few' again, expected another score

printed_correlation: {few: {deletion: {smooth: 0.3}}}
    studies.s.printed_correlation.few.deletion: unknown method 'smooth'; valid: gradient

printed_correlation: {few: {deletion: {gradient: -2}}}
    studies.s.printed_correlation.few.deletion.gradient: found -2, expected at least -1
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "own_metrics.py"
    path.write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_metrics", raising=False)  # of the test before
    return path


def study(**changes: object) -> Any:
    """BASE with the metric ``few`` beside ``deletion``, and a fidelity study of them."""
    raw = base()
    raw["metrics"] = {"deletion": {}, "few": {"metric": "deletion", "steps": 5}}
    raw["studies"]["s"] = {"kind": "fidelity", "model": "d", "methods": ["gradient"], **changes}
    return raw


def metrics_of(raw: Any) -> tuple[str, ...]:
    return reading(raw).studies["s"].metrics


def mine(**parameters: object) -> Metric:
    return reading(changed("metrics.mine", parameters)).metrics["mine"]


def test_a_custom_metric_has_a_score_of_its_own_in_a_study(own: Path) -> None:
    """Otherwise both scores would have the direction of one of them."""
    raw = study(metrics=["deletion", "deletion_score"])
    raw["metrics"]["deletion_score"] = {"function": "own_metrics:plain", "direction": "lower"}
    assert fault(raw) == (
        "metrics.deletion_score: is the name of a score of metrics.deletion, with which studies.s compares it; "
        "expected another name"
    )
    raw["studies"]["s"]["metrics"] = ["deletion_score"]
    assert reading(raw).metrics["deletion_score"].directions == {"deletion_score": "lower"}


# --- entries ------------------------------------------------------------------------------------------------


def test_an_entry_takes_all_from_its_record() -> None:
    deletion = reading(changed("metrics.deletion", {})).metrics["deletion"]
    expected = {
        "name": "deletion",
        "label": "the metric deletion",
        "metric": "deletion",
        "function": "package.deletion:deletion",
        "parameters": {"steps": 100, "fill": "black"},
        "scores_single_maps": True,
        "takes": ("mean",),
        "responses": "package.deletion:responses",
        "directions": {"deletion_score": "higher"},
        "labels": {"deletion_score": "the deletion"},
        "units": {"deletion_score": ""},
        "sub_variants": {},
        "figures": {"scores": Figure("saliency_assay.studies.fidelity.figures:boxes")},
        "measures": "faithfulness",
        "summary": "what deletion is",
        "score_summaries": {"deletion_score": "what deletion is"},
    }
    assert {name: getattr(deletion, name) for name in expected} == expected


def test_an_entry_may_be_another_registered_metric() -> None:
    raw = changed("metrics", {"few": {"metric": "deletion", "steps": 5}, "deletion": {"fill": "mean"}})
    found = reading(raw).metrics
    assert (found["few"].name, found["few"].metric) == ("few", "deletion")
    assert found["few"].function == found["deletion"].function == "package.deletion:deletion"
    assert found["few"].parameters == {"steps": 5, "fill": "black"}
    assert found["deletion"].parameters == {"steps": 100, "fill": "mean"}
    assert found["few"].directions == {"deletion_score": "higher"}
    # BAM's metrics are there in any case, the others only where they are asked for.
    assert list(found) == ["few", "deletion", "mcs", "idr"]


def test_an_entry_may_have_the_name_of_another_registered_metric() -> None:
    found = reading(changed("metrics.pointing_game", {"metric": "deletion"})).metrics["pointing_game"]
    assert (found.metric, found.takes) == ("deletion", ("mean",))


def test_a_number_may_be_a_word() -> None:
    raw = changed(
        "metrics",
        {"all": {"metric": "deletion", "steps": "exact"}, "one": {"metric": "deletion", "steps": 1}},
    )
    found = reading(raw).metrics
    assert (found["all"].parameters["steps"], found["one"].parameters["steps"]) == ("exact", 1)


# --- functions of one's own ---------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["higher", "lower"])
def test_a_function_of_ones_own_is_a_metric(own: Path, direction: str) -> None:
    found = mine(function="own_metrics:tuned", direction=direction, level=2)
    expected = {
        "name": "mine",
        "label": "Mine",
        "metric": "",
        "function": "own_metrics:tuned",
        "parameters": {"power": 1, "level": 2},
        "scores_single_maps": True,
        "takes": (),
        "responses": "",
        "directions": {"mine": direction},
        "labels": {"mine": "Mine"},
        "units": {"mine": ""},
        "sub_variants": {},
        "figures": {"scores": BOXES},
        "measures": "other",
        "summary": "own_metrics:tuned",
        "score_summaries": {"mine": "own_metrics:tuned"},
    }
    assert {name: getattr(found, name) for name in expected} == expected


def test_a_custom_metric_may_name_what_it_measures(own: Path) -> None:
    record = mine(function="own_metrics:tuned", direction="higher", level=2, measures="complexity")
    assert record.measures == "complexity"


@pytest.mark.parametrize(
    ("target", "direction"),
    [(1.0, "target 1"), (0, "target 0"), (-0.5, "target -0.5"), (1 / 3, f"target {1 / 3!r}")],
)
def test_a_custom_metric_may_have_a_target(own: Path, target: float, direction: str) -> None:
    found = mine(function="own_metrics:tuned", target=target, level=2)
    assert found.directions == {"mine": direction}
    assert found.directions["mine"].target == target
    assert found.parameters == {"power": 1, "level": 2}


def test_a_function_is_given_what_it_names(own: Path) -> None:
    found = mine(function="own_metrics:greedy", direction="lower", level=2)
    assert set(found.takes) == set(OFFERED) == {"mean", "mask", "explain", "randomized_model"}
    assert len(found.takes) == 4
    assert found.parameters == {"level": 2}
    found = mine(function="own_metrics:anything", direction="lower", level=2, text="a")
    assert (found.takes, found.parameters) == ((), {"level": 2, "text": "a"})


def test_a_function_may_have_the_name_of_a_registered_metric(own: Path) -> None:
    raw = study(metrics=["deletion"])
    raw["metrics"]["deletion"] = {"function": "own_metrics:plain", "direction": "lower"}
    found = reading(raw)
    assert (found.metrics["deletion"].metric, found.metrics["deletion"].directions) == (
        "",
        {"deletion": "lower"},
    )
    assert found.metrics["few"].metric == "deletion"


@pytest.mark.parametrize(("change", "message"), cases(WRONG))
def test_what_is_wrong_with_a_metric(own: Path, change: str, message: str) -> None:
    place, _, value = change.partition(": ")
    assert fault(changed(place, yaml.safe_load(value))) == message.replace("FILE", str(own))


# --- studies ------------------------------------------------------------------------------------------------


def test_a_fidelity_study() -> None:
    printed = {"gradient": {"deletion_score": 0.5, "few": 1}}
    found = reading(study(metrics=["few"], printed=printed)).studies["s"]
    assert (found.kind, found.data, found.models, found.methods) == (
        "fidelity",
        "digits",
        ("d",),
        ("gradient",),
    )
    assert (found.metrics, found.printed, found.options) == (("few",), printed, ())
    assert found.figure_values == ({"metric": "few", "figure": "scores"},)


def test_what_is_printed_of_reliability_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    alphas, rhos = {"few": {"without": 0.3}}, {"few": {"deletion": {"gradient": 0}}}
    raw = study(metrics=["few", "deletion"], printed_alpha=alphas, printed_correlation=rhos)
    found = reading(raw).studies["s"]
    assert (found.printed_alpha, found.printed_correlation) == (alphas, rhos)
    # With a baseline there is an α with baselines, and without any other method none without.
    baseline = with_parameters(replace(FEW.methods["noise"], uses_model=False))
    monkeypatch.setitem(cast(dict[str, object], FEW.methods), "noise", baseline)
    raw["methods"]["noise"] = {}
    raw["studies"]["s"] |= {"methods": ["gradient", "noise"], "printed_alpha": {"few": {"with": 0.3}}}
    assert reading(raw).studies["s"].printed_alpha == {"few": {"with": 0.3}}
    raw["studies"]["s"] |= {"methods": ["noise"], "printed_alpha": alphas, "printed_correlation": {}}
    assert fault(raw) == (
        "studies.s.printed_alpha.few.without: the study has only baselines (methods that do not use the model); "
        "valid: with"
    )


def test_by_default_a_study_has_all_metrics_that_are_listed() -> None:
    raw = study()
    raw["metrics"]["mcs"] = {}  # which judges no single maps
    assert metrics_of(raw) == ("deletion", "few")
    # What another study asks for is not listed.
    raw["studies"]["t"] = {"kind": "fidelity", "model": "f_o", "metrics": ["pointing_game"]}
    found = reading(raw).studies
    assert (found["s"].metrics, found["t"].metrics) == (("deletion", "few"), ("pointing_game",))
    assert (found["s"].printed, found["digits"].metrics, found["bam"].metrics) == (
        {},
        (),
        ("mcs", "idr", "iir"),
    )


def test_a_study_keeps_the_order_in_which_it_names_its_metrics() -> None:
    assert metrics_of(study(metrics=["few", "deletion"])) == ("few", "deletion")


def test_a_registered_metric_without_an_entry_has_its_defaults() -> None:
    raw = study(metrics=["deletion"])
    del raw["metrics"]
    found = reading(raw)
    assert found.studies["s"].metrics == ("deletion",)
    assert found.metrics["deletion"].parameters == {"steps": 100, "fill": "black"}
    raw = study(metrics=["deletion"])
    raw["metrics"] = {"deletion": {"steps": 7}}
    assert reading(raw).metrics["deletion"].parameters["steps"] == 7


def test_a_study_without_metrics_is_refused() -> None:
    raw = study()
    found = "missing, and no entry under metrics scores single maps"
    expected = f"studies.s.metrics: {found}; valid: deletion, pointing_game"
    for metrics in ({}, {"mcs": {}}):
        raw["metrics"] = metrics
        assert fault(raw) == expected
    del raw["metrics"]
    assert fault(raw) == expected


def test_images_that_were_composed_have_masks(own: Path) -> None:
    raw = study(model="f_o", metrics=["pointing_game"])
    assert metrics_of(raw) == ("pointing_game",)
    raw["studies"]["s"]["model"] = "d"
    assert fault(raw) == (
        "studies.s.metrics: pointing_game needs the object's mask, which the set digits (models.d) does not have; "
        "valid: bam_os, bam_0s, bam_og, image files with the key masks (docs/data.md)"
    )
    raw["metrics"]["mine"] = {"function": "own_metrics:greedy", "direction": "lower"}
    raw["studies"]["s"]["metrics"] = ["mine"]  # and so does a function that takes one
    assert fault(raw).startswith("studies.s.metrics: mine needs the object's mask, which the set digits ")


def test_where_no_data_has_masks_image_files_may() -> None:
    raw = study(metrics=["pointing_game"])
    del raw["data"]["bam"], raw["studies"]["bam"], raw["models"]["f_o"], raw["models"]["f_s"]
    assert fault(raw).endswith(
        "which the set digits (models.d) does not have; valid: image files with the key masks (docs/data.md)"
    )


def test_printed_values_are_of_a_score_a_metric_or_both_in_full(own: Path) -> None:
    raw = study(printed={"gradient": {"deletion_score few L=20": 0.5, "deletion": 2, "few": 1.5}})
    assert reading(raw).studies["s"].printed == raw["studies"]["s"]["printed"]
    raw["metrics"]["mine"] = {"function": "own_metrics:plain", "direction": "lower"}
    raw["studies"]["s"]["printed"] = {"gradient": {"mine": 0.5}}
    assert reading(raw).studies["s"].printed == {"gradient": {"mine": 0.5}}


@pytest.mark.parametrize(("change", "message"), cases(WRONG_STUDY))
def test_what_is_wrong_with_a_fidelity_study(change: str, message: str) -> None:
    key, _, value = change.partition(": ")
    assert fault(study(**{key: yaml.safe_load(value)})) == message


@pytest.mark.parametrize("kind", ["bam", "digits"])
@pytest.mark.parametrize(
    ("key", "value"),
    [("metrics", ["deletion"]), *((f"printed{of}", {}) for of in ("", "_alpha", "_correlation"))],
)
def test_other_studies_take_no_metrics(kind: str, key: str, value: object) -> None:
    assert fault(changed(f"studies.{kind}.{key}", value)).startswith(f"studies.{kind}: unknown key '{key}'; ")


def test_a_fidelity_study_needs_its_model() -> None:
    assert (
        fault(changed("studies.s", {"kind": "fidelity"}))
        == "studies.s: key 'model' is missing; required: kind, model"
    )


def test_parameters_that_exclude_each_other_are_told() -> None:
    raw = base()
    raw["metrics"] = {"squares": {"metric": "infidelity_square", "smallest": 5, "largest": 4}}
    raw["models"]["d"] = raw["models"]["f_o"] | {
        "architecture": "resnet8",
        "data": "digits",
        "trained_on": "class",
    }
    raw["models"]["f_o"]["architecture"] = raw["models"]["f_s"]["architecture"] = "resnet8"
    with pytest.raises(ConfigError) as error:
        read(raw, catalog=CATALOG, source="some.yaml")
    wanted = "some.yaml: metrics.squares.largest: found 4, expected at least smallest, 5"
    assert str(error.value) == wanted


def test_a_printed_value_of_several_scores_is_refused() -> None:
    message = fault(study(printed={"gradient": {"deletion_score": 0.5}}))
    wanted = (
        "found 'deletion_score', which has 2 scores, expected one of them, such as 'deletion_score deletion'"
    )
    assert message == f"studies.s.printed.gradient: {wanted}"
    assert "'few L=20'" in fault(study(printed={"gradient": {"few L=20": 0.5}}))

"""Metrics in the configuration: entries, custom functions, and what a fidelity study makes of them."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from configurations import CATALOG as FEW
from configurations import agrees, base, cases, changed, fault, reading, with_parameters

from saliency_assay.catalog import CATALOG
from saliency_assay.config.metrics import BOXES, OFFERED, Metric

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

# Each line is a change to configurations.BASE and what its message says.
WRONG = """
metrics.deletion.stepps: 3 => metrics.deletion: unknown key 'stepps' … 'steps'
metrics.few: {metric: deletio, steps: 3} => metrics.few: unknown metric 'deletio' … 'deletion'
metrics.few: {steps: 3} => metrics.few: unknown metric 'few' … valid: deletion
metrics.few: {metric: deletion, steps: exactly} => metrics.few.steps: found 'exactly' … an integer or 'exact'
metrics.few: {metric: deletion, direction: lower}
    => metrics.few.direction: found with a registered metric … only with function
metrics.few: {metric: deletion, target: 0}
    => metrics.few.target: found with a registered metric … only with function
metrics.contrast: {metric: mcs} => metrics.contrast.metric: found 'mcs' … only for an entry of that name
metrics.mcs: {metric: idr}
    => metrics.mcs: is the name of a registered metric of bam studies, expected another name
metrics.mine: {function: 'own_metrics:plain'}
    => metrics.mine.direction: missing … higher or lower, or target
metrics.mine: {function: 'own_metrics:plain', direction: up}
    => metrics.mine.direction: found 'up' … valid: higher
metrics.mine: {function: 'own_metrics:plain', direction: higher, target: 1}
    => metrics.mine: found both direction and target … one of them
metrics.mine: {function: 'own_metrics:plain', target: .inf}
    => metrics.mine.target: found inf … a finite number
metrics.mine: {function: 'own_metrics:plain', direction: higher, metric: deletion}
    => metrics.mine: found both function and metric … one of them
metrics.mine: {function: 'own_metrics:plian', direction: higher}
    => metrics.mine.function: unknown function 'plian' … 'plain'
metrics.mine: {function: 'own_metrics:method', direction: higher}
    => metrics.mine.function: found arguments (model, images, targets, generator) … targets, maps
metrics.mine: {function: 'own_metrics:tuned', direction: higher}
    => metrics.mine.level: missing, the function has no default for it
metrics.mine: {function: 'own_metrics:greedy', direction: higher, mask: 3}
    => metrics.mine.mask: found a value … none
"""

# As above, of a fidelity study of the model d, the method gradient, and the metrics deletion and few.
WRONG_STUDY = """
metrics: [deletio] => studies.s.metrics: unknown metric of single maps 'deletio' … 'deletion'
metrics: [few, mcs] => studies.s.metrics: unknown metric of single maps 'mcs' … valid: deletion
metrics: [] => studies.s.metrics: found [] … 1 or more entries
metric: [few] => studies.s: unknown key 'metric' … 'metrics'
model: digits => studies.s.model: unknown model 'digits' … valid: d
printed: {gradeint: {few: 1}} => studies.s.printed: unknown method 'gradeint' … 'gradient'
printed: {gradient: {few_score: 1}}
    => studies.s.printed.gradient: unknown score 'few_score' … 'deletion_score'
printed: {gradient: {pointing_game_score: 1}}
    => studies.s.printed.gradient: unknown score 'pointing_game_score' … valid: deletion
printed: {gradient: {few: much}} => studies.s.printed.gradient.few: found 'much' … a number
printed: {gradient: {deletion_score: 0.5}}
    => studies.s.printed.gradient: found 'deletion_score' … 2 scores … 'deletion_score deletion'
printed: {gradient: {few L=20: 0.5}} => studies.s.printed.gradient: … 'few L=20'
printed_alpha: {fwe: {without: 0.3}} => studies.s.printed_alpha: unknown score 'fwe' … 'few'
printed_alpha: {few: {with: 0.3}}
    => studies.s.printed_alpha.few.with: … no baselines … valid: without
printed_alpha: {few: {without: 2}} => studies.s.printed_alpha.few.without: found 2 … at most 1
printed_alpha: {few: {withuot: 0.3}} => studies.s.printed_alpha.few: unknown key 'withuot' … 'without'
printed_correlation: {few: {deletoin: {gradient: 0.3}}}
    => studies.s.printed_correlation.few: unknown score 'deletoin' … 'deletion'
printed_correlation: {few: {few: {gradient: 0.3}}}
    => studies.s.printed_correlation.few: found 'few' again … another score
printed_correlation: {few: {deletion: {smooth: 0.3}}}
    => studies.s.printed_correlation.few.deletion: unknown method 'smooth' … valid: gradient
printed_correlation: {few: {deletion: {gradient: -2}}}
    => studies.s.printed_correlation.few.deletion.gradient: found -2 … at least -1
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
    assert agrees(fault(raw), "metrics.deletion_score: … a score of metrics.deletion … studies.s")
    raw["studies"]["s"]["metrics"] = ["deletion_score"]
    assert reading(raw).metrics["deletion_score"].directions == {"deletion_score": "lower"}


# --- entries ------------------------------------------------------------------------------------------------


def test_an_entry_may_be_another_registered_metric() -> None:
    raw = changed("metrics", {"few": {"metric": "deletion", "steps": 5}, "deletion": {"fill": "mean"}})
    metrics = reading(raw).metrics
    assert (metrics["few"].name, metrics["few"].metric) == ("few", "deletion")
    assert metrics["few"].function == metrics["deletion"].function == "package.deletion:deletion"
    assert metrics["few"].parameters == {"steps": 5, "fill": "black"}
    assert metrics["deletion"].parameters == {"steps": 100, "fill": "mean"}
    assert metrics["few"].directions == {"deletion_score": "higher"}
    # BAM's metrics are there in any case, the others only where a study compares them.
    assert list(metrics) == ["few", "deletion", "mcs", "idr"]


def test_an_entry_may_have_the_name_of_another_registered_metric() -> None:
    raw = changed("metrics.pointing_game", {"metric": "deletion", "steps": "exact"})
    metric = reading(raw).metrics["pointing_game"]
    assert (metric.metric, metric.takes, metric.parameters["steps"]) == ("deletion", ("mean",), "exact")


# --- custom functions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["higher", "lower"])
def test_a_custom_function_is_a_metric(own: Path, direction: str) -> None:
    metric = mine(function="own_metrics:tuned", direction=direction, level=2)
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
    assert {name: getattr(metric, name) for name in expected} == expected


def test_a_custom_metric_may_name_what_it_measures(own: Path) -> None:
    record = mine(function="own_metrics:tuned", direction="higher", level=2, measures="complexity")
    assert record.measures == "complexity"


@pytest.mark.parametrize(("target", "direction"), [(0, "target 0"), (-0.5, "target -0.5")])
def test_a_custom_metric_may_have_a_target(own: Path, target: float, direction: str) -> None:
    metric = mine(function="own_metrics:tuned", target=target, level=2)
    assert metric.directions == {"mine": direction}
    assert metric.directions["mine"].target == target
    assert metric.parameters == {"power": 1, "level": 2}


def test_a_function_takes_the_arguments_that_it_names(own: Path) -> None:
    metric = mine(function="own_metrics:greedy", direction="lower", level=2)
    assert sorted(metric.takes) == sorted(OFFERED) == ["explain", "mask", "mean", "randomized_model"]
    assert metric.parameters == {"level": 2}
    metric = mine(function="own_metrics:anything", direction="lower", level=2, text="a")
    assert (metric.takes, metric.parameters) == ((), {"level": 2, "text": "a"})


def test_a_function_may_have_the_name_of_a_registered_metric(own: Path) -> None:
    raw = study(metrics=["deletion"])
    raw["metrics"]["deletion"] = {"function": "own_metrics:plain", "direction": "lower"}
    metrics = reading(raw).metrics
    assert (metrics["deletion"].metric, metrics["deletion"].directions) == ("", {"deletion": "lower"})
    assert metrics["few"].metric == "deletion"


@pytest.mark.parametrize(("change", "expected"), cases(WRONG))
def test_what_is_wrong_with_a_metric(own: Path, change: str, expected: str) -> None:
    place, _, value = change.partition(": ")
    assert agrees(fault(changed(place, yaml.safe_load(value))), expected)


# --- studies ------------------------------------------------------------------------------------------------


def test_a_fidelity_study() -> None:
    printed = {"gradient": {"deletion_score": 0.5, "few": 1}}
    entry = reading(study(metrics=["few"], printed=printed)).studies["s"]
    assert (entry.kind, entry.data, entry.models) == ("fidelity", "digits", ("d",))
    assert (entry.methods, entry.metrics, entry.printed) == (("gradient",), ("few",), printed)
    assert entry.options == ()
    assert entry.figure_values == ({"metric": "few", "figure": "scores"},)


def test_what_is_printed_of_reliability_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    alphas, rhos = {"few": {"without": 0.3}}, {"few": {"deletion": {"gradient": 0}}}
    raw = study(metrics=["few", "deletion"], printed_alpha=alphas, printed_correlation=rhos)
    entry = reading(raw).studies["s"]
    assert (entry.printed_alpha, entry.printed_correlation) == (alphas, rhos)
    # With a baseline there is an α with baselines, and without any other method none without.
    baseline = with_parameters(replace(FEW.methods["noise"], uses_model=False))
    monkeypatch.setitem(cast(dict[str, object], FEW.methods), "noise", baseline)
    raw["methods"]["noise"] = {}
    raw["studies"]["s"] |= {"methods": ["gradient", "noise"], "printed_alpha": {"few": {"with": 0.3}}}
    assert reading(raw).studies["s"].printed_alpha == {"few": {"with": 0.3}}
    raw["studies"]["s"] |= {"methods": ["noise"], "printed_alpha": alphas, "printed_correlation": {}}
    assert agrees(fault(raw), "studies.s.printed_alpha.few.without: … only baselines … valid: with")


def test_by_default_a_study_has_all_metrics_that_are_listed() -> None:
    raw = study()
    raw["metrics"]["mcs"] = {}  # which judges no single maps
    assert metrics_of(raw) == ("deletion", "few")
    # A metric that only another study names is not listed.
    raw["studies"]["t"] = {"kind": "fidelity", "model": "f_o", "metrics": ["pointing_game"]}
    studies = reading(raw).studies
    assert {name: entry.metrics for name, entry in studies.items()} == {
        **{"bam": ("mcs", "idr", "iir"), "digits": ()},
        **{"s": ("deletion", "few"), "t": ("pointing_game",)},
    }
    assert studies["s"].printed == {}


def test_a_study_keeps_the_order_in_which_it_names_its_metrics() -> None:
    assert metrics_of(study(metrics=["few", "deletion"])) == ("few", "deletion")


def test_a_registered_metric_without_an_entry_has_its_defaults() -> None:
    raw = study(metrics=["deletion"])
    del raw["metrics"]
    configuration = reading(raw)
    assert configuration.studies["s"].metrics == ("deletion",)
    assert configuration.metrics["deletion"].parameters == {"steps": 100, "fill": "black"}


@pytest.mark.parametrize("metrics", [{"mcs": {}}, None], ids=["none of single maps", "none"])
def test_a_study_without_metrics_is_refused(metrics: object) -> None:
    raw = study()
    del raw["metrics"]
    raw |= {"metrics": metrics} if metrics else {}
    assert agrees(fault(raw), "studies.s.metrics: missing … valid: deletion, pointing_game")


def test_images_that_were_composed_have_masks(own: Path) -> None:
    raw = study(model="f_o", metrics=["pointing_game"])
    assert metrics_of(raw) == ("pointing_game",)
    raw["studies"]["s"]["model"] = "d"
    expected = "studies.s.metrics: pointing_game needs … mask … digits (models.d) … valid: bam_os, bam_0s"
    assert agrees(fault(raw), expected)
    raw["metrics"]["mine"] = {"function": "own_metrics:greedy", "direction": "lower"}
    raw["studies"]["s"]["metrics"] = ["mine"]  # and so does a function that takes one
    assert agrees(fault(raw), expected.replace("pointing_game", "mine"))


def test_where_no_data_has_masks_image_files_may() -> None:
    raw = study(metrics=["pointing_game"])
    del raw["data"]["bam"], raw["studies"]["bam"], raw["models"]["f_o"], raw["models"]["f_s"]
    assert agrees(
        fault(raw), "studies.s.metrics: … digits (models.d) … valid: image files with the key masks"
    )


def test_printed_values_are_of_a_score_a_metric_or_both_in_full(own: Path) -> None:
    raw = study(printed={"gradient": {"deletion_score few L=20": 0.5, "deletion": 2, "few": 1.5}})
    assert reading(raw).studies["s"].printed == raw["studies"]["s"]["printed"]
    raw["metrics"]["mine"] = {"function": "own_metrics:plain", "direction": "lower"}
    raw["studies"]["s"]["printed"] = {"gradient": {"mine": 0.5}}
    assert reading(raw).studies["s"].printed == {"gradient": {"mine": 0.5}}


@pytest.mark.parametrize(("change", "expected"), cases(WRONG_STUDY))
def test_what_is_wrong_with_a_fidelity_study(change: str, expected: str) -> None:
    key, _, value = change.partition(": ")
    assert agrees(fault(study(**{key: yaml.safe_load(value)})), expected)


@pytest.mark.parametrize("key", ["metrics", "printed", "printed_alpha", "printed_correlation"])
@pytest.mark.parametrize("kind", ["bam", "digits"])
def test_other_studies_take_no_metrics(kind: str, key: str) -> None:
    assert agrees(fault(changed(f"studies.{kind}.{key}", {})), f"studies.{kind}: unknown key '{key}'")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            {"metric": "infidelity_square", "smallest": 5, "largest": 4},
            "largest: found 4 … at least smallest, 5",
        ),
        ({"metric": "faithfulness_correlation", "grid": 1}, "grid: found 1, expected 0 … or at least 2"),
        ({"metric": "input_invariance", "shift": 0.0}, "shift: found 0"),
    ],
)
def test_inconsistent_parameters_are_named(entry: dict[str, Any], message: str) -> None:
    raw = base()
    raw["metrics"] = {"mine": entry}
    for model in raw["models"].values():
        model["architecture"] = "resnet8"
    assert agrees(fault(raw, CATALOG), f"metrics.mine.{message}")

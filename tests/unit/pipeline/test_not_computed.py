"""Methods and metrics that are left out of studies because their jobs failed."""

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from pipelines import RETRAIN, TINY

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import Configuration, read
from saliency_assay.pipeline.not_computed import (
    LEFT_OUT,
    NotComputed,
    is_of_method_or_metric,
    left_out,
    read_remaining,
    remaining,
    sentences,
    write_left_out,
)
from saliency_assay.pipeline.partial import run_without_failures, with_setting
from saliency_assay.runtime.failures import Failure
from saliency_assay.studies import STUDY_KINDS

OPTIONS: dict[str, Any] = {"catalog": CATALOG, "source": "some.yaml"}
FIDELITY: dict[str, Any] = {
    "data": {"digits": {"kind": "digits"}},
    "models": {
        "m": {"architecture": "resnet8", "data": "digits", "trained_on": "class"},
        "other": {"architecture": "resnet8", "data": "digits", "trained_on": "class", "label": "Other"},
    },
    "methods": {"gradient": {}, "gradcam": {}, "random": {}},
    "metrics": {"faithfulness": {}, "infidelity_square": {}, "sensitivity_max": {}},
    "studies": {
        "s": {
            "kind": "fidelity",
            "model": "m",
            "printed": {
                "gradient": {"infidelity": 1.0, "faithfulness": 0.5},
                "gradcam": {"faithfulness": 0.1},
            },
            "printed_alpha": {"infidelity": {"with": 0.5, "without": 0.4}, "faithfulness": {"without": 0.1}},
            "printed_correlation": {"faithfulness": {"infidelity": {"gradient": 0.1, "random": 0.2}}},
        },
        "one": {"kind": "fidelity", "model": "m", "methods": ["gradient"], "metrics": ["faithfulness"]},
        "others": {"kind": "gallery", "model": "other"},
    },
}
WHERE = {"model": "m", "seed": "0", "data": "digits"}


def reading(raw: Mapping[str, Any]) -> Configuration:
    return read(raw, **OPTIONS)


def attribute(method: str, **changed: str) -> Failure:
    return Failure("attribute", {**WHERE, "method": method, **changed}, f"{method} failed")


def score(metric: str, method: str) -> Failure:
    return Failure("score", {**WHERE, "metric": metric, "method": method}, f"{metric} of {method} failed")


def names(*failures: Failure, raw: Mapping[str, Any] = FIDELITY) -> set[tuple[str, str]]:
    return {(entry.study, entry.name) for entry in left_out(reading(raw), STUDY_KINDS, failures)}


def test_a_method_without_maps_is_left_out_of_the_studies_that_show_it() -> None:
    assert names(attribute("gradient")) == {("s", "gradient"), ("one", "gradient")}
    assert names(attribute("random", model="other")) == {("others", "random")}
    assert names(attribute("random", data="elsewhere")) == set()


def test_a_metric_that_fails_for_one_method_costs_this_method_only() -> None:
    assert names(score("sensitivity_max", "gradient")) == {("s", "gradient")}
    [entry] = left_out(reading(FIDELITY), STUDY_KINDS, [score("sensitivity_max", "gradient")])
    assert entry == NotComputed("s", "methods", "gradient", "sensitivity_max of gradient failed")


def test_a_metric_that_fails_for_all_methods_with_maps_is_left_out() -> None:
    failed = [score("infidelity_square", method) for method in ("gradcam", "random")]
    assert names(*failed) == {("s", "gradcam"), ("s", "random")}
    assert names(*failed, attribute("gradient")) == {
        ("s", "infidelity_square"), ("s", "gradient"), ("one", "gradient"),
    }  # fmt: skip
    responses = Failure("respond", {**WHERE, "metric": "faithfulness"}, "no responses")
    tuned = Failure("finetune", {"model": "m", "seed": "0", "metric": "faithfulness"}, "diverged")
    for failure in (responses, tuned):
        assert is_of_method_or_metric(failure)
        assert names(failure) == {("s", "faithfulness"), ("one", "faithfulness")}


def test_jobs_of_a_study_cost_their_method_in_this_study() -> None:
    arm = {"study": "retrain", "protocol": "roar", "method": "random", "fill": "zero", "seed": "3"}
    assert names(Failure("remask", arm), raw=RETRAIN) == {("retrain", "random")}
    series = attribute("gradcam", model="f_k01", data="bam_os_k01")
    assert names(series, raw=TINY) == {("bam", "gradcam")}
    scored = Failure("score_bam", {"study": "bam", "seed": "0", "method": "gradcam"})
    assert names(scored, raw=TINY) == {("bam", "gradcam")}


def test_the_remaining_configuration_is_valid_without_what_failed() -> None:
    raw = deepcopy(FIDELITY)
    config = reading(raw)
    failures = [
        attribute("random"),
        score("infidelity_square", "gradient"),
        score("infidelity_square", "gradcam"),
    ]
    entries = left_out(config, STUDY_KINDS, failures)
    rest = remaining(raw, config, entries)
    assert raw == FIDELITY
    study = rest["studies"]["s"]
    assert study["methods"] == ["gradient", "gradcam"]
    assert study["metrics"] == ["faithfulness", "sensitivity_max"]
    assert study["printed"] == {"gradient": {"faithfulness": 0.5}, "gradcam": {"faithfulness": 0.1}}
    assert study["printed_alpha"] == {"faithfulness": {"without": 0.1}}
    assert study["printed_correlation"] == {}
    assert rest["studies"]["others"] == raw["studies"]["others"]
    given = [vars(entry) for entry in entries]
    kept = read_remaining(raw, config, given, **OPTIONS)
    assert kept.studies["s"].options == ()  # without infidelity there is no scatter plot
    assert kept.studies["others"] == config.studies["others"]
    assert kept.not_computed == sentences(config, entries)
    assert kept.not_computed["s"][0].startswith("Not computed: Random")
    assert kept.not_computed["s"][0].endswith(": random failed")


def test_a_validity_study_does_not_degrade_a_method_that_failed() -> None:
    study = {"kind": "validity", "model": "m", "degraded_methods": ["gradient", "gradcam"]}
    raw = {**FIDELITY, "studies": {"v": study}}
    for failed, kept in ((["gradcam"], ("gradient",)), (["gradcam", "gradient"], None)):
        entries = left_out(reading(raw), STUDY_KINDS, [attribute(method) for method in failed])
        rest = remaining(raw, reading(raw), entries)
        assert reading(rest).studies["v"].degraded_methods == kept


def test_a_study_without_methods_or_metrics_is_dropped() -> None:
    config = reading(FIDELITY)
    entries = left_out(config, STUDY_KINDS, [attribute("gradient")])
    assert [*remaining(FIDELITY, config, entries)["studies"]] == ["s", "others"]
    entries = left_out(config, STUDY_KINDS, [score("faithfulness", "gradient")])
    assert [*remaining(FIDELITY, config, entries)["studies"]] == ["s", "others"]


def test_retrain_studies_lose_the_reductions_of_a_method() -> None:
    raw = deepcopy(RETRAIN)
    raw["studies"]["retrain"]["reductions"] = {"random": "sum"}
    config = reading(raw)
    rest = remaining(raw, config, [NotComputed("retrain", "methods", "random", "")])
    assert reading(rest).studies["retrain"].methods == ("gradient",)


@pytest.mark.parametrize("other", [Failure("train", {"model": "m", "seed": "0"}), None])
def test_nothing_is_left_out_after_another_failure(other: Failure | None, tmp_path: Path) -> None:
    raw = {**FIDELITY, "results": str(tmp_path)}
    failures = [attribute("gradient"), *([other] if other else [])]
    write_left_out(raw, reading(raw), STUDY_KINDS, failures)
    assert (tmp_path / LEFT_OUT).exists() == (other is None)
    if not other:
        content = json.loads((tmp_path / LEFT_OUT).read_text())
        assert [entry["study"] for entry in content["entries"]] == ["s", "one"]
        assert len(content["sentences"]) == 2


def test_nothing_is_left_out_if_no_study_would_remain(tmp_path: Path) -> None:
    raw = {**FIDELITY, "results": str(tmp_path), "studies": {"one": FIDELITY["studies"]["one"]}}
    write_left_out(raw, reading(raw), STUDY_KINDS, [attribute("gradient")])
    assert not (tmp_path / LEFT_OUT).exists()


def left(*methods: str) -> dict[str, Any]:
    return {"entries": [{"section": "methods", "name": name} for name in methods], "sentences": [*methods]}


@pytest.mark.parametrize(
    ("statuses", "found", "runs", "outcome"),
    [
        ([0], [], [[]], (0, [])),
        ([1], [{}], [[]], (1, [])),
        ([1, 0], [left("a")], [[], ["a"]], (0, ["a"])),
        ([1, 1, 0], [left("a"), left("a", "b")], [[], ["a"], ["a", "b"]], (0, ["a", "b"])),
        ([1, 1], [left("a"), left("a")], [[], ["a"]], (1, ["a"])),
        ([1, 1], [left("a"), {}], [[], ["a"]], (1, ["a"])),
    ],
)  # fmt: skip
def test_it_runs_again_while_other_methods_fail(
    statuses: list[int], found: list[dict[str, Any]], runs: list[list[str]], outcome: tuple[int, list[str]]
) -> None:
    status, files = iter(statuses), iter(found)
    seen: list[list[str]] = []

    def run(entries: Sequence[Mapping[str, str]]) -> int:
        seen.append([entry["name"] for entry in entries])
        return next(status)

    assert run_without_failures(run, lambda: next(files)) == outcome
    assert seen == runs


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["-n", "report"], ["--config", "a=1", "-n", "report"]),
        (["--config", "b=2", "c=3", "-n"], ["--config", "a=1", "b=2", "c=3", "-n"]),
        (["--config=b=2", "--config", "c=3"], ["--config=b=2", "--config", "a=1", "c=3"]),
        (["--config=b=2"], ["--config", "a=1", "b=2"]),
        (["--configfile", "x", "-C", "b=2"], ["--configfile", "x", "-C", "a=1", "b=2"]),
    ],
)
def test_the_setting_is_added_to_those_of_the_user(given: Sequence[str], expected: Sequence[str]) -> None:
    assert with_setting(given, "a=1") == expected

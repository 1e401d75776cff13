"""Models that are not better than chance."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from generated_studies import generated_study
from scipy.stats import beta

from saliency_assay.report.outcome import warnings
from saliency_assay.report.pages.chance import accuracy_interval, chance_caution, is_above_chance
from saliency_assay.report.pages.overview import overview_page, summary_page
from saliency_assay.report.pages.trust import NOTHING, trusted_metrics


def evaluated(right: int, images: int = 120, largest_class: float = 0.5) -> dict[str, Any]:
    return {"images": images, "accuracy": right / images, "largest_class": largest_class}


@pytest.mark.parametrize("right", [0, 1, 35, 60, 119, 120])
def test_the_interval_is_that_of_clopper_and_pearson(right: int) -> None:
    low = beta.ppf(0.025, right, 121 - right) if right else 0
    high = beta.ppf(0.975, right + 1, 120 - right) if right < 120 else 1
    assert accuracy_interval(evaluated(right)) == pytest.approx((low, high))


def test_a_model_is_above_chance_if_its_whole_interval_is() -> None:
    # The smallest number of right images of 120 for which P(X ≥ k) ≤ 0.025 with p = 0.5 is 72.
    assert [is_above_chance(evaluated(right)) for right in (35, 60, 71, 72, 120)] == [False] * 3 + [True] * 2
    assert not is_above_chance(evaluated(100, largest_class=0.8))  # a constant prediction is right for 96


def test_the_caution_states_accuracy_interval_and_chance() -> None:
    assert chance_caution("M", [evaluated(100)]) == chance_caution("M", []) == ""
    text = chance_caution("M", [evaluated(100), evaluated(35)])
    assert text.startswith(
        "M is not better than chance for 1 of 2 training seeds (accuracy 29.2 % [21.2, 38.2] on 120"
    )
    assert "most frequent class 50.0 %)" in text


def test_a_study_of_such_a_model_is_not_interpretable() -> None:
    caution = chance_caution("M", [evaluated(35)])
    result = replace(generated_study(3, 1, 1), at_chance=[caution], cautions=["Mind the gap."])
    assert result.answer.startswith("Not interpretable")
    assert result.short_warnings[0].startswith("M is not better than chance")
    [metric] = trusted_metrics(result)
    assert (metric.verdict, metric.nothing[0]) == (NOTHING, "a model is not better than chance")
    overview = overview_page([result], seeds=[0], ran="")
    assert ": a model is not better than chance" in overview  # the cross below the small heat map
    assert "cannot be interpreted" in summary_page(result)


def test_the_last_lines_of_a_run_name_such_models(tmp_path: Path) -> None:
    models = {"bad": {"data": "d", "label": "Bad model"}, "good": {"data": "d"}, "missing": {"data": "d"}}
    for name, right in (("bad", 35), ("good", 100)):
        folder = tmp_path / "models" / name / "seed0"
        folder.mkdir(parents=True)
        sets = {"d": {"test": evaluated(right)}, "other": {"test": evaluated(10)}}
        (folder / "evaluation.json").write_text(json.dumps(sets), encoding="utf-8")
    [line] = warnings({"results": str(tmp_path), "models": models})
    assert line.startswith("Bad model is not better than chance (accuracy 29.2 %")
    assert list(warnings({"results": str(tmp_path), "data": {}})) == []

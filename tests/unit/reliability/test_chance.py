"""Models that are not shown to be better than chance."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generated_studies import generated_study
from scipy.stats import beta, binomtest

from saliency_assay.reliability.chance import (
    balanced_accuracy_interval,
    chance_caution,
    chance_level,
    is_above_chance,
)
from saliency_assay.reliability.verdicts import AT_CHANCE, CHANCE_REASON, Verdict
from saliency_assay.report.outcome import warnings
from saliency_assay.report.pages.overview import overview_page, summary_page
from saliency_assay.report.pages.trust import trusted_metrics


def evaluated(*classes: tuple[int, int]) -> dict[str, Any]:
    """Evaluation with a number of correct images and of images for each class."""
    return {
        "images": sum(images for _, images in classes),
        "balanced_accuracy": sum(correct / images for correct, images in classes) / len(classes),
        "counts": {
            f"class {place}": {"correct": correct, "images": images}
            for place, (correct, images) in enumerate(classes)
        },
    }


BAD, GOOD = evaluated((17, 60), (18, 60)), evaluated((50, 60), (50, 60))


@pytest.mark.parametrize("correct", [0, 35, 119, 120])
def test_the_interval_of_a_single_class_is_that_of_clopper_and_pearson(correct: int) -> None:
    interval = binomtest(correct, 120).proportion_ci(0.95)
    assert balanced_accuracy_interval(evaluated((correct, 120))) == pytest.approx(tuple(interval))


def test_the_ends_are_quantiles_of_the_mean_of_beta_variables() -> None:
    classes = [(45, 50), (21, 40), (70, 100)]
    generator = np.random.default_rng(0)

    def quantile(level: float, more: int) -> float:
        """``more`` is 0 for the lower end, 1 for the upper end."""
        samples = [generator.beta(k + more, n - k + 1 - more, 200_000) for k, n in classes]
        return float(np.quantile(np.mean(samples, axis=0), level))

    expected = (quantile(0.025, 0), quantile(0.975, 1))
    assert balanced_accuracy_interval(evaluated(*classes)) == pytest.approx(expected, abs=0.002)


def test_the_interval_of_recalls_of_0_and_1_has_a_width() -> None:
    """A class without correct images has the lower end 0, one with nothing else the upper end 1."""
    low, high = balanced_accuracy_interval(evaluated((0, 5), (5, 5)))
    assert low == pytest.approx(beta.ppf(0.025, 5, 1) / 2)
    assert high == pytest.approx(1 - low)
    assert balanced_accuracy_interval(evaluated((0, 5), (0, 5)))[0] == 0
    assert balanced_accuracy_interval(evaluated((5, 5), (5, 5)))[1] == 1


def test_two_equally_frequent_classes_need_as_many_correct_images_as_a_binomial_test() -> None:
    # The smallest number of correct images of 120 for which P(X ≥ k) ≤ 0.025 with p = 0.5 is 72.
    assert binomtest(71, 120).proportion_ci().low <= 0.5 < binomtest(72, 120).proportion_ci().low
    decisions = [is_above_chance(evaluated((k // 2, 60), (k - k // 2, 60))) for k in (35, 60, 71, 72, 120)]
    assert decisions == [False, False, False, True, True]


@pytest.mark.parametrize(("classes", "images"), [(2, 1), (2, 1000), (10, 5), (100, 1000)])
def test_a_constant_prediction_is_not_better_than_chance(classes: int, images: int) -> None:
    for of_predicted in (1, images, 1000):
        constant = evaluated((of_predicted, of_predicted), *[(0, images)] * (classes - 1))
        assert constant["balanced_accuracy"] == pytest.approx(chance_level(constant)) == 1 / classes
        assert not is_above_chance(constant)


def test_a_rare_class_counts_as_much_as_a_frequent_one() -> None:
    """With 5 % positives, sensitivity and specificity of 0.9 are evidence, and an accuracy of 95 % is none."""
    assert is_above_chance(evaluated((18, 20), (342, 380)))
    assert not is_above_chance(evaluated((0, 20), (380, 380)))
    assert not is_above_chance(evaluated((1, 1), (18, 19)))  # too few positives


def random_predictions(images: Sequence[int], shares: Sequence[float]) -> float:
    """Return the share of classifiers that predict at random with ``shares`` and pass as better than chance."""
    generator = np.random.default_rng(0)
    correct = generator.binomial(images, shares, (1000, len(images)))
    return float(np.mean([is_above_chance(evaluated(*zip(row, images, strict=True))) for row in correct]))


@pytest.mark.parametrize(
    ("images", "shares"),
    [
        ([5, 95], [0.3, 0.7]),
        ([1, *[100] * 9], [0.1, 0.9, *[0] * 8]),
        ([3] * 10, [0.1] * 10),
        ([1] * 100, [0.01] * 100),
    ],
)
def test_random_predictions_seldom_pass(images: list[int], shares: list[float]) -> None:
    assert random_predictions(images, shares) <= 0.04  # 2.5 % and three standard errors


def test_the_caution_states_balanced_accuracy_interval_and_chance() -> None:
    assert chance_caution("M", [GOOD]) == chance_caution("M", []) == ""
    low, high = (100 * end for end in balanced_accuracy_interval(BAD))
    assert chance_caution("M", [GOOD, BAD]).startswith(
        "M is not shown to be better than chance for 1 of 2 training seeds (balanced accuracy 29.2 %, 95 % CI"
        f" {low:.1f} to {high:.1f} %, on 120 test images; chance 50.0 %)"
    )


def test_a_study_of_such_a_model_is_not_interpretable() -> None:
    caution = chance_caution("M", [BAD])
    result = replace(generated_study(3, 1, 1), at_chance=[caution], cautions=["Mind the gap."])
    assert result.answers[0].text.startswith("Not interpretable")
    assert result.short_warnings[0].startswith("M is not shown to be better than chance")
    [metric] = trusted_metrics(result)
    assert metric.verdict == Verdict(AT_CHANCE, (CHANCE_REASON,))
    overview = overview_page([result], seeds=[0], ran="")
    assert f": {CHANCE_REASON}" in overview  # the cross below the small heat map
    assert "cannot be interpreted" in summary_page(result)


def test_the_last_lines_of_a_run_name_such_models(tmp_path: Path) -> None:
    models = {"bad": {"data": "d", "label": "Bad model"}, "good": {"data": "d"}, "missing": {"data": "d"}}
    for name, evaluation in (("bad", BAD), ("good", GOOD)):
        folder = tmp_path / "models" / name / "seed0"
        folder.mkdir(parents=True)
        sets = {"d": {"test": evaluation}, "other": {"test": BAD}}
        (folder / "evaluation.json").write_text(json.dumps(sets), encoding="utf-8")
    [line] = warnings({"results": str(tmp_path), "models": models})
    assert line.startswith("Bad model is not shown to be better than chance (balanced accuracy 29.2 %")
    assert list(warnings({"results": str(tmp_path), "data": {}})) == []

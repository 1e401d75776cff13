"""Page on the agreement of tasks: its sentences, heat map and table of pairs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from parsed_pages import Page

from saliency_assay.plotting.palette import correlation_colors
from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.across import AGREEMENT, ALL, LEFT_OUT, PAIRS, Across
from saliency_assay.report.pages.across import (
    MEAN,
    across_page,
    agreement_map,
    answer,
    pair_sentences,
    pair_table,
    task_labels,
)

LABELS = Labels(
    methods={"g": "Gradient", "c": "Grad-CAM", "r": "Random"},
    scores={"good": "Good", "bad": "Bad"},
    models={"m": "Small model", "n": "Wide model"},
    data={"d": "Digits", "e": "Easy digits"},
)
TASKS = {"x": "Task X", "y": "Task Y", "z": "Task Z"}
NAN = float("nan")
Row = tuple[str, str, float, float, float]


def result_of(
    agreement: dict[str, list[Row]], pairs: Sequence[tuple[Any, ...]] = (), left_out: Any = ()
) -> Across:
    rows = [
        (metric, metric, task, other, 2, 5, *ends)
        for metric, of_metric in agreement.items()
        for task, other, *ends in of_metric
    ]
    return Across(
        pd.DataFrame(rows, columns=AGREEMENT),
        pd.DataFrame(list(pairs), columns=PAIRS),
        pd.DataFrame(list(left_out), columns=LEFT_OUT),
    )


def mean(low: float, high: float) -> list[Row]:
    return [("x", "y", 0.5, low, high), (ALL, "", 0.5, low, high)]


def test_the_answer_counts_metrics_by_their_interval() -> None:
    means = {
        "a": mean(0.1, 1),
        "b": mean(0.2, 1),
        "c": mean(-1, -0.1),
        "d": mean(-0.2, 1),
        "e": mean(NAN, NAN),
    }
    text = answer(result_of(means))
    assert "under 2 of 5 metrics" in text
    assert "disagree under 1 (below 0); under 2, it is open" in text
    only = answer(result_of({"a": mean(0.1, 1)}))
    assert "1 of 1 metric " in only
    assert "disagree" not in only
    assert "open" not in only
    assert "three methods" in answer(result_of({"a": [("x", "y", NAN, NAN, NAN)]}))


def test_only_the_main_variant_of_a_score_counts() -> None:
    table = result_of({"a": mean(0.1, 1), "b": mean(0.1, 1)}).agreement
    variants = table.assign(metric="a", variant=["entry L=10"] * 2 + ["entry L=20"] * 2)
    result = Across(variants, result_of({}).pairs, result_of({}).left_out)
    assert "1 of 1 metric " in answer(result)
    assert len(agreement_map(result, LABELS, TASKS).rows) == 1


PAIR_ROWS = [
    ("good", "good", "g", "c", "", 3, 1, 1, 1, "x", "y", "flips"),
    ("good", "good", "g", "r", "r", 3, 0, 0, 3, "", "", "never distinguishable"),
    ("bad", "bad", "g", "r", "r", 3, 0, 0, 3, "", "", "never distinguishable"),
    ("good", "good", "c", "r", "r", 2, 0, 0, 2, "", "", "never distinguishable"),
    ("bad", "bad", "c", "r", "r", 2, 2, 0, 0, "x; z", "", "better"),
]


def test_pairs_that_flip_come_first_with_the_labels_of_tasks_and_baselines() -> None:
    result = result_of({}, PAIR_ROWS)
    table = pair_table(result, LABELS, TASKS)
    assert table["result"].tolist() == ["flips", *["never distinguishable"] * 3]
    assert table.iloc[0].tolist()[1:] == ["Good", "Gradient", "Grad-CAM", "Task X", "Task Y", 3]
    assert table["other method"].tolist()[1:] == ["Random (baseline)"] * 3
    first, second = pair_sentences(result, LABELS)
    assert "Of 5 comparisons" in first
    assert "1 flips" in first
    assert "3 are never" in first
    assert "none flips" in pair_sentences(result_of({}, PAIR_ROWS[1:]), LABELS)[0]
    assert second.endswith("under any metric: Gradient and Random.")
    assert pair_sentences(result_of({}), LABELS) == []


def test_the_heat_map_has_the_mean_first_and_hatches_open_intervals() -> None:
    rows: list[Row] = [("y", "x", 1, 0.4, 1), ("x", "z", -0.5, -1, 0.3), (ALL, "", 0.25, -0.3, 0.65)]
    content = agreement_map(result_of({"good": rows, "bad": [("x", "z", NAN, NAN, NAN)]}), LABELS, TASKS)
    assert content.columns == [MEAN, "Task X – Task Z", "Task Y – Task X"]
    middle, second, first = content.rows["Good"]
    assert [cell and cell.text for cell in (middle, second, first)] == ["0.25", "−0.50", "1.00"]
    assert [cell and cell.is_open for cell in (middle, second, first)] == [True, True, False]
    assert first
    assert first.note == "[0.40, 1.00], 5 methods"
    assert (first.background, first.color) == correlation_colors(1)
    undefined, missing = content.rows["Bad"][1:]
    assert undefined
    assert (undefined.text, undefined.value, missing) == ("–", None, None)
    assert agreement_map(result_of({"good": mean(0, 1)}), LABELS, TASKS).columns == ["Task X – Task Y"]


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([("d", "m"), ("d", "n")], ["Small model", "Wide model"]),
        ([("d", "m"), ("e", "m")], ["Digits", "Easy digits"]),
        ([("d", "m"), ("e", "n")], ["Small model on Digits", "Wide model on Easy digits"]),
        ([("d", "m")], ["Small model on Digits"]),
    ],
)
def test_tasks_are_labeled_by_what_differs(tasks: list[tuple[str, str]], expected: list[str]) -> None:
    assert task_labels(tasks, LABELS) == expected


def test_equal_labels_of_tasks_are_followed_by_keys() -> None:
    labels = Labels(models={"m": "Net", "n": "Net"})
    assert task_labels([("d", "m"), ("d", "n")], labels) == ["Net (m on d)", "Net (n on d)"]


def test_the_page_has_both_tables_and_what_is_left_out() -> None:
    left_out = [("good", "good", "z", "images: found 1, expected at least 5")]
    labels = Labels(methods={"g": "<b>bold</b>"}, scores={"good": "Good"})
    text = across_page(result_of({"good": mean(0.1, 1)}, PAIR_ROWS, left_out), labels, TASKS)
    page = Page(text)
    assert page.tags.count("table") == 2
    assert "<b>" not in text
    assert "Task Z: Good: images: found 1" in text
    assert Page(across_page(result_of({}), labels, {})).tags.count("table") == 0


def test_colors_of_opposite_correlations_differ() -> None:
    backgrounds = {correlation_colors(value)[0] for value in np.linspace(-1, 1, 9)}
    assert len(backgrounds) == 9
    assert correlation_colors(0)[1] == "#000000"
    assert correlation_colors(1)[1] == correlation_colors(-1)[1] == "#ffffff"

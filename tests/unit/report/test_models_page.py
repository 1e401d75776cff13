"""Accuracies and training curves of models."""

import numpy as np
import pandas as pd
import pytest
from plotted import chart_lines

from saliency_assay.plotting.charts import svg
from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.chance import balanced_accuracy_interval
from saliency_assay.report.pages.models_page import accuracy_table, displayed_accuracies, training_curves

NAN = float("nan")
LABELS = Labels(models={"f_o": "Object model", "mine": "My model"}, data={"os": "Objects on scenes"})


def test_accuracy_table_names_the_worst_class() -> None:
    test = {
        "images": 40,
        "accuracy": 0.85,
        "balanced_accuracy": 0.8,
        "per_class": {"dog": 0.9, "kite": 0.7},
        "counts": {"dog": {"correct": 27, "images": 30}, "kite": {"correct": 7, "images": 10}},
    }
    gray = {
        "images": 10,
        "accuracy": 0.2,
        "balanced_accuracy": 0.2,
        "per_class": {"dog": 0.4, "kite": 0.0},
        "counts": {"dog": {"correct": 2, "images": 5}, "kite": {"correct": 0, "images": 5}},
    }
    table = accuracy_table({("f_o", 0): {"os": {"test": test}}, ("f_o", 12): {"og": {"test": gray}}})
    columns = ["model", "seed", "set", "split", "images", "accuracy (%)", "balanced accuracy (%)"]
    columns += ["CI low (%)", "CI high (%)", "chance (%)", "better than chance", "worst class"]
    intervals = [[100 * end for end in balanced_accuracy_interval(part)] for part in (test, gray)]
    expected = [
        ("f_o", "0", "os", "test", 40, 85.0, 80.0, *intervals[0], 50.0, "yes", "kite", 70.0),
        ("f_o", "12", "og", "test", 10, 20.0, 20.0, *intervals[1], 50.0, "not shown", "kite", 0.0),
    ]
    pd.testing.assert_frame_equal(table, pd.DataFrame(expected, columns=[*columns, "its accuracy (%)"]))
    shown = displayed_accuracies(table, LABELS)
    assert list(shown) == ["Accuracy on Objects on scenes", "Accuracy on og"]
    assert [list(rows["worst class (accuracy in %)"]) for rows in shown.values()] == [
        ["kite (70.0)"],
        ["kite (0.0)"],
    ]
    (balanced,) = shown["Accuracy on og"]["balanced accuracy with 95 % CI (%)"]
    assert balanced == f"20.0 [{intervals[1][0]:.1f}, {intervals[1][1]:.1f}]"
    assert list(shown["Accuracy on og"]["model"]) == ["Object model"]


def curve(first: float, validation: float = NAN) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "epoch": [1, 2],
            "train_accuracy": [first + 0.1, 0.75],
            "validation_accuracy": [validation, NAN],
            "test_accuracy": [first, 0.5],
        }
    )


def test_training_curves_are_the_tables() -> None:
    curves = {("f_o", 3): curve(0.1), ("f_o", 1): curve(0.2), ("f_s", 1): curve(0.3)}
    chart = training_curves(curves, LABELS)
    test, train = chart.panels  # no validation images
    assert [panel.title for panel in chart.panels] == ["test images", "augmented training images"]
    for panel, first, last in ((test, (15, 10, 20), 50), (train, (25, 20, 30), 75)):
        lines = chart_lines(panel)
        both, single = lines["Object model"], lines["f_s"]
        assert list(both["x"]) == [1, 2]
        assert (both["mean"][0], both["low"][0], both["high"][0]) == pytest.approx(first)
        assert (both["mean"][1], both["low"][1], both["high"][1]) == pytest.approx((last, last, last))
        assert list(single["mean"]) == pytest.approx([first[2] + 10, last])
        assert np.isnan(single["low"]).all()  # one seed
    assert list(chart.looks) == ["Object model", "f_s"]
    assert len({look.color for look in chart.looks.values()}) == 2


def test_a_model_that_was_not_trained_here_has_no_curve_but_is_named() -> None:
    empty = curve(0.1).iloc[:0]
    chart = training_curves({("f_o", 0): curve(0.2, 0.5), ("mine", 0): empty}, LABELS)
    assert chart.legend_title == "pretrained weights, not trained in this run: My model"
    assert list(chart.looks) == ["Object model"]
    alone = training_curves({("mine", 0): empty, ("mine", 1): empty}, LABELS)
    assert (len(alone.panels), len(alone.panels[0].rows), alone.looks) == (1, 0, {})
    assert "My model" in svg(alone.specification())

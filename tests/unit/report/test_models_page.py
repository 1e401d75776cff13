"""Accuracies and training curves of models."""

import pandas as pd
import pytest

from saliency_assay.registry.labels import Labels
from saliency_assay.report.pages.models_page import accuracy_table, displayed_accuracy, training_curves

NAN = float("nan")
LABELS = Labels(models={"f_o": "Object model", "mine": "My model"}, data={"os": "Objects on scenes"})


def test_accuracy_table_names_the_worst_class() -> None:
    test = {"images": 40, "accuracy": 0.85, "per_class": {"dog": 0.9, "kite": 0.7, "zebra": 0.95}}
    train = {"images": 60, "accuracy": 1.0, "per_class": {"dog": 1.0, "kite": 1.0, "zebra": 1.0}}
    found = accuracy_table(
        {("f_o", 0): {"os": {"train": train, "test": test}}, ("f_o", 12): {"og": {"test": test}}}
    )
    columns = ["model", "seed", "set", "split", "images", "accuracy (%)", "worst class", "its accuracy (%)"]
    expected = [
        ("f_o", "0", "os", "train", 60, 100.0, "dog", 100.0),
        ("f_o", "0", "os", "test", 40, 85.0, "kite", 70.0),
        ("f_o", "12", "og", "test", 40, 85.0, "kite", 70.0),
    ]
    pd.testing.assert_frame_equal(found, pd.DataFrame(expected, columns=columns))
    shown = displayed_accuracy(found, LABELS)
    assert list(shown["model"]) == ["Object model"] * 3
    assert list(shown["data set"]) == ["Objects on scenes", "Objects on scenes", "og"]
    assert list(shown["accuracy of worst class (%)"]) == [100.0, 70.0, 70.0]


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
    axes = training_curves(curves, LABELS).axes[0]
    assert axes.get_xlabel() == "epoch"
    assert axes.get_ylabel() == "accuracy (%)"
    solid, dashed = ([line for line in axes.lines if line.get_linestyle() == style] for style in ("-", "--"))
    assert [list(line.get_ydata()) for line in solid] == [pytest.approx([f, 50]) for f in (10, 20, 30)]
    assert [list(line.get_ydata()) for line in dashed] == [pytest.approx([f, 75]) for f in (20, 30, 40)]
    assert all(list(line.get_xdata()) == [1, 2] for line in axes.lines)
    assert [line.get_color() for line in solid] == [line.get_color() for line in dashed]
    assert solid[0].get_color() == solid[1].get_color() != solid[2].get_color()
    legend = axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["Object model", "f_s"]
    assert legend.get_title().get_text() == "solid: test, dashed: training"


def test_a_model_that_was_not_trained_here_has_no_curve_but_is_named() -> None:
    given = curve(0.1).iloc[:0]
    axes = training_curves({("f_o", 0): curve(0.2, 0.5), ("mine", 0): given}, LABELS).axes[0]
    assert axes.get_title() == "pretrained weights, not trained in this run: My model"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["Object model"]
    alone = training_curves({("mine", 0): given, ("mine", 1): given}, LABELS).axes[0]
    assert (alone.lines[:], alone.get_legend(), list(alone.get_xticks())) == ([], None, [])
    assert alone.get_title() == "pretrained weights, not trained in this run: My model"


def test_training_curves_of_models_that_have_validation_images() -> None:
    axes = training_curves({("f_o", 3): curve(0.1, 0.4), ("f_s", 1): curve(0.3)}, LABELS).axes[0]
    dotted = [line for line in axes.lines if line.get_linestyle() == ":"]
    assert [list(line.get_ydata()) for line in dotted] == [pytest.approx([40, NAN], nan_ok=True)]
    assert dotted[0].get_color() == axes.lines[0].get_color()
    assert axes.get_legend().get_title().get_text() == "solid: test, dashed: training, dotted: validation"

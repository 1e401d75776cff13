"""Selection of the best trial of a search."""

from collections.abc import Sequence
from math import nan
from typing import Any

import pandas as pd
import pytest

from saliency_assay.training.search import best_of

TRIALS = [{"learning_rate": 0.1}, {"learning_rate": 0.2}, {"learning_rate": 0.4}]
WAITS = {"patience": 2}
ENDS = {"patience": 0}


def curves(*accuracies: Sequence[float]) -> list[pd.DataFrame]:
    return [pd.DataFrame({"validation_accuracy": values, "test_accuracy": 1.0}) for values in accuracies]


def test_the_highest_accuracy_wins() -> None:
    best = best_of(ENDS, TRIALS, curves([0.5, 0.6], [0.4, 0.8], [0.1, 0.7]))
    assert best == {
        "training": {"learning_rate": 0.2},
        "trials": [
            {"learning_rate": 0.1, "validation_accuracy": 0.6},
            {"learning_rate": 0.2, "validation_accuracy": 0.8},
            {"learning_rate": 0.4, "validation_accuracy": 0.7},
        ],
    }


def test_the_first_of_equals_wins() -> None:
    assert best_of(ENDS, TRIALS, curves([0.1], [0.6], [0.6]))["training"] == {"learning_rate": 0.2}


def test_without_patience_the_last_epoch_counts_because_its_weights_are_kept() -> None:
    """However high accuracy was before."""
    best = best_of(ENDS, TRIALS, curves([0.9, 0.5], [0.2, 0.6], [nan, 0.55]))
    assert best["training"] == {"learning_rate": 0.2}
    assert [row["validation_accuracy"] for row in best["trials"]] == [0.5, 0.6, 0.55]


def test_with_patience_the_best_epoch_counts_because_its_weights_are_kept() -> None:
    best = best_of(WAITS, TRIALS, curves([0.9, 0.5, 0.4], [0.2, 0.6], [0.7]))
    assert best["training"] == {"learning_rate": 0.1}
    assert [row["validation_accuracy"] for row in best["trials"]] == [0.9, 0.6, 0.7]


def test_patience_may_itself_be_searched_for() -> None:
    trials: list[dict[str, Any]] = [{"patience": 0}, {"patience": 2}]
    best = best_of(WAITS, trials, curves([0.9, 0.5], [0.8, 0.6]))
    assert best["training"] == {"patience": 2}
    assert [row["validation_accuracy"] for row in best["trials"]] == [0.5, 0.8]


@pytest.mark.parametrize(
    ("training", "values"), [(ENDS, [0.5, nan]), (WAITS, [nan, nan]), (ENDS, []), (WAITS, [])]
)
def test_a_trial_without_accuracy_is_named(training: dict[str, Any], values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"^trial \{'learning_rate': 0\.2\}: has no validation accuracy"):
        best_of(training, TRIALS[:2], curves([0.9, 0.9], values))

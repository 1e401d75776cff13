"""Selection of hyperparameters by validation accuracy (IteROAR, section 4.2)."""

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import Any

import pandas as pd


def best_of(
    training: Mapping[str, Any], trials: Sequence[Mapping[str, Any]], curves: Sequence[pd.DataFrame]
) -> dict[str, Any]:
    """Return the settings of the most accurate of ``trials``, the first if several are equal, and all accuracies.

    The accuracy of a trial is that of the epoch whose weights are kept: the best with early stopping, else the last.

    Args:
        training: the settings that all trials share.
        trials: the settings that each trial replaces.
        curves: the learning curve of each trial, from ``training.loop.train``.

    Raises:
        ValueError: a trial has no validation accuracy.
    """
    table = []
    for trial, curve in zip(trials, curves, strict=True):
        accuracies = curve["validation_accuracy"]
        stops_early = {**training, **trial}["patience"] > 0
        accuracy = float(accuracies.max() if stops_early else accuracies.iloc[-1]) if len(accuracies) else nan
        if isnan(accuracy):
            raise ValueError(
                f"trial {dict(trial)}: has no validation accuracy, expected at least one validation image and one epoch"
            )
        table.append({**trial, "validation_accuracy": accuracy})
    best = max(range(len(trials)), key=lambda index: table[index]["validation_accuracy"])
    return {"training": dict(trials[best]), "trials": table}

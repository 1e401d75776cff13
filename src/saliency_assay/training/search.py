"""Selection of training settings: those of the most accurate model on the validation images (IteROAR, 4.2)."""

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import Any

import pandas as pd


def best_of(
    training: Mapping[str, Any], trials: Sequence[Mapping[str, Any]], curves: Sequence[pd.DataFrame]
) -> dict[str, Any]:
    """Of ``trials`` of a ``training`` the settings of the best, the first of equals, and every one's accuracy.

    ``curves`` are those of ``training.loop.train``. A training that stops early keeps the weights of its best epoch,
    any other those of the last: that epoch's accuracy counts.

    Raises:
        ValueError: a trial whose weights were judged on no validation image.
    """
    table = []
    for trial, curve in zip(trials, curves, strict=True):
        judged = curve["validation_accuracy"]
        early = {**training, **trial}["patience"] > 0
        accuracy = float(judged.max() if early else judged.iloc[-1]) if len(judged) else nan
        if isnan(accuracy):
            raise ValueError(
                f"trial {dict(trial)}: has no validation accuracy, expected images and epochs to judge it by"
            )
        table.append({**trial, "validation_accuracy": accuracy})
    best = max(range(len(trials)), key=lambda index: table[index]["validation_accuracy"])
    return {"training": dict(trials[best]), "trials": table}

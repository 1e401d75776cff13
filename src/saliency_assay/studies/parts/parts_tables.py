"""Scores of a parts study as rows, and the table of the protocols' means."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from numpy import ndarray as Array

from saliency_assay.studies.parts.thresholds import (
    OF_THRESHOLDS,
    THRESHOLDS,
    best_threshold,
    part_completeness,
)

THRESHOLD, INDEPENDENCE = "threshold", "background_independence"
"""Values of a whole set in the score table."""
SCORES = ("part_completeness", *OF_THRESHOLDS, "single_deletion", "target_sensitivity")
DIMENSIONS = ("completeness", "correctness", "contrastivity")
"""FunnyBirds' dimensions."""


def score_rows(
    images: Array, curves: Mapping[str, Array], scores: Mapping[str, Array], independence: Array
) -> pd.DataFrame:
    """Return the scores of each image at the best threshold, and the values of the whole set as rows of image −1.

    Args:
        images: indices of the images ``[N]``.
        curves: the scores of ``thresholds.OF_THRESHOLDS``, ``[N, T]`` each.
        scores: ``single_deletion`` and ``target_sensitivity``, ``[N]`` each.
        independence: background independence of the model for each image ``[N]``.

    Raises:
        ValueError: no image has a score.
    """
    index = best_threshold(curves[name] for name in OF_THRESHOLDS)
    at_best = {name: curves[name][:, index] for name in OF_THRESHOLDS}
    columns = {"part_completeness": part_completeness(*at_best.values()), **at_best, **scores}
    whole = {THRESHOLD: THRESHOLDS[index], INDEPENDENCE: independence.mean()}
    rows = [pd.DataFrame({"image": images, "metric": name, "score": columns[name]}) for name in SCORES]
    rows += [pd.DataFrame({"image": [-1], "metric": name, "score": value}) for name, value in whole.items()]
    return pd.concat(rows, ignore_index=True).assign(variant="")


def protocols_table(scores: pd.DataFrame, accuracy: Mapping[int, float]) -> pd.DataFrame:
    """Return the means of all protocols, with FunnyBirds' dimensions, a row for each method and training seed.

    Args:
        scores: score table of one model and set, with the rows of ``score_rows``.
        accuracy: test accuracy of the model for each seed.

    Returns:
        ``method, seed, accuracy, background_independence``, the names of ``OF_THRESHOLDS``, ``single_deletion,
        target_sensitivity, completeness, correctness, contrastivity``, their ``mean``, and ``threshold``.
    """
    grouped = scores.groupby(["method", "seed", "metric"], sort=False, observed=True)["score"]
    means = grouped.mean().unstack("metric")
    order = scores[["method", "seed"]].drop_duplicates()
    table = order.merge(means.reset_index(), on=["method", "seed"], how="left")
    table["accuracy"] = table["seed"].map(accuracy)
    table["correctness"], table["contrastivity"] = table["single_deletion"], table["target_sensitivity"]
    # Of the means, as published: of an image without irrelevant regions, the other three scores count.
    table["completeness"] = part_completeness(*(table[name].to_numpy() for name in OF_THRESHOLDS))
    table["mean"] = table[list(DIMENSIONS)].mean(axis=1, skipna=False)
    protocols = ["accuracy", INDEPENDENCE, *OF_THRESHOLDS, "single_deletion", "target_sensitivity"]
    return table[["method", "seed", *protocols, *DIMENSIONS, "mean", THRESHOLD]]


def accuracies_of(evaluations: Sequence[Mapping[str, Any]], seeds: Sequence[int]) -> dict[int, float]:
    """Return the test accuracy for each seed from evaluations of one set, in the order of the seeds."""
    return {seed: evaluation["test"]["accuracy"] for seed, evaluation in zip(seeds, evaluations, strict=True)}

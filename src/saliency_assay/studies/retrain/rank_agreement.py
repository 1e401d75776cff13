"""Agreement of the rankings of methods with and without retraining, of two protocols, and of two fills (ROAD)."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy import ndarray as Array
from scipy.stats import rankdata

from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.studies.retrain.parameters import LEAST_FIRST
from saliency_assay.studies.retrain.tables import protocol_label, split_variants

SETTINGS = ("protocol", "fill", "retraining")
METRICS = {"accuracy": "yes", "accuracy_without_retraining": "no"}
"""Value of ``retraining`` for the accuracies of f_i and of f_0."""
COLUMNS = [*SETTINGS, "setting", "other", "iteration", "rho", "rho_low", "rho_high", "methods", "images"]
MEAN = "mean"
"""Value of ``iteration`` in rows of the mean over iterations."""
FEWEST_METHODS = 3
LEVEL = 0.95
BLOCK = 64  # resamples whose means are in memory at a time

Evaluation = tuple[str, str, str]
"""Values of ``SETTINGS``."""


def image_accuracies(scores: pd.DataFrame) -> dict[tuple[Evaluation, str], Array]:
    """Return for each test image of D_1 … D_I the number of seeds that classify it correctly, uint8 ``[I, images]``.

    The keys are evaluations and methods. ``scores`` is a score table of one or several arms.
    """
    rows = split_variants(scores, list(METRICS), "protocol/fill/iteration")
    rows = rows[rows["iteration"] > 0]
    accuracies = {}
    keys = ["protocol", "fill", "metric", "method"]
    for (protocol, fill, metric, method), of_arm in rows.groupby(keys, sort=False, observed=True):
        by_image = of_arm.pivot_table(
            index="iteration", columns="image", values="score", aggfunc="sum", observed=True
        )
        evaluation = str(protocol), str(fill), METRICS[str(metric)]
        accuracies[evaluation, str(method)] = by_image.to_numpy(np.uint8)
    return accuracies


def rank_agreement(accuracies: Mapping[tuple[Evaluation, str], Array], *, resamples: int) -> pd.DataFrame:
    """Return Spearman's ρ between the rankings of methods under every two evaluations that differ in one setting.

    A method ranks high if accuracy is low or, if the protocol occludes the least important pixels first, if it is high.

    Args:
        accuracies: see ``image_accuracies``; all evaluations have the same methods, iterations and images.
        resamples: bootstrap resamples of test images, the same for all evaluations. Models are not resampled.

    Returns:
        One row for each pair and iteration, and one with ``iteration`` ``MEAN``, the mean ρ over iterations:
        ``protocol``, ``fill`` and ``retraining`` of the first evaluation; ``setting``, the one that differs, and
        ``other``, its value in the second; ``rho`` with its interval of ``LEVEL``; ``methods`` and ``images``. ρ is
        NaN if all methods have the same accuracy in one of the evaluations, and such iterations do not count in the
        mean. Empty with fewer than three methods.
    """
    methods = list(dict.fromkeys(method for _, method in accuracies))
    evaluations = list(dict.fromkeys(evaluation for evaluation, _ in accuracies))
    if len(methods) < FEWEST_METHODS:
        return pd.DataFrame(columns=COLUMNS)
    higher_is_better = {
        evaluation: np.stack([accuracies[evaluation, method] for method in methods]).astype(np.int16)
        * (1 if evaluation[0] == LEAST_FIRST else -1)
        for evaluation in evaluations
    }
    images = next(iter(higher_is_better.values())).shape[-1]
    ranks = _resampled_ranks(higher_is_better, images, resamples)
    rows: list[dict[str, Any]] = []
    for first, second in combinations(evaluations, 2):
        differing = [index for index in range(len(SETTINGS)) if first[index] != second[index]]
        if len(differing) > 1:
            continue
        pair = {
            **dict(zip(SETTINGS, first, strict=True)),
            "setting": SETTINGS[differing[0]],
            "other": second[differing[0]],
        }
        rho = _correlation(ranks[first], ranks[second])  # [1 + resamples, I]
        by_iteration = {str(step): values for step, values in enumerate(rho.T, start=1)}
        for iteration, values in {MEAN: _mean(rho), **by_iteration}.items():
            sampled = values[1:][~np.isnan(values[1:])]
            ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
            low, high = (
                np.quantile(sampled, ends) if len(sampled) and not np.isnan(values[0]) else (np.nan, np.nan)
            )
            estimate = {"rho": values[0], "rho_low": low, "rho_high": high}
            rows.append(
                {**pair, "iteration": iteration, **estimate, "methods": len(methods), "images": images}
            )
    return pd.DataFrame(rows, columns=COLUMNS)


def displayed_agreement(table: pd.DataFrame, labels: Labels = UNLABELED) -> pd.DataFrame:
    """Return a ``rank_agreement`` for display: the mean over iterations of each pair, by setting."""
    means = table[table["iteration"] == MEAN].sort_values("setting", ascending=False, kind="stable")
    pairs = [{str(name): str(value) for name, value in row.items()} for row in means.to_dict("records")]
    compared = [
        f"{_value(pair['setting'], pair[pair['setting']])} and {_value(pair['setting'], pair['other'])}"
        for pair in pairs
    ]
    common = [
        ", ".join(_value(name, pair[name]) for name in SETTINGS if name != pair["setting"]) for pair in pairs
    ]
    return pd.DataFrame(
        {
            "compared": compared,
            "under": common,
            "ρ": means["rho"],
            f"from ({LEVEL:.0%} CI)".replace("%", " %"): means["rho_low"],
            "to": means["rho_high"],
            "methods": means["methods"],
            "images": means["images"],
        }
    )


def _value(setting: str, value: str) -> str:
    """Return a value of a setting as text."""
    if setting == "retraining":
        return "with retraining" if value == "yes" else "without retraining"
    return protocol_label(value) if setting == "protocol" else f"{value} fill"


def _resampled_ranks(
    values: Mapping[Evaluation, Array], images: int, resamples: int
) -> dict[Evaluation, Array]:
    """Return for each evaluation ranks ``[1 + resamples, methods, I]``, those of all images first."""
    generator = np.random.default_rng(0)
    ranks: dict[Evaluation, list[Array]] = {evaluation: [] for evaluation in values}
    weights, sampled = np.ones((1, images)), 0
    while True:
        for evaluation, of_methods in values.items():
            # Sums of integers are exact, so that equal accuracies are ties.
            sums = np.einsum("ri,msi->rms", weights, of_methods, optimize=True)
            ranks[evaluation].append(rankdata(sums, axis=1))
        if sampled == resamples:
            return {evaluation: np.concatenate(blocks) for evaluation, blocks in ranks.items()}
        size = min(BLOCK, resamples - sampled)
        weights = generator.multinomial(images, np.full(images, 1 / images), size=size).astype(np.float64)
        sampled += size


def _mean(rho: Array) -> Array:
    """Return the mean over iterations of ``[n, I]`` that are not NaN; NaN if all are."""
    defined = ~np.isnan(rho)
    count = defined.sum(1)
    mean: Array = np.where(count > 0, rho.sum(1, where=defined) / np.maximum(count, 1), np.nan)
    return mean


def _correlation(first: Array, second: Array) -> Array:
    """Return the correlation over the second axis; NaN where one of the two is constant."""
    first, second = (ranks - ranks.mean(1, keepdims=True) for ranks in (first, second))
    scale = np.sqrt((first**2).sum(1) * (second**2).sum(1))
    correlation: Array = np.where(
        scale == 0, np.nan, (first * second).sum(1) / np.where(scale == 0, 1, scale)
    )
    return correlation

"""Agreement of the rankings of methods with and without retraining, of two protocols, and of two fills (ROAD)."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
from numpy import ndarray as Array
from scipy.stats import rankdata

from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.reliability.comparison import MEANS, rank_sets
from saliency_assay.reliability.orders import correlation_range
from saliency_assay.reliability.reliability_tables import count_groups, with_groups
from saliency_assay.reliability.statistics import LEAST_IMAGES
from saliency_assay.reliability.variance import GROUPS, NO_FACTORS, Factors
from saliency_assay.studies.retrain.parameters import LEAST_FIRST
from saliency_assay.studies.retrain.retrain_tables import protocol_label, split_variants

SETTINGS = ("protocol", "fill", "retraining")
METRICS = {"accuracy": "yes", "accuracy_without_retraining": "no"}
"""Value of ``retraining`` for the accuracies of f_i and of f_0."""
COLUMNS = [*SETTINGS, "setting", "other", "iteration", "rho", "rho_low", "rho_high", "methods", "images"]
MEAN = "mean"
"""Value of ``iteration`` in rows of the mean over iterations."""
FEWEST_METHODS = 3
LEVEL = 0.95

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


def rank_agreement(
    accuracies: Mapping[tuple[Evaluation, str], Array], clusters: Factors = NO_FACTORS
) -> pd.DataFrame:
    """Return Spearman's ρ between the rankings of methods under every two evaluations that differ in one setting.

    A method ranks high if accuracy is low or, if the protocol occludes the least important pixels first, if it is high.

    The interval of an iteration is the range of ρ over all pairs of rankings that agree with the significant
    differences between accuracies (``comparison.rank_sets``), each ranking tested at the level 1 − (1 − ``LEVEL``) / 2.
    For the mean over I iterations, the ends are averaged, at 1 − (1 − ``LEVEL``) / 2I each. Intervals are conservative,
    and refer to the trained models: test images vary, models do not.

    Args:
        accuracies: see ``image_accuracies``; all evaluations have the same methods, iterations and images.
        clusters: for each name the cluster of each of these images. Images of one cluster are not independent.

    Returns:
        One row for each pair and iteration, and one with ``iteration`` ``MEAN``, the mean ρ over iterations:
        ``protocol``, ``fill`` and ``retraining`` of the first evaluation; ``setting``, the one that differs, and
        ``other``, its value in the second; ``rho`` with its interval of ``LEVEL``; ``methods`` and ``images``, and
        ``groups`` of images, if they have some. ρ is NaN if all methods have the same accuracy in one of the
        evaluations, and such iterations do not count in the mean. There is no interval with fewer than ``LEAST_IMAGES``
        images or clusters. Empty with fewer than three methods.
    """
    methods = list(dict.fromkeys(method for _, method in accuracies))
    evaluations = list(dict.fromkeys(evaluation for evaluation, _ in accuracies))
    columns = with_groups(COLUMNS, clusters)
    if len(methods) < FEWEST_METHODS:
        return pd.DataFrame(columns=columns)
    rankings = {
        evaluation: _Ranking.of(
            np.stack([accuracies[evaluation, method] for method in methods]).astype(np.int16)
            * (1 if evaluation[0] == LEAST_FIRST else -1),
            clusters,
        )
        for evaluation in evaluations
    }
    images = next(iter(accuracies.values())).shape[-1]
    counts = {"images": images, **count_groups(clusters, np.ones(images, dtype=bool))}
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
        for iteration, estimate in _estimates(rankings[first], rankings[second]).items():
            rows.append(
                {
                    **pair,
                    "iteration": iteration,
                    **dict(zip(("rho", "rho_low", "rho_high"), estimate, strict=True)),
                    "methods": len(methods),
                    **counts,
                }
            )
    return pd.DataFrame(rows, columns=columns)


@dataclass(frozen=True)
class _Ranking:
    """Rankings of the methods under one evaluation, at each iteration."""

    ranks: Array  # [M, I], relative to their mean
    p: Array | None
    """Adjusted p-values ``[I, M, M]``, where the row's method is significantly better than the column's, otherwise NaN;
    None with too few images."""

    @classmethod
    def of(cls, values: Array, clusters: Factors) -> "_Ranking":
        """Return the rankings by integers ``[M, I, images]``, higher is better."""
        # Sums of integers are exact, so that equal accuracies are ties.
        ranks = rankdata(values.sum(-1, dtype=np.int64), axis=0)
        p = None
        if min([values.shape[-1], *(len(np.unique(each)) for each in clusters.values())]) >= LEAST_IMAGES:
            steps = [
                rank_sets(of_step.T, clusters, level=LEVEL, by=MEANS) for of_step in values.swapaxes(0, 1)
            ]
            p = np.stack([np.where(ranks.better, ranks.p, np.nan) for ranks in steps])
        return cls(ranks - ranks.mean(0), p)


def _estimates(first: _Ranking, second: _Ranking) -> dict[str, tuple[float, float, float]]:
    """Return ρ and its interval for each iteration, and for their mean first."""
    rho = _correlation(first.ranks, second.ranks)
    steps = np.flatnonzero(~np.isnan(rho))
    errors = {"one": (1 - LEVEL) / 2, "mean": (1 - LEVEL) / 2 / len(rho)}
    ends = {name: np.full((len(rho), 2), np.nan) for name in errors}
    if first.p is not None and second.p is not None:
        for (name, error), step in product(errors.items(), steps):
            low, high = correlation_range(first.p[step] <= error, second.p[step] <= error)
            # The range has ρ in it up to its own rounding.
            ends[name][step] = min(low, rho[step]), max(high, rho[step])
    mean = np.column_stack([rho, ends["mean"]])[steps]
    estimates = {MEAN: mean.mean(0) if len(steps) else np.full(3, np.nan)}
    estimates |= {str(step + 1): np.array([rho[step], *ends["one"][step]]) for step in range(len(rho))}
    return {name: (float(value), float(low), float(high)) for name, (value, low, high) in estimates.items()}


def _correlation(first: Array, second: Array) -> Array:
    """Return the correlation of centered ranks ``[M, I]`` over methods; NaN where one of the two is constant."""
    scale = np.sqrt((first**2).sum(0) * (second**2).sum(0))
    correlation: Array = np.where(
        scale == 0, np.nan, (first * second).sum(0) / np.where(scale == 0, 1, scale)
    )
    return correlation


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
            **{name: means[name] for name in ("images", GROUPS) if name in means},
        }
    )


def _value(setting: str, value: str) -> str:
    """Return a value of a setting as text."""
    if setting == "retraining":
        return "with retraining" if value == "yes" else "without retraining"
    return protocol_label(value) if setting == "protocol" else f"{value} fill"

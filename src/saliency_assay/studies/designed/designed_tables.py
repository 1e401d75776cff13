"""Tables of a study of designed networks: methods against the truth, and metrics against the truth."""

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from saliency_assay.plotting.text import Answer, joined
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.reliability.evidence import TRUTH
from saliency_assay.reliability.order_tables import Rule, order_tables
from saliency_assay.reliability.raters import paired_correlations
from saliency_assay.reliability.reliability_tables import SCORED, by_method, groups
from saliency_assay.reliability.variance import mean_of

CLOSENESS = "truth_correlation"
"""Score of ``truth_agreement`` by which methods are ordered."""
METHOD_TRUTH = [
    "model",
    "metric",
    "variant",
    "method",
    "baseline",
    "images",
    "undefined",
    "mean",
    "low",
    "high",
]
METHOD_TRUTH += ["rank_low", "rank_high"]
METRIC_TRUTH = [
    "model",
    "metric",
    "variant",
    "measures",
    "rank_low",
    "rank_high",
    "first",
    "methods",
    "images",
]
METRIC_TRUTH += ["rho", "rho_low", "rho_high"]
LEVEL = 0.95
ROUNDING = 0.005
"""Difference from 1 below which a mean correlation counts as exact; it is printed as 1.00."""
BY_WINS = Rule()
"""Rule by which methods are ranked by default."""


def method_truth_table(
    scores: pd.DataFrame,
    directions: Mapping[str, str],
    agreement: str,
    baselines: Collection[str] = (),
    *,
    rule: Rule = BY_WINS,
) -> pd.DataFrame:
    """Return the closeness of the methods to the exact importance, for every network.

    Args:
        scores: score table of all networks.
        directions: for each metric the direction of its scores.
        agreement: entry of the metric ``truth_agreement``.
        baselines: methods that do not use the model.
        rule: how methods are ranked.

    Returns:
        ``model, metric, variant, method, baseline, images, undefined, mean, low, high, rank_low, rank_high`` as in
        ``order_tables``, for each score of ``truth_agreement``.
    """
    order, _ = order_tables(scores[_entries(scores) == agreement], directions, baselines, rule=rule)
    return order[METHOD_TRUTH]


def metric_truth_table(
    scores: pd.DataFrame,
    directions: Mapping[str, str],
    measures: Mapping[str, str],
    *,
    truth: str,
    agreement: str,
    rule: Rule = BY_WINS,
) -> pd.DataFrame:
    """Return whether each metric ranks the truth first, and whether it orders the others by their closeness to it.

    Args:
        scores: score table of all networks.
        directions: for each metric the direction of its scores.
        measures: for each metric the property that it measures.
        truth: method of the exact maps.
        agreement: entry of the metric ``truth_agreement``, whose own scores have no row.
        rule: how methods are ranked.

    Returns:
        A row for each network and score: ``model, metric, variant, measures``; ``rank_low, rank_high``: the rank set of
        the truth among all methods, NaN if it has no score; ``first``: True if 1 is in it, None without one;
        ``methods``: number of methods other than the truth with scores; ``images`` on which at least three of them have
        a score and a closeness; ``rho`` with its 95 % interval ``rho_low, rho_high``: Spearman's ρ over these methods
        between the scores, higher is better, and ``CLOSENESS``, averaged over images. The interval is NaN for fewer
        than six images with equal ρ.
    """
    is_agreement = _entries(scores) == agreement
    order, _ = order_tables(scores[~is_agreement], directions, rule=rule)
    of_truth = order[order["method"] == truth]
    keys = of_truth[SCORED].itertuples(index=False, name=None)
    ends = of_truth[["rank_low", "rank_high"]].itertuples(index=False, name=None)
    sets = dict(zip(keys, ends, strict=True))
    closeness = {
        names["model"]: by_method(of_model)
        for names, of_model in groups(scores[is_agreement & (scores["metric"] == CLOSENESS)], SCORED)
    }
    rows = []
    for names, of_score in groups(scores[~is_agreement], SCORED):
        low, high = sets.get(tuple(names[key] for key in SCORED), (np.nan, np.nan))
        metric = str(names["metric"])
        better = by_method(of_score[of_score["method"] != truth], directions[metric])
        rho = _agreement(better, closeness[names["model"]])
        mean = mean_of(rho)
        # Few equal values do not determine an interval: they must be so many that a sign test rejects 0.
        is_certain = mean.is_constant and 2 * 0.5**mean.units <= 1 - LEVEL
        interval = (mean.value, mean.value) if is_certain else np.clip(mean.interval(LEVEL), -1, 1)
        rows.append(
            {
                **{key: names[key] for key in ("model", "metric", "variant")},
                "measures": measures[metric],
                "rank_low": low,
                "rank_high": high,
                "first": None if np.isnan(low) else low == 1,
                "methods": int(better.notna().any().sum()),
                "images": int((~np.isnan(rho)).sum()),
                "rho": mean.value,
                "rho_low": interval[0],
                "rho_high": interval[1],
            }
        )
    return pd.DataFrame(rows, columns=METRIC_TRUTH)


def _entries(scores: pd.DataFrame) -> "pd.Series[str]":
    """Return the entry under ``metrics`` of each row, the first word of its variant."""
    return scores["variant"].str.partition(" ")[0]


def _agreement(better: pd.DataFrame, closeness: pd.DataFrame) -> np.ndarray:
    """Return Spearman's ρ over methods of each image with both tables of images × methods, ``[images]``."""
    first, second = better.align(closeness[list(better)], join="inner")
    return paired_correlations(first.to_numpy(), second.to_numpy())


def answer(tables: Mapping[str, pd.DataFrame], labels: Labels = UNLABELED) -> list[Answer]:
    """Return which methods are exact, which other one is closest, and which metrics rank a method above the exact maps.

    Metrics of properties that exact maps need not have, such as simplicity, are left out.

    Args:
        tables: ``method_truth`` and ``metric_truth``.
        labels: labels of methods, models and scores.
    """
    methods, metrics = tables["method_truth"], tables["metric_truth"]
    closeness = methods[methods["metric"] == CLOSENESS].pivot(index="method", columns="model", values="mean")
    closeness = closeness.dropna().loc[lambda table: table.mean(axis=1).sort_values(ascending=False).index]
    exact = (closeness > 1 - ROUNDING).all(axis=1)
    networks = f"all {closeness.shape[1]} networks" if closeness.shape[1] > 1 else "the network"
    are = "is" if exact.sum() < 2 else "are"
    lines = [
        Answer(
            f"{are} exact on {networks}", joined(map(labels.method, closeness.index[exact])) or "No method"
        )
    ]
    if not exact.all():
        best, row = next(closeness[~exact].iterrows())
        lines.append(
            Answer(
                "is the closest of the others",
                labels.method(str(best)),
                f"mean correlation with the exact importance {row.mean():.2f}, lowest {row.min():.2f} on"
                f" {labels.model(str(row.idxmin()))}",
            )
        )
    wrong = metrics[(metrics["rank_low"] > 1) & ~metrics["measures"].isin(TRUTH.untested)]
    counts = wrong.groupby(["metric", "variant"], sort=False).size().reset_index(name="networks")
    total = metrics["model"].nunique()
    names = joined(
        f"{labels.score(metric, variant)} ({count} of {total} networks)"
        for metric, variant, count in counts.itertuples(index=False, name=None)
    )
    lines.append(
        Answer(
            f"Metrics that rank another method significantly above the exact maps: {names}."
            if names
            else "No metric ranks another method significantly above the exact maps."
        )
    )
    return lines

"""Agreement of the members of a family of metrics on the order of methods: does the order survive another value?"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy import ndarray as Array
from scipy.stats import kendalltau

from saliency_assay.registry.sweeps import Family
from saliency_assay.reliability.comparison import WINS, ranks_of
from saliency_assay.reliability.order_tables import ComparedScores, Rule
from saliency_assay.reliability.orders import concordance_range, correlation_range
from saliency_assay.reliability.raters import LEAST_METHODS, paired_correlations
from saliency_assay.reliability.reliability_tables import (
    NO_CLUSTERS,
    SCORED,
    Scores,
    clusters_of_images,
    count_groups,
    groups,
    with_groups,
)
from saliency_assay.reliability.statistics import LEAST_IMAGES, paired_means
from saliency_assay.reliability.variance import SEEDS, Factors, mean_of

COMPARED_MEMBERS = [
    "metric",
    "data",
    "model",
    "family",
    "sub_variant",
    "member",
    "other",
    "methods",
    "images",
]
COMPARED_MEMBERS += ["rho", "rho_low", "rho_high", "tau", "tau_low", "tau_high"]
COMPARED_MEMBERS += ["distinguishable", "flips", "flipped"]


def metric_sweep_table(
    scores: Scores,
    directions: Mapping[str, str],
    families: Sequence[Family],
    *,
    clusters: Factors = NO_CLUSTERS,
    rule: Rule,
    retrained: bool = False,
) -> pd.DataFrame:
    """Return the agreement of each pair of members of a family of metrics on the order of the methods.

    Args:
        scores: a score table, or its chunks by variant, with the methods that are ranked (``sweeps.SelectedScores``).
        directions: for each metric the direction of its scores, see ``directions``.
        families: the families of metrics.
        clusters: see ``NO_CLUSTERS``.
        rule: how methods are ranked: the orders are those of mean win rates or of means.
        retrained: True if each method has its own trained models; with one training seed, there are no intervals.

    Returns:
        A row for each score and pair of members: ``metric`` (the score; for a custom metric the family), ``data, model,
        family, sub_variant`` of the score, ``member`` and ``other``; ``methods`` with a score under both, and
        ``images``, the smaller number of images, with their ``groups``; ``rho`` and ``tau``, Spearman's ρ and Kendall's
        τ-b of the two orders, NaN for fewer than three methods. Their intervals are the ranges over all pairs of orders
        that agree with the significant comparisons (``orders``), each order at the level 1 − (1 − ``rule.level``) / 2;
        none with fewer than five images or clusters. ``distinguishable`` is the number of pairs of methods that are
        significantly different under both members at ``rule.level``, and ``flips`` those in opposite directions, which
        ``flipped`` names: ``a > b`` under ``member``, ``b > a`` under ``other``.
    """
    family_of = {member: family for family in families for member in family.members}
    compared: dict[tuple[object, ...], dict[str, ComparedScores]] = {}
    for names, of_metric in groups(scores, SCORED) if families else ():
        member, _, sub_variant = str(names["variant"]).partition(" ")
        if member not in family_of:
            continue
        wide = of_metric.pivot(index=["seed", "image"], columns="method", values="score")
        wide = wide[list(dict.fromkeys(of_metric["method"]))]
        factors = clusters_of_images(clusters, wide.index.get_level_values("image").to_numpy())
        family = family_of[member].name
        # The score of a custom metric has the name of its entry, which is the member.
        metric = family if names["metric"] == member else names["metric"]
        key = metric, names["data"], names["model"], family, sub_variant
        compared.setdefault(key, {})[member] = ComparedScores(
            wide, directions[str(names["metric"])], factors, rule=rule, retrained=retrained
        )
    rows = []
    for of_score, of_members in compared.items():
        members = [name for name in family_of if name in of_members]
        for one, other in combinations(members, 2):
            named = dict(zip(COMPARED_MEMBERS, (*of_score, one, other), strict=False))
            rows.append(named | _agreement(of_members[one], of_members[other], rule))
    return pd.DataFrame(rows, columns=with_groups(COMPARED_MEMBERS, clusters))


def _agreement(first: ComparedScores, second: ComparedScores, rule: Rule) -> dict[str, Any]:
    """Return the columns of one pair of members."""
    values = [_means(each, rule) for each in (first, second)]
    methods = [
        method
        for method in map(str, first.methods)
        if all(not np.isnan(of_member.get(method, np.nan)) for of_member in values)
    ]
    one, other = (np.array([[of_member[method] for method in methods]]) for of_member in values)
    fewest = min((first, second), key=lambda each: _scored(each).sum())
    scored = _scored(fewest)
    row: dict[str, Any] = {"methods": len(methods), "images": len(np.unique(fewest.image[scored]))}
    row |= count_groups(fewest.factors, scored)
    rho = float(paired_correlations(one, other)[0])
    tau = float(kendalltau(one[0], other[0]).statistic) if len(methods) >= LEAST_METHODS else np.nan
    row |= {
        "rho": rho,
        "rho_low": np.nan,
        "rho_high": np.nan,
        "tau": tau,
        "tau_low": np.nan,
        "tau_high": np.nan,
    }
    if not np.isnan(rho) and min(map(_count_units, (first, second))) >= LEAST_IMAGES and first.tested:
        wider = [_better(each, methods, 1 - (1 - rule.level) / 2) for each in (first, second)]
        for name, value, ends in (
            ("rho", rho, correlation_range(*wider)),
            ("tau", tau, concordance_range(*wider)),
        ):
            # The range contains the value up to rounding and, for τ-b, ties.
            row |= {f"{name}_low": min(ends[0], value), f"{name}_high": max(ends[1], value)}
    better, of_other = (_better(each, methods, rule.level) for each in (first, second))
    opposed = np.argwhere(better & of_other.T)
    row |= {"distinguishable": int(((better | better.T) & (of_other | of_other.T)).sum() // 2)}
    row |= {"flips": len(opposed), "flipped": "; ".join(f"{methods[a]} > {methods[b]}" for a, b in opposed)}
    return row


def _means(compared: ComparedScores, rule: Rule) -> dict[str, float]:
    """Return the values that order the methods, higher is better."""
    if rule.by == WINS:
        values: list[float] = [mean_of(rates).value for rates in compared.by_wins.rates.T]
    else:
        values = paired_means(compared.scores).tolist()
    return dict(zip(map(str, compared.methods), values, strict=True))


def _scored(compared: ComparedScores) -> Array:
    scored: Array = ~np.isnan(compared.raw).all(1)
    return scored


def _count_units(compared: ComparedScores) -> int:
    """Return the number of images, or of the clusters of which there are fewest."""
    factors = [factor for name, factor in compared.factors.items() if name != SEEDS]
    return min(len(np.unique(factor)) for factor in (compared.image, *factors))


def _better(compared: ComparedScores, methods: Sequence[str], level: float) -> Array:
    """Return which of ``methods`` are significantly better than which others, bool ``[M, M]``."""
    places = [compared.methods.index(method) for method in methods]
    better: Array = ranks_of(compared.deciding, level, tested=compared.tested).better[np.ix_(places, places)]
    return better

"""Statistical test of mask leakage for every arm of the retrain study."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy import ndarray as Array
from scipy.stats import norm, t

from saliency_assay.reliability.comparison import holm
from saliency_assay.reliability.variance import GROUPS
from saliency_assay.studies.retrain.retrain_tables import KEYS, ordered, split_variants

ALPHA = 0.01  # masks leak if the corrected p is below this
LEAST_VALUES = 2  # accuracies for a variance
METRICS = {"leakage": "accuracy", "leakage_random": "random"}
LOSSES = {"leakage_loss": "loss", "leakage_loss_random": "random_loss"}


def leakage_table(
    means: pd.DataFrame, classes: int, alpha: float, groups: Array | None = None
) -> pd.DataFrame:
    """Compare the accuracies of classifiers of masks, trained with the images' labels and with permuted labels.

    Args:
        means: ``tables.means`` of the study, with ``leakage`` and ``leakage_random`` of each repeat and seed,
            optionally ``leakage_loss`` and ``leakage_loss_random``, and ``accuracy`` for the number of test images.
        classes: K.
        alpha: masks leak if the corrected p is below this.
        groups: number of each test image's group, ``[n]``, if images of one group are not independent. The means have
            no scores of single images, so p is that of images that are all equal within a group: n² / Σ n_g² of them,
            with n_g the size of a group.

    Returns:
        One row for each of ``KEYS``, in the order of ``means``: ``accuracy`` and ``random`` in 0–1, ``loss`` and
        ``random_loss`` in nats (NaN if not in ``means``), means over repeats and seeds, each with ``…_sd`` (n − 1);
        ``accuracy_values`` and ``random_values``, the n; ``chance`` = 1/K; ``images``, the number of test images of
        each accuracy, and ``groups`` of these, if they have some; ``p``, see ``p_above``; ``p_holm``, corrected for all
        rows (Holm 1979); ``leaks``; ``reason``, why p is NaN, which is never a leak: fewer than two values.

    Raises:
        ValueError: there is no test accuracy, or an error of ``tables.split_variants``.
    """
    table, images = leakage_values(means, [*METRICS, *LOSSES]), _test_images(means)
    rows: list[dict[str, Any]] = []
    in_groups = {} if groups is None else {GROUPS: len(np.unique(groups))}
    for arm, arm_rows in table.groupby(KEYS, sort=False):
        row: dict[str, Any] = dict(zip(KEYS, arm, strict=True))
        accuracies = []
        for metric, name in (METRICS | LOSSES).items():
            values = arm_rows.loc[arm_rows["metric"] == metric, "score"].dropna()
            row |= {name: values.mean(), f"{name}_sd": values.std()}
            if metric in METRICS:
                row[f"{name}_values"] = len(values)
                accuracies.append(values.to_numpy())
        if arm not in images:
            raise ValueError(
                f"accuracy: found none of {'/'.join(map(str, arm))}, expected one per test image"
            )
        independent: float = images[arm]
        if groups is not None:
            independent = len(groups) ** 2 / (np.unique(groups, return_counts=True)[1] ** 2).sum()
        p = p_above(*accuracies, images=independent, chance=1 / classes)
        counts = f"{row['accuracy_values']} with labels, {row['random_values']} with permuted ones"
        reason = f"found {counts}, expected at least {LEAST_VALUES} of each" if np.isnan(p) else ""
        rows.append(
            row | {"chance": 1 / classes, "images": images[arm], **in_groups, "p": p, "reason": reason}
        )
    result = ordered(pd.DataFrame(rows), table)
    corrected = holm(result["p"].to_numpy())
    position = list(result).index("reason")
    result.insert(position, "p_holm", corrected)
    result.insert(position + 1, "leaks", corrected < alpha)
    return result


def _test_images(means: pd.DataFrame) -> dict[Any, int]:
    """Return the number of test images of each of ``KEYS``, the smallest over seeds."""
    if not (means["metric"] == "accuracy").any():
        return {}
    rows = split_variants(means, ["accuracy"], "protocol/fill/iteration")
    return {arm: int(count) for arm, count in rows[rows["images"] > 0].groupby(KEYS)["images"].min().items()}


def leakage_values(means: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Return the rows of ``metrics``, with the components of their variants as columns."""
    return split_variants(means, metrics, "protocol/fill/iteration/repeatN")


def p_above(values: Array, others: Array, *, images: float, chance: float) -> float:
    """Return the p-value of a one-sided test of whether the mean of ``values`` is above that of ``others``.

    All classifiers with the images' labels are tested on the same images with the same labels. They share a sampling
    error that their spread does not show. The sampling variance of an accuracy a over n test images is s = a(1 − a)/n
    (binomial). The shared part is at most s, so s is a lower limit that repeats do not reduce:

        Var of the mean = v/m + s             with the images' labels (m values of variance v)
        Var of the mean = max(v'/m', s/m')    with permuted labels, which are independent in each repeat

    t is the difference of means divided by the square root of the sum of both variances. As in Welch's test, the
    degrees of freedom are Satterthwaite's, but only for estimated variances: s is considered known, so that t is
    normally distributed if there is no spread. a is the mean of both means (pooled, as in a test of two proportions) or
    ``chance``, whichever has the larger a(1 − a).

    Args:
        values: test accuracies in 0–1 with the images' labels, ``[m]``.
        others: test accuracies with permuted labels, ``[m']``.
        images: n.
        chance: 1/K.

    Returns:
        p; NaN if one of the two has fewer than two values.
    """
    if min(len(values), len(others)) < LEAST_VALUES:
        return float("nan")
    pooled = (values.mean() + others.mean()) / 2
    sampling_variance = max(a * (1 - a) for a in (pooled, chance)) / images
    mean_variance = values.var(ddof=1) / len(values)
    excess_spread = max(others.var(ddof=1) / len(others) - sampling_variance / len(others), 0.0)
    variance = sampling_variance + sampling_variance / len(others) + mean_variance + excess_spread
    statistic = (values.mean() - others.mean()) / variance**0.5
    estimated_variance = mean_variance**2 / (len(values) - 1) + excess_spread**2 / (len(others) - 1)
    # The variance of equal values may differ from 0, because their mean is rounded.
    if estimated_variance < 1e-12 * variance**2:
        return float(norm.sf(statistic))
    return float(t.sf(statistic, variance**2 / estimated_variance))

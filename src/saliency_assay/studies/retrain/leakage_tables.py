"""Test of mask leakage for every arm of the retrain study."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy import ndarray as Array
from scipy.stats import norm, t

from saliency_assay.studies.retrain.tables import KEYS, ordered, split_variants

ALPHA = 0.01  # masks leak where the corrected p is below
LEAST_VALUES = 2
METRICS = {"leakage": "accuracy", "leakage_random": "random"}
LOSSES = {"leakage_loss": "loss", "leakage_loss_random": "random_loss"}


def leakage_table(means: pd.DataFrame, classes: int, alpha: float) -> pd.DataFrame:
    """Test accuracy of classifiers of masks alone, against those whose labels were permuted.

    Args:
        means: the study's ``tables.means``, with ``leakage``, ``leakage_random`` (and ``leakage_loss``,
            ``leakage_loss_random``) of each repeat and seed, and ``accuracy``, which tells the number of test images.
        classes: K.
        alpha: masks leak where the corrected p is below.

    Returns:
        One row for each of ``KEYS``, in the order of ``means``: ``accuracy`` and ``random`` in 0–1, ``loss`` and
        ``random_loss`` in nats (NaN if not given), means over repeats and seeds, each with ``…_sd`` (n − 1);
        ``accuracy_values`` and ``random_values`` (n); ``chance`` = 1/K; ``images``, test images behind each accuracy;
        ``p``, see ``p_above``; ``p_holm``, corrected for all rows (Holm 1979); ``leaks``; ``reason``, why p is NaN and
        nothing is flagged: fewer than two values.

    Raises:
        ValueError: no test accuracy, or see ``tables.split_variants``.
    """
    table, images = leakage_values(means, [*METRICS, *LOSSES]), _images(means)
    rows: list[dict[str, Any]] = []
    for arm, of_arm in table.groupby(KEYS, sort=False):
        row: dict[str, Any] = dict(zip(KEYS, arm, strict=True))
        sides = []
        for metric, name in (METRICS | LOSSES).items():
            values = of_arm.loc[of_arm["metric"] == metric, "score"].dropna()
            row |= {name: values.mean(), f"{name}_sd": values.std()}
            if metric in METRICS:
                row[f"{name}_values"] = len(values)
                sides.append(values.to_numpy())
        if arm not in images:
            raise ValueError(f"accuracy: found none of {'/'.join(map(str, arm))}, expected one a test image")
        p = p_above(*sides, images=images[arm], chance=1 / classes)
        counts = f"{row['accuracy_values']} with labels, {row['random_values']} with permuted ones"
        reason = f"found {counts}, expected at least {LEAST_VALUES} of each" if np.isnan(p) else ""
        rows.append(row | {"chance": 1 / classes, "images": images[arm], "p": p, "reason": reason})
    found = ordered(pd.DataFrame(rows), table)
    corrected = holm(found["p"].to_numpy())
    at = list(found).index("reason")
    found.insert(at, "p_holm", corrected)
    found.insert(at + 1, "leaks", corrected < alpha)
    return found


def _images(means: pd.DataFrame) -> dict[Any, int]:
    """Test images of each of ``KEYS``: the least of its seeds."""
    if not (means["metric"] == "accuracy").any():
        return {}
    rows = split_variants(means, ["accuracy"], "protocol/fill/iteration")
    return {arm: int(count) for arm, count in rows[rows["images"] > 0].groupby(KEYS)["images"].min().items()}


def leakage_values(means: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Return the rows of ``metrics``, with the parts of their variants as columns."""
    return split_variants(means, metrics, "protocol/fill/iteration/repeatN")


def p_above(values: Array, others: Array, *, images: int, chance: float) -> float:
    """p that accuracies ``values`` are on average not above ``others``, those with permuted labels; one-sided.

    Classifiers with the images' labels are tested on the same images with the same labels, so they err together, and
    their spread does not show that error. One accuracy a over n test images has sampling variance s = a(1 − a)/n
    (binomial), at most as much as all share, so it is a floor that repeats do not lower:

        Var of the mean = v/m + s             with the images' labels (m values of variance v)
        Var of the mean = max(v'/m', s/m')    with permuted labels, which each repeat draws for itself

    t is the difference of means over the root of the sum of both. As in Welch's test the degrees of freedom are
    Satterthwaite's, of what is estimated alone: s is taken as known, so that without spread t is normal. a is the mean
    of both sides' means (pooled, as in a test of two proportions) or ``chance``, whichever has the larger a(1 − a).

    Args:
        values: test accuracies in 0–1 with the images' labels, ``[m]``.
        others: with permuted labels, ``[m']``.
        images: n.
        chance: 1/K.

    Returns:
        p; NaN of fewer than two values in either.
    """
    if min(len(values), len(others)) < LEAST_VALUES:
        return float("nan")
    pooled = (values.mean() + others.mean()) / 2
    sampling = max(a * (1 - a) for a in (pooled, chance)) / images
    spread = values.var(ddof=1) / len(values)
    beyond = max(others.var(ddof=1) / len(others) - sampling / len(others), 0.0)
    variance = sampling + sampling / len(others) + spread + beyond
    statistic = (values.mean() - others.mean()) / variance**0.5
    estimated = spread**2 / (len(values) - 1) + beyond**2 / (len(others) - 1)
    # The variance of equal values is not exactly 0 when their mean is rounded.
    if estimated < 1e-12 * variance**2:
        return float(norm.sf(statistic))
    return float(t.sf(statistic, variance**2 / estimated))


def holm(ps: Array) -> Array:
    """Ps ``[n]`` corrected for their number, so that one below α is wrong with probability α at most; NaN stays.

    The smallest is multiplied by n, the next by n − 1 and so on, and none is below one before it (Holm 1979).
    """
    corrected = np.full(len(ps), np.nan)
    order = np.argsort(ps)[: np.isfinite(ps).sum()]  # NaN come last
    scaled = ps[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return corrected

"""Meta-consistency of a metric under changes of model and image (Hedström et al., *The Meta-Evaluation Problem*, 2023).

A metric should give the same scores after a change that leaves predictions as they were (noise resilience, NR), and
different scores, and lower ones, after a change that alters them (adversary reactivity, AR). Resilience counts the
images whose prediction stays, reactivity those whose prediction changes.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy import ndarray as Array
from scipy.stats import wilcoxon

from saliency_assay.registry.directions import Direction
from saliency_assay.reliability.variance import GROUPS, NO_FACTORS, Factors
from saliency_assay.studies.validity.rescoring import INPUT, MODEL, ORIGINAL

TERMS = ("iac_nr", "iac_ar", "iec_nr", "iec_ar")
EXACT = 50
"""Number of differences up to which p-values are exact, SciPy's default limit."""
META_CONSISTENCY = ["metric", "variant", "test", "seed", "mc", "mc_sd", *TERMS]
META_CONSISTENCY += [f"{name}_sd" for name in TERMS] + ["ties_ar", "images_nr", "images_ar", "iterations"]


def meta_consistency_table(
    scores: pd.DataFrame,
    directions: Mapping[str, str],
    *,
    perturbations: int,
    clusters: Factors = NO_FACTORS,
) -> pd.DataFrame:
    """Return the meta-consistency of each metric under changes of the model and of the image.

    Args:
        scores: the columns of ``rescoring.rescored``, and ``seed`` and ``method``.
        directions: for each metric the direction of its scores.
        perturbations: changes of each repetition.
        clusters: for each name the cluster of each image of the set; ``intra`` takes groups of images into account.

    Returns:
        One row per metric, variant, ``test`` (``model`` or ``input``) and seed: ``iac_nr, iac_ar`` (``intra``),
        ``iec_nr, iec_ar`` (``inter``) and ``mc``, their mean, as means over iterations, with standard deviations
        (``…_sd``) over these; ``ties_ar``: share of equal scores before and after large changes, which count as not
        better; ``images_nr`` and ``images_ar``: mean number of images that each compares.
    """
    rows = []
    tested = scores[scores["test"].isin([ORIGINAL, MODEL, INPUT])]
    for (metric, variant, seed), of_score in tested.groupby(["metric", "variant", "seed"], sort=False):
        better = Direction(directions[str(metric)]).oriented(of_score["score"].to_numpy())
        of_score = of_score.assign(score=better)
        groups = clusters[GROUPS][np.sort(of_score["image"].unique())] if GROUPS in clusters else None
        originals = _cube(of_score[of_score["test"] == ORIGINAL], ["score"])["score"][0]
        for test in (MODEL, INPUT):
            of_test = of_score[of_score["test"] == test]
            if len(of_test):
                names = {"metric": metric, "variant": variant, "test": test, "seed": seed}
                rows.append({**names, **_consistency(originals, of_test, perturbations, groups)})
    return pd.DataFrame(rows, columns=META_CONSISTENCY)


def _cube(table: pd.DataFrame, values: list[str]) -> dict[str, Array]:
    """Return each of ``values`` as ``[samples, methods, images]``."""
    wide = table.pivot(index=["sample", "method"], columns="image", values=values)
    methods = list(dict.fromkeys(table["method"]))
    wide = wide.reindex(pd.MultiIndex.from_product([sorted(table["sample"].unique()), methods]))
    return {
        name: wide[name].to_numpy(dtype=np.float64).reshape(-1, len(methods), wide[name].shape[1])
        for name in values
    }


def _consistency(
    originals: Array, of_test: pd.DataFrame, perturbations: int, groups: Array | None
) -> dict[str, Any]:
    small, large = (
        _cube(of_test[of_test["level"] == noise], ["score", "kept"])
        for noise in sorted(of_test["level"].unique())
    )
    # Predictions do not depend on the method.
    kept, changed = small["kept"][:, 0].astype(bool), ~large["kept"][:, 0].astype(bool)
    scored = np.isfinite(originals).any(0)  # not, for example, images without an object to localize
    terms = {
        "iac_nr": intra(originals, small["score"], kept, groups),
        "iac_ar": 1 - intra(originals, large["score"], changed, groups),
        "iec_nr": inter_resilience(originals, small["score"], kept),
        "iec_ar": _share(originals > large["score"], originals, large["score"], changed),
    }
    # Means over the changes of a repetition, then over repetitions.
    repeated = {name: _mean(values.reshape(-1, perturbations), 1) for name, values in terms.items()}
    mc = np.stack(list(repeated.values())).mean(0)
    ties = _share(originals == large["score"], originals, large["score"], changed)
    return {
        # Of iterations with all four terms: no term is defined without images of changed or kept predictions.
        "mc": float(_mean(mc)),
        "mc_sd": float(_sd(mc)),
        **{name: float(_mean(values)) for name, values in repeated.items()},
        **{f"{name}_sd": float(_sd(values)) for name, values in repeated.items()},
        "ties_ar": float(_mean(ties)),
        "images_nr": float((kept & scored).sum(1).mean()),
        "images_ar": float((changed & scored).sum(1).mean()),
        "iterations": int((~np.isnan(mc)).sum()),
    }


def intra(originals: Array, scores: Array, chosen: Array, groups: Array | None = None) -> Array:
    """Return the intra-consistency ``[S]``: the p-value that scores before and after a change have equal distributions.

    It is that of the two-sided Wilcoxon signed-rank test, in which zero differences count half as positive and half as
    negative (``zsplit``), averaged over methods: exact for at most ``EXACT`` differences without ties and zeros, and
    otherwise by normal approximation.

    Args:
        originals: scores before the change, ``[M, N]``.
        scores: scores after each change, ``[S, M, N]``.
        chosen: images to compare, bool ``[S, N]``.
        groups: number of each image's group, ``[N]``; the test compares the mean differences of groups, because
            images of one group are not independent. By default, images are.
    """
    values = np.full(scores.shape[:2], np.nan)
    for sample, of_sample in enumerate(scores):
        for method, after in enumerate(of_sample):
            before = originals[method]
            pair = chosen[sample] & np.isfinite(before) & np.isfinite(after)
            if pair.any():
                differences = after[pair] - before[pair]
                if groups is not None:
                    _, group, sizes = np.unique(groups[pair], return_inverse=True, return_counts=True)
                    differences = np.bincount(group, differences) / sizes
                values[sample, method] = _p_value(differences)
    return _mean(values, 1)


def _p_value(differences: Array) -> float:
    """Return the two-sided p-value of the signed-rank test, see ``intra``."""
    sizes = np.abs(differences)
    if not sizes.any():
        return 1.0
    # Not SciPy's choice, which is a test of 2ⁿ permutations for few differences with ties.
    is_exact = len(sizes) <= EXACT and sizes.all() and len(np.unique(sizes)) == len(sizes)
    method = "exact" if is_exact else "asymptotic"
    # SciPy's stubs lack "asymptotic".
    return float(wilcoxon(differences, zero_method="zsplit", method=method).pvalue)  # type: ignore[call-overload]


def inter_resilience(originals: Array, scores: Array, chosen: Array) -> Array:
    """Return the inter-consistency ``[S]`` under small changes: the share of ranks that keep their method.

    The arguments are those of ``intra``. Methods with equal scores are ordered as in the arrays.
    """
    before, after = originals.argsort(0, kind="stable"), scores.argsort(1, kind="stable")
    defined = chosen & np.isfinite(originals).all(0) & np.isfinite(scores).all(1)
    return _mean(np.where(defined, (before == after).mean(1), np.nan), 1)


def _share(condition: Array, originals: Array, scores: Array, chosen: Array) -> Array:
    """Return the share ``[S]`` of the pairs of a method and a chosen image that have both scores and meet a condition.

    The other arguments are those of ``intra``.
    """
    defined = chosen[:, None] & np.isfinite(originals) & np.isfinite(scores)
    return _mean(np.where(defined, condition, np.nan).reshape(len(scores), -1), 1)


def _mean(values: Array, axis: int = 0) -> Array:
    """Return the mean of the values that are not NaN; NaN if there are none."""
    defined = ~np.isnan(values)
    count = defined.sum(axis)
    sums = np.where(defined, values, 0).sum(axis)
    return np.where(count > 0, sums / np.maximum(count, 1), np.nan)


def _sd(values: Array) -> float:
    """Return the standard deviation of the iterations, as the paper reports it: with n in the denominator.

    NaN for fewer than two iterations with a value.
    """
    defined = values[~np.isnan(values)]
    return float(np.std(defined)) if len(defined) > 1 else np.nan

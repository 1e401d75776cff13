"""Agreement of a metric with the known order of degraded maps (Zheng et al., F-Fidelity, ICLR 2025)."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from numpy import ndarray as Array
from scipy.stats import rankdata

from saliency_assay.registry.directions import oriented
from saliency_assay.reliability.comparison import mean_of
from saliency_assay.studies.validity.rescoring import INPUT, MODEL, ORIGINAL

ALL = "all"
"""Value of ``degradation`` and ``method`` in rows over all of them."""
KNOWN_ORDER = ["metric", "variant", "method", "degradation", "images", "undefined"]
KNOWN_ORDER += ["micro", "micro_low", "micro_high", "macro", "macro_low", "macro_high"]


def known_order_table(
    scores: pd.DataFrame, directions: Mapping[str, str], *, resamples: int, level: float
) -> pd.DataFrame:
    """Return Spearman's ρ between a metric's scores and the known order of the original and the degraded maps.

    1 means that every degradation lowers the score, 0 that the metric ignores it, −1 that it raises the score. A
    metric that gives all maps the same score does not order them: its ρ is 0.

    Args:
        scores: the columns of ``rescoring.rescored``, and ``seed`` and ``method``.
        directions: for each metric the direction of its scores.
        resamples: bootstrap resamples of images, for the intervals of the macro average.
        level: level of the intervals.

    Returns:
        One row per metric, variant, method and degradation, and rows of ``ALL`` methods and ``ALL`` degradations:
        ``images``; ``undefined``: share of images without a score at some level, which are left out; ``micro``: ρ of
        single images, averaged; ``macro``: ρ of the scores averaged over images; and their intervals.
    """
    compared = scores[~scores["test"].isin([MODEL, INPUT])]
    rows = []
    for (metric, variant), of_score in compared.groupby(["metric", "variant"], sort=False):
        better = oriented(of_score["score"].to_numpy(), directions[str(metric)])
        # A degradation can make a score infinite only through overflow of the metric's own arithmetic.
        of_score = of_score.assign(score=np.where(np.isfinite(better), better, np.nan))
        curves = dict(_curves(of_score))
        methods = list(dict.fromkeys(method for method, _ in curves))
        degradations = list(dict.fromkeys(degradation for _, degradation in curves))
        for method in [ALL, *methods] if len(methods) > 1 else methods:
            for degradation in [ALL, *degradations] if len(degradations) > 1 else degradations:
                chosen = [
                    curve
                    for key, curve in curves.items()
                    if method in (ALL, key[0]) and degradation in (ALL, key[1])
                ]
                names = (metric, variant, method, degradation)
                rows.append((*names, *_agreement(chosen, resamples, level)))
    return pd.DataFrame(rows, columns=KNOWN_ORDER)


def _curves(of_score: pd.DataFrame) -> Iterator[tuple[tuple[str, str], Array]]:
    """Yield for each method and degradation the scores ``[seeds, images, 1 + levels]``, higher is better."""
    for method, of_method in of_score.groupby("method", sort=False):
        originals = of_method[of_method["test"] == ORIGINAL]
        for degradation, degraded in of_method[of_method["test"] != ORIGINAL].groupby("test", sort=False):
            both = pd.concat([originals, degraded])
            wide = both.pivot(index=["seed", "image"], columns="level", values="score")
            seeds = wide.index.get_level_values("seed").nunique()
            yield (str(method), str(degradation)), wide.to_numpy().reshape(seeds, -1, wide.shape[1])


def _agreement(curves: list[Array], resamples: int, level: float) -> tuple[float, ...]:
    """Return images, undefined share, micro and macro average with intervals, over the methods and degradations."""
    stacked = np.stack(curves)  # [curves, seeds, images, levels]
    images = stacked.shape[2]
    rho = spearman_of_levels(stacked)
    with_score = ~np.isnan(rho)
    # One value per image, since its values under several methods and degradations are not independent.
    per_image = rho.sum((0, 1), where=with_score) / np.maximum(with_score.sum((0, 1)), 1)
    per_image[~with_score.any((0, 1))] = np.nan
    mean = mean_of(per_image)
    low, high = mean.interval(level)
    if np.isnan(low) and (~np.isnan(per_image)).sum() > 1:  # all images have the same ρ
        low = high = mean.value
    # Images without a score at some level have weight 0 in that curve.
    weights = np.random.default_rng(0).multinomial(images, np.full(images, 1 / images), size=resamples)
    weights = np.concatenate([np.ones((1, images), np.int64), weights])
    # Not a matrix product, whose rounding may differ between levels with equal scores.
    sums = np.einsum("ri,cil->crl", weights, np.where(with_score[..., None], stacked, 0).sum(1))
    sums[np.einsum("ri,ci->cr", weights, with_score.sum(1)) == 0] = np.nan
    rhos = spearman_of_levels(sums)
    has_rho = ~np.isnan(rhos)
    macro = (rhos.sum(0, where=has_rho) / np.maximum(has_rho.sum(0), 1))[has_rho.any(0)]
    macro = macro if with_score.any() else np.full(2, np.nan)
    ends = np.quantile(macro[1:], [(1 - level) / 2, (1 + level) / 2])
    return (
        int((~np.isnan(per_image)).sum()),
        float(1 - with_score.mean()),
        *(mean.value, low, high),
        *(float(macro[0]), float(ends[0]), float(ends[1])),
    )


def spearman_of_levels(scores: Array) -> Array:
    """Return Spearman's ρ between scores ``[…, levels]``, higher is better, and the known order: level 0 is the best.

    0 if all scores are equal, NaN if one is missing.
    """
    ranks = rankdata(scores, axis=-1, nan_policy="propagate")
    ranks = ranks - ranks.mean(-1, keepdims=True)
    expected = np.arange(scores.shape[-1])[::-1] - (scores.shape[-1] - 1) / 2
    scale = np.sqrt((ranks**2).sum(-1) * (expected**2).sum())
    rho: Array = np.where(scale == 0, 0, (ranks * expected).sum(-1) / np.where(scale == 0, 1, scale))
    return rho

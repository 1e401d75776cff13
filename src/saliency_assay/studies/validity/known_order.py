"""Agreement of a metric with the known order of degraded maps (Zheng et al., F-Fidelity, ICLR 2025)."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.registry.directions import oriented
from saliency_assay.reliability.comparison import IMAGES, NO_FACTORS, ROUNDING, SEEDS, Factors, mean_of
from saliency_assay.studies.validity.rescoring import INPUT, MODEL, ORIGINAL

ALL = "all"
"""Value of ``degradation`` and ``method`` in rows over all of them."""
KNOWN_ORDER = ["metric", "variant", "method", "degradation", "images", "undefined"]
KNOWN_ORDER += ["micro", "micro_low", "micro_high", "macro", "macro_low", "macro_high"]


def known_order_table(
    scores: pd.DataFrame,
    directions: Mapping[str, str],
    *,
    resamples: int,
    level: float,
    clusters: Factors = NO_FACTORS,
) -> pd.DataFrame:
    """Return Spearman's ρ between a metric's scores and the known order of the original and the degraded maps.

    1 means that every degradation lowers the score, 0 that the metric ignores it, −1 that it raises the score. A
    metric that gives all maps the same score does not order them: its ρ is 0.

    Args:
        scores: the columns of ``rescoring.rescored``, and ``seed`` and ``method``.
        directions: for each metric the direction of its scores.
        resamples: bootstrap resamples of images, for the intervals of the macro average.
        level: level of the intervals.
        clusters: for each name the cluster of each image of the set. Images of one cluster are not independent, and
            resampled together.

    Returns:
        One row per metric, variant, method and degradation, and rows of ``ALL`` methods and ``ALL`` degradations:
        ``images``; ``undefined``: share of images without a score at some level, which are left out; ``micro``: ρ of
        single images, averaged; ``macro``: ρ of the scores averaged over images and training seeds; and their
        intervals, of which that of ``macro`` refers to the given training seeds.
    """
    compared = scores[~scores["test"].isin([MODEL, INPUT])]
    rows = []
    for (metric, variant), of_score in compared.groupby(["metric", "variant"], sort=False):
        better = oriented(of_score["score"].to_numpy(), directions[str(metric)])
        # A degradation can make a score infinite only through overflow of the metric's own arithmetic.
        of_score = of_score.assign(score=np.where(np.isfinite(better), better, np.nan))
        curves = dict(_curves(of_score))
        images = np.sort(of_score["image"].unique())
        of_images = {name: of_set[images] for name, of_set in clusters.items()}
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
                rows.append((*names, *_agreement(chosen, of_images, resamples, level)))
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


def _agreement(curves: list[Array], clusters: Factors, resamples: int, level: float) -> tuple[float, ...]:
    """Return images, undefined share, micro and macro average with intervals, over the methods and degradations."""
    stacked = np.stack(curves)  # [curves, seeds, images, levels]
    rho = spearman_of_levels(stacked)
    with_score = ~np.isnan(rho)
    # One value per seed and image, since its values under several methods and degradations are not independent.
    values = rho.sum(0, where=with_score) / np.maximum(with_score.sum(0), 1)
    values[~with_score.any(0)] = np.nan
    seed, image = (index.ravel() for index in np.indices(values.shape))
    factors = {name: cluster[image] for name, cluster in clusters.items()}
    if len(values) > 1:
        factors = {IMAGES: image, **factors, SEEDS: seed}
    mean = mean_of(values.ravel(), factors)
    low, high = mean.interval(level)
    defined = values[~np.isnan(values)]
    if len(defined) > 1 and np.ptp(defined) == 0:
        low = high = mean.value
    # Images without a score at some level have weight 0 in that curve.
    weights = np.concatenate(
        [np.ones((1, values.shape[1])), _resampled(values.shape[1], clusters, resamples)]
    )
    # Not a matrix product, whose rounding may differ between levels with equal scores.
    sums = np.einsum("ri,cil->crl", weights, np.where(with_score[..., None], stacked, 0).sum(1))
    sums[np.einsum("ri,ci->cr", weights, with_score.sum(1)) == 0] = np.nan
    rhos = spearman_of_levels(sums)
    has_rho = ~np.isnan(rhos)
    macro = (rhos.sum(0, where=has_rho) / np.maximum(has_rho.sum(0), 1))[has_rho.any(0)]
    macro = macro if with_score.any() else np.full(2, np.nan)
    ends = np.quantile(macro[1:], [(1 - level) / 2, (1 + level) / 2])
    return (
        int((~np.isnan(values)).any(0).sum()),
        float(1 - with_score.mean()),
        *(mean.value, low, high),
        *(float(macro[0]), float(ends[0]), float(ends[1])),
    )


def _resampled(images: int, clusters: Factors, resamples: int) -> Array:
    """Return how often each bootstrap resample contains each image, ``[resamples, images]``.

    Several kinds of clusters are resampled independently (Owen & Eckles 2012).
    """
    generator = np.random.default_rng(0)
    weights = np.ones((resamples, images))
    for cluster in clusters.values() or [np.arange(images)]:
        levels, level_of = np.unique(cluster, return_inverse=True)
        count = len(levels)
        weights *= generator.multinomial(count, np.full(count, 1 / count), size=resamples)[:, level_of]
    return weights


def spearman_of_levels(scores: Array) -> Array:
    """Return Spearman's ρ between scores ``[…, levels]``, higher is better, and the known order: level 0 is the best.

    Scores that differ by rounding are equal. 0 if all scores are equal, NaN if one is missing.
    """
    rounding = ROUNDING * np.abs(scores).max(-1, keepdims=True)
    # Ranks relative to their mean: half the number of lower scores less that of higher ones.
    ranks = np.zeros(scores.shape)
    for level in range(scores.shape[-1]):
        difference = scores - scores[..., level, None]
        ranks += (difference > rounding) / 2 - (difference < -rounding) / 2
    expected = np.arange(scores.shape[-1])[::-1] - (scores.shape[-1] - 1) / 2
    scale = np.sqrt((ranks**2).sum(-1) * (expected**2).sum())
    rho: Array = np.where(scale == 0, 0, (ranks * expected).sum(-1) / np.where(scale == 0, 1, scale))
    return np.where(np.isnan(scores).any(-1), np.nan, rho)

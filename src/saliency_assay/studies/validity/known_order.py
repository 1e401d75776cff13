"""Agreement of a metric with the known order of degraded maps (Zheng et al., F-Fidelity, ICLR 2025)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.registry.directions import Direction
from saliency_assay.reliability.comparison import MEANS, rank_sets
from saliency_assay.reliability.orders import correlation_range
from saliency_assay.reliability.reliability_tables import count_groups, with_groups
from saliency_assay.reliability.statistics import LEAST_IMAGES
from saliency_assay.reliability.variance import IMAGES, NO_FACTORS, ROUNDING, SEEDS, Factors, mean_of
from saliency_assay.studies.validity.rescoring import INPUT, MODEL, ORIGINAL

ALL = "all"
"""Value of ``degradation`` and ``method`` in rows over all of them."""
KNOWN_ORDER = ["metric", "variant", "method", "degradation", "images", "undefined"]
KNOWN_ORDER += ["micro", "micro_low", "micro_high", "macro", "macro_low", "macro_high"]


@dataclass(frozen=True)
class _Curve:
    """Scores of a method's maps under one degradation."""

    scores: Array  # [seeds, images, 1 + levels], higher is better
    p: (
        Array | None
    )  # adjusted p-values of the hypotheses that the row's level is not better; None with too few images


def known_order_table(
    scores: pd.DataFrame,
    directions: Mapping[str, str],
    *,
    level: float,
    clusters: Factors = NO_FACTORS,
) -> pd.DataFrame:
    """Return Spearman's ρ between a metric's scores and the known order of the original and the degraded maps.

    1 means that every degradation lowers the score, 0 that the metric ignores it, −1 that it raises the score. A
    metric that gives all maps the same score does not order them: its ρ is 0.

    The macro average orders levels by their mean scores. Its interval is the range of ρ over all orders of the levels
    that agree with the significant differences between them, which are tested on the same images
    (``comparison.rank_sets``). For an average over C curves (method × degradation), each curve is tested at the level
    1 − (1 − ``level``) / C, and the ends are the averages of the curves' ends. The interval is conservative. Equal
    scores on all images are no evidence of equal means: a metric that gives all maps the same score has the interval
    −1 to 1.

    Args:
        scores: the columns of ``rescoring.rescored``, and ``seed`` and ``method``.
        directions: for each metric the direction of its scores.
        level: level of the intervals.
        clusters: for each name the cluster of each image of the set. Images of one cluster are not independent.

    Returns:
        One row per metric, variant, method and degradation, and rows of ``ALL`` methods and ``ALL`` degradations:
        ``images`` and, if they have some, their ``groups``; ``undefined``: share of images without a score at some
        level, which are left out; ``micro``: ρ of single images, averaged; ``macro``: ρ of the scores averaged over
        images and training seeds; and their intervals. That of ``macro`` is NaN if one of its curves has fewer than
        ``LEAST_IMAGES`` images or clusters.
    """
    compared = scores[~scores["test"].isin([MODEL, INPUT])]
    rows = []
    for (metric, variant), of_score in compared.groupby(["metric", "variant"], sort=False):
        better = Direction(directions[str(metric)]).oriented(of_score["score"].to_numpy())
        # A degradation can make a score infinite only through overflow of the metric's own arithmetic.
        of_score = of_score.assign(score=np.where(np.isfinite(better), better, np.nan))
        images = np.sort(of_score["image"].unique())
        of_images = {name: of_set[images] for name, of_set in clusters.items()}
        curves = {
            key: _Curve(curve, _comparisons(curve, of_images, level)) for key, curve in _curves(of_score)
        }
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
                rows.append((*names, *_agreement(chosen, of_images, level)))
    return pd.DataFrame(rows, columns=with_groups(KNOWN_ORDER, clusters))


def _curves(of_score: pd.DataFrame) -> Iterator[tuple[tuple[str, str], Array]]:
    """Yield for each method and degradation the scores ``[seeds, images, 1 + levels]``, higher is better."""
    for method, of_method in of_score.groupby("method", sort=False):
        originals = of_method[of_method["test"] == ORIGINAL]
        for degradation, degraded in of_method[of_method["test"] != ORIGINAL].groupby("test", sort=False):
            both = pd.concat([originals, degraded])
            wide = both.pivot(index=["seed", "image"], columns="level", values="score")
            seeds = wide.index.get_level_values("seed").nunique()
            yield (str(method), str(degradation)), wide.to_numpy().reshape(seeds, -1, wide.shape[1])


def _comparisons(curve: Array, clusters: Factors, level: float) -> Array | None:
    """Return adjusted p-values ``[1 + levels, 1 + levels]`` of the significant comparisons of a curve's mean scores."""
    seed, image = np.nonzero(~np.isnan(curve).any(-1))
    fewest = min(len(np.unique(index)) for index in (image, *(of_set[image] for of_set in clusters.values())))
    if fewest < LEAST_IMAGES:
        return None
    factors = _factors(seed, image, clusters, len(curve))
    ranks = rank_sets(curve[seed, image], factors, level=level, by=MEANS)
    return np.where(ranks.better, ranks.p, np.nan)


def _factors(seed: Array, image: Array, clusters: Factors, seeds: int) -> Factors:
    """Return the factors of scores by their indices of seeds and images."""
    factors = {name: of_set[image] for name, of_set in clusters.items()}
    return {IMAGES: image, **factors, SEEDS: seed} if seeds > 1 else factors


def _agreement(curves: list[_Curve], clusters: Factors, level: float) -> tuple[float, ...]:
    """Return images, undefined share, micro and macro average with intervals, over the methods and degradations."""
    stacked = np.stack([curve.scores for curve in curves])  # [curves, seeds, images, levels]
    rho = spearman_of_levels(stacked)
    with_score = ~np.isnan(rho)
    # One value per seed and image, since its values under several methods and degradations are not independent.
    values = rho.sum(0, where=with_score) / np.maximum(with_score.sum(0), 1)
    values[~with_score.any(0)] = np.nan
    seed, image = (index.ravel() for index in np.indices(values.shape))
    mean = mean_of(values.ravel(), _factors(seed, image, clusters, len(values)))
    low, high = mean.interval(level)
    defined = values[~np.isnan(values)]
    scored = (~np.isnan(values)).any(0)
    if len(defined) > 1 and np.ptp(defined) == 0:
        low = high = mean.value
    return (
        int(scored.sum()),
        *count_groups(clusters, scored).values(),
        float(1 - with_score.mean()),
        *(mean.value, low, high),
        *_macro(curves, level),
    )


def _macro(curves: list[_Curve], level: float) -> tuple[float, float, float]:
    """Return ρ of mean scores, averaged over the curves that have one, with its interval."""
    rhos, ranges = [], []
    with_rho = [curve for curve in curves if not np.isnan(curve.scores).any(-1).all()]
    for curve in with_rho:
        # Missing scores are left out. Sums of rows, seeds first, have equal rounding for levels with equal scores.
        missing = np.isnan(curve.scores).any(-1, keepdims=True)
        rho = float(spearman_of_levels(np.where(missing, 0, curve.scores).sum(0).sum(0)))
        rhos.append(rho)
        if curve.p is not None:
            known = ~np.tri(len(curve.p), dtype=bool)
            low, high = correlation_range(curve.p <= (1 - level) / len(with_rho), known)
            # Without clusters, ρ is in the range up to rounding; comparisons weigh clusters, and the means do not.
            ranges.append((min(low, rho), max(high, rho)))
    if not rhos:
        return np.nan, np.nan, np.nan
    ends = np.mean(ranges, 0) if len(ranges) == len(rhos) else (np.nan, np.nan)
    return float(np.mean(rhos)), float(ends[0]), float(ends[1])


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

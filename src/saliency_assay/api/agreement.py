"""Reliability of a metric and order of methods, from arrays of scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.registry.directions import oriented
from saliency_assay.reliability import comparison, statistics


@dataclass(frozen=True)
class Assessment:
    """Reliability of one metric, and the order of methods under it."""

    alpha: statistics.Estimate
    """Krippendorff's α: see ``statistics.alpha``."""
    correlation: statistics.Estimate
    """Mean of Spearman's ρ over pairs of methods: see ``statistics.mean_correlation``."""
    order: pd.DataFrame
    """A row for each method: ``images`` with a score, ``mean`` with the ends ``low`` and ``high`` of its confidence
    interval, and the rank as a confidence set from ``rank_low`` to ``rank_high``."""


def assess(
    scores: Mapping[str, Any] | pd.DataFrame,
    *,
    direction: str,
    clusters: Mapping[str, Any] | None = None,
    resamples: int = 10_000,
    level: float = 0.999,
    rank_level: float = 0.95,
    seed: int = 0,
) -> Assessment:
    """Assess one metric from its scores of several methods.

    Args:
        scores: for each method, by name, its scores ``[N]`` of the same images in the same order; NaN or infinite if an
            image has no score. Two methods are compared on the images that have a score for both.
        direction: ``higher``, ``lower``, or ``target X`` if scores closest to X are best.
        clusters: for images that are not independent, the cluster of each image, ``[N]``, by name of the grouping, such
            as ``{"patients": patient_of_image}``.
        resamples: number of bootstrap resamples for the interval of ``alpha``.
        level: confidence level of the intervals of ``alpha`` and ``correlation``.
        rank_level: confidence level of the intervals of the means, and joint level of all rank sets.
        seed: seed of the resamples.

    Raises:
        ValueError: there are fewer than two methods or a duplicate one, scores or clusters of different lengths, an
            image without a cluster, or an invalid direction or level.

    >>> import numpy as np
    >>> import saliency_assay
    >>> noise = np.random.default_rng(0).normal(size=(3, 20))
    >>> gradcam, gradient, baseline = noise + [[9.0], [9.0], [0.0]]
    >>> scores = {"gradcam": gradcam, "gradient": gradient, "random": baseline}
    >>> result = saliency_assay.assess(scores, direction="higher")
    >>> result.order[["rank_low", "rank_high"]].astype(int).to_numpy().tolist()
    [[1, 2], [1, 2], [3, 3]]
    """
    columns = {str(name): np.asarray(values, dtype=np.float64) for name, values in scores.items()}
    names = [str(name) for name in (scores.columns if isinstance(scores, pd.DataFrame) else scores)]
    if len(columns) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"scores: found the method {repeated!r} twice, expected each method once")
    shapes = {values.shape for values in columns.values()}
    if len(columns) < 2 or len(shapes) != 1 or len(*shapes) != 1:
        shapes_by_name = {name: list(values.shape) for name, values in columns.items()}
        raise ValueError(f"scores: found {shapes_by_name}, expected [N] of at least two methods")
    if not 0 < rank_level < 1:
        raise ValueError(f"rank_level: found {rank_level}, expected a share in (0, 1)")
    raw = np.stack(list(columns.values()), axis=1)
    raw = np.where(np.isfinite(raw), raw, np.nan)
    factors = {}
    for name, assignment in ({} if clusters is None else clusters).items():
        if np.shape(assignment) != raw.shape[:1]:
            raise ValueError(f"clusters: {name}: found {list(np.shape(assignment))}, expected [{len(raw)}]")
        labels, _ = pd.factorize(pd.Series(list(assignment), dtype=object))
        if (labels < 0).any():
            raise ValueError(f"clusters: {name}: found images without a cluster, expected one for each")
        factors[f"clusters {name}"] = labels
    values = oriented(raw, direction)
    ranks = comparison.rank_sets(values, factors, level=rank_level)
    means = [comparison.mean_of(column, factors) for column in raw.T]
    low, high = np.array([mean.interval(rank_level) for mean in means]).T
    table = {
        "images": (~np.isnan(raw)).sum(0),
        "mean": [mean.value for mean in means],
        "low": low,
        "high": high,
        "rank_low": ranks.low,
        "rank_high": ranks.high,
    }
    return Assessment(
        statistics.alpha(values, clusters=factors, resamples=resamples, level=level, seed=seed),
        statistics.mean_correlation(values, clusters=factors, level=level),
        pd.DataFrame(table, index=pd.Index(list(columns), name="method")),
    )

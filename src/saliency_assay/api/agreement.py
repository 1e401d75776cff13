"""How far one metric's scores of several methods can be trusted, from arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay import reliability


@dataclass(frozen=True)
class Assessment:
    """How far one metric's scores of several methods can be trusted, and its order of the methods."""

    images: int
    """That have scores of at least two methods."""
    alpha: reliability.Estimate
    """Krippendorff's α: see ``reliability.alpha``."""
    correlation: reliability.Estimate
    """Mean of Spearman's ρ over pairs of methods: see ``reliability.mean_correlation``."""
    order: pd.DataFrame
    """A row for each method: ``mean``, the ends ``low`` and ``high`` of its interval, ``rank`` (1 and the number of
    methods that are surely better) and ``best``, the share of resamples in which it is first."""


def assess(
    scores: Mapping[str, Any] | pd.DataFrame,
    *,
    direction: str,
    resamples: int = 10_000,
    level: float = 0.999,
    sure: float = 0.95,
    seed: int = 0,
) -> Assessment:
    """Whether one metric's scores order methods alike on all images, and in which order.

    Args:
        scores: of each method ``[N]``, of the same images in the same order, by the method's name; NaN for none.
        direction: ``higher`` or ``lower``, which is better.
        resamples: of images, for all intervals.
        level: share of the resamples that the intervals of ``alpha`` and ``correlation`` hold.
        sure: the same of the means' intervals, and from which on a method is surely better than another.
        seed: of the resamples.

    Raises:
        ValueError: fewer than two methods, scores of different lengths, another direction or level.

    >>> from saliency_assay import reliability
    >>> scores = {"gradcam": [0.9, 0.8, 0.7, 0.9], "gradient": [0.5, 0.6, 0.6, 0.4], "random": [0.1, 0.2, 0.1, 0.3]}
    >>> found = reliability.assess(scores, direction="higher")
    >>> found.alpha.value
    1.0
    >>> found.order["rank"].to_dict()
    {'gradcam': 1.0, 'gradient': 2.0, 'random': 3.0}
    """
    if direction not in ("higher", "lower"):
        raise ValueError(f"direction: found {direction!r}, valid: higher, lower")
    columns = {str(name): np.asarray(values, dtype=np.float64) for name, values in scores.items()}
    shapes = {values.shape for values in columns.values()}
    if len(columns) < 2 or len(shapes) != 1 or len(*shapes) != 1:
        found = {name: list(values.shape) for name, values in columns.items()}
        raise ValueError(f"scores: found {found}, expected [N] of at least two methods")
    values, better = np.stack(list(columns.values()), axis=1), direction == "higher"
    together = {"resamples": resamples, "seed": seed}
    ordered = reliability.order(values, **together)
    low, high = ordered.interval(sure)
    table = {
        "mean": ordered.mean,
        "low": low,
        "high": high,
        "rank": ordered.ranks(higher_is_better=better, level=sure),
        "best": ordered.best(higher_is_better=better),
    }
    return Assessment(
        int(((~np.isnan(values)).sum(1) >= 2).sum()),
        reliability.alpha(values, level=level, **together),
        reliability.mean_correlation(values, level=level, **together),
        pd.DataFrame(table, index=pd.Index(list(columns), name="method")),
    )

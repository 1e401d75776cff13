"""Controls on both ends: scores of a map without information and of the best possible map, and the share between them.

A lower control is a random map. An upper control is a map that no other exceeds under some metrics, such as the
object's mask under localization metrics; under these metrics, it is not ranked. The share of the range that a method
reaches makes scores of different metrics comparable. It is a ratio of two means over the same images.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy import ndarray as Array
from scipy.optimize import brentq

from saliency_assay.registry.directions import Direction
from saliency_assay.reliability.reliability_tables import (
    NO_CLUSTERS,
    SCORED,
    Scores,
    clusters_of_images,
    count_groups,
    groups,
    with_groups,
)
from saliency_assay.reliability.variance import IMAGES, ROUNDING, SEEDS, SKEWNESS, Factors, mean_of, skewness

if TYPE_CHECKING:
    from saliency_assay.reliability.rated_scores import RatedScores

CONTROLS = [
    *SCORED,
    "direction",
    "method",
    "control",
    "images",
    "mean",
    "lower",
    "lower_mean",
    "upper",
    "upper_mean",
]
CONTROLS += ["range", "range_low", "range_high", "share", "share_low", "share_high", "reason"]
TEXTS = ("control", "lower", "upper", "reason")
"""Columns of ``CONTROLS`` that contain text, in addition to ``storage.csv_tables.NAMES``."""
NOT_ABOVE = "the metric does not put the best possible map above the random baseline"
OPEN = "it is not shown that the metric puts the best possible map above the random baseline"
LARGEST = 1e6
"""Absolute value of a share beyond which the end of an interval is not searched."""


@dataclass(frozen=True)
class Controls:
    """Controls of a study."""

    lower: str = ""
    """The lower control; empty without one."""
    upper: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    """For each score, by entry of its metric, the upper controls (``is_best`` of their records); the first counts."""
    unranked: Collection[str] = ()
    """Upper controls that are ranked under no metric, because they do not use the model."""
    of_models: bool = False
    """True if variants are models; all of them then have the upper controls of the score."""

    def upper_of(self, metric: str, variant: str) -> Sequence[str]:
        """Return the upper controls of a score."""
        of_score = self.upper.get(metric, {})
        if self.of_models:
            return next(iter(of_score.values()), ())
        return of_score.get(variant.partition(" ")[0], ())

    def ranked(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the scores that rank methods: those of upper controls are left out where they are the best map."""
        pairs = table[["metric", "variant"]].drop_duplicates()
        is_ranked = ~table["method"].isin(list(self.unranked)).to_numpy()
        for metric, variant in pairs.itertuples(index=False, name=None):
            if upper := self.upper_of(str(metric), str(variant)):
                rows = (table["metric"] == metric) & (table["variant"] == variant)
                is_ranked &= ~(rows & table["method"].isin(list(upper))).to_numpy()
        return table if is_ranked.all() else table[is_ranked]


@dataclass(frozen=True)
class RankedScores:
    """Rated scores without those of upper controls, see ``Controls.ranked``."""

    scores: "RatedScores"
    controls: Controls

    def chunks(self, *keys: str) -> Iterator[pd.DataFrame]:
        """Yield the chunks of the table for ``keys``."""
        return map(self.controls.ranked, self.scores.chunks(*keys))


def controls_table(
    scores: Scores,
    directions: Mapping[str, str],
    controls: Controls,
    *,
    clusters: Factors = NO_CLUSTERS,
    level: float = 0.95,
    retrained: bool = False,
) -> pd.DataFrame:
    """Return the scores of the controls under every metric, and the share of the range that each method reaches.

    Args:
        scores: a score table, or its chunks by variant; scores of whole sets are left out.
        directions: for each metric the direction of its scores, see ``directions``.
        controls: the controls of the study.
        clusters: see ``NO_CLUSTERS``.
        level: confidence level of the intervals.
        retrained: True if each method has its own trained models. With one training seed, there are no intervals.

    Returns:
        A row for each method, in the order of the score table: ``metric, variant, data, model, direction, method``;
        ``control``: ``lower`` or ``upper`` if it is a control of this metric; ``images`` on which the method and both
        controls have scores, and ``groups`` of these; ``mean``, ``lower_mean`` and ``upper_mean`` on these images;
        ``lower`` and ``upper``: the controls, empty if there is none; ``range``: difference of their means, positive if
        the upper control is better, with its interval, on all images with scores of both; ``share``: (mean − lower) /
        (upper − lower) of scores of which higher is better, with its interval: all shares s for which the mean of
        (score − lower) − s (upper − lower) is not distinguishable from 0 (Fieller, 1954). It may be negative or exceed
        1. NaN if the range is not distinguishable from 0 or negative, with the ``reason``.
    """
    rows: list[dict[str, object]] = []
    for names, of_metric in groups(scores, SCORED):
        metric, variant = str(names["metric"]), str(names["variant"])
        direction = Direction(directions[metric])
        wide = of_metric.pivot(index=["seed", "image"], columns="method", values="score")
        wide = wide[list(dict.fromkeys(of_metric["method"]))]
        compared = _Range(
            wide,
            direction,
            controls.lower if controls.lower in wide else "",
            next((name for name in controls.upper_of(metric, variant) if name in wide), ""),
            clusters,
            level,
            is_tested=not retrained or of_metric["seed"].nunique() > 1,
        )
        rows += [{**names, "direction": direction, **row} for row in compared.rows()]
    return pd.DataFrame(rows, columns=with_groups(CONTROLS, clusters))


class _Range:
    """Scores under one metric ``[n, M]``, as rows of ``controls_table``."""

    def __init__(
        self,
        wide: pd.DataFrame,
        direction: Direction,
        lower: str,
        upper: str,
        clusters: Factors,
        level: float,
        *,
        is_tested: bool,
    ) -> None:
        self.wide, self.direction, self.level, self.is_tested = wide, direction, level, is_tested
        self.names = {"lower": lower, "upper": upper}
        seed, image = (wide.index.get_level_values(name).to_numpy() for name in ("seed", "image"))
        of_images = clusters_of_images(clusters, image)
        self.factors: Factors = of_images
        if len(np.unique(seed)) > 1:
            self.factors = {IMAGES: image, **of_images, SEEDS: seed}
        self.image = image

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield the columns of each method."""
        span = self._oriented("upper") - self._oriented("lower")
        value, low, high = self._mean(span)
        reason = self._reason(low, high)
        for method in self.wide:
            score = self._scores(method)
            references = {name: self._scores(control) for name, control in self.names.items()}
            has_all = np.logical_and.reduce(
                [
                    ~np.isnan(score),
                    *(~np.isnan(references[name]) for name, control in self.names.items() if control),
                ]
            )
            row: dict[str, object] = {
                "method": method,
                "control": next((name for name, control in self.names.items() if control == method), ""),
                "images": len(np.unique(self.image[has_all])),
                **count_groups(self.factors, has_all),
                "mean": _mean(score[has_all]),
                **self.names,
                **{f"{name}_mean": _mean(scores[has_all]) for name, scores in references.items()},
            }
            row |= {"range": value, "range_low": low, "range_high": high, "reason": reason}
            row |= dict.fromkeys(("share", "share_low", "share_high"), np.nan)
            if self.names["upper"] and self.names["lower"] and not reason and not row["control"]:
                gain = self.direction.oriented(score) - self._oriented("lower")
                share = self._share(
                    gain[has_all], span[has_all], {k: v[has_all] for k, v in self.factors.items()}
                )
                row |= dict(zip(("share", "share_low", "share_high"), share, strict=True))
            yield row

    def _scores(self, method: object) -> Array:
        return self.wide[method].to_numpy(np.float64) if method else np.full(len(self.wide), np.nan)

    def _oriented(self, control: str) -> Array:
        return self.direction.oriented(self._scores(self.names[control]))

    def _mean(self, values: Array) -> tuple[float, float, float]:
        """Return the mean with its interval; NaN where it has none."""
        defined = ~np.isnan(values)
        if not defined.any():
            return np.nan, np.nan, np.nan
        ends = self._interval(
            values[defined], {name: factor[defined] for name, factor in self.factors.items()}
        )
        return _mean(values), *ends

    def _interval(self, values: Array, factors: Factors) -> tuple[float, float]:
        """Return the interval of a mean; NaN if the values are too skewed for their number.

        Equal values have the interval of no length if there are so many that a sign test rejects 0.
        """
        mean = mean_of(values, factors)
        if not self.is_tested or np.isnan(mean.variance):
            return np.nan, np.nan
        if np.ptp(values) <= ROUNDING * np.abs(values).max():
            is_certain = 2 * 0.5**mean.units <= 1 - self.level
            return (mean.value, mean.value) if is_certain else (np.nan, np.nan)
        images = len(np.unique(factors[IMAGES])) if IMAGES in factors else len(values)
        if images < SKEWNESS * skewness(values) ** 2:
            return np.nan, np.nan
        return mean.interval(self.level)

    def _reason(self, low: float, high: float) -> str:
        """Return why there are no shares; empty if there are, or if a control is missing."""
        if low > 0 or not all(self.names.values()):
            return ""
        return NOT_ABOVE if high <= 0 else OPEN

    def _share(self, gain: Array, span: Array, factors: Factors) -> tuple[float, float, float]:
        """Return the share of the range, and its interval, NaN if it is unbounded or values are too skewed."""
        if not len(gain) or not span.mean() > 0:
            return np.nan, np.nan, np.nan
        share = float(gain.mean() / span.mean())
        rest = gain - share * span
        if np.abs(rest).max() <= ROUNDING * max(np.abs(gain).max(), np.abs(span).max()):
            return share, share, share
        if np.isnan(self._interval(rest, factors)[0]):
            return share, np.nan, np.nan

        def end(place: int) -> Callable[[float], float]:
            # With too skewed differences, the interval of the share itself is NaN; here only its ends are searched.
            return lambda candidate: mean_of(gain - candidate * span, factors).interval(self.level)[place]

        return share, _root(end(0), share, -1.0), _root(end(1), share, 1.0)


def _root(function: Callable[[float], float], start: float, sign: float) -> float:
    """Return the zero of a decreasing function on one side of ``start``; NaN if there is none up to ``LARGEST``."""
    step = sign * 0.1
    at_start = function(start)
    while abs(step) < LARGEST:
        value = function(start + step)
        if np.isnan(value):
            return np.nan
        if np.sign(value) != np.sign(at_start):
            return float(brentq(function, start, start + step, xtol=1e-9))
        step *= 2
    return np.nan


def _mean(values: Array) -> float:
    """Return the mean of the values that are not NaN; NaN if there are none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else np.nan

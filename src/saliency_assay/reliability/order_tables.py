"""Order of the methods under every metric of a study, and the comparisons of all pairs of methods."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.registry.directions import Direction
from saliency_assay.reliability.comparison import (
    MEANS,
    WINS,
    Comparison,
    RankedBy,
    Ranks,
    holm,
    ranks_of,
)
from saliency_assay.reliability.reliability_tables import (
    NO_CLUSTERS,
    SCORED,
    Scores,
    clusters_of_images,
    count_groups,
    groups,
    with_groups,
)
from saliency_assay.reliability.variance import IMAGES, SEEDS, SKEWNESS, Factors, Mean, mean_of, skewness

ORDERED = ["metric", "variant", "direction", "data", "model", "method", "baseline", "seeds", "over", "images"]
ORDERED += ["all_images", "undefined", "mean", "low", "high", "mean_worst", "mean_best", "win_rate"]
ORDERED += ["rank_low", "rank_high", "lead", "lead_low", "lead_high", "lead_over", "lead_p"]
ORDERED += ["above_baselines", "best_share", "ranked_by"]
COMPARED = [*SCORED, "method", "other", "images", "difference", "difference_low", "difference_high"]
COMPARED += ["difference_p", "skew_images", "wins", "wins_low", "wins_high", "wins_p", "wins_worst"]
COMPARED += ["wins_best", "detectable", "images_needed", "equivalent_p", "finding"]
BETTER, WORSE, EQUIVALENT, OPEN, UNTESTED_PAIR = (
    "better",
    "worse",
    "equivalent",
    "not distinguishable",
    "not tested",
)
UNTESTED = "no training seeds to compare"
"""Value of ``over`` if each method has its own trained model, of one seed: differences may be training noise."""


@dataclass(frozen=True)
class Rule:
    """Rule by which methods are ranked and compared."""

    by: RankedBy = WINS
    """``wins`` or ``means``: what decides rank sets, see ``comparison.Comparison``."""
    margin: float | None = None
    """Largest difference of means of equivalent methods; None for no test of equivalence."""
    margin_unit: Literal["sd", "score"] = "sd"
    """Unit of ``margin``: the standard deviation of all scores of a metric, or the score itself."""
    level: float = 0.95
    """Confidence level of intervals, and simultaneous level of the comparisons under one metric."""


def order_tables(
    scores: Scores,
    directions: Mapping[str, str],
    baselines: Collection[str] = (),
    *,
    clusters: Factors = NO_CLUSTERS,
    ranges: Mapping[str, tuple[float, float]] = MappingProxyType({}),
    rule: Rule = Rule(),
    retrained: bool = False,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return means and rank sets of the methods under every metric, and the comparisons of all pairs of methods.

    Args:
        scores: a score table, or its chunks by variant; scores of whole sets are left out.
        directions: for each metric the direction of its scores, see ``directions``.
        baselines: baselines, which do not use the model.
        clusters: see ``NO_CLUSTERS``.
        ranges: for each metric its smallest and largest possible score, by default unlimited; intervals end there.
        rule: how methods are ranked and compared.
        retrained: True if each method has its own trained models. With one training seed, nothing is then tested,
            because a difference may be training noise.

    Returns:
        A row for each method, in the order of the score table: ``metric, variant, direction, data, model, method,
        baseline`` (bool); ``seeds``: their number; ``over``: the sources of variation in the intervals, such as
        ``images × seeds``, or ``UNTESTED``; ``images``: number of images with a score, and ``groups`` of these
        (``reliability_tables.with_groups``); ``all_images``: number of images; ``undefined``: share of NaN among the
        scores of images for which some method has a score, 1 without any; ``mean`` with its interval ``low, high``: see
        ``variance.mean_of``; without interval if the scores are too skewed for the number of images; ``mean_worst,
        mean_best``: the mean if all missing scores were the worst or the best score of any method; ``win_rate``: mean
        of ``comparison.win_rates``; ``rank_low, rank_high``: see ``comparison.rank_sets``; ``lead``: difference from
        the other method with the best mean, on the images that both have a score for, with its interval ``lead_low,
        lead_high``, positive if this method is better; ``lead_over``: that method, empty if there is none; ``lead_p``:
        largest adjusted p-value of the hypotheses that the method is not better than another one, NaN if one of them is
        not tested; ``above_baselines``: 1 if the method is better than every baseline, else 0; NaN for baselines and if
        none of them has a score; ``best_share``: share of images on which it has the best score, among the images with
        scores of this and another method; of methods that tie for the best, each has an equal part; ``ranked_by``:
        ``rule.by``.

        A row for each pair of methods: ``metric, variant, data, model, method, other``; ``images`` with scores of both,
        and their ``groups``; ``difference`` of the means, positive if ``method`` is better, with its interval and its
        p-value, adjusted for the number of pairs; NaN if scores are too skewed for their number, and ``skew_images`` is
        the number that would do; ``wins``: probability that ``method`` has the better score on an image, ties half,
        with its interval (``variance.Mean.exact_interval``), and ``wins_p``, the adjusted p-value of the comparison of
        win rates against all methods: two methods that are next to each other in every row differ little in these, so
        that ``wins`` 1 need not be significant; ``wins_worst, wins_best``: the same if all comparisons with a missing
        score were lost or won; ``detectable``: smallest difference, of win rates or of means (``rule.by``), that this
        number of images detects with power 0.8 at the level of the rank sets; ``images_needed``: number of images that
        would detect the observed difference with power 0.8; ``equivalent_p``: adjusted p-value of the hypothesis that
        the means differ by more than the margin; ``finding``: ``better, worse, equivalent, not distinguishable, not
        tested``.
    """
    order: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    for names, of_metric in groups(scores, SCORED):
        metric = str(names["metric"])
        names["all_images"] = of_metric["image"].nunique()
        # Such as healthy images, which have no object to localize: they say nothing about any method.
        scored = of_metric["score"].notna().groupby([of_metric["seed"], of_metric["image"]]).transform("any")
        of_metric = of_metric[scored] if scored.any() else of_metric
        wide = of_metric.pivot(index=["seed", "image"], columns="method", values="score")
        wide = wide[list(dict.fromkeys(of_metric["method"]))]
        image = wide.index.get_level_values("image").to_numpy()
        compared = ComparedScores(
            wide,
            directions[metric],
            clusters_of_images(clusters, image),
            ranges.get(metric),
            rule=rule,
            retrained=retrained,
        )
        missing = of_metric["score"].isna().groupby(of_metric["method"]).mean()
        names |= {"direction": directions[metric]}
        rows = compared.order_rows(baselines)
        order += [{**names, **row, "undefined": missing[str(row["method"])]} for row in rows]
        pairs += [{**names, **row} for row in compared.pair_rows()]
    return (
        pd.DataFrame(order, columns=with_groups(ORDERED, clusters)),
        pd.DataFrame(pairs, columns=with_groups(COMPARED, clusters)),
    )


class ComparedScores:
    """Scores of methods under one metric, and their comparisons.

    Args:
        wide: scores ``[n, M]``, NaN where missing, methods as columns; a row is an image or, with the index levels
            ``seed`` and ``image``, an image under one training seed.
        direction: of the scores, see ``directions``.
        clusters: see ``variance.mean_of``.
        limits: smallest and largest possible score.
        rule: how methods are ranked and compared.
        retrained: see ``order_tables``.
    """

    def __init__(
        self,
        wide: pd.DataFrame,
        direction: str,
        clusters: Factors,
        limits: tuple[float, float] | None = None,
        *,
        rule: Rule,
        retrained: bool = False,
    ) -> None:
        self.rule, self.methods = rule, list(wide)
        self.raw = wide.to_numpy()
        self.scores = Direction(direction).oriented(self.raw)
        self.image, seed = wide.index.to_numpy(), np.zeros(len(wide))
        if wide.index.nlevels == 2:
            seed, self.image = (wide.index.get_level_values(name).to_numpy() for name in ("seed", "image"))
        self.seeds = len(np.unique(seed))
        self.tested = self.seeds > 1 or not retrained
        self.over = " × ".join([*(clusters or [IMAGES]), *([SEEDS] if self.seeds > 1 else [])])
        factors = {IMAGES: self.image, **clusters, SEEDS: seed} if self.seeds > 1 else clusters
        self.factors: Factors = factors
        defined = self.raw[~np.isnan(self.raw)]
        self.is_rate = bool(len(defined)) and bool(((defined == 0) | (defined == 1)).all())
        low, high = limits or (-np.inf, np.inf)
        # A range refers to default parameters; with others, scores can exceed it.
        self.limits = float(defined.min(initial=low)), float(defined.max(initial=high))
        self.by_wins, self.by_means = (Comparison(self.scores, factors, by) for by in (WINS, MEANS))
        self.deciding = self.by_wins if rule.by == WINS else self.by_means
        self.ranks = ranks_of(self.deciding, rule.level, tested=self.tested)

    def order_rows(self, baselines: Collection[str] = ()) -> list[dict[str, Any]]:
        """Return the columns of ``order.csv`` of each method."""
        is_baseline = np.array([method in baselines for method in self.methods], dtype=bool)
        above, next_best = _above_baselines(self.ranks, is_baseline), _best_others(self.scores)
        shares, extremes = _best_shares(self.scores), self._extremes()
        rates = self.by_wins.rates
        rows = []
        for place, method in enumerate(self.methods):
            score = self.raw[:, place]
            missing = float(np.isnan(score).mean())
            mean = mean_of(score, self.factors)
            row: dict[str, Any] = {"method": method, "baseline": method in baselines, "seeds": self.seeds}
            row |= {"over": self.over if self.tested else UNTESTED}
            row |= {"images": len(np.unique(self.image[~np.isnan(score)])), "mean": mean.value}
            row |= count_groups(self.factors, ~np.isnan(score))
            row |= dict(zip(("low", "high"), self._interval_of_mean(score, mean), strict=True))
            for name, extreme in zip(("mean_worst", "mean_best"), extremes, strict=True):
                observed = 0.0 if missing == 1 else (1 - missing) * mean.value
                row[name] = observed + missing * extreme if missing else mean.value
            row |= {"win_rate": mean_of(rates[:, place]).value}
            row |= {"rank_low": self.ranks.low[place], "rank_high": self.ranks.high[place]}
            row |= dict.fromkeys(("lead", "lead_low", "lead_high", "lead_p"), np.nan) | {"lead_over": ""}
            if (other := next_best[place]) is not None:
                ends = self._difference(place, other)
                row |= dict(zip(("lead", "lead_low", "lead_high"), ends, strict=True))
                others = ~np.isnan(self.ranks.low) & (np.arange(len(self.methods)) != place)
                row |= {"lead_over": self.methods[other], "lead_p": self.ranks.p[place, others].max()}
            row |= {"above_baselines": above[place], "best_share": shares[place], "ranked_by": self.rule.by}
            rows.append(row)
        return rows

    def pair_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the columns of ``pairs.csv`` of each pair of methods."""
        p_wins, p_means = (
            each.adjusted_p if self.tested else np.full(each.p.shape, np.nan)
            for each in (self.by_wins, self.by_means)
        )
        equivalent = self._equivalent_p()
        for one, other in self.deciding.pairs:
            wins = self.by_wins.win_probability(one, other)
            both = ~np.isnan(self.scores[:, [one, other]]).any(1)
            row: dict[str, Any] = {"method": self.methods[one], "other": self.methods[other]}
            row |= {"images": len(np.unique(self.image[both])), **count_groups(self.factors, both)}
            names = ("difference", "difference_low", "difference_high")
            row |= dict(zip(names, self._difference(one, other), strict=True))
            row |= {"difference_p": _two_sided(p_means, one, other)}
            row |= {"skew_images": self.by_means.pairs[one, other].skew_images, "wins": wins.value}
            ends = wins.exact_interval(self.rule.level) if self.tested else (np.nan, np.nan)
            row |= dict(zip(("wins_low", "wins_high"), ends, strict=True))
            row |= {"wins_p": _two_sided(p_wins, one, other)}
            count, won = len(both), wins.value * both.sum() if both.any() else 0.0
            row |= {"wins_worst": won / count, "wins_best": (won + count - both.sum()) / count}
            row |= dict.fromkeys(("detectable", "images_needed"), np.nan)
            if self.tested:
                row |= {"detectable": self.deciding.detectable(one, other, self.rule.level)}
                row |= {"images_needed": self.deciding.images_needed(one, other, self.rule.level)}
            row |= {"equivalent_p": equivalent[one, other]}
            yield row | {"finding": self._finding(one, other, equivalent)}

    def _finding(self, one: int, other: int, equivalent: Array) -> str:
        if self.ranks.better[one, other] or self.ranks.better[other, one]:
            return BETTER if self.ranks.better[one, other] else WORSE
        if equivalent[one, other] <= 1 - self.rule.level:
            return EQUIVALENT
        return UNTESTED_PAIR if np.isnan(self.ranks.p[one, other]) else OPEN

    def _interval_of_mean(self, score: Array, mean: Mean) -> tuple[float, float]:
        """Return the interval of a method's mean; NaN if nothing is tested or the scores are too skewed."""
        defined = score[~np.isnan(score)]
        if not self.tested:
            return np.nan, np.nan
        if self.is_rate:
            return mean.rate_interval(self.rule.level)
        if (
            not len(defined)
            or len(np.unique(self.image[~np.isnan(score)])) < SKEWNESS * skewness(defined) ** 2
        ):
            return np.nan, np.nan
        low, high = np.clip(mean.interval(self.rule.level), *self.limits)
        return float(low), float(high)

    def _difference(self, one: int, other: int) -> tuple[float, float, float]:
        """Return the difference of two means with its interval, positive if the first is better."""
        sign, key = (1, (one, other)) if one < other else (-1, (other, one))
        pair, scale = self.by_means.pairs[key], self.by_means.scale
        ends = pair.effect.interval(self.rule.level)
        if not self.tested or np.isnan(pair.p[0]):
            ends = (np.nan, np.nan)
        width = self.limits[1] - self.limits[0]
        low, high = sorted(float(sign * scale * end) for end in ends)
        return sign * scale * pair.effect.value, max(low, -width), min(high, width)

    def _equivalent_p(self) -> Array:
        """Return adjusted p-values ``[M, M]`` of the hypotheses that two means differ by the margin; NaN for i ≥ j."""
        p = np.full((len(self.methods),) * 2, np.nan)
        if self.rule.margin is None or not self.tested:
            return p
        margin = self.rule.margin / self.by_means.scale
        if self.rule.margin_unit == "sd":
            margin *= float(np.nanstd(self.scores))
        for key, pair in self.by_means.pairs.items():
            if not np.isnan(pair.p[0]):
                value, least = pair.effect.value, 0.5**pair.effect.units
                shifted = (replace(pair.effect, value=margin + sign * value) for sign in (1, -1))
                p[key] = max(least, *(mean.p_value() for mean in shifted))
        return holm(p)

    def _extremes(self) -> tuple[float, float]:
        """Return the worst and the best score of any method."""
        defined = ~np.isnan(self.scores)
        if not defined.any():
            return np.nan, np.nan
        places = np.argsort(self.scores[defined], kind="stable")[[0, -1]]
        worst, best = self.raw[defined][places]
        return float(worst), float(best)


def _two_sided(p: Array, one: int, other: int) -> float:
    return float(min(p[one, other], p[other, one]))


def _above_baselines(ranks: Ranks, baselines: Array) -> Array:
    """Return ``[M]``: 1 for a method that is better than all scored baselines (``baselines``), else 0; NaN for them."""
    scored = ~np.isnan(ranks.low)
    if not (baselines & scored).any():
        return np.full(len(baselines), np.nan)
    better = ranks.better[:, baselines & scored].all(1).astype(np.float64)
    return np.where(scored & ~baselines, better, np.nan)


def _best_others(scores: Array) -> list[int | None]:
    """Return for each column of ``[n, M]`` the other column with the highest mean, None if no other has a score."""
    scored = np.flatnonzero((~np.isnan(scores)).any(0))
    order = scored[np.argsort(-np.nanmean(scores[:, scored], axis=0), kind="stable")].tolist()
    return [
        next((other for other in order if other != place), None) if place in order else None
        for place in range(scores.shape[1])
    ]


def _best_shares(scores: Array) -> Array:
    """Return the share ``[M]`` of rows of ``[n, M]`` with the highest score, among rows with another score.

    Methods that tie for the best have equal parts of the row.
    """
    defined = ~np.isnan(scores)
    defined &= defined.sum(1, keepdims=True) >= 2
    best = np.where(defined, scores, -np.inf).max(1, keepdims=True, initial=-np.inf)
    is_best = defined & (scores == best)
    parts = is_best / np.maximum(is_best.sum(1, keepdims=True), 1)
    count = defined.sum(0)
    shares: Array = np.where(count > 0, parts.sum(0) / np.maximum(count, 1), np.nan)
    return shares

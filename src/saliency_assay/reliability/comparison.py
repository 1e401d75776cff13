"""Comparisons of methods under one metric, and confidence sets of their ranks.

Two questions have two answers. ``wins``: which method has the better score on more images? This needs no assumption on
the shape of the scores, and is the order whose agreement Krippendorff's α measures. ``means``: which method has the
better mean? Student's t answers it if the scores are not too skewed for the number of images.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import ceil, log2
from typing import Literal, TypeAlias

import numpy as np
from numpy import ndarray as Array
from scipy.sparse.csgraph import connected_components
from scipy.special import bdtrc, ndtri, stdtrit

from saliency_assay.reliability.variance import (
    NO_FACTORS,
    POWER,
    ROUNDING,
    SKEWNESS,
    Design,
    Factors,
    Mean,
    Moments,
    mean_of,
    skewness,
)

RankedBy: TypeAlias = Literal["wins", "means"]
WINS: RankedBy = "wins"
MEANS: RankedBy = "means"


@dataclass(frozen=True)
class Ranks:
    """Rank sets of the methods under one metric; NaN for a method without a score, or for a single method."""

    rank: Array  # [M], 1 + the number of methods that are better on these images
    low: Array  # [M], 1 + the number of significantly better methods
    high: Array  # [M], the number of methods with a score minus the number of significantly worse ones
    better: Array  # bool [M, M]: the row's method is significantly better than the column's
    p: Array  # [M, M], adjusted p-values of these hypotheses; NaN on the diagonal and where nothing is tested


@dataclass(frozen=True)
class Pair:
    """Comparison of two methods on the rows in which both have a score."""

    effect: Mean
    """Mean difference, of win rates or of scores; positive if the first method is better."""
    images: int
    """Number of images in these rows."""
    p: tuple[float, float]
    """One-sided p-values of the hypotheses that the first method is not better, and the second; NaN if not tested."""
    skew_images: float
    """Number of images that a test of means requires with this skewness; NaN if there are enough."""


class Comparison:
    """Comparisons of all pairs of methods under one metric, by win rates or by means.

    Large clusters weigh less than their number of images, see ``variance.Design.weights``. No p-value is below 2⁻ᵐ,
    with m the number of images on which two methods differ: a sign-flip test has no smaller one, while Student's t
    gives a few equal differences an arbitrarily small one. For win rates, and for means if all clusters have the same
    difference, m is at most the number of clusters. If all differences of independent images have the same size, as of
    scores 0 and 1, or of win rates of two methods, the test is the exact sign test.

    Args:
        scores: ``[n, M]``, higher is better, NaN where missing. A row is an image, or an image under one training seed.
        factors: see ``variance.mean_of``.
        by: ``wins`` compares win rates, see ``win_rates``; ``means`` compares the scores.

    Raises:
        ValueError: ``by`` is neither.
    """

    def __init__(self, scores: Array, factors: Factors = NO_FACTORS, by: RankedBy = WINS) -> None:
        if by not in (WINS, MEANS):
            raise ValueError(f"by: found {by!r}, expected {WINS} or {MEANS}")
        scores = np.asarray(scores, dtype=np.float64)
        self.by, self.factors = by, factors
        # Scaled to at most 1, so that squares cannot overflow.
        self.scale = float(np.nanmax(np.abs(scores), initial=0)) or 1.0
        self.scores = scores / self.scale
        self.scored = (~np.isnan(scores)).any(0)
        # Relative to the largest score of the image or, if they are small, of a typical image: one outlier must not
        # hide the differences on all images.
        largest = np.nanmax(np.abs(self.scores), axis=1, initial=0)
        self.rounding = ROUNDING * np.maximum(largest, np.median(largest) if len(largest) else 0)
        self._designs: dict[bytes, Design] = {}

    @cached_property
    def rates(self) -> Array:
        """Win rates ``[n, M]`` of the methods in each row, see ``win_rates``."""
        return win_rates(self.scores, self.rounding)

    @cached_property
    def pairs(self) -> dict[tuple[int, int], Pair]:
        """Comparisons of each method with the following ones."""
        moments = {pair: self._moments(*pair) for pair in self._differences}
        pooled = {
            name: _pooled_squares(list(moments.values()), name, self.scored.sum()) for name in self.factors
        }
        means = {pair: of_pair.mean(pooled) for pair, of_pair in moments.items()}
        if self.by == WINS:  # differences of ranks are bounded; a correction for skewness costs power
            means = {pair: replace(mean, skewness=0.0) for pair, mean in means.items()}
        return {pair: self._compared(*pair, mean) for pair, mean in means.items()}

    @cached_property
    def p(self) -> Array:
        """One-sided p-values ``[M, M]`` of the hypotheses that the row's method is not better than the column's.

        NaN on the diagonal and for pairs that are not tested: without a variance (see ``variance.mean_of``), or with
        scores too skewed for a comparison of means.
        """
        matrix = np.full((self.scores.shape[1],) * 2, np.nan)
        for (one, other), pair in self.pairs.items():
            matrix[one, other], matrix[other, one] = pair.p
        return matrix

    @cached_property
    def adjusted_p(self) -> Array:
        """The same, adjusted for the number of pairs, see ``adjusted``; pairs with too skewed scores count as well."""
        p = self.p.copy()
        for (one, other), pair in self.pairs.items():
            if not np.isnan(pair.skew_images):
                p[one, other] = p[other, one] = 1
        scored = np.ix_(self.scored, self.scored)
        result = np.full(p.shape, np.nan)
        result[scored] = adjusted(p[scored], complete=not np.isnan(self.scores[:, self.scored]).any())
        return np.where(np.isnan(self.p), np.nan, result)

    @cached_property
    def _steps(self) -> Array:
        """Factors ``[M, M]`` by which ``adjusted`` multiplies the p-values of pairs at their step."""
        p = np.minimum(self.p, self.p.T)[np.ix_(self.scored, self.scored)]
        complete = not np.isnan(self.scores[:, self.scored]).any()
        rows, columns = np.triu_indices(len(p), 1)
        tested = ~np.isnan(p[rows, columns])
        factors = _factors(int(tested.sum()), _counts(p, complete=complete))
        # Equal p-values differ by rounding, and NaN are behind all steps.
        steps = np.searchsorted(np.sort(p[rows, columns][tested]), p * (1 - 1e-6))
        of_scored = np.append(factors, 1.0)[np.minimum(steps, len(factors))]
        result = np.full(self.p.shape, np.nan)
        result[np.ix_(self.scored, self.scored)] = of_scored
        return result

    @cached_property
    def error(self) -> float:
        """Share of the family-wise error that the first step of the correction leaves for a one-sided test."""
        return 1 / max(2 * sum(not np.isnan(pair.effect.variance) for pair in self.pairs.values()), 2)

    def win_probability(self, one: int, other: int) -> Mean:
        """Return the probability that a method has the better score on an image; ties count half.

        Its ``exact_interval`` is exact for independent images without ties.
        """
        defined, difference = self._difference(self.scores, one, other)
        design = self._design(defined)
        return design.moments((1 + np.sign(difference)) / 2, design.weights(self._shares)).mean()

    def images_needed(self, one: int, other: int, level: float = 0.95) -> float:
        """Return the number of images with which the observed difference is significant with power 0.8.

        More than there are, if it is not significant on these. Infinite if there is no difference, or if training noise
        hides it; NaN without a variance.
        """
        pair, error = self.pairs[one, other], (1 - level) * self.error
        images = np.ceil(pair.effect.images_needed(error, pair.images))
        if self._is_unopposed(one, other):
            error_of_step = (1 - level) / (2 * self._steps[one, other])
            images = _unopposed_images(self._differences[one, other][1], error_of_step)
        if np.isnan(images):
            return np.nan
        least, (defined, difference) = ceil(-log2(error)), self._differences[one, other]
        design = self._design(defined)
        if design.levels and (pair.effect.is_constant or self.by == WINS):
            # The smallest p-value is that of as many clusters; see the class.
            units = design.effective_count(difference, clusters=True)
            least = ceil(least * pair.images / units) if units > 0 else least
        if np.nanmin([self.adjusted_p[one, other], self.adjusted_p[other, one], 1]) > 1 - level:
            least = max(least, pair.images + 1)
        return float(np.nanmax([images, pair.skew_images, least]))

    def detectable(self, one: int, other: int, level: float = 0.95) -> float:
        """Return the smallest difference, of win rates or of means, that these images detect with power 0.8.

        NaN for a pair that is not tested, or whose differences are all equal.
        """
        effect = self.pairs[one, other].effect
        if not effect.variance > 0 or np.isnan(self.pairs[one, other].p[0]):
            return np.nan
        return effect.detectable((1 - level) * self.error) * (1 if self.by == WINS else self.scale)

    @cached_property
    def _has_equal_sizes(self) -> bool:
        """True if all differences that are not 0 have one size, also those of images that are not in the sample."""
        return (
            self.by == MEANS
            or self.scored.sum() == 2
            or len(np.unique(self.scores[~np.isnan(self.scores)])) <= 2
        )

    @cached_property
    def _differences(self) -> dict[tuple[int, int], tuple[Array, Array]]:
        values = self.rates if self.by == WINS else self.scores
        return {pair: self._difference(values, *pair) for pair in combinations(range(values.shape[1]), 2)}

    def _is_unopposed(self, one: int, other: int) -> bool:
        """Return True if independent images differ in size of their win rates, and none prefers the other method."""
        defined, difference = self._differences[one, other]
        sizes = np.abs(difference[difference != 0])
        has_one_size = len(sizes) == 0 or (self._has_equal_sizes and np.ptp(sizes) <= ROUNDING)
        is_clustered = bool(self._design(defined).levels)
        is_one_sided = abs(np.sign(difference).sum()) == len(sizes)
        return self.by == WINS and not is_clustered and not has_one_size and bool(is_one_sided)

    def _difference(self, values: Array, one: int, other: int) -> tuple[Array, Array]:
        """Return in which rows both methods have a score, bool ``[n]``, and the differences in these rows."""
        difference = self.scores[:, one] - self.scores[:, other]
        ties = np.abs(difference) <= self.rounding
        defined = ~np.isnan(difference)
        difference = np.where(ties, 0, values[:, one] - values[:, other])
        return defined, difference[defined]

    def _design(self, defined: Array) -> Design:
        key = defined.tobytes()
        if key not in self._designs:
            self._designs[key] = Design(defined, self.factors)
        return self._designs[key]

    @cached_property
    def _shares(self) -> dict[str, float]:
        """For each factor the correlation within its levels, averaged over pairs, so that all have equal weights."""
        shares: dict[str, list[float]] = {}
        for defined, difference in self._differences.values():
            design = self._design(defined)
            if design.estimable and not design.is_balanced and np.ptp(difference) > 0:
                components = np.maximum(design.components(difference), 0)
                for name, component in zip(design.levels, components, strict=False):
                    shares.setdefault(name, []).append(component / components.sum())
        return {name: float(np.mean(of_pairs)) for name, of_pairs in shares.items()}

    def _moments(self, one: int, other: int) -> Moments:
        defined, difference = self._differences[one, other]
        design = self._design(defined)
        return design.moments(difference, design.weights(self._shares))

    def _compared(self, one: int, other: int, effect: Mean) -> Pair:
        defined, difference = self._differences[one, other]
        design = self._design(defined)
        p, skew_images = (np.nan, np.nan), np.nan
        if np.isnan(effect.variance):
            return Pair(effect, design.images, p, skew_images)
        sizes = np.abs(difference[difference != 0])
        if not design.levels and (len(sizes) == 0 or (self._has_equal_sizes and np.ptp(sizes) <= ROUNDING)):
            wins = int(np.count_nonzero(difference > 0))
            p = _sign_test(wins, len(sizes)), _sign_test(len(sizes) - wins, len(sizes))
        else:
            least = 0.5 ** design.effective_count(difference, clusters=effect.is_constant or self.by == WINS)
            tail = effect.p_value()
            if self._is_unopposed(one, other):
                # One more image, which prefers the other method as much as possible, stands for those that are too rare
                # to be in the sample.
                unopposed = mean_of(np.append(difference, -np.sign(effect.value)))
                tail = replace(unopposed, skewness=0.0).p_value()
            p = max(tail, least), max(1 - tail, least)
            if self.by == MEANS:
                skewed = max(abs(skewness(self.scores[defined, place])) for place in (one, other))
                required = np.inf if np.isinf(skewed) else ceil(SKEWNESS * skewed**2)
                if required > design.images and len(np.unique(self.scores[defined][:, [one, other]])) > 2:
                    p, skew_images = (np.nan, np.nan), required
        return Pair(effect, design.images, p, skew_images)


def win_rates(scores: Array, rounding: Array | float = 0.0) -> Array:
    """Return the share ``[n, M]`` of the other methods that a method beats in each row; ties count half.

    This is (m − r) / (m − 1) with r the rank of a method among the m methods with a score in the row. The mean over
    images is the probability that a method beats another one, averaged over the others. NaN where a score is missing,
    or is the only one of its row.

    Args:
        scores: ``[n, M]``, higher is better, NaN where missing.
        rounding: ``[n]``, difference up to which scores of a row are ties.
    """
    rounding = np.broadcast_to(rounding, scores.shape[:1])[:, None]
    beaten, others = np.zeros(scores.shape), (~np.isnan(scores)).sum(1, keepdims=True) - 1
    for column in scores.T:
        difference = scores - column[:, None]
        beaten += (difference > rounding) + 0.5 * (np.abs(difference) <= rounding)
    # A method ties with itself.
    return np.where(np.isnan(scores) | (others < 1), np.nan, (beaten - 0.5) / np.maximum(others, 1))


def rank_sets(
    scores: Array, factors: Factors = NO_FACTORS, *, level: float = 0.95, by: RankedBy = WINS
) -> Ranks:
    """Return confidence sets of the methods' ranks with simultaneous coverage ``level``.

    A method's rank is 1 + the number of methods with a better win rate, or mean. All pairs are tested with a correction
    for their number (``adjusted``): with probability ``level`` there is no false "better", and then each set contains
    its method's rank (Mogstad, Romano, Shaikh & Wilhelm, *Review of Economic Studies*, 2024). Their bootstrap is
    replaced by these critical values, because a bootstrap fails with few seeds or clusters.

    Args:
        scores: see ``Comparison``.
        factors: see ``variance.mean_of``.
        level: simultaneous coverage over all comparisons.
        by: see ``Comparison``.

    Raises:
        ValueError: ``level`` is not a share in (0, 1), or ``by`` unknown.
    """
    return ranks_of(Comparison(scores, factors, by), level)


def ranks_of(comparison: Comparison, level: float = 0.95, *, tested: bool = True) -> Ranks:
    """Return the rank sets of a comparison, see ``rank_sets``; without tests, each set contains all ranks."""
    if not 0 < level < 1:
        raise ValueError(f"level: found {level}, expected a share in (0, 1)")
    p = comparison.adjusted_p if tested else np.full(comparison.p.shape, np.nan)
    better = p <= 1 - level
    # With scores on different images, "better" can be cyclic; within a cycle there is no order.
    _, component = connected_components(better, connection="strong")
    better &= component[:, None] != component
    count = np.count_nonzero(comparison.scored)
    ranked = comparison.scored & (count > 1)
    ahead = np.zeros(p.shape, bool)
    for (one, other), pair in comparison.pairs.items():
        ahead[one, other], ahead[other, one] = pair.effect.value > 0, pair.effect.value < 0
    ranks = (1.0 + ahead.sum(0), 1.0 + better.sum(0), count - better.sum(1))
    rank, low, high = (np.where(ranked, each, np.nan) for each in ranks)
    return Ranks(rank, low, high, better, p)


def adjusted(p: Array, *, complete: bool = False) -> Array:
    """Return one-sided p-values of all ordered pairs ``[M, M]``, adjusted for the number of pairs.

    Holm's (1979) procedure for the two-sided p-values of the pairs. If all methods are compared on the same images
    (``complete``), equalities are transitive, so that after a rejection fewer of them can be true at once, and
    Shaffer's (1986) factors take their place.
    """
    rows, columns = np.triu_indices(len(p), 1)
    forward, backward = p[rows, columns], p[columns, rows]
    both = holm(np.minimum(2 * np.minimum(forward, backward), 1), _counts(p, complete=complete))
    result = np.full(p.shape, np.nan)
    result[rows, columns] = np.where(forward < backward, both, np.where(np.isnan(both), np.nan, 1))
    result[columns, rows] = np.where(backward < forward, both, np.where(np.isnan(both), np.nan, 1))
    return result


def holm(p: Array, counts: Array | None = None) -> Array:
    """Return p-values of hypotheses, adjusted by Holm's (1979) procedure for their number; NaN means no hypothesis.

    The hypotheses whose adjusted p-value is at most α are those that the procedure rejects at family-wise error α.

    Args:
        p: p-values of any shape.
        counts: possible numbers of hypotheses that are true at once, for Shaffer's (1986) procedure.
    """
    tested = np.flatnonzero(~np.isnan(p))
    ordered = tested[np.argsort(p.flat[tested], kind="stable")]
    adjusted_p = np.full(p.shape, np.nan)
    factors = _factors(len(ordered), counts)
    adjusted_p.flat[ordered] = np.minimum(np.maximum.accumulate(factors * p.flat[ordered]), 1)
    return adjusted_p


def _factors(tests: int, counts: Array | None) -> Array:
    """Return the factors of the steps of Holm's procedure, or Shaffer's, see ``holm``."""
    factors = np.arange(tests, 0, -1)
    if counts is not None:  # the largest possible number that is not above Holm's
        factors = np.array([counts[counts <= factor].max(initial=1) for factor in factors], dtype=np.int64)
    return factors


def _counts(p: Array, *, complete: bool) -> Array | None:
    """Return the possible numbers of equal pairs if Shaffer's factors are valid for ``p``, see ``adjusted``."""
    is_tested = not np.isnan(p[np.triu_indices(len(p), 1)]).any()
    return _counts_of_equalities(len(p)) if complete and is_tested else None


def _unopposed_images(difference: Array, error: float) -> float:
    """Return the number of images with which the test of an unopposed pair has power 0.8, see ``images_needed``.

    Args:
        difference: of win rates, ``[n]``, of which none has the other sign; further images are like these.
        error: of the one-sided test.
    """
    value, variance = abs(float(difference.mean())), float(difference.var())

    def is_detected(images: int) -> bool:
        count = images + 1  # with the opposed image of the test
        mean = (images * value - 1) / count
        squares = images * (variance + value**2) + 1 - count * mean**2
        error_of_mean = (squares / images / count) ** 0.5
        sampling_error = (variance / images) ** 0.5
        return bool(mean >= -stdtrit(images, error) * error_of_mean + ndtri(POWER) * sampling_error)

    high = 2
    while not is_detected(high):
        high *= 2
    return float(bisect_left(range(high), True, lo=1, key=is_detected))


def _counts_of_equalities(methods: int) -> Array:
    """Return the possible numbers of pairs of equal methods: those of all partitions of the methods into groups."""
    counts: list[set[int]] = [{0}]
    for total in range(1, methods + 1):
        counts.append(
            {size * (size - 1) // 2 + rest for size in range(1, total + 1) for rest in counts[total - size]}
        )
    return np.array(sorted(counts[methods]))


def _sign_test(wins: int, count: int) -> float:
    """Return the probability of at least ``wins`` of ``count`` fair coins."""
    return float(bdtrc(wins - 1, count, 0.5)) if wins > 0 else 1.0


def _pooled_squares(moments: list[Moments], name: str, methods: int) -> tuple[float, float, float]:
    """Return a factor's mean square averaged over comparisons, absolute and relative, and its degrees of freedom."""
    squares = [(*each.factors[name], each.independent) for each in moments if name in each.factors]
    if not squares:
        return 0.0, 0.0, 1.0
    absolute, degrees, independent = np.array(squares).T
    return (
        float(absolute.mean()),
        float((absolute / independent).mean()),
        float(degrees.min() * (methods - 1)),
    )

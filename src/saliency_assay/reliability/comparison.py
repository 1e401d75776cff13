"""Comparisons of methods under one metric: means, paired differences, and confidence sets of ranks.

Two methods are compared on the images on which both have a score. The variance of a mean is estimated in a crossed
random-effects model: scores that share a level of a factor (an image, a training seed, a cut-out, a scene) are
correlated. The method of moments gives unbiased variance components (Searle, Casella & McCulloch, *Variance
Components*, 1992, chapter 5). A factor with few levels contributes its mean square with its own degrees of freedom, so
that intervals from few seeds are wide and still cover.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

import numpy as np
from numpy import ndarray as Array
from scipy.optimize import brentq
from scipy.sparse.csgraph import connected_components
from scipy.special import stdtrit

Factors = Mapping[str, Array]

IMAGES, SEEDS = "images", "seeds"
"""Names of the factors for images and training seeds, used where an image has several scores."""
FEW_DEGREES = 30
"""Degrees of freedom below which a factor has its own component of the variance, pooled over all comparisons."""
MAX_RATIO = 3.0
"""Limit of a pooled component, relative to the comparison's own variance, as a multiple of the mean of this ratio; and
the ratio of a comparison's mean square to the pooled one above which it counts with its own degrees of freedom."""
ROUNDING = 1e-12  # share of a score up to which a difference is a rounding error
MIN_P_VALUE = 1e-30  # lower end of the search for a p-value
NO_FACTORS: Factors = MappingProxyType({})


@dataclass(frozen=True)
class Mean:
    """Mean with the components of its estimated variance and their degrees of freedom; NaN where undefined."""

    value: float
    components: Array
    degrees: Array

    @property
    def variance(self) -> float:
        """Return the estimated variance of the mean."""
        return float(self.components.sum())

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the ends of the confidence interval; NaN if the variance is 0, as of equal values."""
        half = self._quantile((1 - level) / 2) * self.variance**0.5 if self.variance > 0 else np.nan
        return self.value - half, self.value + half

    def p_value(self) -> float:
        """Return the one-sided p-value of the hypothesis that the expectation is at most 0."""
        # Without any variance, the p-value is 0, 0.5 or 1; ``compare`` bounds it from below.
        if self.variance == 0:
            return 0.5 - 0.5 * float(np.sign(self.value))
        t = abs(self.value) / self.variance**0.5
        if self._quantile(MIN_P_VALUE) <= t:
            tail = MIN_P_VALUE
        else:  # the quantile has no closed inverse; on a log scale, small tails are as precise as large ones
            tail = np.exp(
                brentq(lambda log: self._quantile(np.exp(log)) - t, np.log(MIN_P_VALUE), np.log(0.5))
            )
        return float(tail if self.value > 0 else 1 - tail)

    def _quantile(self, share: float) -> float:
        """Return the upper quantile of the studentized mean: t quantiles weighted by the components of the variance.

        Cochran & Cox, 1950.
        """
        shares = self.components / self.components.sum()
        positive = shares > 0
        return float(-(shares[positive] * stdtrit(self.degrees[positive], share)).sum())


@dataclass(frozen=True)
class Ranks:
    """Rank sets of the methods under one metric."""

    low: Array  # [M], 1 + the number of better methods; NaN for a method without a score
    high: Array  # [M], the number of methods with a score minus the number of worse ones
    better: Array  # bool [M, M]: the row's method is better than the column's
    p: Array  # [M, M], Holm's adjusted p-values of these hypotheses, NaN on the diagonal


def mean_of(values: Array, factors: Factors = NO_FACTORS) -> Mean:
    """Return the mean of ``values`` with its variance; values that share a level of a factor are correlated.

    The estimate is at least the variance of independent values. It is NaN for fewer than two values, and if a factor
    has a single level, because one level does not determine the variance between levels.

    Args:
        values: ``[n]``, NaN where missing.
        factors: for each name the level of each value, integers ``[n]``. A factor with one value per level, or one
            that repeats another factor, has no effect.
    """
    values = np.asarray(values, dtype=np.float64)
    defined = ~np.isnan(values)
    return _Design(defined, factors).moments(values[defined]).mean()


def compare(scores: Array, factors: Factors = NO_FACTORS) -> Array:
    """Return one-sided p-values ``[M, M]`` of the hypothesis that the row's method is not better than the column's.

    NaN on the diagonal and where ``mean_of`` gives no variance of the difference. No p-value is below 2⁻ᵐ, with m the
    number of images on which the methods differ: a sign-flip test has no smaller one, while Student's t gives a few
    equal differences an arbitrarily small one. If all clusters have the same difference, m is the number of clusters.

    Args:
        scores: ``[n, M]``, higher is better, NaN where missing. A row is an image, or an image under one training
            seed.
        factors: see ``mean_of``.
    """
    scores = np.asarray(scores, dtype=np.float64)
    methods = scores.shape[1]
    scored = int(np.count_nonzero((~np.isnan(scores)).any(0)))
    # Scaled to at most 1, so that squares cannot overflow.
    scores = scores / (np.nanmax(np.abs(scores), initial=0) or 1.0)
    # Relative to the largest score of the image or, if they are small, of a typical image: one outlier must not hide
    # the differences on all images.
    largest = np.nanmax(np.abs(scores), axis=1, initial=0)
    rounding = ROUNDING * np.maximum(largest, np.median(largest) if len(largest) else 0)
    designs: dict[bytes, _Design] = {}
    comparisons: dict[tuple[int, int], tuple[_Moments, float]] = {}
    for pair in combinations(range(methods), 2):
        difference = scores[:, pair[0]] - scores[:, pair[1]]
        difference[np.abs(difference) <= rounding] = 0
        defined = ~np.isnan(difference)
        if (key := defined.tobytes()) not in designs:
            designs[key] = _Design(defined, factors)
        difference = difference[defined]
        moments = designs[key].moments(difference)
        comparisons[pair] = (
            moments,
            0.5 ** designs[key].effective_count(difference, clusters=moments.independent == 0),
        )
    pooled = {
        name: _pooled_squares([each for each, _ in comparisons.values()], name, scored) for name in factors
    }
    p = np.full((methods, methods), np.nan)
    for (one, other), (moments, min_p) in comparisons.items():
        mean = moments.mean(pooled)
        if not np.isnan(mean.variance):
            better = mean.p_value()
            p[one, other], p[other, one] = max(better, min_p), max(1 - better, min_p)
    return p


def rank_sets(scores: Array, factors: Factors = NO_FACTORS, *, level: float = 0.95) -> Ranks:
    """Return confidence sets of the methods' ranks with simultaneous coverage ``level``.

    A method's rank is 1 + the number of methods with a better mean. All ordered pairs are tested with Holm's (1979)
    correction: with probability ``level`` there is no false "better", and then each set contains its method's rank
    (Mogstad, Romano, Shaikh & Wilhelm, *Review of Economic Studies*, 2024). Their bootstrap is replaced by Holm's
    critical values, because a bootstrap fails with few seeds or clusters.

    Args:
        scores: see ``compare``.
        factors: see ``mean_of``.
        level: simultaneous coverage over all comparisons.
    """
    if not 0 < level < 1:
        raise ValueError(f"level: found {level}, expected a share in (0, 1)")
    p = holm(compare(scores, factors))
    better = p <= 1 - level
    # With scores on different images, "better" can be cyclic; within a cycle there is no order.
    _, component = connected_components(better, connection="strong")
    better &= component[:, None] != component
    scored = (~np.isnan(scores)).any(0)
    ranked = scored & (np.count_nonzero(scored) > 1)
    low, high = 1.0 + better.sum(0), np.count_nonzero(scored) - better.sum(1)
    return Ranks(np.where(ranked, low, np.nan), np.where(ranked, high, np.nan), better, p)


def holm(p: Array) -> Array:
    """Return p-values of hypotheses, adjusted by Holm's (1979) procedure for their number; NaN means no hypothesis.

    The hypotheses whose adjusted p-value is at most α are those that the procedure rejects at family-wise error α.
    """
    tested = np.flatnonzero(~np.isnan(p))
    ordered = tested[np.argsort(p.flat[tested], kind="stable")]
    adjusted = np.full(p.shape, np.nan)
    factors = np.arange(len(ordered), 0, -1)
    adjusted.flat[ordered] = np.minimum(np.maximum.accumulate(factors * p.flat[ordered]), 1)
    return adjusted


class _Design:
    """Factor levels of the defined values, and the sums over them that do not depend on the values themselves."""

    def __init__(self, defined: Array, factors: Factors) -> None:
        self.count = int(defined.sum())
        self.levels = _distinct_factors({name: factor[defined] for name, factor in factors.items()})
        self.sizes = [np.bincount(factor).astype(np.float64) for factor in self.levels.values()]
        self.expected = _expected_squares(list(self.levels.values()), self.sizes, self.count)
        self.estimable = self.count > 1 and all(len(size) > 1 for size in self.sizes)

    def effective_count(self, values: Array, *, clusters: bool) -> int:
        """Return the number of images with a nonzero sum of values; with ``clusters``, of clusters if that is less."""
        counts = [np.count_nonzero(values)]
        for name, factor in self.levels.items():
            if name == IMAGES or (clusters and name != SEEDS):
                counts.append(np.count_nonzero(np.bincount(factor, values)))
        return int(min(counts))

    def moments(self, values: Array) -> "_Moments":
        """Return the mean of the defined ``values`` and the components of its variance."""
        n = self.count
        mean = float(values.mean()) if n else np.nan
        if not self.estimable:
            return _Moments(mean, n, np.nan, np.nan, {})
        scale = float(np.abs(values).max()) or 1.0
        residual = (values - mean) / scale
        residual[np.abs(residual) <= ROUNDING] = 0
        square = float(residual @ residual)
        independent = square / (n - 1) / n
        if not self.levels or square == 0:
            return _Moments(mean, n, scale**2 * independent, scale**2 * independent, {})
        sums = [float((np.bincount(factor, residual) ** 2).sum()) for factor in self.levels.values()]
        components = np.linalg.lstsq(self.expected, np.array([*sums, square]), rcond=None)[0]
        total, factors = float(components[-1]) / n, {}
        for name, size, sum_of_squares, component in zip(
            self.levels, self.sizes, sums, components, strict=False
        ):
            squares = float((size**2).sum())
            total += squares / n**2 * float(component)
            # Satterthwaite's (1946) degrees of freedom of a sum of squares with weights n_g².
            degrees = max(squares**2 / float((size**4).sum()) - 1, 1.0)
            factors[name] = scale**2 * sum_of_squares / (n**2 - squares), degrees
        return _Moments(mean, n, scale**2 * independent, scale**2 * total, factors)


@dataclass(frozen=True)
class _Moments:
    """Mean of values and the components of its variance."""

    value: float
    count: int
    independent: float
    """Estimated variance of the mean if the values were independent."""
    total: float
    """Estimated variance of the mean."""
    factors: Mapping[str, tuple[float, float]]
    """For each factor its mean square, as a variance of the mean, and its degrees of freedom."""

    def mean(self, pooled: Mapping[str, tuple[float, float, float]] = MappingProxyType({})) -> Mean:
        """Return the mean with the components of its variance.

        Args:
            pooled: for each factor its pooled mean square, the same relative to the variance of independent values,
                and its degrees of freedom. The comparison's own mean square counts if it is larger.
        """
        total, degrees = max(self.total, self.independent), self.count - 1.0
        components, component_degrees = [], []
        for name, (square, factor_degrees) in self.factors.items():
            if factor_degrees >= FEW_DEGREES:
                degrees = min(degrees, factor_degrees)
                continue
            pooled_square, ratio, pooled_degrees = pooled.get(name, (0.0, 0.0, factor_degrees))
            # Scores of some methods vary far less than the pool; its mean square would hide their differences.
            pooled_square = min(pooled_square, MAX_RATIO * ratio * self.independent)
            components.append(max(square, pooled_square))
            component_degrees.append(
                factor_degrees if square > MAX_RATIO * pooled_square else max(factor_degrees, pooled_degrees)
            )
        # Each factor's mean square includes the residual; their sum would count it several times.
        variance = max([total, *components])
        remainder = max(variance - sum(components), 0.0)
        shares = np.array([remainder, *components]) / (remainder + sum(components) or 1.0)
        return Mean(self.value, variance * shares, np.array([degrees, *component_degrees]))


def _pooled_squares(moments: list[_Moments], name: str, methods: int) -> tuple[float, float, float]:
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


def _distinct_factors(factors: Factors) -> dict[str, Array]:
    """Return the factors with levels numbered from 0, without those with one value per level and repeated ones."""
    kept: dict[bytes, tuple[str, Array]] = {}
    for name, factor in factors.items():
        _, first, levels = np.unique(factor, return_index=True, return_inverse=True)
        if len(first) < len(factor):
            kept.setdefault(first[levels].tobytes(), (name, levels))
    return dict(kept.values())


def _expected_squares(levels: list[Array], sizes: list[Array], n: int) -> Array:
    """Return the coefficients ``[F + 1, F + 1]`` of the variance components in the expected sums of squares.

    Rows: for each factor the sum of squared level sums of the centered values; last the sum of their squares.
    Columns: the components of the factors; last that of the residual.
    """
    count, squares = len(levels), [(size**2).sum() for size in sizes]
    matrix = np.full((count + 1, count + 1), n - 1.0)
    for f in range(count):
        for g in range(count):
            width = len(sizes[g])
            joint, shared = np.unique(levels[f] * width + levels[g], return_counts=True)
            crossed = (shared * sizes[f][joint // width] * sizes[g][joint % width]).sum()
            matrix[f, g] = (
                (shared.astype(float) ** 2).sum() - 2 * crossed / n + squares[f] * squares[g] / n**2
            )
        matrix[f, count] = matrix[count, f] = n - squares[f] / n
    return matrix

"""Comparisons of methods under one metric: means, paired differences, and confidence sets of ranks.

Two methods are compared on the images on which both have a score. The variance of a mean comes from a crossed
random-effects model: scores that share a level of a factor (an image, a training seed, a cut-out, a scene) are
correlated. The variance components are estimated without bias by the method of moments (Searle, Casella & McCulloch,
*Variance Components*, 1992, chapter 5). A factor with few levels keeps its mean square and its degrees of freedom, so
that few seeds give wide intervals and not wrong ones.
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
"""Names of the factors of images and of training seeds, where there are several scores of an image."""
FEW = 30
"""Degrees of freedom below which a factor keeps its own part of the variance, pooled over all comparisons."""
UNLIKE = 3.0
"""Multiple of a comparison's own variance that no pooled part exceeds, and of the pooled part from which on its own one
counts with its own degrees of freedom."""
ROUNDING = 1e-12  # share of the largest score up to which a difference is one of rounding
LEAST_P = 1e-30
NO_FACTORS: Factors = MappingProxyType({})


@dataclass(frozen=True)
class Mean:
    """A mean with the parts of its estimated variance, and the degrees of freedom of each; NaN where undefined."""

    value: float
    parts: Array
    degrees: Array

    @property
    def variance(self) -> float:
        """Return the estimated variance of the mean."""
        return float(self.parts.sum())

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the ends of the confidence interval; NaN where there is no variance, as of equal values."""
        half = self._quantile((1 - level) / 2) * self.variance**0.5 if self.variance > 0 else np.nan
        return self.value - half, self.value + half

    def p_value(self) -> float:
        """Return the one-sided p-value of the hypothesis that the expectation is at most 0."""
        if self.variance == 0:
            return 0.5 - 0.5 * float(np.sign(self.value))
        t = abs(self.value) / self.variance**0.5
        if self._quantile(LEAST_P) <= t:
            tail = LEAST_P
        else:
            tail = np.exp(brentq(lambda log: self._quantile(np.exp(log)) - t, np.log(LEAST_P), np.log(0.5)))
        return float(tail if self.value > 0 else 1 - tail)

    def _quantile(self, share: float) -> float:
        """Return the upper quantile of the studentized mean: Student's, weighted by the parts (Cochran & Cox, 1950)."""
        shares = self.parts / self.parts.sum()
        there = shares > 0
        return float(-(shares[there] * stdtrit(self.degrees[there], share)).sum())


@dataclass(frozen=True)
class Ranks:
    """The order of the methods of one metric, as far as the data tell."""

    low: Array  # [M], 1 + the number of methods that are better; NaN for a method without a score
    high: Array  # [M], the number of methods with a score, less those that are worse
    better: Array  # bool [M, M]: the row's method is better than the column's


def mean_of(values: Array, factors: Factors = NO_FACTORS) -> Mean:
    """Return the mean of ``values``, and its variance where values that share a level of a factor are correlated.

    No estimate is below the variance of independent values. NaN for fewer than two values, and where a factor has a
    single level, which says nothing of others.

    Args:
        values: ``[n]``, NaN for none.
        factors: by name the level of each value, integers ``[n]``. A factor in which each value has a level of its own
            adds nothing, nor does the repetition of another factor.
    """
    values = np.asarray(values, dtype=np.float64)
    there = ~np.isnan(values)
    return _Design(there, factors).moments(values[there]).mean()


def compare(scores: Array, factors: Factors = NO_FACTORS) -> Array:
    """Return the one-sided p-values ``[M, M]`` of the row's method not being better than the column's.

    NaN on the diagonal and where ``mean_of`` knows no variance of their difference. No p-value is below 2⁻ᵐ, with m
    the number of images on which the methods differ: a sign-flip test has no smaller one, and Student's t takes a few
    equal differences for certainty. Where all clusters have the same difference, m is the number of clusters.

    Args:
        scores: ``[n, M]``, higher is better, NaN for none. A row is an image, or an image under one training seed.
        factors: see ``mean_of``.
    """
    scores = np.asarray(scores, dtype=np.float64)
    methods = scores.shape[1]
    scored = int(np.count_nonzero((~np.isnan(scores)).any(0)))
    scores = scores / (np.nanmax(np.abs(scores), initial=0) or 1.0)
    designs: dict[bytes, _Design] = {}
    found: dict[tuple[int, int], tuple[_Moments, float]] = {}
    for pair in combinations(range(methods), 2):
        difference = scores[:, pair[0]] - scores[:, pair[1]]
        difference[np.abs(difference) <= ROUNDING] = 0
        there = ~np.isnan(difference)
        if (key := there.tobytes()) not in designs:
            designs[key] = _Design(there, factors)
        difference = difference[there]
        moments = designs[key].moments(difference)
        found[pair] = moments, 0.5 ** designs[key].differing(difference, clusters=moments.independent == 0)
    pooled = {name: _pooled([each for each, _ in found.values()], name, scored) for name in factors}
    p = np.full((methods, methods), np.nan)
    for (one, other), (moments, least) in found.items():
        mean = moments.mean(pooled)
        if not np.isnan(mean.variance):
            better = mean.p_value()
            p[one, other], p[other, one] = max(better, least), max(1 - better, least)
    return p


def rank_sets(scores: Array, factors: Factors = NO_FACTORS, *, level: float = 0.95) -> Ranks:
    """Return confidence sets of the methods' ranks that hold simultaneously with probability ``level``.

    A method's rank is 1 + the number of methods with a better mean. All ordered pairs are tested, with Holm's (1979)
    correction: with probability ``level`` no method is called better that is not, and then each set holds its method's
    rank (Mogstad, Romano, Shaikh & Wilhelm, *Review of Economic Studies*, 2024). Holm's critical values stand in place
    of a bootstrap's, which few seeds or clusters do not support.

    Args:
        scores: see ``compare``.
        factors: see ``mean_of``.
        level: of the family of all comparisons.
    """
    if not 0 < level < 1:
        raise ValueError(f"level: found {level}, expected a share in (0, 1)")
    better = holm(compare(scores, factors), 1 - level)
    # Methods with scores on different images can be better in a circle, which is no order.
    _, circle = connected_components(better, connection="strong")
    better &= circle[:, None] != circle
    scored = (~np.isnan(scores)).any(0)
    known = scored & (np.count_nonzero(scored) > 1)
    low, high = 1.0 + better.sum(0), np.count_nonzero(scored) - better.sum(1)
    return Ranks(np.where(known, low, np.nan), np.where(known, high, np.nan), better)


def holm(p: Array, error: float) -> Array:
    """Return which of the hypotheses ``p`` Holm's (1979) procedure rejects at family-wise ``error``; NaN is none."""
    tested = np.flatnonzero(~np.isnan(p))
    ordered = tested[np.argsort(p.flat[tested], kind="stable")]
    passed = np.logical_and.accumulate(p.flat[ordered] <= error / np.arange(len(ordered), 0, -1))
    rejected = np.zeros(p.shape, dtype=bool)
    rejected.flat[ordered[passed]] = True
    return rejected


class _Design:
    """The levels of all values that are ``there`` under each factor, and what follows from them alone."""

    def __init__(self, there: Array, factors: Factors) -> None:
        self.count = int(there.sum())
        self.levels = _distinct({name: factor[there] for name, factor in factors.items()})
        self.sizes = [np.bincount(factor).astype(np.float64) for factor in self.levels.values()]
        self.expected = _expectations(list(self.levels.values()), self.sizes, self.count)
        self.known = self.count > 1 and all(len(size) > 1 for size in self.sizes)

    def differing(self, values: Array, *, clusters: bool) -> int:
        """Return the number of images with a sum other than 0, or of clusters if that is less."""
        counts = [np.count_nonzero(values)]
        for name, factor in self.levels.items():
            if name == IMAGES or (clusters and name != SEEDS):
                counts.append(np.count_nonzero(np.bincount(factor, values)))
        return int(min(counts))

    def moments(self, values: Array) -> "_Moments":
        """Return the moments of those ``values``."""
        n = self.count
        mean = float(values.mean()) if n else np.nan
        if not self.known:
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
        for name, size, of_levels, component in zip(self.levels, self.sizes, sums, components, strict=False):
            squares = float((size**2).sum())
            total += squares / n**2 * float(component)
            # Satterthwaite's (1946) degrees of freedom of a sum of squares with weights n_g².
            degrees = max(squares**2 / float((size**4).sum()) - 1, 1.0)
            factors[name] = scale**2 * of_levels / (n**2 - squares), degrees
        return _Moments(mean, n, scale**2 * independent, scale**2 * total, factors)


@dataclass(frozen=True)
class _Moments:
    """The mean of values, and the components of its variance."""

    value: float
    count: int
    independent: float
    """Estimated variance of the mean of as many independent values."""
    total: float
    """Estimated variance of the mean."""
    factors: Mapping[str, tuple[float, float]]
    """The mean square of each factor, as a variance of the mean, and its degrees of freedom."""

    def mean(self, pooled: Mapping[str, tuple[float, float, float]] = MappingProxyType({})) -> Mean:
        """Return the mean with the parts of its variance.

        Args:
            pooled: of each factor its mean square, the same relative to the variance of independent values, and its
                degrees of freedom. A factor's own mean square counts if it is larger.
        """
        total, degrees = max(self.total, self.independent), self.count - 1.0
        parts, of_parts = [], []
        for name, (square, own) in self.factors.items():
            if own >= FEW:
                degrees = min(degrees, own)
                continue
            of_all, ratio, of_pool = pooled.get(name, (0.0, 0.0, own))
            # Scores of some methods vary far less than those of all.
            of_all = min(of_all, UNLIKE * ratio * self.independent)
            parts.append(max(square, of_all))
            of_parts.append(own if square > UNLIKE * of_all else max(own, of_pool))
        # Mean squares of several factors hold the residual several times, the total once.
        variance = max([total, *parts])
        rest = max(variance - sum(parts), 0.0)
        shares = np.array([rest, *parts]) / (rest + sum(parts) or 1.0)
        return Mean(self.value, variance * shares, np.array([degrees, *of_parts]))


def _pooled(moments: list[_Moments], name: str, methods: int) -> tuple[float, float, float]:
    """Return means of a factor's mean square over all comparisons, absolute and relative, and degrees of freedom."""
    squares = [(*each.factors[name], each.independent) for each in moments if name in each.factors]
    if not squares:
        return 0.0, 0.0, 1.0
    absolute, degrees, independent = np.array(squares).T
    return (
        float(absolute.mean()),
        float((absolute / independent).mean()),
        float(degrees.min() * (methods - 1)),
    )


def _distinct(factors: Factors) -> dict[str, Array]:
    """Return the factors as numbers from 0, less those with a level for each value and those that repeat another."""
    kept: dict[bytes, tuple[str, Array]] = {}
    for name, factor in factors.items():
        _, first, levels = np.unique(factor, return_index=True, return_inverse=True)
        if len(first) < len(factor):
            kept.setdefault(first[levels].tobytes(), (name, levels))
    return dict(kept.values())


def _expectations(levels: list[Array], sizes: list[Array], n: int) -> Array:
    """Return the coefficients ``[F + 1, F + 1]`` of the variance components in the expected sums of squares.

    Rows: for each factor the squared sums of centered values in its levels, added up; last the squares of the values.
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

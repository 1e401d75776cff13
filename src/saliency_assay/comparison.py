"""Comparisons of methods under one metric: means, paired differences, and confidence sets of ranks.

Two methods are compared on the images on which both have a score. The variance of a mean comes from a crossed
random-effects model: scores that share a level of a factor (an image, a training seed, a cut-out, a scene) are
correlated. The variance components are estimated without bias by the method of moments (Searle, Casella & McCulloch,
*Variance Components*, 1992, chapter 5), and each keeps its own degrees of freedom, so that few seeds give wide
intervals and not wrong ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import stdtrit

Array = npt.NDArray[Any]
Factors = Mapping[str, Array]

SEEDS = "seeds"
"""The factor of training seeds."""
FEW = 10
"""Levels below which the component of a factor is pooled over all comparisons: that of three seeds is often near 0."""
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
        return float(-(self.parts * stdtrit(self.degrees, share)).sum() / self.parts.sum())


@dataclass(frozen=True)
class Ranks:
    """The order of the methods of one metric, as far as the data tell."""

    low: Array
    """``[M]``, 1 + the number of methods that are better; NaN for a method without a score."""
    high: Array
    """``[M]``, the number of methods with a score, less those that are worse."""
    better: Array
    """bool ``[M, M]``: the row's method is better than the column's."""


def mean_of(values: Array, factors: Factors = NO_FACTORS) -> Mean:
    """Return the mean of ``values``, and its variance where values that share a level of a factor are correlated.

    No estimate is below the variance of independent values. NaN for fewer than two values, and where a factor has a
    single level, which says nothing of others.

    Args:
        values: ``[n]``, NaN for none.
        factors: by name the level of each value, integers ``[n]``. A factor in which each value has a level of its own
            adds nothing, nor does the repetition of another factor.
    """
    there = ~np.isnan(values)
    return _Design(there, factors).moments(values[there]).mean()


def compare(scores: Array, factors: Factors = NO_FACTORS) -> Array:
    """Return the one-sided p-values ``[M, M]`` of the row's method not being better than the column's.

    NaN on the diagonal and where ``mean_of`` knows no variance of their difference. No p-value is below 2⁻ᵐ, with m
    the number of images or, if that is less, of levels of a factor other than ``SEEDS``, on which the methods differ:
    a sign-flip test has no smaller one, and Student's t takes a few equal differences for certainty.

    Args:
        scores: ``[n, M]``, higher is better, NaN for none. A row is an image, or an image under one training seed.
        factors: see ``mean_of``.
    """
    methods = scores.shape[1]
    scored = int(np.count_nonzero((~np.isnan(scores)).any(0)))
    designs: dict[bytes, _Design] = {}
    found: dict[tuple[int, int], tuple[_Moments, float]] = {}
    for pair in combinations(range(methods), 2):
        difference = scores[:, pair[0]] - scores[:, pair[1]]
        there = ~np.isnan(difference)
        if (key := there.tobytes()) not in designs:
            designs[key] = _Design(there, factors)
        difference = difference[there]
        found[pair] = designs[key].moments(difference), 0.5 ** designs[key].differing(difference)
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
    better = holm(compare(scores, factors), 1 - level)
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

    def differing(self, values: Array) -> int:
        """Return the number of levels with a sum other than 0, the least of all factors but ``SEEDS``."""
        counts = [np.count_nonzero(values)]
        for name, factor in self.levels.items():
            if name != SEEDS:
                counts.append(np.count_nonzero(np.bincount(factor, values)))
        return int(min(counts))

    def moments(self, values: Array) -> "_Moments":
        """Return the moments of those ``values``."""
        n = self.count
        mean = float(values.mean()) if n else np.nan
        if not self.known:
            return _Moments(mean, n, np.nan, [], {}, np.nan)
        residual = values - mean
        square = float(residual @ residual)
        independent = square / (n - 1) / n
        if not self.levels or square == 0:
            return _Moments(mean, n, independent, [], {}, independent)
        sums = [float((np.bincount(factor, residual) ** 2).sum()) for factor in self.levels.values()]
        components = np.linalg.lstsq(self.expected, np.array([*sums, square]), rcond=None)[0]
        many, few, rest = [], {}, float(components[-1]) / n
        for name, size, total, component in zip(self.levels, self.sizes, sums, components, strict=False):
            squares = float((size**2).sum())
            if len(size) < FEW:
                few[name] = (float(component), squares / n**2, len(size) - 1)
            else:
                rest += squares / n**2 * float(component)
                # Satterthwaite's (1946) degrees of freedom of a sum of squares with weights n_g².
                degrees = squares**2 / float((size**4).sum()) - 1
                many.append((total / (n**2 - squares), max(degrees, 1.0)))
        return _Moments(mean, n, independent, many, few, rest)


@dataclass(frozen=True)
class _Moments:
    """The mean of values, and the components of its variance."""

    value: float
    count: int
    independent: float
    """Estimated variance of the mean of as many independent values."""
    many: list[tuple[float, float]]
    """The mean square of each factor with many levels, as a part of the variance, and its degrees of freedom."""
    few: Mapping[str, tuple[float, float, int]]
    """The component of each factor with few levels, its multiple in the variance, and its degrees of freedom."""
    rest: float
    """The variance of the mean without the factors with few levels."""

    def mean(self, pooled: Mapping[str, tuple[float, int]] = MappingProxyType({})) -> Mean:
        """Return the mean with the variance of all parts, those of few levels at least as large as the ``pooled``."""
        degrees = self.count - 1.0
        rest = max(self.rest, self.independent)
        if rest > self.independent:
            spread = sum(part**2 / of for part, of in self.many)
            degrees = min(rest**2 / (spread + self.independent**2 / degrees), degrees)
        parts, of_parts = [rest], [degrees]
        for name, (component, weight, own) in self.few.items():
            of_all, of_pool = pooled.get(name, (0.0, own))
            if (part := weight * max(component, of_all)) > 0:
                parts.append(part)
                of_parts.append(float(max(own, of_pool)))
        return Mean(self.value, np.array(parts), np.array(of_parts))


def _pooled(moments: list[_Moments], name: str, methods: int) -> tuple[float, int]:
    """Return the mean of a factor's component over all comparisons, and its degrees of freedom."""
    components = [each.few[name] for each in moments if name in each.few]
    if not components:
        return 0.0, 1
    least = min(degrees for _, _, degrees in components)
    return float(np.mean([component for component, _, _ in components])), least * (methods - 1)


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

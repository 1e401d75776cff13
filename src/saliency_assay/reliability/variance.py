"""Means with the variance of crossed designs, and their intervals: of skewed values, and of rates.

The variance of a mean is estimated in a crossed random-effects model: values that share a level of a factor (an image,
a training seed, a cut-out, a scene) are correlated. The method of moments gives unbiased variance components
(Henderson's method 1; Searle, Casella & McCulloch, *Variance Components*, 1992, chapter 5). A factor with few levels
contributes its mean square with its own degrees of freedom, so that intervals from few seeds are wide and still cover.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy import ndarray as Array
from scipy.optimize import brentq
from scipy.special import betaincinv, ndtri, stdtr, stdtrit

Factors = Mapping[str, Array]

IMAGES, SEEDS = "images", "seeds"
"""Names of the factors for images and training seeds, used where an image has several scores."""
GROUPS = "groups"
"""Name of the clusters that a list of images states, such as patients; tables have their number beside that of images.
"""
FEW_DEGREES = 30
"""Degrees of freedom below which a factor has its own component of the variance, pooled over all comparisons."""
MAX_RATIO = 3.0
"""Limit of a pooled component, relative to the comparison's own variance, as a multiple of the mean of this ratio; and
the ratio of a comparison's mean square to the pooled one above which it counts with its own degrees of freedom."""
SKEWNESS = 10
"""A mean of values with the skewness g is compared if there are at least 10 g² of them."""
POWER = 0.8
ROUNDING = 1e-12  # share of a score up to which a difference is a rounding error
MIN_P_VALUE = 1e-30  # lower end of the search for a p-value
CORRELATIONS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # within a level, for the weights of images
NO_FACTORS: Factors = MappingProxyType({})


@dataclass(frozen=True)
class Mean:
    """Mean with the components of its estimated variance and their degrees of freedom; NaN where undefined."""

    value: float
    components: Array
    degrees: Array
    count: int = 0
    """Number of values."""
    of_seeds: float = 0.0
    """Component of the variance due to training seeds, which more images do not reduce."""
    skewness: float = 0.0
    """Skewness of independent values, for Hall's correction; 0 if they share levels of a factor."""
    units: int = 0
    """Number of independent values: of images, or of the clusters of which there are fewest."""
    is_constant: bool = False
    """True if all values are equal."""

    @property
    def variance(self) -> float:
        """Return the estimated variance of the mean."""
        return float(self.components.sum())

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the ends of the confidence interval; NaN if the variance is 0, as of equal values.

        Student's t with the quantiles of Cochran & Cox (1950). Of independent values, it also contains Hall's (1992)
        interval, which corrects for skewness.
        """
        if not self.variance > 0:
            return np.nan, np.nan
        quantile = self.quantile((1 - level) / 2)
        half = quantile * self.variance**0.5
        low, high = self.value - half, self.value + half
        if self.skewness:
            sd = (self.variance * (self.count - 1)) ** 0.5
            shifts = (self._skewed_back(end * quantile) for end in (1, -1))
            hall_low, hall_high = (self.value - sd * shift for shift in shifts)
            low, high = min(low, hall_low), max(high, hall_high)
        return low, high

    def rate_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of a rate, the mean of values 0 and 1: Wilson's (1927).

        Of correlated values, with the number of independent ones that gives this variance (Korn & Graubard 1998).
        """
        if np.isnan(self.variance):
            return np.nan, np.nan
        tail = (1 - level) / 2
        z, count = -float(ndtri(tail)), self.independent_count(tail)
        center = (self.value + z**2 / (2 * count)) / (1 + z**2 / count)
        half = z * (self.value * (1 - self.value) / count + (z / count / 2) ** 2) ** 0.5 / (1 + z**2 / count)
        return min(max(center - half, 0.0), self.value), max(min(center + half, 1.0), self.value)

    def exact_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of a share in [0, 1]: Clopper & Pearson's (1934), exact for independent 0s and 1s.

        Of correlated values, see ``rate_interval``. Values 0.5, of ties, make it conservative.
        """
        if np.isnan(self.variance):
            return np.nan, np.nan
        tail = (1 - level) / 2
        count = self.independent_count(tail)
        successes = min(max(self.value, 0.0), 1.0) * count
        low = betaincinv(successes, count - successes + 1, tail) if successes > 0 else 0.0
        high = betaincinv(successes + 1, count - successes, 1 - tail) if successes < count else 1.0
        return float(low), float(high)

    def p_value(self) -> float:
        """Return the one-sided p-value of the hypothesis that the expectation is at most 0.

        For independent values, it is the larger one of Student's t and of Hall's transformed t.
        """
        # Without any variance, the p-value is 0, 0.5 or 1; comparisons bound it from below.
        if self.variance == 0:
            return 0.5 - 0.5 * float(np.sign(self.value))
        t = abs(self.value) / self.variance**0.5
        if np.count_nonzero(self.components) == 1:
            tail = float(stdtr(self.degrees[np.argmax(self.components)], -t))
        elif self.quantile(MIN_P_VALUE) <= t:
            tail = MIN_P_VALUE
        else:  # the quantile has no closed inverse; on a log scale, small tails are as precise as large ones
            ends = np.log(MIN_P_VALUE), np.log(0.5)
            tail = np.exp(brentq(lambda log: self.quantile(np.exp(log)) - t, *ends))
        if self.skewness:
            skewed = self._skewed(self.value / (self.variance * (self.count - 1)) ** 0.5)
            tail = min(max(tail, stdtr(self.degrees[0], -skewed * np.sign(self.value))), 0.5)
        return float(tail if self.value > 0 else 1 - tail)

    def detectable(self, error: float) -> float:
        """Return the smallest expectation that a test with the one-sided ``error`` detects with power 0.8."""
        return float((self.quantile(error) + ndtri(POWER)) * self.variance**0.5)

    def images_needed(self, error: float, images: int) -> float:
        """Return the number of images with which a test detects this value with power 0.8; infinite if none do.

        Clusters grow in proportion; the variance due to training seeds stays.

        Args:
            error: of the one-sided test.
            images: number of images of this mean.
        """
        if np.isnan(self.variance):
            return np.nan
        if abs(self.value) <= ROUNDING * max((self.variance * self.count) ** 0.5, ROUNDING):
            return np.inf
        if self.variance == 0:
            return 0.0
        allowed = (self.value / (self.quantile(error) + ndtri(POWER))) ** 2 - self.of_seeds
        return float(images * (self.variance - self.of_seeds) / allowed) if allowed > 0 else np.inf

    def quantile(self, share: float) -> float:
        """Return the upper quantile of the studentized mean: t quantiles weighted by the components of the variance."""
        shares = self.components / self.components.sum()
        positive = shares > 0
        return float(-(shares[positive] * stdtrit(self.degrees[positive], share)).sum())

    def independent_count(self, tail: float) -> float:
        """Return the number of independent values 0 or 1 whose normal interval is as wide as that of these values."""
        spread = self.value * (1 - self.value)
        if not self.variance > 0 or spread <= 0:
            return self.units
        count = spread / self.variance * self.count / (self.count - 1)
        if self.degrees[0] < self.count - 1 or len(self.degrees) > 1:
            count *= (float(ndtri(tail)) / self.quantile(tail)) ** 2
        return min(count, float(self.count))

    def _skewed(self, shift: float) -> float:
        """Return Hall's transformed t of a mean that is ``shift`` standard deviations from its expectation."""
        n, g = self.count, self.skewness
        return float(n**0.5 * (((1 + g * shift / 3) ** 3 - 1) / g + g / (6 * n)))

    def _skewed_back(self, quantile: float) -> float:
        """Return the inverse of ``_skewed``."""
        n, g = self.count, self.skewness
        return float(3 / g * (np.cbrt(1 + g * (quantile / n**0.5 - g / (6 * n))) - 1))


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
    return Design(defined, factors).moments(values[defined]).mean()


def skewness(values: Array) -> float:
    """Return the skewness of ``[n]``: the third moment of the standardized values; infinite if all are equal."""
    centered = values - values.mean()
    spread = float(np.abs(centered).max(initial=0))
    if spread <= ROUNDING * np.abs(values).max(initial=0):
        return np.inf
    centered = centered / spread
    return float((centered**3).mean() / (centered**2).mean() ** 1.5)


class Design:
    """Factor levels of the defined values, and the sums over them that do not depend on the values themselves."""

    def __init__(self, defined: Array, factors: Factors) -> None:
        self.count = int(defined.sum())
        self.levels = _distinct_factors({name: factor[defined] for name, factor in factors.items()})
        self.sizes = [np.bincount(factor).astype(np.float64) for factor in self.levels.values()]
        self.expected = _expected_squares(list(self.levels.values()), self.sizes, self.count)
        self.estimable = self.count > 1 and all(len(size) > 1 for size in self.sizes)
        self.is_balanced = all(np.ptp(size) == 0 for size in self.sizes if len(size))
        self.equal_weights = np.full(self.count, 1 / max(self.count, 1))

    @property
    def units(self) -> int:
        """Number of independent values: of images, or of the clusters of which there are fewest."""
        levels = [len(size) for name, size in zip(self.levels, self.sizes, strict=True) if name != SEEDS]
        return min([self.count, *levels])

    @property
    def images(self) -> int:
        """Number of images."""
        return len(np.unique(self.levels[IMAGES])) if IMAGES in self.levels else self.count

    def effective_count(self, values: Array, *, clusters: bool) -> int:
        """Return the number of images with a nonzero sum of values; with ``clusters``, of clusters if that is less."""
        counts = [np.count_nonzero(values)]
        for name, factor in self.levels.items():
            if name == IMAGES or (clusters and name != SEEDS):
                counts.append(np.count_nonzero(np.bincount(factor, values)))
        return int(min(counts))

    def components(self, values: Array) -> Array:
        """Return the variance components ``[F + 1]`` of ``values``, the last one of the residual."""
        residual = values - values.mean()
        sums = [
            float((np.bincount(factor, residual) ** 2 / size).sum())
            for factor, size in zip(self.levels.values(), self.sizes, strict=True)
        ]
        solution: Array = np.linalg.lstsq(
            self.expected, np.array([*sums, float(residual @ residual)]), rcond=None
        )[0]
        return solution

    def weights(self, shares: Mapping[str, float]) -> Array:
        """Return weights ``[n]`` of the values with the sum 1, so that one large cluster does not decide the mean.

        A value weighs 1 / (1 + Σ ρ (size of its level − 1)), with ρ the correlation within levels of a factor: for one
        factor, the generalized least squares of a mixed model. ρ is raised until the levels have at least half of the
        degrees of freedom that levels of equal size would have.

        Args:
            shares: for each factor ρ.
        """
        if self.is_balanced:
            return self.equal_weights
        weights = self.equal_weights
        excess = np.ones(self.count)
        for (name, factor), size in zip(self.levels.items(), self.sizes, strict=True):
            if np.ptp(size) == 0:
                continue
            share = shares.get(name, 0.0)
            for correlation in (share, *(each for each in CORRELATIONS if each > share)):
                weights = 1 / (excess + correlation * (size[factor] - 1))
                if _degrees(np.bincount(factor, weights)) >= (len(size) - 1) / 2:
                    break
            excess = 1 / weights
        result: Array = weights / weights.sum()
        return result

    def moments(self, values: Array, weights: Array | None = None) -> "Moments":
        """Return the mean of the defined ``values`` and the components of its variance.

        Args:
            values: ``[n]``.
            weights: ``[n]`` with the sum 1; by default equal.
        """
        n = self.count
        if not self.estimable:
            value = float(values.mean()) if n else np.nan
            return Moments(value, n, np.nan, np.nan, {}, 0.0, self.units)
        weights = self.equal_weights if weights is None else weights
        mean = float(weights @ values) if weights is not self.equal_weights else float(values.mean())
        scale = float(np.abs(values).max()) or 1.0
        residual = (values - mean) / scale
        residual[np.abs(residual) <= ROUNDING] = 0
        if not self.levels or not residual.any():
            independent = scale**2 * float(residual @ residual) / (n - 1) / n
            g = skewness(values) if not self.levels and independent > 0 else 0.0
            return Moments(mean, n, independent, independent, {}, g if abs(g) > 1e-6 else 0.0, self.units)
        components = self.components(residual)
        of_squares = float((weights**2).sum())
        center = residual - residual.mean()
        independent = float(center @ center) / (n - 1) * of_squares
        total, factors = float(components[-1]) * of_squares, {}
        for (name, factor), component in zip(self.levels.items(), components, strict=False):
            level_weights = np.bincount(factor, weights)
            squares = float((level_weights**2).sum())
            total += squares * float(component)
            sum_of_squares = float((np.bincount(factor, weights * residual) ** 2).sum())
            factors[name] = scale**2 * sum_of_squares / (1 - squares), max(_degrees(level_weights), 1.0)
        return Moments(mean, n, scale**2 * independent, scale**2 * total, factors, 0.0, self.units)


def _degrees(weights: Array) -> float:
    """Return Satterthwaite's (1946) degrees of freedom of a sum of squares of levels with these weights."""
    return float((weights**2).sum() ** 2 / (weights**4).sum() - 1)


@dataclass(frozen=True)
class Moments:
    """Mean of values and the components of its variance."""

    value: float
    count: int
    independent: float
    """Estimated variance of the mean if the values were independent."""
    total: float
    """Estimated variance of the mean."""
    factors: Mapping[str, tuple[float, float]]
    """For each factor its mean square, as a variance of the mean, and its degrees of freedom."""
    skewness: float = 0.0
    units: int = 0

    def mean(self, pooled: Mapping[str, tuple[float, float, float]] = MappingProxyType({})) -> Mean:
        """Return the mean with the components of its variance.

        Args:
            pooled: for each factor its pooled mean square, the same relative to the variance of independent values,
                and its degrees of freedom. The comparison's own mean square counts if it is larger.
        """
        total, degrees = max(self.total, self.independent), self.count - 1.0
        components: dict[str, float] = {}
        component_degrees = []
        for name, (square, factor_degrees) in self.factors.items():
            if factor_degrees >= FEW_DEGREES:
                degrees = min(degrees, factor_degrees)
                continue
            pooled_square, ratio, pooled_degrees = pooled.get(name, (0.0, 0.0, factor_degrees))
            # Scores of some methods vary far less than the pool; its mean square would hide their differences.
            pooled_square = min(pooled_square, MAX_RATIO * ratio * self.independent)
            components[name] = max(square, pooled_square)
            component_degrees.append(
                factor_degrees if square > MAX_RATIO * pooled_square else max(factor_degrees, pooled_degrees)
            )
        # Each factor's mean square includes the residual; their sum would count it several times.
        of_factors = sum(components.values())
        variance = max([total, *components.values()])
        remainder = max(variance - of_factors, 0.0)
        scale = variance / (remainder + of_factors or 1.0)
        return Mean(
            self.value,
            scale * np.array([remainder, *components.values()]),
            np.array([degrees, *component_degrees]),
            count=self.count,
            of_seeds=scale * components.get(SEEDS, 0.0),
            skewness=self.skewness,
            units=self.units,
            is_constant=self.independent == 0,
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

    Rows: for each factor the sum of squared level sums of the centered values, each divided by the size of its level;
    last the sum of their squares. Columns: the components of the factors; last that of the residual.
    """
    count = len(levels)
    matrix = np.full((count + 1, count + 1), n - 1.0)
    for f in range(count):
        for g in range(count):
            width = len(sizes[g])
            joint, shared = np.unique(levels[f] * width + levels[g], return_counts=True)
            within = (shared.astype(float) ** 2 / sizes[f][joint // width]).sum()
            matrix[f, g] = within - (sizes[g] ** 2).sum() / n
        matrix[f, count] = len(sizes[f]) - 1
        matrix[count, f] = n - (sizes[f] ** 2).sum() / n
    return matrix

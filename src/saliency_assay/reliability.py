"""How far scores can be trusted: does a metric order methods alike on all images, and images alike under all methods?

Scores of one metric are an array ``[images, methods]``, NaN where a map has no score. The statistics are those of
Tomsett, Harborne, Chakraborty, Gurram & Preece, *Sanity Checks for Saliency Metrics* (AAAI 2020): images are raters,
methods are what they rate, and a rating is a method's rank among the methods of its image (Krippendorff, *Content
Analysis*, 2004). All intervals are percentiles over bootstrap resamples of images.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import krippendorff
import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from saliency_assay.registry import offered

if TYPE_CHECKING:
    from saliency_assay.api.agreement import Assessment as Assessment
    from saliency_assay.api.agreement import assess as assess

OFFERED = {name: f"saliency_assay.api.agreement:{name}" for name in ("Assessment", "assess")}
"""What notebooks call."""

Array = npt.NDArray[Any]

HELD = 20_000_000
"""Most numbers held at once while images are resampled."""


def __getattr__(name: str) -> Any:
    return offered(__name__, name, OFFERED)


@dataclass(frozen=True)
class Estimate:
    """A statistic of all images, and the ends of its interval; NaN where undefined."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Order:
    """Mean scores of methods, and how surely they are in this order."""

    mean: Array
    """``[M]``, over the images that have a score; NaN where none has."""
    resampled: Array
    """The same of every resample, ``[resamples, M]``."""

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Ends ``[M]`` of the interval of each mean that holds ``level`` of the resamples; NaN without a score."""
        low, high = (_quantile(self.resampled, end) for end in ((1 - level) / 2, (1 + level) / 2))
        return low, high

    def above(self) -> Array:
        """Share ``[M, M]`` of resamples in which the row's mean is above the column's, equal ones counted half.

        NaN on the diagonal and where a method has no score.
        """
        drawn = self.resampled[~np.isnan(self.resampled[:, ~np.isnan(self.mean)]).any(1)]
        shares = [((of > drawn.T) + 0.5 * (of == drawn.T)).sum(1) for of in drawn.T]
        found: Array = np.array(shares) / max(len(drawn), 1)
        unknown = np.isnan(self.mean)
        found[unknown] = found[:, unknown] = np.nan
        np.fill_diagonal(found, np.nan)
        return found if len(drawn) else np.full_like(found, np.nan)

    def best(self, *, higher_is_better: bool) -> Array:
        """Share ``[M]`` of resamples in which a method has the best mean; several best ones share the resample."""
        oriented = self.resampled if higher_is_better else -self.resampled
        drawn = oriented[~np.isnan(oriented).all(1)]
        first = drawn == np.nanmax(drawn, axis=1, keepdims=True, initial=-np.inf)
        share = (first / np.maximum(first.sum(1, keepdims=True), 1)).sum(0) / max(len(drawn), 1)
        return np.where(np.isnan(self.mean) | (len(drawn) == 0), np.nan, share)

    def above_all(self, others: Array, *, higher_is_better: bool) -> Array:
        """Share ``[M]`` of resamples in which a method is better than all of ``others``, bool ``[M]``.

        A tie with the best of them counts half. NaN for ``others`` themselves, where none of them has a score, and for
        a method without one.
        """
        oriented = self.resampled if higher_is_better else -self.resampled
        scored = others & ~np.isnan(self.mean)
        found = np.full(len(self.mean), np.nan)
        if scored.any() and len(oriented):
            best = np.nanmax(oriented[:, scored], axis=1, initial=-np.inf)
            for place in np.flatnonzero(~others & ~np.isnan(self.mean)):
                drawn = ~np.isnan(oriented[:, place])
                of, limit = oriented[drawn, place], best[drawn]
                found[place] = ((of > limit) + 0.5 * (of == limit)).mean() if drawn.any() else np.nan
        return found

    def ranks(self, *, higher_is_better: bool, level: float = 0.95) -> Array:
        """Rank ``[M]`` of each method: 1 and the number of methods that are surely better; NaN without a score.

        Surely is in at least ``level`` of the resamples. As many others are surely better than each method of one rank:
        these need not be equally good, nor need methods of different ranks be told apart from each other.
        """
        above = self.above()
        better = above.T if higher_is_better else above  # [i, j]: j is better than i
        rank = 1.0 + (np.nan_to_num(better) >= level).sum(1)
        return np.where(np.isnan(self.mean), np.nan, rank)


def ranks(scores: Array) -> Array:
    """Rank of each method within its image, 1 for the lowest score, equal scores sharing their mean; NaN stays NaN.

    Raises:
        ValueError: ``scores`` is not ``[N, M]``.
    """
    _check(scores)
    found = rankdata(scores, axis=1, nan_policy="omit") if scores.size else scores
    return np.where(np.isnan(scores), np.nan, found)


def alpha(scores: Array, *, resamples: int = 10_000, level: float = 0.999, seed: int = 0) -> Estimate:
    """Inter-rater reliability: Krippendorff's α (ordinal) of the ranks within images, with its interval.

    At most 1. 1 where all images rank the methods alike, 0 where they agree as often as by chance, negative where
    less often. NaN where there is nothing to compare: no method is rated twice, or all ranks are equal.

    Args:
        scores: ``[N, M]``.
        resamples: how many; with 0 there is no interval.
        level: share of the resamples within the interval, in (0, 1).
        seed: of the resamples.
    """
    rated = ranks(scores)
    images, methods = rated.shape
    if not methods:
        return Estimate(float("nan"), float("nan"), float("nan"))
    values = 2 * methods - 1  # mean ranks are halves
    # A cell is one value of one method; an image marks the cell of each of its ranks.
    marked = np.zeros((images, methods, values), dtype=np.float32)  # sums up to 2²⁴ are exact
    image, method = np.nonzero(~np.isnan(rated))
    marked[image, method, np.rint(2 * rated[image, method] - 2).astype(int)] = 1
    counts = marked.sum(0, dtype=np.float64)

    def of(weights: Array) -> Array:
        given = weights.astype(np.float32) @ marked.reshape(images, -1)
        return alpha_of(given.reshape(-1, methods, values).astype(np.float64))

    value = float("nan")
    if not np.isnan(alpha_of(counts[None])[0]):
        value = float(krippendorff.alpha(value_counts=counts, level_of_measurement="ordinal"))
    return _estimate(value, of, resampled(images, resamples, seed, columns=methods), level)


def alpha_of(counts: Array) -> Array:
    """α (ordinal) ``[B]`` of how often each unit was given each value, ``[B, units, values]``; NaN where undefined.

    Two values differ by their mid-ranks r among all that were given, so α needs two sums for each unit and no matrix of
    coincidences:

        α = 1 − (n − 1) Σ_u (m_u Σ_v n_uv r_v² − (Σ_v n_uv r_v)²) / (m_u − 1)  /  (n Σ_v n_v r_v² − (Σ_v n_v r_v)²)

    with n_uv the counts, m_u = Σ_v n_uv of units with at least two, n_v = Σ_u n_uv and n = Σ_v n_v.
    """
    paired = np.where(counts.sum(-1, keepdims=True) >= 2, counts, 0)
    given, totals = paired.sum(-1), paired.sum(-2)
    n = totals.sum(-1)
    middle = totals.cumsum(-1) - totals / 2 - n[:, None] / 2  # about 0, for the sake of precision
    first = np.einsum("buv,bv->bu", paired, middle)
    second = np.einsum("buv,bv->bu", paired, middle**2)
    within = ((given * second - first**2) / np.where(given >= 2, given - 1, 1)).sum(-1)
    expected = n * second.sum(-1) - first.sum(-1) ** 2
    defined = expected > 0
    found: Array = np.where(defined, 1 - (n - 1) * within / np.where(defined, expected, 1), np.nan)
    return found


def correlations(scores: Array) -> Array:
    """Spearman's ρ ``[K, K]`` over images of every two columns of ``[N, K]``, over the images that have both scores.

    Of methods under one metric it is inter-method reliability, of metrics of one method internal consistency. NaN where
    fewer than two images have both, or all of a column are equal.
    """
    found: Array = _correlations(scores)(np.ones((1, len(scores))))[0]
    return found


def mean_correlation(
    scores: Array, *, resamples: int = 10_000, level: float = 0.999, seed: int = 0
) -> Estimate:
    """Inter-method reliability: the mean of Spearman's ρ over images of every two methods that have one.

    Args:
        scores: ``[N, M]``.
        resamples: see ``alpha``, as for ``level`` and ``seed``.
    """
    correlated = _correlations(scores)
    one, other = np.triu_indices(scores.shape[1], 1)

    def of(weights: Array) -> Array:
        pairs = correlated(weights)[:, one, other].T
        return _mean(pairs, ~np.isnan(pairs))

    value = float(of(np.ones((1, len(scores))))[0])
    drawn = resampled(len(scores), resamples, seed, columns=4 * scores.shape[1])
    return _estimate(value, of, drawn, level)


def order(scores: Array, *, resamples: int = 10_000, seed: int = 0) -> Order:
    """The methods' mean scores over all images, and over resamples of them.

    Args:
        scores: ``[N, M]``; means are over the images that have a score, the same resamples for all methods.
        resamples: see ``alpha``, as for ``seed``.
    """
    _check(scores)
    images, methods = scores.shape
    there = ~np.isnan(scores)
    filled = np.where(there, scores, 0)
    means = [np.empty((0, methods))]
    for weights in resampled(images, resamples, seed, columns=methods):
        with np.errstate(invalid="ignore"):  # a method without a score in a resample
            means.append((weights @ filled) / (weights @ there))
    return Order(_mean(filled, there), np.concatenate(means))


def variance_shares(scores: Array) -> dict[str, float]:
    """Shares of the variance of ``[images, methods, seeds]`` that image, method, seed and their interactions explain.

    Sums of squares of a crossed design with one score a cell, divided by the total (η²), so they add up to 1. ``image``
    and ``method`` are main effects; ``image × method`` is what no ranking of methods for all images can know; the
    highest interaction holds what is left. Factors of a single level are left out. Images that lack a score are left
    out; all NaN where fewer than two remain or all scores are equal.

    Raises:
        ValueError: ``scores`` is not three-dimensional.
    """
    if scores.ndim != 3:
        raise ValueError(f"scores: found {list(scores.shape)}, expected [images, methods, seeds]")
    whole = scores[~np.isnan(scores).any((1, 2))]
    axes = [(name, axis) for axis, name in enumerate(("image", "method", "seed")) if scores.shape[axis] > 1]
    subsets = [
        [factor for place, factor in enumerate(axes) if chosen >> place & 1]
        for chosen in range(1, 1 << len(axes))
    ]
    subsets.sort(key=len)
    total = float(((whole - whole.mean()) ** 2).sum()) if len(whole) > 1 else 0.0
    explained: dict[tuple[int, ...], Array] = {(): whole.mean(keepdims=True)} if len(whole) else {}
    shares = {}
    for subset in subsets:
        name, kept = " × ".join(factor for factor, _ in subset), tuple(axis for _, axis in subset)
        if total <= 0:
            shares[name] = float("nan")
            continue
        gone = tuple(axis for axis in range(3) if axis not in kept)
        effect = whole.mean(gone, keepdims=True) if gone else whole.copy()
        for lower, of_lower in explained.items():
            if set(lower) < set(kept):
                effect = effect - of_lower
        explained[kept] = effect
        shares[name] = float((effect**2).sum() * (whole.size / effect.size) / total)
    return shares


def resampled(images: int, resamples: int, seed: int, *, columns: int = 1) -> Iterator[Array]:
    """How often each image is in each resample of as many images, ``[b, N]`` float64, a few resamples at a time.

    Resamples are drawn one after the other, so what they are does not depend on how many come at a time: as many as
    ``columns`` numbers for each of their images fit into ``HELD``.
    """
    generator = np.random.default_rng(seed)
    together = max(1, min(resamples, HELD // max(columns * images, 1)))
    for start in range(0, resamples if images else 0, together):
        weights = np.empty((min(together, resamples - start), images))
        for row in weights:
            row[:] = np.bincount(generator.integers(images, size=images), minlength=images)
        yield weights


def _correlations(scores: Array) -> Callable[[Array], Array]:
    """ρ ``[b, K, K]`` of every two columns of ``[N, K]`` for weights of images ``[b, N]``: Pearson's of their ranks."""
    _check(scores)
    there = ~np.isnan(scores)
    # Pairs of the same images share their ranks.
    shared: dict[bytes, list[tuple[int, int]]] = {}
    for pair in combinations_with_replacement(range(scores.shape[1]), 2):
        shared.setdefault(there[:, pair].all(1).tobytes(), []).append(pair)
    groups = []
    for pairs in shared.values():
        columns = sorted({column for pair in pairs for column in pair})
        images = np.flatnonzero(there[:, pairs[0]].all(1))
        places = np.array([[columns.index(column) for column in pair] for pair in pairs])
        ranked = [_weighted_ranks(scores[images, column]) for column in columns]
        groups.append((images, ranked, places, np.array(pairs)))

    def of(weights: Array) -> Array:
        found = np.full((len(weights), *there.shape[1:] * 2), np.nan)
        for images, ranked, places, pairs in groups:
            given = weights[:, images]
            by_column = np.stack([rank(given) for rank in ranked], axis=-1)
            products = (by_column * given[..., None]).swapaxes(1, 2) @ by_column
            a, b = places.T
            squares = products[:, a, a] * products[:, b, b]
            rho = np.where(
                squares > 0, products[:, a, b] / np.sqrt(np.where(squares > 0, squares, 1)), np.nan
            )
            found[:, pairs[:, 0], pairs[:, 1]] = found[:, pairs[:, 1], pairs[:, 0]] = rho
        return found

    return of


def _weighted_ranks(column: Array) -> Callable[[Array], Array]:
    """Ranks ``[b, n]`` of ``column`` where each value is there as often as its weight says, less their mean."""
    _, place = np.unique(column, return_inverse=True)
    ordered = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[ordered], np.arange(place.max(initial=-1) + 1))

    def of(weights: Array) -> Array:
        if not len(column):
            return weights
        by_value = np.add.reduceat(weights[:, ordered], starts, axis=1)
        middle = by_value.cumsum(1) - by_value / 2
        middle -= weights.sum(1, keepdims=True) / 2
        return middle[:, place]

    return of


def _quantile(values: Array, share: float) -> Array:
    """Quantile of each column of what is not NaN; NaN where nothing is."""
    columns = [column[~np.isnan(column)] for column in values.T]
    return np.array([np.quantile(column, share) if len(column) else np.nan for column in columns])


def _mean(values: Array, there: Array) -> Array:
    """Means over the first axis of what is there; NaN where nothing is."""
    count = there.sum(0)
    total = np.where(there, values, 0).sum(0)
    found: Array = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return found


def _estimate(
    value: float, of: Callable[[Array], Array], resamples: Iterator[Array], level: float
) -> Estimate:
    if not 0 < level < 1:
        raise ValueError(f"level: found {level}, expected a share in (0, 1)")
    drawn = [of(weights) for weights in resamples] if not np.isnan(value) else []
    found = np.concatenate(drawn) if drawn else np.empty(0)
    found = found[~np.isnan(found)]
    if not len(found):
        return Estimate(value, float("nan"), float("nan"))
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value, float(low), float(high))


def _check(scores: Array) -> None:
    if scores.ndim != 2:
        raise ValueError(f"scores: found {list(scores.shape)}, expected [images, methods]")

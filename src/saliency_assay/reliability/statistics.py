"""Reliability of a metric: agreement of images on the order of methods, and of methods on the difficulty of images.

Scores of one metric are an array ``[images, methods]``, NaN where a map has no score. The statistics are those of
Tomsett, Harborne, Chakraborty, Gurram & Preece, *Sanity Checks for Saliency Metrics* (AAAI 2020): images are raters,
methods are the units, and a rating is a method's rank among the methods of its image (Krippendorff, *Content Analysis*,
2004). Where scores are missing, two images are compared on the methods that both score, and two methods on the images
on which both have a score.
"""

from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement

import numpy as np
from numpy import ndarray as Array
from scipy.stats import rankdata

from saliency_assay.reliability.comparison import NO_FACTORS, Factors, mean_of

HELD = 20_000_000  # most numbers held at once in a computation over all images
LEAST_IMAGES = 5
"""Fewer images, or clusters of them, have no interval of α; fewer images no interval of a correlation."""
MOST_SETS = 1024
"""Most sets of common methods behind α, and most sets of scored methods that they come from: up to ten methods have no
more, twenty that miss scores at random have a hundred thousand."""


@dataclass(frozen=True)
class Estimate:
    """A statistic with the ends of its confidence interval; NaN where undefined."""

    value: float
    low: float
    high: float
    images: int  # images behind the value


@dataclass
class _Agreement:
    """The agreement of each image with the others, over all sets of methods that two images have in common."""

    images: Array
    """Indices ``[n]`` of the images that share two methods with another."""
    ratings: int
    """Their number of scores."""
    norm: Array
    """``[n]``, mean product of the standardized ranks of an image and another if they agreed; their mean is 1."""
    apart: Array
    """``[n]``, what disagreement takes from it; 1 − their mean is the mean correlation of two images."""


def alpha(
    scores: Array,
    *,
    clusters: Factors = NO_FACTORS,
    resamples: int = 10_000,
    level: float = 0.999,
    seed: int = 0,
) -> Estimate:
    """Return the inter-rater reliability: Krippendorff's α (ordinal) of the ranks within images, with its interval.

    At most 1. It is 1 where all images rank the methods alike, about 0 where they agree as often as by chance, and
    negative where less often. NaN where no two images score the same two methods, or all ranks are equal.

    α = 1 − (1 − ρ̄)(n − 1)/n with n ratings and ρ̄ the mean correlation of two images' ordinal ranks. Where scores are
    missing, ρ̄ is a mean over sets T of methods: for each T that is all that some two images have in common, the mean
    correlation of the images that score all of T, ranked among T. Its weight is the number of such pairs of images
    times |T| − 1, the degrees of freedom of their correlation. So images are compared on common methods only, and an
    identical order gives 1 whatever is missing. Of more than 1,024 sets those with the most weight count.

    The interval is of the population of images from which these are sampled. It comes from the correlation of each
    image's ranks with the mean ranks: the Bayesian bootstrap of its mean with one more image, which agrees perfectly
    for the upper end and is exactly opposed for the lower (Gaffke 2005). It covers with few images, too.

    Args:
        scores: ``[N, M]``.
        clusters: by name the cluster of each image, ``[N]``; images that share one are resampled together, and several
            kinds of clusters independently (Owen & Eckles 2012).
        resamples: with 0 there is no interval, nor with fewer than 5 images or clusters.
        level: of the confidence interval, in (0, 1).
        seed: of the resamples.

    Raises:
        ValueError: ``scores`` is not ``[N, M]``, or ``level`` not in (0, 1).
    """
    _check_level(level)
    found = _agreement(scores)
    count = len(found.images)
    if not count:
        return Estimate(np.nan, np.nan, np.nan, 0)
    value = 1 - float(found.apart.mean()) * (found.ratings - 1) / found.ratings
    factors = {name: np.asarray(factor)[found.images] for name, factor in clusters.items()}
    least = min(len(np.unique(factor)) for factor in (found.images, *factors.values()))
    if resamples < 1 or least < LEAST_IMAGES:
        return Estimate(value, np.nan, np.nan, count)
    low, high = _bounds(found, factors, least, resamples, (1 - level) / 2, seed)
    return Estimate(value, min(low, value), max(high, value), count)


def _bounds(
    found: _Agreement, factors: Factors, clusters: int, resamples: int, error: float, seed: int
) -> tuple[float, float]:
    """Return the ends of the interval of the mean correlation of two images, each missed with probability ``error``."""
    count, shared = len(found.images), found.norm - found.apart
    r = float(shared.mean())
    # Each image's correlation with the mean ranks of all images, which is too high, for the upper end, and less its own
    # part in them, which is too low, for the lower end. The mean of either is about the root of that of two images.
    signal = (count - 1) * r + 1  # squared length of the mean ranks over that of noise
    if signal > 1e-9:
        length = (signal / count) ** 0.5
        upper, lower = ((count - 1) * shared + found.norm) / count / length, shared / length
    else:  # exactly opposed images, which leave no mean ranks
        signal = 1.0
        upper = lower = found.norm * np.where(np.arange(count) % 2, 1, -1)
    generator = np.random.default_rng(seed)
    values = np.stack([upper, lower, found.norm], axis=1)
    together = max(1, min(resamples, HELD // count))
    sampled = []
    for start in range(0, resamples, together):
        weights, extra = _weights(count, factors, min(together, resamples - start), generator)
        sums, extra = weights @ values, extra * found.norm.max()
        total = sums[:, 2] + extra
        sampled.append(np.stack([(sums[:, 0] + extra) / total, (sums[:, 1] - extra) / total], axis=1))
    high, low = np.concatenate(sampled).T
    # Near noise the mean ranks vary as much as the images, or clusters: that doubles the variance.
    center, wider = float(lower.mean()), (1 + count / clusters / signal) ** 0.5
    ends = np.clip([center + wider * (np.quantile(low, error) - center), np.quantile(high, 1 - error)], -1, 1)
    return float(ends[0] * abs(ends[0])), float(ends[1] * abs(ends[1]))


def _weights(
    images: int, factors: Factors, resamples: int, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Return exponential weights ``[b, images]`` of the Bayesian bootstrap, and those of one more image ``[b]``."""
    if not factors:
        weights = generator.standard_exponential((resamples, images + 1))
        return weights[:, 1:], weights[:, 0]
    weights, size = np.ones((resamples, images)), 1.0
    for factor in factors.values():
        levels, places = np.unique(factor, return_inverse=True)
        weights *= generator.standard_exponential((resamples, len(levels)))[:, places]
        size = max(size, images / len(levels))
    return weights, size * generator.standard_exponential(resamples)


def _agreement(scores: Array) -> _Agreement:
    """Compare every two images on the methods that both score."""
    _check(scores)
    there = ~np.isnan(scores)
    norm, apart = np.zeros((2, len(scores)))
    total = 0.0
    for methods, weight in zip(*_common_methods(there), strict=True):
        images = np.flatnonzero(there[:, methods].all(1))
        ranked = rankdata(scores[np.ix_(images, methods)], axis=1)
        value, places = np.unique(ranked, return_inverse=True)
        if len(value) < 2:
            continue  # all methods of all images share one rank
        # The ordinal distance of two ranks is that of their mid-ranks among all ratings.
        places = places.reshape(ranked.shape)
        totals = np.bincount(places.ravel())
        middle = totals.cumsum() - totals / 2 - totals.sum() / 2
        ratings = middle[places]
        count, square = len(images), (ratings**2).sum(1)
        distance = ((ratings - ratings.mean(0)) ** 2).sum(1)
        # Means over the other images: of their squared norms, and of their squared distances.
        others = (square.sum() - square) / (count - 1)
        distances = (count * distance + distance.sum()) / (count - 1)
        scale = 2 * square.mean() * count / weight
        norm[images] += (square + others) / scale
        apart[images] += distances / scale
        total += float(weight)
    images = np.flatnonzero(norm)
    per_image = len(images) / max(total, 1.0)
    ratings = np.count_nonzero(there[images])
    return _Agreement(images, int(ratings), norm[images] * per_image, apart[images] * per_image)


def _common_methods(there: Array) -> tuple[Array, Array]:
    """Return the sets of at least two methods that two images have in common, bool ``[T, M]``, and their weights."""
    patterns, counts = np.unique(there[there.sum(1) >= 2], axis=0, return_counts=True)
    frequent = np.sort(np.argsort(-counts, kind="stable")[:MOST_SETS])
    patterns, counts = patterns[frequent], counts[frequent]
    bits = np.packbits(patterns, axis=1)
    words: list[Array] = [np.empty((0, bits.shape[1]), np.uint8)]
    numbers: list[Array] = [np.empty(0, np.float64)]
    together = max(1, HELD // max(8 * bits.size, 1))
    for start in range(0, len(bits), together):
        part = slice(start, start + together)
        common = (bits[part, None] & bits[None]).reshape(-1, bits.shape[1])
        together_with = counts[part, None] * counts[None] / 2
        own = np.arange(len(together_with))
        together_with[own, start + own] -= counts[part] / 2
        distinct, place = np.unique(common, axis=0, return_inverse=True)
        words.append(distinct)
        numbers.append(np.bincount(place.ravel(), together_with.ravel()))
    distinct, place = np.unique(np.concatenate(words), axis=0, return_inverse=True)
    pairs: Array = np.bincount(place.ravel(), np.concatenate(numbers), minlength=len(distinct))
    methods = np.unpackbits(distinct, axis=1, count=there.shape[1]).astype(bool)
    weight = pairs * np.maximum(methods.sum(1) - 1.0, 0)
    first = np.argsort(-weight, kind="stable")[:MOST_SETS]
    first = first[weight[first] > 0]
    return methods[first], weight[first]


def correlations(scores: Array) -> Array:
    """Return Spearman's ρ ``[K, K]`` over images of every two columns of ``[N, K]``, on the images that have both.

    Of methods under one metric it is inter-method reliability, of metrics of one method internal consistency. NaN where
    fewer than two images have both, or all of a column are equal.
    """
    _check(scores)
    found = np.full((scores.shape[1],) * 2, np.nan)
    for one, other in combinations_with_replacement(range(scores.shape[1]), 2):
        pair = scores[:, [one, other]]
        ranked = rankdata(pair[~np.isnan(pair).any(1)], axis=0)
        ranked -= ranked.mean(0) if len(ranked) else 0
        if (scale := (ranked**2).sum(0).prod()) > 0:
            found[one, other] = found[other, one] = ranked.prod(1).sum() / scale**0.5
    return found


def mean_correlation(scores: Array, *, clusters: Factors = NO_FACTORS, level: float = 0.999) -> Estimate:
    """Return the inter-method reliability: the mean of Spearman's ρ over images of every two methods that have one.

    The interval is Student's on Fisher's z, with the variance of the infinitesimal jackknife, that is of the
    statistic's derivatives by the weights of images; NaN for fewer than 5 images behind any ρ, or clusters. ``images``
    of the result are the fewest behind one.

    Args:
        scores: ``[N, M]``.
        clusters: see ``alpha``.
        level: of the confidence interval, in (0, 1).

    Raises:
        ValueError: ``scores`` is not ``[N, M]``, or ``level`` not in (0, 1).
    """
    _check(scores)
    _check_level(level)
    values, counts = [], []
    influence = np.zeros(len(scores))
    for one, other in combinations(range(scores.shape[1]), 2):
        both = np.flatnonzero(~np.isnan(scores[:, [one, other]]).any(1))
        rho, derivatives = _spearman(scores[both, one], scores[both, other])
        if not np.isnan(rho):
            values.append(rho)
            counts.append(len(both))
            influence[both] += derivatives
    if not values:
        return Estimate(np.nan, np.nan, np.nan, 0)
    value, fewest = float(np.mean(values)), min(counts)
    there = (~np.isnan(scores)).sum(1) >= 2
    mean = mean_of(
        influence[there] / len(values) * np.count_nonzero(there),
        {name: np.asarray(factor)[there] for name, factor in clusters.items()},
    )
    least = min([fewest, *(len(np.unique(np.asarray(factor)[there])) for factor in clusters.values())])
    if least < LEAST_IMAGES or abs(value) > 1 - 1e-12 or np.isnan(mean.variance):
        return Estimate(value, np.nan, np.nan, fewest)
    # The variance of Fisher's z is that of as many images less three.
    half = (mean.interval(level)[1] - mean.value) / (1 - value**2) * (least / (least - 3)) ** 0.5
    low, high = np.tanh(np.arctanh(value) + np.array([-half, half]))
    return Estimate(value, float(low), float(high), fewest)


def _spearman(one: Array, other: Array) -> tuple[float, Array]:
    """Return Spearman's ρ of two columns ``[n]``, and its derivative by the weight of each image."""
    a, b = (rankdata(column) - (len(column) + 1) / 2 for column in (one, other))
    squares = a @ a, b @ b
    if not squares[0] * squares[1] > 0:
        return np.nan, np.zeros(len(a))
    scale = (squares[0] * squares[1]) ** 0.5
    rho = float(a @ b / scale)
    # A weight changes its image's own term, and the ranks of all that score more.
    product = a * b + _sum_above(one, b) + _sum_above(other, a)
    of_a, of_b = a * a + 2 * _sum_above(one, a), b * b + 2 * _sum_above(other, b)
    return rho, product / scale - rho / 2 * (of_a / squares[0] + of_b / squares[1])


def _sum_above(column: Array, values: Array) -> Array:
    """Return for each image the sum of the ``values`` of images above it in ``column``; equal ones count half."""
    _, places = np.unique(column, return_inverse=True)
    sums = np.bincount(places, values)
    found: Array = (sums[::-1].cumsum()[::-1] - sums / 2)[places]
    return found


def paired_means(scores: Array, weights: Array | None = None) -> Array:
    """Return the methods' means ``[..., M]``, less those of the images that each has a score on.

    Least squares of score = image + method: methods are compared within images, so that one without a score on hard
    images gains nothing. Their mean is 0; of a complete table they are the usual means less their mean. NaN for a
    method without a score beside another, and for all where images do not connect the methods to each other.

    Args:
        scores: ``[N, M]``, NaN for none.
        weights: of images, ``[B, N]``, at least 0; by default 1 for each.
    """
    _check(scores)
    given = np.ones((1, len(scores))) if weights is None else weights
    there = ~np.isnan(scores)
    usable = there.sum(1) >= 2
    there, scores, given = there[usable], scores[usable], given[:, usable]
    if there.all() and len(there):
        # A column at a time, so that equal columns have equal means to the last bit.
        means = np.stack([given @ np.ascontiguousarray(column) for column in scores.T], axis=-1)
        with np.errstate(invalid="ignore"):
            found = means / given.sum(1, keepdims=True)
            found -= found.mean(1, keepdims=True)
    else:
        known = there.astype(np.float64)
        share = known / known.sum(1, keepdims=True)
        centered = np.where(there, scores - (np.where(there, scores, 0) * share).sum(1, keepdims=True), 0)
        methods = scores.shape[1]
        matrices = np.zeros((len(given), methods**2))
        together = max(1, HELD // methods**2)
        for start in range(0, len(known), together):
            part = slice(start, start + together)
            within = known[part, :, None] * (np.eye(methods) - share[part, None])
            matrices += given[:, part] @ within.reshape(-1, methods**2)
        found = _solved(matrices.reshape(-1, methods, methods), given @ centered)
    result: Array = found[0] if weights is None else found
    return result


def _solved(matrices: Array, sides: Array) -> Array:
    """Return the solutions ``[B, M]`` of mean 0 of singular normal equations; see ``paired_means`` for NaN."""
    scored = np.diagonal(matrices, axis1=1, axis2=2) > 0
    values, vectors = np.linalg.eigh(matrices)
    # One eigenvalue is 0 for the common level, and one for each method without a score.
    zero = values <= 1e-9 * values.max(-1, keepdims=True, initial=np.finfo(float).tiny)
    inverse = np.where(zero, 0, 1 / np.where(zero, 1, values))
    found = ((sides[:, None] @ vectors) * inverse[:, None] @ vectors.swapaxes(1, 2))[:, 0]
    connected = zero.sum(1) == 1 + (~scored).sum(1)
    # Equal columns have equal means, whatever the order of the sums.
    scale = 10.0 ** np.floor(np.log10(np.abs(found).max(-1, keepdims=True, initial=np.finfo(float).tiny)))
    return np.where(scored & connected[:, None], np.round(found / scale, 11) * scale, np.nan)


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


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level: found {level}, expected a share in (0, 1)")


def _check(scores: Array) -> None:
    if scores.ndim != 2:
        raise ValueError(f"scores: found {list(scores.shape)}, expected [images, methods]")

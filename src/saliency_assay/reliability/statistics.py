"""Krippendorff's α, concordance, rank correlations and shares of variance of a metric's scores, with intervals.

The scores of one metric are an array ``[images, methods]``, NaN where a map has no score. The statistics are those of
Tomsett, Harborne, Chakraborty, Gurram & Preece, *Sanity Checks for Saliency Metrics* (AAAI 2020): images are raters,
methods are the units, and a rating is a method's rank among the methods of its image (Krippendorff, *Content Analysis*,
2004). Where scores are missing, two images are compared on the methods that both score, and two methods on the images
on which both have a score.
"""

from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement

import numpy as np
from numpy import ndarray as Array
from scipy.special import expit
from scipy.stats import rankdata

from saliency_assay.reliability.comparison import win_rates
from saliency_assay.reliability.variance import NO_FACTORS, ROUNDING, Factors, mean_of

HELD = 20_000_000  # largest number of values in memory at once in a computation over all images
LEAST_IMAGES = 5
"""Smallest number of images, and of clusters of them, for an interval of α or of the mean correlation."""
MOST_SETS = 1024
"""Largest number of sets of common methods that α uses, and of sets of scored methods that these are intersections of:
ten methods have at most so many, twenty with randomly missing scores have a hundred thousand."""


@dataclass(frozen=True)
class Estimate:
    """Statistic with the ends of its confidence interval; NaN where undefined."""

    value: float
    low: float
    high: float
    images: int  # number of images that the value is computed from
    units: int = 0
    """Number of independent units among them, images or the clusters of which there are fewest; 0 if undefined."""


@dataclass
class _Agreement:
    """Agreement of each image with the others, over all sets of methods that two images have in common."""

    images: Array
    """Indices ``[n]`` of the images that share at least two methods with another image."""
    ratings: int
    """Number of their scores."""
    norm: Array
    """``[n]``, mean product of an image's standardized ranks with another's under perfect agreement; of mean 1."""
    disagreement: Array
    """``[n]``, reduction of ``norm`` by disagreement; 1 − its mean is the mean correlation of two images."""


def alpha(
    scores: Array,
    *,
    clusters: Factors = NO_FACTORS,
    resamples: int = 10_000,
    level: float = 0.999,
    seed: int = 0,
) -> Estimate:
    """Return the inter-rater reliability: Krippendorff's α (ordinal) of the ranks within images, with its interval.

    1 if all images rank the methods in the same order, about 0 if they agree as often as by chance, and negative if
    less often. NaN if no two images score the same two methods, or all ranks are equal.

    α = 1 − (1 − ρ̄)(n − 1)/n with n ratings and ρ̄ the mean correlation of two images' ordinal ranks. Where scores are
    missing, ρ̄ is a weighted mean over sets T of methods: all T that are exactly the methods that some two images both
    score. The term of T is the mean correlation of all images that score every method of T, with ranks among T; its
    weight is the number of pairs of images with the overlap T times |T| − 1, the degrees of freedom of a correlation.
    Therefore images are compared only on common methods, and identical orders give 1 whichever scores are missing. Of
    more than 1,024 sets, those with the largest weights count.

    The interval refers to the population from which the images are sampled. It is the Bayesian bootstrap of the mean
    correlation of the images' ranks with the mean ranks, with one additional image that agrees perfectly for the upper
    end and is exactly opposed for the lower end (Gaffke 2005). Its coverage is valid for few images, too, for which an
    ordinary bootstrap is too narrow: the lower end allows for images of another order that are too rare to be among n
    images. If n images agree perfectly, at most a share ε = 1 − (e / 2)^(1/n) of all images can be opposed, with e = 1
    − ``level``, and the lower end is about (1 − 2ε)²: for 20 images 0.1 at level 0.999 and 0.4 at 0.95, for 200 images
    0.86 and 0.93. It does not extend below the smallest α of this many images.

    Args:
        scores: ``[N, M]``.
        clusters: for each name the cluster of each image, ``[N]``. Images of one cluster are resampled together;
            several kinds of clusters are resampled independently (Owen & Eckles 2012).
        resamples: number of resamples; there is no interval with 0, nor with fewer than 5 images or clusters.
        level: of the confidence interval, in (0, 1).
        seed: of the resamples.

    Raises:
        ValueError: ``scores`` is not ``[N, M]``, or ``level`` not in (0, 1).
    """
    _check_level(level)
    agreement = _image_agreement(scores)
    count = len(agreement.images)
    if not count:
        return Estimate(np.nan, np.nan, np.nan, 0)
    value = 1 - float(agreement.disagreement.mean()) * (agreement.ratings - 1) / agreement.ratings
    factors = {name: np.asarray(factor)[agreement.images] for name, factor in clusters.items()}
    least = min(len(np.unique(factor)) for factor in (agreement.images, *factors.values()))
    if resamples < 1 or least < LEAST_IMAGES:
        return Estimate(value, np.nan, np.nan, count, least)
    low, high = _bounds(agreement, factors, least, resamples, (1 - level) / 2, seed)
    # The mean correlation of this many images is at least −1 / (images − 1).
    lowest = 1 - count / (count - 1) * (agreement.ratings - 1) / agreement.ratings
    return Estimate(value, min(max(low, lowest), value), max(high, value), count, least)


def concordance(scores: Array, *, clusters: Factors = NO_FACTORS, level: float = 0.999) -> Estimate:
    """Return the share of untied comparisons of two methods on an image that agree with the order on the other images.

    1 if all images agree, 0.5 if they agree as often as by chance. Ties do not count, so that scores 0 and 1, under
    which most methods tie on an image, can reach 1. The order on the other images is that of the mean win rates
    (``comparison.win_rates``); if these are equal, a comparison counts half. NaN without an untied comparison.

    The interval is Wilson's, with the number of independent images that gives the variance of the share.

    Args:
        scores: ``[N, M]``, higher is better, NaN where missing.
        clusters: for each name the cluster of each image, ``[N]``.
        level: of the interval; none with fewer than 5 images or clusters.
    """
    _check(scores)
    _check_level(level)
    rates = win_rates(scores)
    defined = ~np.isnan(rates)
    sums, counts = np.where(defined, rates, 0).sum(0), defined.sum(0)
    agreeing, untied = np.zeros((2, len(scores)))
    for one, other in combinations(range(scores.shape[1]), 2):
        with np.errstate(invalid="ignore", divide="ignore"):
            means = (sums[[one, other]] - rates[:, [one, other]]) / (counts[[one, other]] - 1)
            sign = np.sign(rates[:, one] - rates[:, other])
            expected = np.sign(np.round(means[:, 0] - means[:, 1], 12))
        compared = ~np.isnan(sign) & ~np.isnan(expected) & (sign != 0)
        untied += compared
        agreeing += np.where(compared, (1 + sign * expected) / 2, 0)
    used = untied > 0
    if not used.any():
        return Estimate(np.nan, np.nan, np.nan, 0)
    value = float(agreeing.sum() / untied.sum())
    # The derivatives of the share with respect to the weights of images.
    influence = value + (agreeing - value * untied)[used] / untied[used].mean()
    factors = {name: np.asarray(factor)[used] for name, factor in clusters.items()}
    least = min(len(np.unique(factor)) for factor in (np.flatnonzero(used), *factors.values()))
    low, high = (
        mean_of(influence, factors).rate_interval(level) if least >= LEAST_IMAGES else (np.nan, np.nan)
    )
    return Estimate(value, low, high, int(used.sum()), least)


def _bounds(
    agreement: _Agreement, factors: Factors, clusters: int, resamples: int, error: float, seed: int
) -> tuple[float, float]:
    """Return the ends of the interval of the mean correlation of two images, each missed with probability ``error``."""
    count, shared = len(agreement.images), agreement.norm - agreement.disagreement
    r = float(shared.mean())
    # Correlation of each image with the mean ranks: of all images, which is too high, for the upper end; of the others,
    # which is too low, for the lower end. The mean of either is about the root of the mean correlation of two images.
    signal = (count - 1) * r + 1  # squared length of the mean ranks relative to noise
    if signal > 1e-9:
        length = (signal / count) ** 0.5
        upper, lower = ((count - 1) * shared + agreement.norm) / count / length, shared / length
    else:  # exactly opposed images: the mean ranks vanish
        signal = 1.0
        upper = lower = agreement.norm * np.where(np.arange(count) % 2, 1, -1)
    generator = np.random.default_rng(seed)
    values = np.stack([upper, lower, agreement.norm], axis=1)
    chunk = max(1, min(resamples, HELD // count))
    sampled = []
    for start in range(0, resamples, chunk):
        weights, added_weight = _weights(count, factors, min(chunk, resamples - start), generator)
        # The additional image agrees perfectly for the upper end and is exactly opposed for the lower end.
        sums, added = weights @ values, added_weight * agreement.norm.max()
        total = sums[:, 2] + added
        sampled.append(np.stack([(sums[:, 0] + added) / total, (sums[:, 1] - added) / total], axis=1))
    high, low = np.concatenate(sampled).T
    # Near noise the mean ranks vary as much as the images or clusters, which doubles the variance.
    center, wider = float(lower.mean()), (1 + count / clusters / signal) ** 0.5
    ends = np.clip([center + wider * (np.quantile(low, error) - center), np.quantile(high, 1 - error)], -1, 1)
    # From correlations with the mean ranks back to correlations of two images: their squares, with the sign kept.
    return float(ends[0] * abs(ends[0])), float(ends[1] * abs(ends[1]))


def _weights(
    images: int, factors: Factors, resamples: int, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Return exponential weights ``[b, images]`` of the Bayesian bootstrap and of the additional image ``[b]``."""
    if not factors:
        weights = generator.standard_exponential((resamples, images + 1))
        return weights[:, 1:], weights[:, 0]
    weights, size = np.ones((resamples, images)), 1.0
    for factor in factors.values():
        levels, level_of = np.unique(factor, return_inverse=True)
        weights *= generator.standard_exponential((resamples, len(levels)))[:, level_of]
        size = max(size, images / len(levels))
    return weights, size * generator.standard_exponential(resamples)


def _image_agreement(scores: Array) -> _Agreement:
    """Return the agreement of each pair of images on the methods that both score."""
    _check(scores)
    defined = ~np.isnan(scores)
    norm, disagreement = np.zeros((2, len(scores)))
    total = 0.0
    for methods, weight in zip(*_common_methods(defined), strict=True):
        images = np.flatnonzero(defined[:, methods].all(1))
        ranked = rankdata(scores[np.ix_(images, methods)], axis=1)
        rank_values, rank_index = np.unique(ranked, return_inverse=True)
        if len(rank_values) < 2:
            continue  # all ranks are equal
        # The ordinal distance of two ranks is that of their mid-ranks among all ratings.
        rank_index = rank_index.reshape(ranked.shape)
        totals = np.bincount(rank_index.ravel())
        middle = totals.cumsum() - totals / 2 - totals.sum() / 2
        ratings = middle[rank_index]
        count, square = len(images), (ratings**2).sum(1)
        distance = ((ratings - ratings.mean(0)) ** 2).sum(1)
        # Means over the other images, of their squared norms and of the squared distances to them.
        others = (square.sum() - square) / (count - 1)
        distances = (count * distance + distance.sum()) / (count - 1)
        scale = 2 * square.mean() * count / weight
        norm[images] += (square + others) / scale
        disagreement[images] += distances / scale
        total += float(weight)
    images = np.flatnonzero(norm)
    per_image = len(images) / max(total, 1.0)
    ratings = np.count_nonzero(defined[images])
    return _Agreement(images, int(ratings), norm[images] * per_image, disagreement[images] * per_image)


def _common_methods(defined: Array) -> tuple[Array, Array]:
    """Return the sets of at least two methods that two images have in common, bool ``[T, M]``, and their weights.

    Images are grouped by their set of scored methods, so that each pair of sets is compared once, as bits.
    """
    patterns, counts = np.unique(defined[defined.sum(1) >= 2], axis=0, return_counts=True)
    frequent = np.sort(np.argsort(-counts, kind="stable")[:MOST_SETS])
    patterns, counts = patterns[frequent], counts[frequent]
    bits = np.packbits(patterns, axis=1)
    sets: list[Array] = [np.empty((0, bits.shape[1]), np.uint8)]
    pair_sums: list[Array] = [np.empty(0, np.float64)]
    chunk = max(1, HELD // max(8 * bits.size, 1))
    for start in range(0, len(bits), chunk):
        rows = slice(start, start + chunk)
        common = (bits[rows, None] & bits[None]).reshape(-1, bits.shape[1])
        # Every pair of patterns occurs twice in the table; within a pattern of c images there are c (c − 1) / 2 pairs.
        pair_counts = counts[rows, None] * counts[None] / 2
        diagonal = np.arange(len(pair_counts))
        pair_counts[diagonal, start + diagonal] -= counts[rows] / 2
        distinct, set_index = np.unique(common, axis=0, return_inverse=True)
        sets.append(distinct)
        pair_sums.append(np.bincount(set_index.ravel(), pair_counts.ravel()))
    distinct, set_index = np.unique(np.concatenate(sets), axis=0, return_inverse=True)
    pairs: Array = np.bincount(set_index.ravel(), np.concatenate(pair_sums), minlength=len(distinct))
    methods = np.unpackbits(distinct, axis=1, count=defined.shape[1]).astype(bool)
    weight = pairs * np.maximum(methods.sum(1) - 1.0, 0)
    first = np.argsort(-weight, kind="stable")[:MOST_SETS]
    first = first[weight[first] > 0]
    return methods[first], weight[first]


def correlations(scores: Array) -> Array:
    """Return Spearman's ρ ``[K, K]`` over images of each pair of columns of ``[N, K]``, on the images that have both.

    For methods under one metric this is inter-method reliability, for metrics of one method internal consistency. NaN
    where fewer than two images have both, or all values of a column are equal.
    """
    _check(scores)
    matrix = np.full((scores.shape[1],) * 2, np.nan)
    for one, other in combinations_with_replacement(range(scores.shape[1]), 2):
        pair = scores[:, [one, other]]
        ranked = rankdata(pair[~np.isnan(pair).any(1)], axis=0)
        ranked -= ranked.mean(0) if len(ranked) else 0
        if (scale := (ranked**2).sum(0).prod()) > 0:
            matrix[one, other] = matrix[other, one] = ranked.prod(1).sum() / scale**0.5
    return matrix


def mean_correlation(scores: Array, *, clusters: Factors = NO_FACTORS, level: float = 0.999) -> Estimate:
    """Return the inter-method reliability: Spearman's ρ over images, averaged over all pairs of methods that have one.

    The interval is a t interval of z = ½ log((1 + (K − 1) ρ) / (1 − ρ)), Fisher's z for two methods: the mean ρ of K
    methods is between −1/(K − 1) and 1. Its variance is that of the infinitesimal jackknife, the variance of the
    derivatives of the statistic with respect to the weights of images. NaN if any ρ has fewer than 5 images, with fewer
    than 5 clusters, or at the ends of the range. ``images`` of the result is the smallest number of images of any ρ.

    Args:
        scores: ``[N, M]``.
        clusters: see ``alpha``.
        level: of the confidence interval, in (0, 1).

    Raises:
        ValueError: ``scores`` is not ``[N, M]``, or ``level`` not in (0, 1).
    """
    _check(scores)
    _check_level(level)
    values, counts, correlated = [], [], set()
    influence = np.zeros(len(scores))
    for one, other in combinations(range(scores.shape[1]), 2):
        common = np.flatnonzero(~np.isnan(scores[:, [one, other]]).any(1))
        rho, derivatives = _spearman(scores[common, one], scores[common, other])
        if not np.isnan(rho):
            values.append(rho)
            counts.append(len(common))
            correlated |= {one, other}
            influence[common] += derivatives
    if not values:
        return Estimate(np.nan, np.nan, np.nan, 0)
    value, fewest = float(np.mean(values)), min(counts)
    rated = (~np.isnan(scores)).sum(1) >= 2
    mean = mean_of(
        influence[rated] / len(values) * np.count_nonzero(rated),
        {name: np.asarray(factor)[rated] for name, factor in clusters.items()},
    )
    least = min([fewest, *(len(np.unique(np.asarray(factor)[rated])) for factor in clusters.values())])
    methods = len(correlated)
    above, below = 1 + (methods - 1) * value, 1 - value  # 0 at the ends of the range of ρ
    if least < LEAST_IMAGES or min(above, below) < 1e-12 or np.isnan(mean.variance):
        return Estimate(value, np.nan, np.nan, fewest, least)
    # The derivative of z is K / (2 · above · below). The factor n / (n − 3) is there because Fisher's z of n images has
    # variance 1 / (n − 3).
    half = (
        (mean.interval(level)[1] - mean.value) * methods / (2 * above * below) * (least / (least - 3)) ** 0.5
    )
    # ρ = (r − 1) / (r + K − 1) of the ratio r, as a logistic function, which cannot overflow.
    shares = expit(np.log((methods - 1) * below / above) - 2 * np.array([-half, half]))
    low, high = 1 - methods / (methods - 1) * shares
    return Estimate(value, float(low), float(high), fewest, least)


def _spearman(one: Array, other: Array) -> tuple[float, Array]:
    """Return Spearman's ρ of two columns ``[n]``, and its derivative with respect to the weight of each image."""
    a, b = (rankdata(column) - (len(column) + 1) / 2 for column in (one, other))
    squares = a @ a, b @ b
    if not squares[0] * squares[1] > 0:
        return np.nan, np.zeros(len(a))
    scale = (squares[0] * squares[1]) ** 0.5
    rho = float(a @ b / scale)
    # The weight of an image changes its own term and the ranks of all images with higher values.
    product = a * b + _sum_above(one, b) + _sum_above(other, a)
    of_a, of_b = a * a + 2 * _sum_above(one, a), b * b + 2 * _sum_above(other, b)
    return rho, product / scale - rho / 2 * (of_a / squares[0] + of_b / squares[1])


def _sum_above(column: Array, values: Array) -> Array:
    """Return for each image the sum of the ``values`` of the images above it in ``column``; ties count half."""
    _, level_of = np.unique(column, return_inverse=True)
    sums = np.bincount(level_of, values)
    above: Array = (sums[::-1].cumsum()[::-1] - sums / 2)[level_of]
    return above


def paired_means(scores: Array, weights: Array | None = None) -> Array:
    """Return the methods' means ``[..., M]``, corrected for the difficulty of the images that each is scored on.

    Least squares of score = image + method: methods are compared within images, so that a method gains nothing by
    lacking scores on difficult images. The results have mean 0; for a complete table they are the plain means minus
    their mean. NaN for a method that shares no image with another, and for all methods if the images do not connect
    them.

    Args:
        scores: ``[N, M]``, NaN where missing.
        weights: weights of the images, ``[B, N]``, at least 0; 1 by default.
    """
    _check(scores)
    image_weights = np.ones((1, len(scores))) if weights is None else weights
    defined = ~np.isnan(scores)
    usable = defined.sum(1) >= 2
    defined, scores, image_weights = defined[usable], scores[usable], image_weights[:, usable]
    if defined.all() and len(defined):
        # One column at a time, so that equal columns have bit-identical means.
        means = np.stack([image_weights @ np.ascontiguousarray(column) for column in scores.T], axis=-1)
        with np.errstate(invalid="ignore"):
            centered_means = means / image_weights.sum(1, keepdims=True)
            centered_means -= centered_means.mean(1, keepdims=True)
    else:
        indicator = defined.astype(np.float64)
        share = indicator / indicator.sum(1, keepdims=True)
        # Normal equations of the methods after the images' effects are eliminated: scores minus their image's mean.
        centered = np.where(defined, scores - (np.where(defined, scores, 0) * share).sum(1, keepdims=True), 0)
        methods = scores.shape[1]
        matrices = np.zeros((len(image_weights), methods**2))
        chunk = max(1, HELD // methods**2)
        for start in range(0, len(indicator), chunk):
            rows = slice(start, start + chunk)
            within = indicator[rows, :, None] * (np.eye(methods) - share[rows, None])
            matrices += image_weights[:, rows] @ within.reshape(-1, methods**2)
        centered_means = _solve_centered(matrices.reshape(-1, methods, methods), image_weights @ centered)
    result: Array = centered_means[0] if weights is None else centered_means
    return result


def _solve_centered(matrices: Array, sides: Array) -> Array:
    """Return the solutions ``[B, M]`` with mean 0 of singular normal equations; NaN as in ``paired_means``."""
    scored = np.diagonal(matrices, axis1=1, axis2=2) > 0
    values, vectors = np.linalg.eigh(matrices)
    # One eigenvalue is 0 because the common level is free, and one for each method without a score.
    zero = values <= 1e-9 * values.max(-1, keepdims=True, initial=np.finfo(float).tiny)
    inverse = np.where(zero, 0, 1 / np.where(zero, 1, values))
    solutions = ((sides[:, None] @ vectors) * inverse[:, None] @ vectors.swapaxes(1, 2))[:, 0]
    connected = zero.sum(1) == 1 + (~scored).sum(1)
    # Rounded, so that equal columns have equal means for any order of summation.
    scale = 10.0 ** np.floor(np.log10(np.abs(solutions).max(-1, keepdims=True, initial=np.finfo(float).tiny)))
    return np.where(scored & connected[:, None], np.round(solutions / scale, 11) * scale, np.nan)


def variance_shares(scores: Array) -> dict[str, float]:
    """Return the shares of the variance of ``[images, methods, seeds]`` by image, method, seed and their interactions.

    Sums of squares of a crossed design with one score per cell, divided by the total (η²); they add up to 1. ``image``
    and ``method`` are main effects; ``image × method`` is the part that no single ranking of the methods explains; the
    highest interaction is the residual. Factors with a single level are left out, and so are images that lack a score;
    all shares are NaN if fewer than two images or no method remain, or all scores are equal up to rounding.

    Raises:
        ValueError: ``scores`` is not three-dimensional.
    """
    if scores.ndim != 3:
        raise ValueError(f"scores: found {list(scores.shape)}, expected [images, methods, seeds]")
    complete = scores[~np.isnan(scores).any((1, 2))]
    axes = [(name, axis) for axis, name in enumerate(("image", "method", "seed")) if scores.shape[axis] > 1]
    subsets = [
        [factor for place, factor in enumerate(axes) if subset_bits >> place & 1]
        for subset_bits in range(1, 1 << len(axes))
    ]
    subsets.sort(key=len)
    varies = len(complete) > 1 and complete.size > 0 and np.ptp(complete) > ROUNDING * np.abs(complete).max()
    total = float(((complete - complete.mean()) ** 2).sum()) if varies else 0.0
    explained: dict[tuple[int, ...], Array] = {(): complete.mean(keepdims=True)} if complete.size else {}
    shares = {}
    for subset in subsets:
        name, kept = " × ".join(factor for factor, _ in subset), tuple(axis for _, axis in subset)
        if total <= 0:
            shares[name] = float("nan")
            continue
        averaged = tuple(axis for axis in range(3) if axis not in kept)
        effect = complete.mean(averaged, keepdims=True) if averaged else complete.copy()
        for lower, lower_effect in explained.items():
            if set(lower) < set(kept):
                effect = effect - lower_effect
        explained[kept] = effect
        shares[name] = float((effect**2).sum() * (complete.size / effect.size) / total)
    return shares


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level: found {level}, expected a share in (0, 1)")


def _check(scores: Array) -> None:
    if scores.ndim != 2:
        raise ValueError(f"scores: found {list(scores.shape)}, expected [images, methods]")

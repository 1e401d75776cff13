"""Agreement of raters other than single images on the order of methods: seeds, classes, variants, halves of the images.

Such a rater scores a method once, by its mean over images (``statistics.paired_means``): an array ``[raters,
methods]``, NaN where a method has no score. Agreement is Spearman's ρ over methods for two raters and Krippendorff's α
for all of them, as ``statistics`` computes it for images. It is the only measure of reliability for metrics of whole
sets.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy import ndarray as Array

from saliency_assay.reliability import statistics

LEAST_METHODS = 3  # with two methods, a rank correlation can only be 1 or −1
LEAST_IMAGES = 4  # so that each half has two images, or groups of them
SPLITS = 1000


@dataclass(frozen=True)
class Agreement:
    """Agreement of raters on the order of methods; NaN where undefined."""

    alpha: float  # Krippendorff's α (ordinal) of the ranks of methods over all raters
    correlation: float  # mean Spearman's ρ over methods, of each pair of raters
    low: float
    high: float  # smallest and largest ρ of two raters; for halves, the ends of an interval


def agreement(rated: Array) -> Agreement:
    """Return the agreement of all raters ``[R, M]``; pairs with undefined ρ are left out.

    Raises:
        ValueError: ``rated`` is not two-dimensional.
    """
    alpha = statistics.alpha(rated, resamples=0).value
    one, other = np.triu_indices(len(rated), 1)
    rho = paired_correlations(rated, rated, one, other)
    rho = rho[~np.isnan(rho)]
    if not len(rho):
        return Agreement(alpha, *[float("nan")] * 3)
    return Agreement(alpha, float(rho.mean()), float(rho.min()), float(rho.max()))


def halves(
    scores: Array, *, groups: Array | None = None, splits: int = SPLITS, level: float = 0.95, seed: int = 0
) -> Agreement:
    """Return the agreement of two random disjoint halves of the images, over many splits.

    It is lower than the agreement of two full sets of images, because each half has only half of them. α is NaN,
    because with two raters it has the same information as ρ.

    Args:
        scores: ``[N, M]``, NaN where missing. Images without any score are left out; of an odd number of images, one
            half has one more.
        groups: the group of each image, ``[N]``, if images of a group are not independent: each half then has half of
            the groups.
        splits: number of splits.
        level: share of the splits between ``low`` and ``high``.
        seed: seed of the splits.
    """
    scored = ~np.isnan(scores).all(1)
    scores, unit = scores[scored], np.arange(np.count_nonzero(scored))
    if groups is not None:
        unit = np.unique(groups[scored], return_inverse=True)[1]
    units = len(np.unique(unit))
    if units < LEAST_IMAGES:
        return Agreement(*[float("nan")] * 4)
    correlations = [
        paired_correlations(*(statistics.paired_means(scores, half) for half in (first, 1 - first)))
        for first in (halved[:, unit] for halved in _sample_halves(units, splits, seed, len(scores)))
    ]
    rho = np.concatenate([np.empty(0), *correlations])
    rho = rho[~np.isnan(rho)]
    if not len(rho):
        return Agreement(*[float("nan")] * 4)
    low, high = np.quantile(rho, [(1 - level) / 2, (1 + level) / 2])
    return Agreement(float("nan"), float(rho.mean()), float(low), float(high))


def paired_correlations(
    one: Array, other: Array, rows: Array | None = None, other_rows: Array | None = None
) -> Array:
    """Return Spearman's ρ ``[B]`` over methods of each row of ``one`` with the same row of ``other``, both ``[B, M]``.

    Only methods with a value in both rows count. NaN for fewer than three of them, and if all values of a row are
    equal. ``rows`` and ``other_rows`` ``[B]`` are indices of the rows to compare.
    """
    rows = np.arange(len(one)) if rows is None else rows
    other_rows = rows if other_rows is None else other_rows
    rho = np.full(len(rows), np.nan)
    chunk = max(1, statistics.HELD // max(8 * one.shape[1] ** 2, 1))
    for start in range(0, len(rows), chunk):
        batch = slice(start, start + chunk)
        a, b = one[rows[batch]], other[other_rows[batch]]
        common = ~(np.isnan(a) | np.isnan(b))
        a, b = (_centered_ranks(np.where(common, values, np.nan)) for values in (a, b))
        squares = (a**2).sum(1) * (b**2).sum(1)
        defined = (squares > 0) & (common.sum(1) >= LEAST_METHODS)
        rho[batch] = np.where(defined, (a * b).sum(1) / np.sqrt(np.where(defined, squares, 1)), np.nan)
    return rho


def _centered_ranks(values: Array) -> Array:
    """Return twice the centered ranks within rows ``[B, M]``, ties sharing a rank; 0 for NaN.

    The number of values below minus the number above: integers, so that equal orders have a ρ of exactly 1.
    """
    above = values[:, :, None] > values[:, None, :]
    ranks: Array = above.sum(2, dtype=np.float64) - above.sum(1, dtype=np.float64)
    return ranks


def _sample_halves(units: int, splits: int, seed: int, images: int) -> Iterator[Array]:
    """Yield the first half of each split as 0 and 1, ``[b, units]``, in chunks, whose size does not affect the splits.

    ``images`` is the number of images of all units, which limits the size of chunks.
    """
    generator = np.random.default_rng(seed)
    chunk = max(1, min(splits, statistics.HELD // images))
    for start in range(0, splits, chunk):
        first = np.zeros((min(chunk, splits - start), units))
        for row in first:
            row[generator.permutation(units)[: units // 2]] = 1
        yield first

"""Do raters that are not single images order methods alike: seeds, classes, variants of a score, halves of the images?

Such a rater scores a method once, by its mean over images (``statistics.paired_means``): an array ``[raters,
methods]``, NaN where it has none. How
far raters order the methods alike is what a metric of whole sets has for reliability: of two raters Spearman's ρ over
methods, of all of them Krippendorff's α, as ``reliability`` has it for images.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy import ndarray as Array

from saliency_assay.reliability import statistics

LEAST_METHODS = 3  # fewer have no rank correlation that says anything: of two it is 1 or −1
LEAST_IMAGES = 4  # fewer have no halves of two images
SPLITS = 1000


@dataclass(frozen=True)
class Agreement:
    """Agreement of raters on the order of methods; NaN where undefined."""

    alpha: float  # Krippendorff's α (ordinal) of the ranks of methods, of all raters at once
    correlation: float  # mean of Spearman's ρ over methods of every two raters
    low: float
    high: float  # smallest and largest ρ of two raters; of halves, the ends of an interval


def agreement(rated: Array) -> Agreement:
    """Return the agreement of all raters ``[R, M]``; pairs without a ρ are left out of mean, smallest and largest.

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


def halves(scores: Array, *, splits: int = SPLITS, level: float = 0.95, seed: int = 0) -> Agreement:
    """Return the agreement of two random disjoint halves of the images, over many splits.

    Each half has half of the images, so this is less than two sets as large as all of them would agree. α is NaN: of
    two raters it says what ρ says.

    Args:
        scores: ``[N, M]``, NaN for none; images without any are left out, and of an odd number one half has one more.
        splits: how many.
        level: share of the splits between ``low`` and ``high``.
        seed: of the splits.
    """
    scores = scores[~np.isnan(scores).all(1)]
    if len(scores) < LEAST_IMAGES:
        return Agreement(*[float("nan")] * 4)
    found = [
        paired_correlations(*(statistics.paired_means(scores, half) for half in (first, 1 - first)))
        for first in _splits(len(scores), splits, seed)
    ]
    rho = np.concatenate([np.empty(0), *found])
    rho = rho[~np.isnan(rho)]
    if not len(rho):
        return Agreement(*[float("nan")] * 4)
    low, high = np.quantile(rho, [(1 - level) / 2, (1 + level) / 2])
    return Agreement(float("nan"), float(rho.mean()), float(low), float(high))


def paired_correlations(
    one: Array, other: Array, rows: Array | None = None, other_rows: Array | None = None
) -> Array:
    """Spearman's ρ ``[B]`` over methods of each row of ``one`` with the row of ``other`` beside it, both ``[B, M]``.

    Over the methods that both have. NaN where these are fewer than three, or all of a row are equal. With ``rows`` and
    ``other_rows`` ``[B]``, the rows to take.
    """
    rows = np.arange(len(one)) if rows is None else rows
    other_rows = rows if other_rows is None else other_rows
    found = np.full(len(rows), np.nan)
    together = max(1, statistics.HELD // max(8 * one.shape[1] ** 2, 1))
    for start in range(0, len(rows), together):
        part = slice(start, start + together)
        a, b = one[rows[part]], other[other_rows[part]]
        both = ~(np.isnan(a) | np.isnan(b))
        a, b = (_centred_ranks(np.where(both, values, np.nan)) for values in (a, b))
        squares = (a**2).sum(1) * (b**2).sum(1)
        defined = (squares > 0) & (both.sum(1) >= LEAST_METHODS)
        found[part] = np.where(defined, (a * b).sum(1) / np.sqrt(np.where(defined, squares, 1)), np.nan)
    return found


def _centred_ranks(values: Array) -> Array:
    """Twice the ranks within rows ``[B, M]`` less their mean, equal values sharing a rank; 0 for NaN.

    How many are below a value less how many are above it: integers, so equal orders have a ρ of exactly 1.
    """
    above = values[:, :, None] > values[:, None, :]
    found: Array = above.sum(2, dtype=np.float64) - above.sum(1, dtype=np.float64)
    return found


def _splits(images: int, splits: int, seed: int) -> Iterator[Array]:
    """Return the first half of each split, ``[b, N]`` of 0 and 1, a few at a time; how many makes no other splits."""
    generator = np.random.default_rng(seed)
    together = max(1, min(splits, statistics.HELD // images))
    for start in range(0, splits, together):
        first = np.zeros((min(together, splits - start), images))
        for row in first:
            row[generator.permutation(images)[: images // 2]] = 1
        yield first

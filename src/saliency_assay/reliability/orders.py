"""Ranges of Spearman's ρ and Kendall's τ between two orders of which only some comparisons are certain.

A percentile bootstrap of a rank correlation is biased: resampled means are noisier than the means themselves, so their
order is farther from a known one, and its interval lies below a true ρ of 1. Here, the comparisons are tested instead.
If with probability 1 − α none of them is false, the range of ρ over all orders that agree with them is a confidence
interval of level 1 − α, as the rank sets of Mogstad, Romano, Shaikh & Wilhelm (2024) are for single ranks.
"""

import numpy as np
from numpy import ndarray as Array
from scipy.optimize import linear_sum_assignment

MOST_ORDERS = 2520
"""Number of orders of one of the two relations up to which all are compared: half of the orders of seven items, so that
seven items always suffice, because one comparison leaves half of the orders."""
MOST_SETS = 2**14
"""Number of sets of items, times the items that can follow, up to which dynamic programming is fast."""
HELD = 2**19  # sums of squares in memory at a time
BITS = 62  # items in a set that is an int64


def correlation_range(better: Array, other: Array) -> tuple[float, float]:
    """Return the least and greatest Spearman's ρ of two orders of the same items that agree with ``better``, ``other``.

    The range is exact for up to seven items, and for up to 13 if one of the orders is complete. With more items, its
    ends may be bounds from the ranks that each item can have, so that the range is wider.

    Orders with ties need not be considered: ρ of mid-ranks lies between the values for the most and the least favorable
    way of breaking the ties. The range therefore includes ρ of equal values, and covers a true ρ with ties.

    Args:
        better: bool ``[M, M]``: True if the row's item is known to be better than the column's, such as
            ``comparison.Ranks.better``. Consequences (a above b above c) are added.
        other: the same for the second order. For a known order, its upper triangle: ``~np.tri(M, dtype=bool)``.

    Returns:
        Two values in [−1, 1]; NaN for fewer than two items.

    Raises:
        ValueError: the comparisons of one of the two are cyclic.
    """
    first, second = _closure(better), _closure(other)
    if first.diagonal().any() or second.diagonal().any():
        raise ValueError("better: found a cycle, expected comparisons that agree with some order")
    if len(first) < 2:
        return np.nan, np.nan
    return -_greatest(first, second.T), _greatest(first, second)


def concordance_range(better: Array, other: Array) -> tuple[float, float]:
    """Return bounds of Kendall's τ of two orders of the same items that agree with ``better`` and ``other``.

    Pairs that are certain in both relations count as they are; each of the others may agree or disagree, so that the
    range is at least as wide as that of all such orders.

    Args:
        better: see ``correlation_range``.
        other: the same for the second order.

    Returns:
        Two values in [−1, 1]; NaN for fewer than two items.
    """
    first, second = _closure(better), _closure(other)
    pairs = len(first) * (len(first) - 1) / 2
    if not pairs:
        return np.nan, np.nan
    agreeing, opposed = (first & second).sum(), (first & second.T).sum()
    return float(2 * agreeing / pairs - 1), float(1 - 2 * opposed / pairs)


def _closure(better: Array) -> Array:
    """Return the transitive closure of a relation."""
    closed = np.asarray(better, dtype=bool).copy()
    for item in range(len(closed)):
        closed |= closed[:, item, None] & closed[item]
    return closed


def _greatest(first: Array, second: Array) -> float:
    """Return the greatest ρ of two orders that agree with transitive relations."""
    count = len(first)
    if not _closure(first | second).diagonal().any():
        return 1.0  # an order agrees with both
    strict, loose = (first, second) if first.sum() >= second.sum() else (second, first)
    orders = _orders(strict)
    distance = None if orders is None else _least_distance(orders, loose)
    if distance is None:
        distance = max(_distance_bound(first, second), _distance_bound(second, first))
    return float(1 - 6 * distance / (count**3 - count))


def _orders(relation: Array) -> Array | None:
    """Return the ranks ``[B, M]`` of the items in all orders that agree with a transitive relation; None if too many.

    Rank 1 is the best.
    """
    if len(relation) > BITS:
        return None
    placed, ranks = np.zeros(1, np.int64), np.zeros((1, len(relation)), np.int64)
    for rank in range(1, len(relation) + 1):
        source, item = _next_items(placed, relation)
        if len(source) > MOST_ORDERS:
            return None
        placed, ranks = placed[source] | np.int64(1) << item, ranks[source]
        ranks[np.arange(len(ranks)), item] = rank
    return ranks


def _least_distance(orders: Array, relation: Array) -> float | None:
    """Return the least sum of squared differences between ranks ``[B, M]`` and an order that agrees with ``relation``.

    Dynamic programming over the sets of items that can have the ranks 1 … r; None if there are too many sets.
    """
    placed, sums = np.zeros(1, np.int64), np.zeros((len(orders), 1), np.int64)
    for rank in range(1, len(relation) + 1):
        source, item = _next_items(placed, relation)
        if len(source) > MOST_SETS or len(orders) * len(source) > HELD:
            return None
        sums = sums[:, source] + (orders[:, item] - rank) ** 2
        reached = placed[source] | np.int64(1) << item
        by_set = np.argsort(reached, kind="stable")
        is_first = np.diff(reached[by_set], prepend=-1) > 0
        placed = reached[by_set][is_first]
        sums = np.minimum.reduceat(sums[:, by_set], np.flatnonzero(is_first), axis=1)
    return float(sums.min())


def _next_items(placed: Array, relation: Array) -> tuple[Array, Array]:
    """Return the indices of sets of items, as bits, and for each an item that can have the next rank."""
    items = np.arange(len(relation))
    before = (relation.astype(np.int64) << items[:, None]).sum(0)
    is_placed = (placed[:, None] >> items & 1) == 1
    source, item = np.nonzero(~is_placed & (before & ~placed[:, None] == 0))
    return source, item


def _distance_bound(first: Array, second: Array) -> float:
    """Return a lower bound of the sum of squared rank differences of two orders that agree with the relations.

    Each item has a rank between 1 + the number of better items and M − the number of worse ones. The ranks of the first
    order are assigned within these limits, at the least cost; those of the second need not be different.
    """
    ranks = np.arange(1, len(first) + 1)
    (first_low, first_high), (low, high) = (
        ((1 + relation.sum(0))[:, None], (len(relation) - relation.sum(1))[:, None])
        for relation in (first, second)
    )
    gap = np.maximum(np.maximum(low - ranks, ranks - high), 0).astype(np.float64)
    cost = np.where((ranks >= first_low) & (ranks <= first_high), gap**2, np.inf)
    return float(cost[linear_sum_assignment(cost)].sum())

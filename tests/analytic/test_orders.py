"""Range of Spearman's ρ between orders that agree with comparisons, against enumeration of all orders."""

from itertools import permutations, product

import numpy as np
import pytest
from numpy import ndarray as Array
from scipy.stats import rankdata, spearmanr

from saliency_assay.reliability import orders
from saliency_assay.reliability.orders import correlation_range


def known_order(items: int) -> Array:
    return ~np.tri(items, dtype=bool)


def some_comparisons(items: int, share: float, generator: np.random.Generator) -> Array:
    """Return a share of the comparisons of a random order, not closed under transitivity."""
    rank = generator.permutation(items)
    return (rank[:, None] < rank) & (generator.random((items, items)) < share)


def all_ranks(better: Array, *, ties: bool = False) -> Array:
    """Return the ranks ``[B, M]`` of all orders that agree with the comparisons, with mid-ranks if ``ties``."""
    items = range(len(better))
    every = (
        {tuple(rankdata(values)) for values in product(items, repeat=len(better))}
        if ties
        else permutations(range(1, len(better) + 1))
    )
    return np.array(
        [ranks for ranks in every if all(ranks[one] < ranks[two] for one, two in np.argwhere(better))],
        float,
    )


def enumerated(better: Array, other: Array, *, ties: bool = False) -> tuple[float, float]:
    first, second = (all_ranks(each, ties=ties) - (len(better) + 1) / 2 for each in (better, other))
    first, second = first[(first != 0).any(1)], second[(second != 0).any(1)]
    norms = np.sqrt((first**2).sum(1))[:, None] * np.sqrt((second**2).sum(1))
    rho = first @ second.T / norms
    return float(rho.min()), float(rho.max())


@pytest.mark.parametrize("items", [2, 4, 6])
@pytest.mark.parametrize("share", [0.1, 0.6])
def test_range_of_a_known_order_is_that_of_all_compatible_orders(items: int, share: float) -> None:
    generator = np.random.default_rng(items)
    for _ in range(10):
        better = some_comparisons(items, share, generator)
        expected = enumerated(better, known_order(items))
        assert correlation_range(better, known_order(items)) == pytest.approx(expected)


@pytest.mark.parametrize("items", [3, 5, 6])
@pytest.mark.parametrize("share", [0.1, 0.6])
def test_range_of_two_uncertain_orders_is_that_of_all_compatible_pairs(items: int, share: float) -> None:
    generator = np.random.default_rng(items)
    for _ in range(10):
        better, other = (some_comparisons(items, share, generator) for _ in range(2))
        assert correlation_range(better, other) == pytest.approx(enumerated(better, other))
        assert correlation_range(other, better) == pytest.approx(enumerated(better, other))


@pytest.mark.parametrize("items", [2, 3, 4])
def test_orders_with_ties_have_no_correlation_outside_the_range(items: int) -> None:
    generator = np.random.default_rng(items)
    for share in (0.1, 0.3, 0.5):
        for _ in range(4):
            better, other = (some_comparisons(items, share, generator) for _ in range(2))
            low, high = correlation_range(better, other)
            with_ties = enumerated(better, other, ties=True)
            assert low - 1e-12 <= with_ties[0] <= with_ties[1] <= high + 1e-12


@pytest.mark.parametrize("limit", ["MOST_ORDERS", "MOST_SETS", "HELD"])
def test_bounds_of_many_orders_contain_the_exact_range(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    relations = [[some_comparisons(6, 0.5, generator) for _ in range(2)] for _ in range(30)]
    exact = np.array([correlation_range(*pair) for pair in relations])
    monkeypatch.setattr(orders, limit, 1)
    bounds = np.array([correlation_range(*pair) for pair in relations])
    assert (bounds[:, 0] <= exact[:, 0]).all()
    assert (bounds[:, 1] >= exact[:, 1]).all()
    assert np.ptp(bounds, axis=1).mean() - np.ptp(exact, axis=1).mean() < 0.4
    complete = [known_order(6), known_order(6)[::-1, ::-1]]
    assert correlation_range(*complete) == (-1, -1)


def test_complete_orders_have_their_own_correlation() -> None:
    generator = np.random.default_rng(1)
    for items in (2, 5, 20):
        one, two = generator.permutation(items), generator.permutation(items)
        correlation = correlation_range(one[:, None] < one, two[:, None] < two)
        assert correlation == pytest.approx([spearmanr(one, two).statistic] * 2)


def test_without_comparisons_every_correlation_is_possible() -> None:
    nothing = np.zeros((21, 21), bool)
    assert correlation_range(nothing, known_order(21)) == (-1, 1)
    assert correlation_range(nothing, nothing) == (-1, 1)


def test_many_items_have_bounds() -> None:
    """Seventy items are too many for sets as bits; one of them is the best in one order and the worst in the other."""
    best, worst = np.zeros((2, 70, 70), bool)
    best[0, 1:] = worst[1:, 0] = True
    low, high = correlation_range(best, worst)
    assert low == -1
    assert high == pytest.approx(1 - 6 * (69**2 + 1) / (70**3 - 70))


def test_a_single_item_has_no_correlation() -> None:
    assert np.isnan(correlation_range(np.zeros((1, 1), bool), np.zeros((1, 1), bool))).all()


def test_cycles_are_errors() -> None:
    cycle = np.roll(np.eye(3, dtype=bool), 1, axis=1)
    with pytest.raises(ValueError, match="better: found a cycle, expected comparisons that agree"):
        correlation_range(cycle, known_order(3))

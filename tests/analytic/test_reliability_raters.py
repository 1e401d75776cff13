"""Agreement of raters on the order of methods: closed cases, scipy, and plain loops."""

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import spearmanr

from saliency_assay.reliability import statistics
from saliency_assay.reliability.raters import agreement, halves, paired_correlations

Array = npt.NDArray[np.float64]


def some_raters(raters: int, methods: int, *, missing: float = 0.0, ties: bool = False) -> Array:
    generator = np.random.default_rng(raters)
    rated = generator.normal(size=(raters, methods)) + np.arange(methods)
    rated = np.round(rated / 2) if ties else rated
    return np.where(generator.random(rated.shape) < missing, np.nan, rated)


RATED = {
    "untied": some_raters(6, 5),
    "ties": some_raters(7, 6, ties=True),
    "missing": some_raters(8, 6, missing=0.3),
    "ties and missing": some_raters(9, 7, missing=0.4, ties=True),
    "a rater whose methods are all equal": np.vstack([some_raters(3, 4), np.ones((1, 4))]),
    "a rater without a score": np.vstack([some_raters(3, 4), np.full((1, 4), np.nan)]),
}


def rho(one: Array, other: Array) -> float:
    both = ~(np.isnan(one) | np.isnan(other))
    if both.sum() < 3 or np.ptp(one[both]) == 0 or np.ptp(other[both]) == 0:
        return np.nan
    return float(spearmanr(one[both], other[both]).statistic)


@pytest.mark.parametrize("held", [statistics.HELD, 1])
@pytest.mark.parametrize("rated", RATED.values(), ids=RATED)
def test_agreement_is_that_of_a_loop_over_pairs(
    rated: Array, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "HELD", held)
    result = agreement(rated)
    pairs = np.array([rho(one, other) for one, other in combinations(rated, 2)])
    assert np.isfinite(pairs).any()
    expected = [np.nanmean(pairs), np.nanmin(pairs), np.nanmax(pairs)]
    assert [result.correlation, result.low, result.high] == pytest.approx(expected, abs=1e-12)
    assert result.alpha == statistics.alpha(rated, resamples=0).value


def test_missing_scores_do_not_lower_the_agreement_of_equal_orders() -> None:
    generator = np.random.default_rng(0)
    rated = np.where(generator.random((12, 6)) < 0.3, np.nan, np.arange(6) * generator.random((12, 1)))
    result = agreement(rated)
    assert (result.alpha, result.correlation) == (pytest.approx(1), 1)


def test_raters_that_order_alike_have_1_and_reversed_ones_minus_1() -> None:
    order = np.array([0.1, 3.0, 2.0, 50.0])
    alike = agreement(np.stack([order, order**3, order + 7]))
    assert (alike.alpha, alike.correlation, alike.low, alike.high) == (1, 1, 1, 1)
    reversed_ = agreement(np.stack([order, -order]))
    assert (reversed_.correlation, reversed_.low, reversed_.high) == (-1, -1, -1)
    assert reversed_.alpha < 0


def test_too_few_methods_or_raters_have_no_correlation() -> None:
    two = agreement(np.array([[1.0, 2.0], [1.0, 2.0]]))
    assert two.alpha == 1
    assert np.isnan([two.correlation, two.low, two.high]).all()
    single = agreement(some_raters(1, 4))
    assert np.isnan([single.alpha, single.correlation, single.low, single.high]).all()
    one, other = np.array([[1, 2, 3, np.nan]]), np.array([[1, np.nan, 3, 4]])
    assert np.isnan(paired_correlations(one, other)).all()


def some_scores(images: int, methods: int, *, effect: float = 0.0, missing: float = 0.0) -> Array:
    generator = np.random.default_rng(images)
    scores = generator.normal(size=(images, methods)) + effect * np.arange(methods)
    return np.where(generator.random(scores.shape) < missing, np.nan, scores)


@pytest.mark.parametrize("held", [statistics.HELD, 60])
def test_halves_are_those_of_a_loop_over_splits(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = some_scores(21, 5, effect=0.3, missing=0.3)
    scores[4] = np.nan  # has no score, and is in no half
    monkeypatch.setattr(statistics, "HELD", held)
    result = halves(scores, splits=50, level=0.9, seed=3)
    there = np.delete(scores, 4, axis=0)
    generator, expected = np.random.default_rng(3), []
    for _ in range(50):
        order = generator.permutation(20)
        expected.append(rho(*(statistics.paired_means(there[half]) for half in (order[:10], order[10:]))))
    assert result.correlation == pytest.approx(np.mean(expected), abs=1e-12)
    assert [result.low, result.high] == pytest.approx(np.quantile(expected, [0.05, 0.95]), abs=1e-12)
    assert np.isnan(result.alpha)


def test_halves_of_noise_agree_by_chance_and_of_a_clear_order_always() -> None:
    noise = [halves(some_scores(400 + number, 8), splits=100).correlation for number in range(60)]
    # Of 8 methods without an effect ρ has the variance 1/7: 60 sets have a mean within 0.15 of 0.
    assert abs(np.mean(noise)) < 0.15
    clear = halves(some_scores(100, 5, effect=10), splits=100)
    assert (clear.correlation, clear.low, clear.high) == (1, 1, 1)


def test_methods_with_equal_scores_share_their_rank_in_every_half() -> None:
    scores = some_scores(501, 3, effect=10)
    scores = np.column_stack([scores, scores[:, 1]])
    assert halves(scores, splits=200).low == 1
    scores[0, 2] = np.nan  # means are then of least squares
    assert halves(scores, splits=200).low == 1


def test_few_images_or_methods_have_no_halves() -> None:
    for scores in (some_scores(3, 5), some_scores(50, 2), np.full((9, 4), np.nan), np.ones((9, 4))):
        result = halves(scores, splits=20)
        assert np.isnan([result.alpha, result.correlation, result.low, result.high]).all()

"""Reliability of metrics against the packages, closed forms, and plain loops."""

from itertools import permutations

import krippendorff
import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import spearmanr

from saliency_assay import reliability
from saliency_assay.reliability import (
    Order,
    alpha,
    alpha_of,
    correlations,
    mean_correlation,
    order,
    ranks,
    resampled,
    variance_shares,
)

Array = npt.NDArray[np.float64]


def some_scores(
    images: int, methods: int, *, missing: float = 0.0, ties: bool = False, seed: int = 0
) -> Array:
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(images, methods)) + 0.4 * np.arange(methods)
    if ties:
        scores = np.round(scores)
    scores[generator.random(scores.shape) < missing] = np.nan
    return scores


SCORES = {
    "untied": some_scores(40, 5),
    "ties": some_scores(40, 4, ties=True),
    "missing": some_scores(40, 4, missing=0.3),
    "ties and missing": some_scores(60, 6, missing=0.4, ties=True),
    "two images": some_scores(2, 3),
    "a method without a score": np.where(np.arange(4) == 2, np.nan, some_scores(30, 4)),
    "an image without a score": np.where(np.arange(30)[:, None] == 7, np.nan, some_scores(30, 4)),
    "a method with one score": np.where(
        (np.arange(4) == 1) & (np.arange(30)[:, None] > 0), np.nan, some_scores(30, 4)
    ),
}


def test_ranks_are_those_of_the_methods_that_have_a_score() -> None:
    found = ranks(np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 0.0], [np.nan, 5.0, -1.0], [np.nan] * 3]))
    np.testing.assert_array_equal(found, [[3, 1, 2], [2.5, 2.5, 1], [np.nan, 2, 1], [np.nan] * 3])


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
def test_alpha_is_the_packages(scores: Array) -> None:
    expected = krippendorff.alpha(ranks(scores), level_of_measurement="ordinal")
    assert alpha(scores, resamples=0).value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
def test_alpha_of_a_resample_is_the_packages(scores: Array) -> None:
    weights = next(resampled(len(scores), 5, seed=3))
    for row in weights:
        drawn = np.repeat(ranks(scores), row.astype(int), axis=0)
        values = np.arange(2, 2 * scores.shape[1] + 1) / 2
        counts = np.array([[(column == value).sum() for value in values] for column in drawn.T], dtype=float)
        found = alpha_of(counts[None])[0]
        if (counts.sum(1) >= 2).any() and len(np.unique(drawn[~np.isnan(drawn)])) > 1:
            expected = krippendorff.alpha(drawn, level_of_measurement="ordinal")
            assert found == pytest.approx(expected, abs=1e-12)


def test_interval_is_that_of_the_drawn_resamples() -> None:
    scores = some_scores(30, 4, missing=0.2, ties=True)
    drawn = [
        krippendorff.alpha(np.repeat(ranks(scores), row.astype(int), axis=0), level_of_measurement="ordinal")
        for weights in resampled(30, 50, seed=5)
        for row in weights
    ]
    found = alpha(scores, resamples=50, level=0.9, seed=5)
    assert [found.low, found.high] == pytest.approx(np.quantile(drawn, [0.05, 0.95]), abs=1e-12)


def test_the_same_ranking_everywhere_is_1_and_its_reversal_is_negative() -> None:
    ordered = np.tile(np.arange(5.0), (50, 1))
    found = alpha(ordered, resamples=100)
    assert (found.value, found.low, found.high) == (1, 1, 1)
    assert mean_correlation(np.arange(50.0)[:, None] * np.ones(5), resamples=10).value == pytest.approx(1)
    two = np.array([[0.0, 1.0], [1.0, 0.0]])
    # Two images that disagree: two methods, each with the ranks 1 and 2, α = 1 − 3 · 2 / 4.
    assert alpha(two, resamples=0).value == pytest.approx(-0.5)


def test_random_ranks_are_near_0() -> None:
    found = alpha(np.random.default_rng(1).normal(size=(500, 6)), resamples=2000)
    assert found.low < 0 < found.high
    assert abs(found.value) < 0.01


def test_untied_alpha_is_the_mean_correlation_of_images() -> None:
    scores = some_scores(1000, 5)
    of_images = np.corrcoef(ranks(scores))
    mean = of_images[np.triu_indices(1000, 1)].mean()
    found = alpha(scores, resamples=0).value
    assert abs(found - mean) <= 1e-3
    # Krippendorff's correction for few ratings: n = N·M ratings, D_o = 1 − ρ̄ over D_e.
    n = scores.size
    assert 1 - found == pytest.approx((1 - mean) * (n - 1) / n, abs=1e-12)


def test_nothing_to_compare_is_nan() -> None:
    for scores in (
        np.full((4, 3), np.nan),
        np.ones((4, 3)),
        np.ones((1, 3)),
        np.ones((4, 1)),
        np.ones((0, 3)),
    ):
        found = alpha(scores, resamples=10)
        assert np.isnan([found.value, found.low, found.high]).all()


@pytest.mark.parametrize("ties", [False, True])
def test_correlations_are_scipys(ties: bool) -> None:
    scores = some_scores(80, 4, ties=ties)
    np.testing.assert_allclose(correlations(scores), spearmanr(scores).statistic, atol=1e-12)


def test_correlations_take_the_images_that_have_both() -> None:
    scores = some_scores(80, 3, missing=0.3, ties=True)
    found = correlations(scores)
    for a, b in permutations(range(3), 2):
        both = ~np.isnan(scores[:, [a, b]]).any(1)
        expected = spearmanr(scores[both][:, [a, b]]).statistic
        assert found[a, b] == pytest.approx(expected, abs=1e-12)
    scores[:, 1] = 2
    assert np.isnan(correlations(scores)[1]).all()


def test_interval_of_the_mean_correlation_is_that_of_the_drawn_resamples() -> None:
    scores = some_scores(40, 4, ties=True)
    upper = np.triu_indices(4, 1)
    drawn = [
        spearmanr(np.repeat(scores, row.astype(int), axis=0)).statistic[upper].mean()
        for weights in resampled(40, 30, seed=2)
        for row in weights
    ]
    found = mean_correlation(scores, resamples=30, level=0.9, seed=2)
    assert found.value == pytest.approx(spearmanr(scores).statistic[upper].mean(), abs=1e-12)
    assert [found.low, found.high] == pytest.approx(np.quantile(drawn, [0.05, 0.95]), abs=1e-12)


def test_results_do_not_depend_on_how_many_resamples_come_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = some_scores(50, 4, missing=0.2)
    whole = (
        alpha(scores, resamples=101),
        mean_correlation(scores, resamples=101),
        order(scores, resamples=101),
    )
    monkeypatch.setattr(reliability, "HELD", 7 * 4 * 50)
    assert [len(weights) for weights in resampled(50, 101, 0, columns=4)] == [7] * 14 + [3]
    parts = (
        alpha(scores, resamples=101),
        mean_correlation(scores, resamples=101),
        order(scores, resamples=101),
    )
    assert whole[:2] == parts[:2]
    np.testing.assert_allclose(whole[2].resampled, parts[2].resampled, rtol=1e-13)


def test_order_says_how_often_one_mean_is_above_another() -> None:
    scores = some_scores(30, 4, missing=0.2)
    scores[:, 3] = scores[:, 0]
    found = order(scores, resamples=200, seed=4)
    np.testing.assert_allclose(found.mean, np.nanmean(scores, axis=0))
    above, drawn = np.zeros((4, 4)), []
    for weights in resampled(30, 200, seed=4):
        for row in weights:
            means = np.nanmean(np.repeat(scores, row.astype(int), axis=0), axis=0)
            means[3] = means[0]
            drawn.append(means)
            above += (means[:, None] > means) + 0.5 * (means[:, None] == means)
    expected = above / 200
    np.fill_diagonal(expected, np.nan)
    np.testing.assert_allclose(found.above(), expected)
    assert found.above()[0, 3] == 0.5
    np.testing.assert_allclose(found.interval(0.9), np.quantile(drawn, [0.05, 0.95], axis=0))
    least = np.array(drawn) == np.min(drawn, axis=1, keepdims=True)
    np.testing.assert_allclose(
        found.best(higher_is_better=False), (least / least.sum(1, keepdims=True)).mean(0)
    )
    assert found.best(higher_is_better=True).sum() == pytest.approx(1)


def test_methods_that_cannot_be_told_apart_share_a_rank() -> None:
    surely, perhaps = np.tile([3.0, 2.9, 1.0], (94, 1)), np.tile([2.0, 2.5, 1.0], (6, 1))
    found = Order(np.array([3.0, 2.9, 1.0]), np.concatenate([surely, perhaps]))
    np.testing.assert_array_equal(found.ranks(higher_is_better=True), [1, 1, 3])
    np.testing.assert_array_equal(found.ranks(higher_is_better=False), [2, 2, 1])
    np.testing.assert_array_equal(found.ranks(higher_is_better=True, level=0.94), [1, 2, 3])
    np.testing.assert_allclose(found.best(higher_is_better=True), [0.94, 0.06, 0])


def test_a_method_without_a_score_has_no_place_in_the_order() -> None:
    found = order(np.where(np.arange(3) == 1, np.nan, some_scores(30, 3)), resamples=50)
    np.testing.assert_array_equal(found.ranks(higher_is_better=True), [2, np.nan, 1])
    assert np.isnan(found.above()[1]).all()
    np.testing.assert_array_equal(np.isnan(found.best(higher_is_better=True)), [False, True, False])
    np.testing.assert_array_equal(np.isnan(found.interval()), [[False, True, False]] * 2)
    nothing = order(np.full((4, 2), np.nan), resamples=5)
    assert np.isnan([nothing.mean, nothing.best(higher_is_better=True), *nothing.above()]).all()
    without = order(some_scores(4, 2), resamples=0)
    assert np.isnan([without.best(higher_is_better=True), *without.above(), *without.interval()]).all()


def test_shares_of_variance_are_those_of_plain_loops() -> None:
    scores = np.random.default_rng(0).normal(size=(6, 3, 2)) + np.arange(3)[None, :, None]
    found = variance_shares(np.concatenate([scores, np.full((1, 3, 2), np.nan)]))
    grand, total = scores.mean(), ((scores - scores.mean()) ** 2).sum()
    image = sum(6 * (scores[i].mean() - grand) ** 2 for i in range(6))
    method = sum(12 * (scores[:, m].mean() - grand) ** 2 for m in range(3))
    both = sum(
        2 * (scores[i, m].mean() - scores[i].mean() - scores[:, m].mean() + grand) ** 2
        for i in range(6)
        for m in range(3)
    )
    assert found["image"] == pytest.approx(image / total)
    assert found["method"] == pytest.approx(method / total)
    assert found["image × method"] == pytest.approx(both / total)
    assert sum(found.values()) == pytest.approx(1)
    assert list(found) == [
        *("image", "method", "seed", "image × method", "image × seed", "method × seed"),
        "image × method × seed",
    ]


def test_a_factor_of_one_level_explains_nothing() -> None:
    found = variance_shares(np.arange(3.0)[None, :, None] + np.zeros((4, 1, 1)))
    assert found == {"image": 0, "method": pytest.approx(1), "image × method": pytest.approx(0)}
    assert np.isnan(list(variance_shares(np.ones((4, 3, 1))).values())).all()


def test_bad_shapes_and_levels_are_refused() -> None:
    with pytest.raises(ValueError, match=r"scores: found \[3\], expected \[images, methods\]"):
        alpha(np.ones(3))
    with pytest.raises(ValueError, match=r"expected \[images, methods, seeds\]"):
        variance_shares(np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"level: found 1, expected a share in \(0, 1\)"):
        alpha(some_scores(9, 3), level=1)


def test_the_interval_covers_what_it_should() -> None:
    """Of 500 sets of 200 images, 95 % intervals cover the α of all images in 93 to 97 %."""

    def scored(images: int, generator: np.random.Generator) -> Array:
        return generator.normal(size=(images, 5)) + 0.4 * np.arange(5)

    generator = np.random.default_rng(7)
    true = alpha(scored(1_000_000, generator), resamples=0).value
    covered = 0
    for number in range(500):
        found = alpha(scored(200, generator), resamples=1000, level=0.95, seed=number)
        covered += found.low <= true <= found.high
    assert 0.93 <= covered / 500 <= 0.97

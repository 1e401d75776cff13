"""Reliability of metrics against the packages, closed forms, and plain loops."""

import warnings
from collections import Counter
from itertools import combinations, permutations

import krippendorff
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr

from saliency_assay.reliability import statistics
from saliency_assay.reliability.comparison import win_rates
from saliency_assay.reliability.statistics import (
    alpha,
    concordance,
    correlations,
    mean_correlation,
    paired_means,
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


def package(scores: Array) -> float:
    """α of a complete table by scipy's ranks and the package."""
    ranks = rankdata(scores, axis=1)
    if len(np.unique(ranks)) == 1:
        return np.nan
    return float(krippendorff.alpha(ranks, level_of_measurement="ordinal"))


def compared_images(there: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """The images that have two methods in common with another one."""
    common = there.astype(int) @ there.T
    np.fill_diagonal(common, 0)
    return np.asarray((common >= 2).any(1))


def by_pairs(scores: Array) -> float:
    """α by the mean correlation over all pairs of images, that of a set of methods being the package's."""
    there = ~np.isnan(scores)
    sets = Counter(tuple(np.flatnonzero(one & other)) for one, other in combinations(there, 2))
    values, weights = [], []
    for methods, pairs in sets.items():
        columns = scores[:, methods][there[:, methods].all(1)]
        if len(methods) >= 2 and not np.isnan(of_set := package(columns)):
            values.append(1 - (1 - of_set) * columns.size / (columns.size - 1))
            weights.append(pairs * (len(methods) - 1))
    ratings = there[compared_images(there)].sum()
    return 1 - (1 - float(np.average(values, weights=weights))) * (ratings - 1) / ratings


COMPLETE = {
    "untied": some_scores(40, 5),
    "ties": some_scores(40, 4, ties=True),
    "many ties": np.round(some_scores(40, 6) / 3),
    "two images": some_scores(2, 3),
}
MISSING = {
    "missing": some_scores(40, 4, missing=0.3),
    "ties and missing": some_scores(60, 6, missing=0.4, ties=True),
    "a method without a score": np.where(np.arange(4) == 2, np.nan, some_scores(30, 4)),
    "an image without a score": np.where(np.arange(30)[:, None] == 7, np.nan, some_scores(30, 4)),
    "a method with one score": np.where(
        (np.arange(4) == 1) & (np.arange(30)[:, None] > 0), np.nan, some_scores(30, 4)
    ),
}


@pytest.mark.parametrize("scores", COMPLETE.values(), ids=COMPLETE)
def test_alpha_of_a_complete_table_is_the_packages(scores: Array) -> None:
    assert alpha(scores, resamples=0).value == pytest.approx(package(scores), abs=1e-12)


@pytest.mark.parametrize("held", [statistics.HELD, 1])
@pytest.mark.parametrize("scores", MISSING.values(), ids=MISSING)
def test_alpha_with_missing_scores_is_that_of_a_loop_over_pairs(
    scores: Array, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "HELD", held)
    assert alpha(scores, resamples=0).value == pytest.approx(by_pairs(scores), abs=1e-12)


@st.composite
def patterns(draw: st.DrawFn) -> npt.NDArray[np.bool_]:
    """Sample which scores exist: at random or by method, with two methods that two images have in common."""
    images, methods = draw(st.integers(2, 40)), draw(st.integers(2, 10))
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    missing = draw(st.floats(0, 0.9)) * np.ones(methods)
    if draw(st.booleans()):
        missing = missing * generator.random(methods).round()  # some methods lack scores, the others none
    there = generator.random((images, methods)) >= missing
    there[:2, :2] = True
    return generator.permuted(there, axis=0)[generator.permutation(images)] if not there.all() else there


@settings(deadline=None, max_examples=60)
@given(patterns(), st.randoms(use_true_random=False))
def test_an_identical_order_is_1_whatever_is_missing(there: npt.NDArray[np.bool_], random: object) -> None:
    shared = max((one & other).sum() for one, other in combinations(there, 2))
    order = np.random.default_rng(int(there.sum())).permutation(there.shape[1])
    scores = np.where(there, order * np.arange(1.0, len(there) + 1)[:, None], np.nan)
    value = alpha(scores, resamples=0).value
    if shared >= 2:
        assert value == pytest.approx(1, abs=1e-12)
    else:
        assert np.isnan(value)


@pytest.mark.parametrize(
    ("methods", "missing", "by_method"),
    [(2, 0.3, False), (5, 0.3, False), (5, 0.6, True), (10, 0.9, False), (10, 0.9, True)],
)
def test_noise_is_0_on_average_whatever_is_missing(methods: int, missing: float, by_method: bool) -> None:
    generator = np.random.default_rng(methods)
    share = missing * (np.arange(methods) % 2 if by_method else np.ones(methods))
    there = generator.random((60, methods)) >= share
    there[:2, :2] = True
    values = [
        alpha(np.where(there, generator.normal(size=there.shape), np.nan), resamples=0).value
        for _ in range(200)
    ]
    ratings = there[compared_images(there)].sum()
    # Krippendorff's correction makes the expectation 1/ratings and not 0.
    assert abs(np.mean(values) - 1 / ratings) < 4 * np.std(values) / 200**0.5


def test_two_images_that_disagree() -> None:
    # Two methods, each with the ranks 1 and 2: α = 1 − 3 · 2 / 4.
    assert alpha(np.array([[0.0, 1.0], [1.0, 0.0]]), resamples=0).value == pytest.approx(-0.5)


def test_many_methods_that_miss_scores_are_compared_on_the_largest_sets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scores = some_scores(60, 12, missing=0.2)
    monkeypatch.setattr(statistics, "MOST_SETS", 10**6)
    every = alpha(scores, resamples=0)
    monkeypatch.setattr(statistics, "MOST_SETS", 100)
    assert alpha(scores, resamples=0).value == pytest.approx(every.value, abs=0.03)
    ordered = np.where(np.isnan(scores), np.nan, np.arange(12.0))
    assert alpha(ordered, resamples=0).value == pytest.approx(1)


def test_nothing_to_compare_is_nan() -> None:
    for scores in (
        np.full((4, 3), np.nan),
        np.ones((4, 3)),
        np.ones((1, 3)),
        np.ones((4, 1)),
        np.ones((0, 3)),
        np.array([[1, 2, np.nan], [np.nan, 1, 2]]),  # one method in common
    ):
        estimate = alpha(scores, resamples=10)
        assert np.isnan([estimate.value, estimate.low, estimate.high]).all()


# ---- intervals


def mixture(images: int, share: float, generator: np.random.Generator, methods: int = 5) -> Array:
    """Images that rank the methods alike with probability ``share``, else at random: their α is ``share²``."""
    ordered = generator.random((images, 1)) < share
    return np.where(ordered, np.arange(float(methods)), generator.random((images, methods)))


@pytest.mark.parametrize(
    ("images", "share"),
    [
        (10, 0.0),
        (10, 0.6),
        (50, 0.0),
        (50, 0.9),
        *(pytest.param(n, 0.3, marks=pytest.mark.exhaustive) for n in (10, 20)),
    ],
)
def test_the_interval_of_alpha_covers(images: int, share: float) -> None:
    """Of 400 sets, 95 % intervals miss the α of the population in at most 8 %: three standard errors above 5 %."""
    generator = np.random.default_rng(7)
    missed = 0
    for number in range(400):
        estimate = alpha(mixture(images, share, generator), resamples=400, level=0.95, seed=number)
        missed += not estimate.low <= share**2 <= estimate.high
    assert missed / 400 <= 0.08


@pytest.mark.parametrize("images", [20, 200])
def test_the_interval_of_alpha_contains_that_of_an_ordinary_bootstrap(images: int) -> None:
    generator = np.random.default_rng(3)
    scores = mixture(images, 0.9, generator)
    values = [package(scores[generator.integers(0, images, images)]) for _ in range(400)]
    low, high = np.quantile(values, [0.025, 0.975])
    estimate = alpha(scores, level=0.95)
    assert estimate.low < low <= estimate.value <= high
    assert high - 0.01 <= estimate.high
    assert low - estimate.low < 15 / images  # by which few images leave room for rare ones of another order


@pytest.mark.parametrize("images", [20, 60, 200])
@pytest.mark.parametrize("level", [0.95, 0.999])
def test_images_that_agree_leave_room_for_as_many_opposed_ones_as_can_be_missed(
    images: int, level: float
) -> None:
    opposed = 1 - ((1 - level) / 2) ** (1 / images)
    estimate = alpha(np.tile(np.arange(5.0), (images, 1)), level=level)
    assert estimate.low == pytest.approx((1 - 2 * opposed) ** 2, abs=0.04)
    assert estimate.high == 1


def test_the_interval_of_alpha_does_not_depend_on_how_many_resamples_come_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scores = some_scores(30, 4, missing=0.2, ties=True)
    whole = alpha(scores, resamples=101)
    monkeypatch.setattr(statistics, "HELD", 7 * 30)
    parts = alpha(scores, resamples=101)
    assert [parts.low, parts.high] == pytest.approx([whole.low, whole.high], abs=1e-12)
    assert whole.low < whole.value < whole.high <= 1
    assert alpha(scores, resamples=101, seed=1) != whole


def test_clusters_widen_the_interval_of_alpha() -> None:
    generator = np.random.default_rng(0)
    cluster = np.repeat(np.arange(20), 10)
    scores = generator.normal(size=(20, 5))[cluster] + 0.3 * generator.normal(size=(200, 5))
    alone = alpha(scores, resamples=2000)
    together = alpha(scores, clusters={"cluster": cluster}, resamples=2000)
    assert together.high - together.low > 1.5 * (alone.high - alone.low)
    assert together.low < 0 < together.high


def test_few_images_or_clusters_have_no_interval() -> None:
    scores = some_scores(4, 3)
    assert np.isnan(alpha(scores).low)
    assert np.isfinite(alpha(some_scores(5, 3)).low)
    assert np.isnan(alpha(some_scores(50, 3), clusters={"cluster": np.arange(50) % 4}).low)
    assert np.isnan(alpha(some_scores(50, 3), resamples=0).low)


# ---- correlations of methods


def test_correlations_take_the_images_that_have_both() -> None:
    scores = some_scores(80, 3, missing=0.3, ties=True)
    rho = correlations(scores)
    for a, b in permutations(range(3), 2):
        both = ~np.isnan(scores[:, [a, b]]).any(1)
        expected = spearmanr(scores[both][:, [a, b]]).statistic
        assert rho[a, b] == pytest.approx(expected, abs=1e-12)
    scores[:, 1] = 2
    assert np.isnan(correlations(scores)[1]).all()


def test_mean_correlation_is_that_of_the_pairs_and_counts_their_images() -> None:
    scores = some_scores(80, 4, missing=0.3, ties=True)
    pairs = [
        scores[~np.isnan(scores[:, pair]).any(1)][:, pair] for pair in map(list, combinations(range(4), 2))
    ]
    estimate = mean_correlation(scores)
    assert estimate.value == pytest.approx(np.mean([spearmanr(pair).statistic for pair in pairs]), abs=1e-12)
    assert estimate.images == min(map(len, pairs))


@pytest.mark.parametrize("ties", [False, True])
def test_the_derivatives_of_spearmans_rho_are_those_of_repeated_images(ties: bool) -> None:
    scores = some_scores(12, 2, ties=ties)
    rho, derivatives = statistics._spearman(*scores.T)
    times = 4000
    for image in range(12):
        repeated = np.concatenate([np.repeat(scores, times, axis=0), scores[[image]]])
        change = (spearmanr(repeated).statistic - rho) * times
        assert derivatives[image] == pytest.approx(change, abs=2e-3)
    assert derivatives.sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("rho", "methods"), [(0.5, 4), (0.0, 5)])
def test_the_interval_of_the_mean_correlation_covers(rho: float, methods: int) -> None:
    """Of 250 sets of 50 images, 95 % intervals lie below the correlation of the population in at most 5.5 %.

    So do they lie above it. Independent methods, with ρ near the lower end of its range, are the hard case.
    """
    generator = np.random.default_rng(3)
    true = 6 / np.pi * np.arcsin(rho / 2)  # Spearman's ρ of normal scores with this correlation
    intervals = []
    for _ in range(250):
        common = generator.normal(size=(50, 1))
        scores = rho**0.5 * common + (1 - rho) ** 0.5 * generator.normal(size=(50, methods))
        estimate = mean_correlation(scores, level=0.95)
        intervals.append((estimate.low, estimate.high))
    low, high = np.array(intervals).T
    assert (high < true).mean() <= 0.055
    assert (low > true).mean() <= 0.055


def test_few_images_and_equal_columns_have_no_interval_of_the_correlation() -> None:
    assert np.isnan(mean_correlation(some_scores(4, 3)).low)
    same = mean_correlation(np.arange(50.0)[:, None] * np.ones(5))
    assert same.value == pytest.approx(1)
    assert np.isnan(same.low)
    assert np.isnan(mean_correlation(np.ones((9, 3))).value)


# ---- paired means


def test_paired_means_of_a_complete_table_are_centered_means() -> None:
    scores = some_scores(30, 4)
    np.testing.assert_allclose(paired_means(scores), scores.mean(0) - scores.mean())
    weights = np.random.default_rng(0).integers(0, 3, size=(5, 30)).astype(float)
    for row, means in zip(weights, paired_means(scores, weights), strict=True):
        repeated = np.repeat(scores, row.astype(int), axis=0)
        np.testing.assert_allclose(means, repeated.mean(0) - repeated.mean(), atol=1e-12)


def test_paired_means_are_least_squares_of_image_and_method() -> None:
    scores = some_scores(30, 4, missing=0.3) + 5 * np.random.default_rng(1).normal(size=(30, 1))
    image, method = np.nonzero(~np.isnan(scores))
    design = np.concatenate([np.eye(30)[image], np.eye(4)[method]], axis=1)
    effects = np.linalg.lstsq(design, scores[image, method], rcond=None)[0][30:]
    np.testing.assert_allclose(paired_means(scores), effects - effects.mean(), atol=1e-9)


def test_paired_means_need_images_that_connect_the_methods() -> None:
    scores = np.array([[1, 2, np.nan, np.nan], [np.nan, np.nan, 1, 2]])
    assert np.isnan(paired_means(scores)).all()
    scores = np.array([[1, 2, np.nan], [0, 3, np.nan], [np.nan, np.nan, 5]])
    np.testing.assert_allclose(paired_means(scores), [-1, 1, np.nan])
    assert np.isnan(paired_means(np.full((3, 2), np.nan))).all()


# ---- variance


def test_shares_of_variance_are_those_of_plain_loops() -> None:
    scores = np.random.default_rng(0).normal(size=(6, 3, 2)) + np.arange(3)[None, :, None]
    shares = variance_shares(np.concatenate([scores, np.full((1, 3, 2), np.nan)]))
    grand, total = scores.mean(), ((scores - scores.mean()) ** 2).sum()
    image = sum(6 * (scores[i].mean() - grand) ** 2 for i in range(6))
    method = sum(12 * (scores[:, m].mean() - grand) ** 2 for m in range(3))
    both = sum(
        2 * (scores[i, m].mean() - scores[i].mean() - scores[:, m].mean() + grand) ** 2
        for i in range(6)
        for m in range(3)
    )
    assert shares["image"] == pytest.approx(image / total)
    assert shares["method"] == pytest.approx(method / total)
    assert shares["image × method"] == pytest.approx(both / total)
    assert sum(shares.values()) == pytest.approx(1)
    assert len(shares) == 7


def test_a_factor_of_one_level_explains_nothing() -> None:
    shares = variance_shares(np.arange(3.0)[None, :, None] + np.zeros((4, 1, 1)))
    assert shares == {"image": 0, "method": pytest.approx(1), "image × method": pytest.approx(0)}
    # Scores whose mean is exact, whose mean is not, and those of no method.
    for scores in (np.full((4, 3, 1), 1.0), np.full((4, 3, 1), 0.1), np.empty((4, 0, 1))):
        assert np.isnan(list(variance_shares(scores).values())).all()


def test_bad_shapes_and_levels_are_refused() -> None:
    for statistic in (alpha, correlations, mean_correlation, paired_means):
        with pytest.raises(ValueError, match=r"scores: found \[3\], expected \[images, methods\]"):
            statistic(np.ones(3))
    with pytest.raises(ValueError, match=r"expected \[images, methods, seeds\]"):
        variance_shares(np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"level: found 1, expected a share in \(0, 1\)"):
        alpha(some_scores(9, 3), level=1)


# ---- ends of ranges, and concordance


def test_the_interval_of_alpha_ends_where_its_sample_can_reach() -> None:
    """128 images prefer one of two methods in 65 cases: α of no 128 images is below −1 / (2 · 127), about."""
    scores = np.where(np.arange(128) < 65, 1.0, -1.0)[:, None] * np.array([1.0, 0.0])
    estimate = alpha(scores, resamples=500)
    opposed = np.where(np.arange(128) % 2, 1.0, -1.0)[:, None] * np.array([1.0, 0.0])
    lowest = alpha(opposed, resamples=0).value
    assert -0.01 < lowest <= estimate.low <= estimate.value


def test_a_correlation_near_its_smallest_value_has_an_interval_without_overflow() -> None:
    order = np.arange(12.0)
    scores = np.stack([order, -order], axis=1)
    scores[[5, 6], 1] = scores[[6, 5], 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate = mean_correlation(scores, level=0.999999)
    assert -1 <= estimate.low <= estimate.value <= estimate.high <= 1


def concordance_by_loops(scores: Array) -> float:
    agreeing, untied = 0.0, 0
    for image, row in enumerate(scores):
        others = win_rates(np.delete(scores, image, axis=0)).mean(0)
        for one, other in combinations(range(scores.shape[1]), 2):
            if row[one] == row[other]:
                continue
            untied += 1
            if abs(others[one] - others[other]) < 1e-9:
                agreeing += 0.5
            else:
                agreeing += (row[one] > row[other]) == (others[one] > others[other])
    return agreeing / untied


def test_concordance_is_that_of_its_definition() -> None:
    generator = np.random.default_rng(0)
    for scores in (generator.normal(size=(15, 4)), generator.integers(2, size=(20, 5)).astype(float)):
        assert concordance(scores).value == pytest.approx(concordance_by_loops(scores))


def test_scores_of_0_and_1_that_all_images_agree_on_have_a_concordance_of_1_although_alpha_is_low() -> None:
    scores = np.zeros((198, 6))
    scores[:, 0] = 1
    scores[:2, 0] = 0  # all methods tie on these
    estimate = concordance(scores)
    assert (estimate.value, estimate.images, estimate.high) == (1, 196, 1)
    assert estimate.low > 0.94
    scores[:, 1] = np.arange(198) % 3 == 0
    assert alpha(scores, resamples=0).value < 0.65 < concordance(scores).low
    assert np.isnan(concordance(np.ones((9, 3))).value)


def test_concordance_of_noise_is_one_half() -> None:
    generator, estimates = np.random.default_rng(1), []
    for _ in range(200):
        estimate = concordance(generator.normal(size=(30, 4)), level=0.95)
        estimates.append((estimate.value, estimate.low <= 0.5 <= estimate.high))
    values, covered = np.array(estimates).T
    assert values.mean() == pytest.approx(0.5, abs=0.02)
    assert covered.mean() > 0.85

"""Means, comparisons and rank sets: textbook cases, scipy, plain loops, and simulated studies."""

import warnings
from collections.abc import Callable
from itertools import permutations, product
from typing import Literal

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from statsmodels.regression.mixed_linear_model import MixedLM

from saliency_assay.reliability.comparison import (
    MEANS,
    WINS,
    Comparison,
    adjusted,
    holm,
    rank_sets,
    win_rates,
)
from saliency_assay.reliability.variance import NO_FACTORS, Factors, mean_of

Array = npt.NDArray[np.float64]


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def compare(scores: Array, factors: Factors = NO_FACTORS) -> Array:
    """p-values of the comparisons of means."""
    return Comparison(scores, factors, MEANS).p


# ---- means


def test_an_outlier_does_not_hide_the_other_differences() -> None:
    scores = generator().normal(size=(200, 3))
    scores[:, 1] += 1
    expected = compare(scores)
    scores[0, 2] = 1e15
    assert compare(scores)[1, 0] == pytest.approx(expected[1, 0], rel=1e-6)
    noise = 1 + 1e-15 * generator(1).normal(size=(50, 2))
    assert compare(noise)[0, 1] == compare(noise)[1, 0] == 1


def hall(values: Array, quantile: float) -> float:
    """Hall's (1992) transformation inverted, by bisection of its definition."""
    n, sd = len(values), values.std()
    g = float(stats.skew(values))
    low, high = -20.0, 20.0
    for _ in range(200):
        middle = (low + high) / 2
        w = middle / n**0.5
        transformed = n**0.5 * (w + g * w**2 / 3 + g**2 * w**3 / 27 + g / (6 * n))
        low, high = (middle, high) if transformed < quantile else (low, middle)
    return float(values.mean() - sd * low / n**0.5)


@pytest.mark.parametrize("skewed", [False, True])
def test_without_factors_the_interval_contains_students_and_halls(skewed: bool) -> None:
    values = generator().normal(size=20)
    values = np.exp(values) if skewed else values
    student = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    corrected = hall(values, stats.t.ppf(0.95, 19)), hall(values, stats.t.ppf(0.05, 19))
    interval = mean_of(values).interval(0.9)
    assert interval == pytest.approx(
        (min(student.low, corrected[0]), max(student.high, corrected[1])), abs=1e-9
    )
    assert mean_of(np.append(values, np.nan)).interval(0.9) == interval


@pytest.mark.parametrize("sign", [1, -1])
def test_the_p_value_is_the_larger_one_of_both_tests(sign: int) -> None:
    values = sign * generator(1).lognormal(size=30) - sign * 0.9
    student = stats.ttest_1samp(values, 0, alternative="greater").pvalue
    shift, g, n = values.mean() / values.std(), stats.skew(values), 30
    transformed = n**0.5 * (shift + g * shift**2 / 3 + g**2 * shift**3 / 27 + g / (6 * n))
    corrected = stats.t.sf(transformed, 29)
    of_two = max(student, corrected) if values.mean() > 0 else min(student, corrected)
    assert mean_of(values).p_value() == pytest.approx(of_two, rel=1e-9)


def test_intervals_of_independent_rates_are_wilsons_and_clopper_pearsons() -> None:
    for successes, count in ((0, 7), (3, 20), (198, 198), (199, 200)):
        estimate = mean_of(np.arange(count) < successes)
        expected = stats.binomtest(successes, count)
        wilson, exact = (expected.proportion_ci(0.95, method) for method in ("wilson", "exact"))
        assert estimate.rate_interval() == pytest.approx((wilson.low, wilson.high), abs=1e-12)
        assert estimate.exact_interval() == pytest.approx((exact.low, exact.high), abs=1e-12)


def test_rates_of_clusters_have_the_width_of_their_independent_number() -> None:
    """Copies of 40 images add nothing: the interval is about that of 40 images with Student's quantile."""
    cluster = np.repeat(np.arange(40), 5)
    right = (generator(3).random(40) < 0.7).astype(float)
    estimates = mean_of(right[cluster], {"cut-outs": cluster}), mean_of(right)
    for name in ("rate_interval", "exact_interval"):
        widths = [float(np.diff(getattr(each, name)())[0]) for each in estimates]
        assert widths[0] == pytest.approx(widths[1], rel=0.06)
    all_right = mean_of(np.ones(200), {"cut-outs": cluster})
    assert all_right.exact_interval() == mean_of(np.ones(40)).exact_interval()


def test_ties_keep_the_exact_interval_conservative() -> None:
    wins = np.repeat([0.0, 0.5, 1.0], [10, 30, 20])
    low, high = mean_of(wins).exact_interval()
    expected = stats.binomtest(35, 60).proportion_ci(0.95, "exact")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_a_nested_factor_gives_the_one_way_analysis_of_variance() -> None:
    """Of balanced clusters the variance of the mean is the mean square between them."""
    cluster = np.repeat(np.arange(12), 5)
    values = generator().normal(size=12)[cluster] + 0.5 * generator(1).normal(size=60)
    of_clusters = values.reshape(12, 5).mean(1)
    expected = stats.ttest_1samp(of_clusters, 0).confidence_interval(0.95)
    estimate = mean_of(values, {"cluster": cluster})
    assert estimate.variance == pytest.approx(of_clusters.var(ddof=1) / 12)
    # Satterthwaite counts the residual, too, so the interval is hardly wider.
    assert estimate.interval() == pytest.approx((expected.low, expected.high), rel=0.02)


def test_crossed_factors_give_the_two_way_analysis_of_variance() -> None:
    """Images × seeds in full: the variance is (MS_image + MS_seed − MS_residual) / values, by its sums of squares."""
    images, seeds = 40, 4
    table = generator().normal(size=(images, 1)) + generator(1).normal(size=seeds)
    table = table + generator(2).normal(size=(images, seeds))
    mean, of_images, of_seeds = table.mean(), table.mean(1), table.mean(0)
    between = seeds * ((of_images - mean) ** 2).sum() / (images - 1)
    trained = images * ((of_seeds - mean) ** 2).sum() / (seeds - 1)
    residual = table - of_images[:, None] - of_seeds + mean
    left = (residual**2).sum() / (images - 1) / (seeds - 1)
    image, seed = (index.ravel() for index in np.indices(table.shape))
    estimate = mean_of(table.ravel(), {"image": image, "seed": seed})
    assert estimate.value == pytest.approx(mean)
    assert estimate.variance == pytest.approx((between + trained - left) / table.size)
    assert estimate.degrees[1] == seeds - 1


def test_a_factor_of_single_values_or_a_repeated_one_adds_nothing() -> None:
    values, cluster = generator().normal(size=40), np.arange(40) // 4
    plain, clustered = mean_of(values), mean_of(values, {"cluster": cluster})
    assert mean_of(values, {"image": np.arange(40)}).interval() == plain.interval()
    again = {"cluster": cluster, "same": 7 - cluster, "image": np.arange(40)}
    assert mean_of(values, again).interval() == clustered.interval()


def test_the_variance_is_at_least_that_of_independent_values() -> None:
    values, cluster = np.tile([1.0, -1.0], 20), np.repeat(np.arange(20), 2)  # opposed within clusters
    assert mean_of(values, {"cluster": cluster}).variance == pytest.approx(mean_of(values).variance)


def test_a_single_level_or_value_has_no_interval() -> None:
    values = generator().normal(size=9)
    for estimate in (mean_of(values, {"seed": np.zeros(9, int)}), mean_of(values[:1])):
        assert np.isnan([estimate.variance, *estimate.interval()]).all()
    assert np.isnan(mean_of(np.full(3, np.nan)).value)
    assert np.isnan(mean_of(np.ones(5)).interval()).all()


def relative_variance(factors: Factors, components: dict[str, float]) -> float:
    """Mean estimated variance of simulated means, relative to the variance that they have."""
    source, count = generator(5), len(next(iter(factors.values())))
    variance = 1 / count
    for name, factor in factors.items():
        variance += components[name] ** 2 * float(((np.bincount(factor) / count) ** 2).sum())
    estimates = []
    for _ in range(300):
        values = source.normal(size=count)
        for name, factor in factors.items():
            values += components[name] * source.normal(size=factor.max() + 1)[factor]
        estimates.append(mean_of(values, factors).variance)
    return float(np.mean(estimates)) / variance


def test_estimated_variances_are_unbiased_where_factors_are_unbalanced() -> None:
    source = generator()
    cutout, scene = source.integers(90, size=300) ** 2 // 90, source.integers(120, size=300)
    factors = {
        "cut-out": np.unique(cutout, return_inverse=True)[1],
        "scene": np.unique(scene, return_inverse=True)[1],
    }
    assert relative_variance(factors, {"cut-out": 0.7, "scene": 0.5}) == pytest.approx(1, abs=0.1)
    image, seed = np.repeat(np.arange(40), 5), np.tile(np.arange(5), 40)
    ratio = relative_variance({"image": image, "seed": seed}, {"image": 0.5, "seed": 0.6})
    assert ratio == pytest.approx(1, abs=0.1)


# ---- comparisons


def test_pairs_are_compared_on_the_images_that_have_both() -> None:
    scores = generator().normal(size=(40, 3)) + np.array([0, 0.3, 0.6])
    scores[generator(1).random(scores.shape) < 0.3] = np.nan
    p = compare(scores)
    for one, other in permutations(range(3), 2):
        both = scores[~np.isnan(scores[:, [one, other]]).any(1)]
        expected = mean_of(both[:, one] - both[:, other]).p_value()
        assert p[one, other] == pytest.approx(expected, rel=1e-9)
    assert np.isnan(np.diagonal(p)).all()


def test_win_rates_count_the_methods_that_are_beaten() -> None:
    scores = generator().integers(3, size=(50, 5)).astype(float)
    scores[generator(1).random(scores.shape) < 0.3] = np.nan
    for row, rates in zip(scores, win_rates(scores), strict=True):
        for place, rate in enumerate(rates):
            others = [score for other, score in enumerate(row) if other != place and not np.isnan(score)]
            if np.isnan(row[place]) or not others:
                assert np.isnan(rate)
            else:
                beaten = [(row[place] > score) + 0.5 * (row[place] == score) for score in others]
                assert rate == pytest.approx(np.mean(beaten))


@pytest.mark.parametrize("by", [WINS, MEANS])
def test_scores_of_0_and_1_and_two_methods_have_the_exact_sign_test(by: Literal["wins", "means"]) -> None:
    scores = (generator().random((60, 3)) < np.array([0.9, 0.7, 0.8])).astype(float)
    p = Comparison(scores, by=by).p
    for one, other in permutations(range(3), 2):
        wins, losses = (
            ((scores[:, one] - scores[:, other]) == 1).sum(),
            (scores[:, one] < scores[:, other]).sum(),
        )
        expected = stats.binomtest(int(wins), int(wins + losses), alternative="greater").pvalue
        assert p[one, other] == pytest.approx(expected)
    two = generator(1).normal(size=(20, 2))
    wins = int((two[:, 0] > two[:, 1]).sum())
    assert Comparison(two).p[0, 1] == pytest.approx(stats.binomtest(wins, 20, alternative="greater").pvalue)


def test_a_method_that_rarely_fails_badly_is_not_better_because_its_failures_are_absent() -> None:
    """Both have the win rate 0.9: one is best on nine of ten images and last on the others, one always second."""
    source, wrong = generator(3), 0
    for _ in range(100):
        scores = source.normal(size=(20, 10))
        scores[:, 0], scores[:, 1] = np.where(source.random(20) < 0.1, -20, 20), 10
        wrong += int(rank_sets(scores).better[0, 1])
    assert wrong / 100 <= 0.05
    sure = source.normal(size=(12, 3)) + np.array([9.0, 0, 0])  # a method that always wins is still better
    assert rank_sets(sure).better[0, 1:].all()


def test_means_of_scores_that_are_too_skewed_for_their_number_are_not_compared() -> None:
    scores = np.stack([generator().lognormal(0, 1.5, 60), generator(1).normal(5, 1, 60)], axis=1)
    pair = Comparison(scores, by=MEANS).pairs[0, 1]
    assert np.isnan(pair.p).all()
    assert pair.skew_images == np.ceil(10 * stats.skew(scores[:, 0]) ** 2)
    assert rank_sets(scores, by=MEANS).better.sum() == 0
    assert rank_sets(scores, by=WINS).better[1, 0]
    many = generator().lognormal(0, 0.2, (60, 2))
    assert not np.isnan(Comparison(many, by=MEANS).pairs[0, 1].p).any()


def test_the_probability_of_winning_counts_ties_half() -> None:
    scores = np.stack([np.repeat([1.0, 2.0, 3.0], [10, 20, 30]), np.full(60, 2.0)], axis=1)
    probability = Comparison(scores).win_probability(0, 1)
    assert probability.value == pytest.approx((30 + 10) / 60)


def test_one_large_cluster_does_not_decide_the_comparison() -> None:
    """Weights as of the generalized least squares of statsmodels' mixed model."""
    cluster = np.concatenate([np.zeros(200, int), np.repeat(np.arange(1, 40), 5)])
    source = generator(5)
    difference = 0.5 + 0.6 * source.normal(size=40)[cluster] + 0.8 * source.normal(size=len(cluster))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MixedLM(difference, np.ones((len(cluster), 1)), cluster).fit(reml=True)
    comparison = Comparison(
        np.stack([difference, np.zeros(len(cluster))], axis=1), {"cut-outs": cluster}, MEANS
    )
    effect = comparison.pairs[0, 1].effect
    assert comparison.scale * effect.value == pytest.approx(float(model.fe_params[0]), abs=0.05)
    assert comparison.scale * effect.variance**0.5 == pytest.approx(float(model.bse_fe[0]), rel=0.2)
    unweighted = mean_of(difference, {"cut-outs": cluster})
    assert effect.variance**0.5 * comparison.scale < 0.5 * unweighted.variance**0.5


def test_clusters_of_equal_size_have_equal_weights() -> None:
    cluster = np.arange(60) % 12
    scores = generator().normal(size=(60, 2)) + generator(1).normal(size=(12, 2))[cluster]
    effect = Comparison(scores, {"cut-outs": cluster}, MEANS).pairs[0, 1].effect
    expected = mean_of((scores[:, 0] - scores[:, 1]) / np.abs(scores).max(), {"cut-outs": cluster})
    assert (effect.value, effect.variance) == pytest.approx((expected.value, expected.variance))


def test_images_needed_and_detectable_differences_have_the_power() -> None:
    """The observed difference, with as many images as it needs, is significant in 80 % of the studies."""
    level = 0.95
    scores = generator(8).normal(size=(40, 2)) + np.array([0.4, 0.0])
    comparison = Comparison(scores, by=MEANS)
    images = round(comparison.images_needed(0, 1, level))
    difference = scores[:, 0] - scores[:, 1]

    def power(effect: float, images: int) -> float:
        """Of Student's t test with two sides, by the noncentral t distribution."""
        shift = images**0.5 * effect / difference.std(ddof=1)
        return float(stats.nct.sf(stats.t.isf((1 - level) / 2, images - 1), images - 1, shift))

    assert power(difference.mean(), images) == pytest.approx(0.8, abs=0.02)
    assert power(comparison.detectable(0, 1, level), 40) == pytest.approx(0.8, abs=0.02)
    assert Comparison(np.repeat(scores[:, :1], 2, axis=1)).images_needed(0, 1) == np.inf
    # With three methods, the first of six one-sided tests.
    assert Comparison(generator().normal(size=(40, 3)), by=MEANS).error == 1 / 6


def test_more_images_do_not_reduce_training_noise() -> None:
    image, seed = np.repeat(np.arange(500), 3), np.tile(np.arange(3), 500)
    source = generator(6)
    scores = source.normal(size=(3, 2))[seed] + 0.01 * source.normal(size=(1500, 2))
    comparison = Comparison(scores, {"images": image, "seeds": seed}, MEANS)
    assert comparison.images_needed(0, 1) == np.inf


def test_a_few_equal_differences_are_no_certainty() -> None:
    """Student's t of five equal differences is infinite; of all signs of them the observed ones come once in 32."""
    scores = np.tile([1.0, 0.0], (5, 1))
    assert compare(scores)[0, 1] == 1 / 32
    assert rank_sets(scores).high.tolist() == [2, 2]
    assert rank_sets(np.tile([1.0, 0.0], (6, 1))).high.tolist() == [1, 2]
    assert compare(np.ones((9, 2)))[0, 1] == 1


@pytest.mark.parametrize("levels", [3, 5])
def test_few_images_or_clusters_of_equal_differences_are_no_certainty_either(levels: int) -> None:
    """Copies of a difference under three seeds, or within a cut-out, add no independent sign."""
    source, wrong = generator(4), {"images": 0, "clusters": 0}
    rows, seeds = np.repeat(np.arange(levels), 3), np.tile(np.arange(3), levels)
    for _ in range(300):
        scores = np.stack([source.choice([-1.0, 1.0], size=levels)[rows], np.zeros(len(rows))], axis=1)
        wrong["images"] += int(rank_sets(scores, {"images": rows, "seeds": seeds}).better.any())
        wrong["clusters"] += int(rank_sets(scores, {"cut-outs": rows}).better.any())
    assert max(wrong.values()) / 300 <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5


def test_a_level_is_a_share() -> None:
    with pytest.raises(ValueError, match=r"^level: found 95\b"):
        rank_sets(np.ones((3, 2)), level=95)


def test_holm_is_that_of_the_definition() -> None:
    p = np.array([[np.nan, 0.011, 0.2], [0.6, np.nan, 0.009], [0.04, 0.02, np.nan]])
    # 6 × 0.009, 5 × 0.011, 4 × 0.02, 3 × 0.04; then 2 × 0.2, and 0.6.
    expected = [[np.nan, 0.055, 0.4], [0.6, np.nan, 0.054], [0.12, 0.08, np.nan]]
    np.testing.assert_allclose(holm(p), expected)
    # 2 × 0.11 is less than 3 × 0.1; 3 × 0.5 is more than 1.
    np.testing.assert_allclose(holm(np.array([0.1, 0.11])), [0.2, 0.2])
    np.testing.assert_allclose(holm(np.array([0.5, 0.6, np.nan])), [1, 1, np.nan])
    np.testing.assert_allclose(
        holm(np.array([0.04, np.nan, 0.001, 0.02, 0.021])), [0.06, np.nan, 0.004, 0.06, 0.06]
    )


def test_shaffers_factors_are_the_largest_numbers_of_true_equalities() -> None:
    """Of four methods, 6 equalities can be true, then 3 (three equal ones), 2 or 1."""
    p = np.full((4, 4), np.nan)
    one_sided = iter([0.001, 0.002, 0.003, 0.004, 0.005, 0.006])
    for row, column in zip(*np.triu_indices(4, 1), strict=True):
        p[row, column] = next(one_sided)
        p[column, row] = 1 - p[row, column]
    corrected = adjusted(p, complete=True)
    expected = np.maximum.accumulate(
        2 * np.array([6, 3, 3, 3, 2, 1]) * [0.001, 0.002, 0.003, 0.004, 0.005, 0.006]
    )
    np.testing.assert_allclose(corrected[np.triu_indices(4, 1)], expected)
    assert (corrected[np.tril_indices(4, -1)] == 1).all()
    np.testing.assert_allclose(adjusted(p)[0, 2], 2 * 5 * 0.002)


@pytest.mark.parametrize("by", [WINS, MEANS])
def test_observed_ranks_are_within_their_sets(by: Literal["wins", "means"]) -> None:
    source = generator(9)
    for _ in range(30):
        scores = source.normal(size=(30, 5)) + np.linspace(0, 1.5, 5)
        scores[source.random(scores.shape) < 0.5] = np.nan
        ranks = rank_sets(scores, by=by)
        assert ((ranks.low <= ranks.rank) & (ranks.rank <= ranks.high) | np.isnan(ranks.rank)).all()


# ---- rank sets


def test_rank_sets_count_the_methods_that_are_better_and_worse() -> None:
    scores = generator().normal(size=(100, 5)) + np.array([0, 0, 5, 5, 9])
    scores[:, 1] = np.nan
    ranks = rank_sets(scores)
    np.testing.assert_array_equal(ranks.low, [4, np.nan, 2, 2, 1])
    np.testing.assert_array_equal(ranks.high, [4, np.nan, 3, 3, 1])


def test_a_method_without_scores_on_hard_images_is_not_ranked_above_a_better_one() -> None:
    """It has no score on the 50 hard images, and is worse on each shared one, but has the higher mean."""
    easy = generator().normal(size=(100, 1)) - 5 * (np.arange(100) >= 50)[:, None]
    scores = easy + np.array([0.5, 0.0]) + 0.1 * generator(1).normal(size=(100, 2))
    scores[50:, 1] = np.nan
    assert np.nanmean(scores[:, 1]) > np.nanmean(scores[:, 0])
    ranks = rank_sets(scores)
    assert (ranks.low.tolist(), ranks.high.tolist()) == ([1, 2], [1, 2])


def test_nothing_to_rank() -> None:
    for scores in (np.ones((4, 1)), np.full((4, 3), np.nan), np.ones((0, 2))):
        assert np.isnan([rank_sets(scores).low, rank_sets(scores).high]).all()
    one_image = rank_sets(np.array([[1.0, 2.0]]))
    assert (one_image.low.tolist(), one_image.high.tolist()) == ([1, 1], [2, 2])


def test_differences_of_rounding_are_ties() -> None:
    scores = np.stack([-abs(np.full(30, 0.6) - 0.7), -abs(np.full(30, 0.8) - 0.7)], axis=1)
    assert np.ptp(scores) > 0
    assert rank_sets(scores).low.tolist() == [1, 1]
    assert np.isnan(mean_of(np.full(30, 0.2)).interval()).all()


@pytest.mark.parametrize("scale", [1e160, 1e-200])
def test_the_scale_of_scores_does_not_matter(scale: float) -> None:
    scores = generator().normal(size=(40, 3)) + np.array([0, 0.1, 2])
    np.testing.assert_array_equal(rank_sets(scale * scores).better, rank_sets(scores).better)


def test_methods_that_are_better_in_a_circle_are_not_distinguished() -> None:
    scores = np.full((90, 3), np.nan)
    for part, (better, worse) in enumerate([(0, 1), (1, 2), (2, 0)]):
        scores[30 * part : 30 * (part + 1), [better, worse]] = [1, 0]
    ranks = rank_sets(scores)
    assert (ranks.low.tolist(), ranks.high.tolist()) == ([1, 1, 1], [3, 3, 3])
    scores = np.column_stack([scores, np.full(90, -5.0)])
    assert rank_sets(scores).high.tolist() == [3, 3, 3, 4]


def test_a_comparison_with_more_training_noise_has_its_own_degrees_of_freedom() -> None:
    """One unstable method of eight: its own two degrees of freedom, not the 14 of all comparisons."""
    source = generator(3)
    image, seed = np.repeat(np.arange(200), 3), np.tile(np.arange(3), 200)
    scores = 0.1 * source.normal(size=(600, 8))
    scores[:, 0] += np.array([0.5, 1.0, 1.6])[seed]
    p = compare(scores, {"images": image, "seeds": seed})
    own = stats.ttest_1samp([0.5, 1.0, 1.6], 0, alternative="greater").pvalue
    assert p[0, 1] == pytest.approx(own, rel=0.2)


def images_only(methods: int, source: np.random.Generator) -> tuple[Array, Factors]:
    return source.normal(size=(60, 1)) + source.normal(size=(60, methods)), {}


def clustered(methods: int, source: np.random.Generator) -> tuple[Array, Factors]:
    cutout, scene = source.integers(40, size=120), source.integers(40, size=120)
    scores = 0.3**0.5 * (source.normal(size=(40, methods))[cutout] + source.normal(size=(40, methods))[scene])
    return scores + 0.4**0.5 * source.normal(size=(120, methods)), {"cut-out": cutout, "scene": scene}


def trained(methods: int, source: np.random.Generator) -> tuple[Array, Factors]:
    """300 images scored 0 or 1, three seeds, each training one point better or worse."""
    image, seed = np.repeat(np.arange(300), 3), np.tile(np.arange(3), 300)
    right = 0.7 + 0.01 * source.normal(size=(3, methods))[seed] + 0.2 * source.normal(size=(300, 1))[image]
    return (source.random(right.shape) < right).astype(float), {"image": image, "seed": seed}


STUDIES = [(images_only, 2, WINS), (images_only, 5, MEANS), (clustered, 5, WINS), (trained, 5, MEANS)]


@pytest.mark.parametrize(
    ("study", "methods", "by"),
    [
        study if study in STUDIES else pytest.param(*study, marks=pytest.mark.exhaustive)
        for study in product((images_only, clustered, trained), (2, 5), (WINS, MEANS))
    ],
)
def test_equal_methods_are_rarely_called_different(
    study: Callable[[int, np.random.Generator], tuple[Array, Factors]],
    methods: int,
    by: Literal["wins", "means"],
) -> None:
    """At most 5 %, and three standard errors of 400 studies."""
    source, wrong = generator(11), 0
    for _ in range(400):
        wrong += int(rank_sets(*study(methods, source), by=by).better.any())
    assert wrong / 400 <= 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5

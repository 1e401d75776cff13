"""Means, comparisons and rank sets: textbook cases, scipy, plain loops, and simulated studies."""

from collections.abc import Callable
from itertools import permutations

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from saliency_assay.reliability.comparison import Factors, compare, holm, mean_of, rank_sets

Array = npt.NDArray[np.float64]


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# ---- means


def test_an_outlier_does_not_hide_the_other_differences() -> None:
    scores = generator().normal(size=(200, 3))
    scores[:, 1] += 1
    expected = compare(scores)
    scores[0, 2] = 1e15
    assert compare(scores)[1, 0] == pytest.approx(expected[1, 0], rel=1e-6)
    noise = 1 + 1e-15 * generator(1).normal(size=(50, 2))
    assert compare(noise)[0, 1] == compare(noise)[1, 0] == 1


def test_without_factors_the_interval_is_students() -> None:
    values = generator().normal(size=20)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert mean_of(values).interval(0.9) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert mean_of(np.append(values, np.nan)).interval(0.9) == mean_of(values).interval(0.9)
    p = stats.ttest_1samp(values, 0, alternative="greater").pvalue
    assert mean_of(values).p_value() == pytest.approx(p, rel=1e-9)
    assert mean_of(-values).p_value() == pytest.approx(1 - p, rel=1e-9)


def test_a_nested_factor_gives_the_one_way_analysis_of_variance() -> None:
    """Of balanced clusters the variance of the mean is the mean square between them."""
    cluster = np.repeat(np.arange(12), 5)
    values = generator().normal(size=12)[cluster] + 0.5 * generator(1).normal(size=60)
    of_clusters = values.reshape(12, 5).mean(1)
    expected = stats.ttest_1samp(of_clusters, 0).confidence_interval(0.95)
    found = mean_of(values, {"cluster": cluster})
    assert found.variance == pytest.approx(of_clusters.var(ddof=1) / 12)
    # Satterthwaite counts the residual, too, so the interval is hardly wider.
    assert found.interval() == pytest.approx((expected.low, expected.high), rel=0.02)


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
    found = mean_of(table.ravel(), {"image": image, "seed": seed})
    assert found.value == pytest.approx(mean)
    assert found.variance == pytest.approx((between + trained - left) / table.size)
    assert found.degrees[1] == seeds - 1


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
    for found in (mean_of(values, {"seed": np.zeros(9, int)}), mean_of(values[:1])):
        assert np.isnan([found.variance, *found.interval()]).all()
    assert np.isnan(mean_of(np.full(3, np.nan)).value)
    assert np.isnan(mean_of(np.ones(5)).interval()).all()


def unbiased(factors: Factors, components: dict[str, float]) -> float:
    """Mean estimated variance of simulated means over the one that they have."""
    source, count = generator(5), len(next(iter(factors.values())))
    means, estimates = [], []
    for _ in range(3000):
        values = source.normal(size=count)
        for name, factor in factors.items():
            values += components[name] * source.normal(size=factor.max() + 1)[factor]
        found = mean_of(values, factors)
        means.append(found.value)
        estimates.append(found.variance)
    return float(np.mean(estimates) / np.var(means))


def test_estimated_variances_are_unbiased_where_factors_are_unbalanced() -> None:
    source = generator()
    cutout, scene = source.integers(90, size=300) ** 2 // 90, source.integers(120, size=300)
    factors = {
        "cut-out": np.unique(cutout, return_inverse=True)[1],
        "scene": np.unique(scene, return_inverse=True)[1],
    }
    assert unbiased(factors, {"cut-out": 0.7, "scene": 0.5}) == pytest.approx(1, abs=0.1)
    image, seed = np.repeat(np.arange(40), 5), np.tile(np.arange(5), 40)
    assert unbiased({"image": image, "seed": seed}, {"image": 0.5, "seed": 0.6}) == pytest.approx(1, abs=0.15)


# ---- comparisons


def test_pairs_are_compared_on_the_images_that_have_both() -> None:
    scores = generator().normal(size=(40, 3)) + np.array([0, 0.3, 0.6])
    scores[generator(1).random(scores.shape) < 0.3] = np.nan
    found = compare(scores)
    for one, other in permutations(range(3), 2):
        both = scores[~np.isnan(scores[:, [one, other]]).any(1)]
        expected = stats.ttest_rel(both[:, one], both[:, other], alternative="greater").pvalue
        assert found[one, other] == pytest.approx(expected, rel=1e-9)
    assert np.isnan(np.diagonal(found)).all()


def test_a_few_equal_differences_are_no_certainty() -> None:
    """Student's t of five equal differences is infinite; of all signs of them the observed ones come once in 32."""
    scores = np.tile([1.0, 0.0], (5, 1))
    assert compare(scores)[0, 1] == 1 / 32
    assert rank_sets(scores).high.tolist() == [2, 2]
    assert rank_sets(np.tile([1.0, 0.0], (6, 1))).high.tolist() == [1, 2]
    assert compare(np.ones((9, 2)))[0, 1] == 1


@pytest.mark.parametrize("levels", [3, 4, 5])
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
    with pytest.raises(ValueError, match=r"^level: found 95, expected a share in \(0, 1\)$"):
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


# ---- rank sets


def test_rank_sets_count_the_methods_that_are_better_and_worse() -> None:
    scores = generator().normal(size=(100, 5)) + np.array([0, 0, 5, 5, 9])
    scores[:, 1] = np.nan
    found = rank_sets(scores)
    np.testing.assert_array_equal(found.low, [4, np.nan, 2, 2, 1])
    np.testing.assert_array_equal(found.high, [4, np.nan, 3, 3, 1])


def test_a_method_without_scores_on_hard_images_is_not_ranked_above_a_better_one() -> None:
    """The audit's example: no score on the 50 hard images, and worse on each shared one, but with the higher mean."""
    easy = generator().normal(size=(100, 1)) - 5 * (np.arange(100) >= 50)[:, None]
    scores = easy + np.array([0.5, 0.0]) + 0.1 * generator(1).normal(size=(100, 2))
    scores[50:, 1] = np.nan
    assert np.nanmean(scores[:, 1]) > np.nanmean(scores[:, 0])
    found = rank_sets(scores)
    assert (found.low.tolist(), found.high.tolist()) == ([1, 2], [1, 2])


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
    expected, found = rank_sets(scores), rank_sets(scale * scores)
    np.testing.assert_array_equal(found.better, expected.better)


def test_methods_that_are_better_in_a_circle_are_not_distinguished() -> None:
    scores = np.full((90, 3), np.nan)
    for part, (better, worse) in enumerate([(0, 1), (1, 2), (2, 0)]):
        scores[30 * part : 30 * (part + 1), [better, worse]] = [1, 0]
    found = rank_sets(scores)
    assert (found.low.tolist(), found.high.tolist()) == ([1, 1, 1], [3, 3, 3])
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


@pytest.mark.parametrize("study", [images_only, clustered, trained])
@pytest.mark.parametrize("methods", [2, 5])
def test_equal_methods_are_rarely_called_different(
    study: Callable[[int, np.random.Generator], tuple[Array, Factors]], methods: int
) -> None:
    """At most 5 %, and three standard errors of 400 studies."""
    source, wrong = generator(11), 0
    for _ in range(400):
        wrong += int(rank_sets(*study(methods, source)).better.any())
    assert wrong / 400 <= 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5


def test_training_noise_is_not_taken_for_an_order() -> None:
    """Training noise of one point, hardly any noise of images: a resampling of images alone is always sure."""
    image, seed = np.repeat(np.arange(2000), 3), np.tile(np.arange(3), 2000)
    source = generator(2)
    wrong, sure = 0, 0
    for _ in range(60):
        scores = 0.01 * source.normal(size=(3, 3))[seed] + 0.02 * source.normal(size=(6000, 3))
        wrong += int(rank_sets(scores, {"image": image, "seed": seed}).better.any())
        sure += int(rank_sets(scores.reshape(2000, 3, 3).mean(1)).better.any())
    assert sure > 50
    assert wrong <= 9

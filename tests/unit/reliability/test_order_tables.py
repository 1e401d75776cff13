"""Comparisons of pairs of methods, from score tables: probabilities of winning, missing scores, margins, one seed."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from saliency_assay import assess
from saliency_assay.reliability import comparison
from saliency_assay.reliability.order_tables import COMPARED, UNTESTED, ComparedScores, Rule, order_tables
from saliency_assay.report.pages import words

NAN = float("nan")
HIGHER = {"aopc": "higher"}


def table_of(scores: Mapping[str, Sequence[float] | np.ndarray], *, seed: int = 0) -> pd.DataFrame:
    parts = []
    for method, values in scores.items():
        part = pd.DataFrame({"score": np.asarray(values, dtype=float), "image": np.arange(len(values))})
        names = {"study": "s", "data": "d", "model": "m", "seed": seed, "method": method}
        parts.append(part.assign(**names, metric="aopc", variant="aopc 1"))
    return pd.concat(parts, ignore_index=True)


def noise(methods: int, images: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(methods, images))


def test_every_pair_has_both_answers() -> None:
    a, b, c = noise(3, 50) + np.array([[0.5], [0.0], [2.0]])
    _, pairs = order_tables(table_of({"a": a, "b": b, "c": c}), HIGHER)
    assert list(pairs.columns) == COMPARED
    assert list(zip(pairs["method"], pairs["other"], strict=True)) == [("a", "b"), ("a", "c"), ("b", "c")]
    row = pairs.iloc[0]
    wins = int((a > b).sum())
    exact = stats.binomtest(wins, 50).proportion_ci(0.95, "exact")
    assert tuple(row[["wins", "wins_low", "wins_high"]]) == pytest.approx((wins / 50, exact.low, exact.high))
    assert row["difference"] == pytest.approx((a - b).mean())
    scores = np.stack([a, b, c], axis=1)
    for column, by in (("wins_p", "wins"), ("difference_p", "means")):
        ranks = comparison.rank_sets(scores, by=by)
        assert row[column] == pytest.approx(min(ranks.p[0, 1], ranks.p[1, 0]))
    assert list(pairs["finding"][1:]) == ["worse", "worse"]


def test_lower_is_better_changes_only_the_signs() -> None:
    values = noise(2, 40) + np.array([[2.0], [0.0]])
    pairs = [
        order_tables(table_of(dict(zip("ab", sign * values, strict=True))), {"aopc": direction})[1]
        for sign, direction in ((1, "higher"), (-1, "lower"))
    ]
    pd.testing.assert_frame_equal(*pairs)
    assert pairs[0]["finding"].item() == "better"


def test_intervals_end_at_the_range_of_the_score() -> None:
    scores = table_of({"a": [0, 0.1, 0.5, 0.9, 1], "b": [0.1, 0, 0.5, 1, 0.9]})
    student = stats.ttest_1samp([0, 0.1, 0.5, 0.9, 1], 0).confidence_interval()
    free, limited, exceeded = (
        order_tables(scores, HIGHER, ranges=ranges)[0].loc[0]
        for ranges in ({}, {"aopc": (0.0, 1.0)}, {"aopc": (0.2, 0.5)})
    )
    assert (free["low"], free["high"]) == pytest.approx((student.low, student.high))
    assert student.low < 0 < 1 < student.high
    assert (limited["low"], limited["high"]) == (0, 1)
    assert (exceeded["low"], exceeded["high"]) == (0, 1)  # the range is that of default parameters
    pairs = order_tables(
        table_of({"a": [0, 1, 0.5, 1, 0], "b": [1, 0, 0.5, 0, 1]}), HIGHER, ranges={"aopc": (0, 1)}
    )[1]
    assert tuple(pairs.loc[0, ["difference_low", "difference_high"]]) == (-1, 1)


def test_rates_have_intervals_even_without_a_failure() -> None:
    order, pairs = order_tables(table_of({"a": np.ones(198), "b": np.zeros(198)}), HIGHER)
    wilson = stats.binomtest(198, 198).proportion_ci(0.95, "wilson")
    assert tuple(order.loc[0, ["low", "high"]]) == pytest.approx((wilson.low, 1))
    exact = stats.binomtest(198, 198).proportion_ci(0.95, "exact")
    assert pairs["wins_low"].item() == pytest.approx(exact.low)
    assert pairs["finding"].item() == "better"


def test_skewed_means_have_no_interval_and_say_how_many_images_would_do() -> None:
    skewed = np.random.default_rng(0).lognormal(0, 1.5, size=(2, 40))
    order, pairs = order_tables(table_of({"a": skewed[0], "b": skewed[1] + 9}), HIGHER)
    assert order["low"].isna().any()
    assert pairs[["difference_low", "difference_p"]].isna().all(axis=None)
    expected = np.ceil(10 * max(abs(stats.skew(each)) for each in skewed) ** 2)
    assert pairs["skew_images"].item() == expected > 40
    assert pairs["finding"].item() == "worse"  # by the number of images on which b wins
    _, of_means = order_tables(table_of({"a": skewed[0], "b": skewed[1] + 9}), HIGHER, rule=Rule("means"))
    assert of_means["finding"].item() == "not tested"
    assert of_means["images_needed"].item() >= expected


def test_missing_scores_are_bounded_by_the_worst_and_the_best() -> None:
    a, b = np.array([3.0] * 8 + [NAN] * 4), np.array([1.0] * 10 + [0.0, NAN])
    order, pairs = order_tables(table_of({"a": a, "b": b}), HIGHER)
    means = order[["mean", "mean_worst", "mean_best"]].to_numpy()
    # The last image has no score of any method, so that none is missing.
    np.testing.assert_allclose(means, [[3, 24 / 11, 3], [10 / 11] * 3])
    assert tuple(pairs.loc[0, ["wins", "wins_worst", "wins_best"]]) == pytest.approx((1, 8 / 11, 1))
    assert order[["images", "all_images", "undefined"]].to_numpy().tolist() == [[8, 12, 3 / 11], [11, 12, 0]]
    assert pairs["images"].item() == 8


@pytest.mark.parametrize(("unit", "margin"), [("sd", 0.5), ("score", 0.5)])
def test_equal_means_are_equivalent_within_a_margin(unit: str, margin: float) -> None:
    values = noise(3, 400) + np.array([[0.0], [0.0], [3.0]])
    table = table_of(dict(zip("abc", values, strict=True)))
    rule = Rule(margin=margin, margin_unit=unit)  # type: ignore[arg-type]
    _, pairs = order_tables(table, HIGHER, rule=rule)
    assert list(pairs["finding"]) == ["equivalent", "worse", "worse"]
    limit = margin * (values.std() if unit == "sd" else 1)
    difference = values[0] - values[1]
    tests = [
        stats.ttest_1samp(difference, end, alternative=side).pvalue
        for end, side in ((-limit, "greater"), (limit, "less"))
    ]
    assert pairs["equivalent_p"][0] == pytest.approx(3 * max(tests), rel=0.05)
    _, without = order_tables(table, HIGHER)
    assert list(without["finding"]) == ["not distinguishable", "worse", "worse"]
    few = table[table["image"] < 10]
    assert order_tables(few, HIGHER, rule=rule)[1]["finding"][0] == "not distinguishable"


def test_one_seed_of_retrained_models_tests_nothing() -> None:
    values = noise(3, 500) + np.array([[0.0], [1.0], [5.0]])
    table = table_of(dict(zip("abc", values, strict=True)))
    order, pairs = order_tables(table, HIGHER, retrained=True)
    assert (order[["rank_low", "rank_high"]] == [1, 3]).all(axis=None)
    assert set(order["over"]) == {UNTESTED}
    assert order[["low", "high", "lead_low", "lead_high", "lead_p"]].isna().all(axis=None)
    untested = ["difference_low", "wins_low", "wins_p", "difference_p", "images_needed"]
    assert pairs[untested].isna().all(axis=None)
    assert set(pairs["finding"]) == {"not tested"}
    seeds = pd.concat([table, table.assign(seed=1, score=table["score"] + 0.01), table.assign(seed=2)])
    order, _ = order_tables(seeds, HIGHER, retrained=True)
    assert order.set_index("method").loc["c", "rank_high"] == 1


def test_methods_without_common_images_are_not_tested() -> None:
    a, b = np.array([1.0, 2, 3, NAN, NAN, NAN]), np.array([NAN, NAN, NAN, 1, 2, 3])
    _, pairs = order_tables(table_of({"a": a, "b": b, "none": np.full(6, NAN)}), HIGHER)
    assert set(pairs["finding"]) == {"not tested"}
    assert pairs[["difference", "wins", "wins_low", "detectable", "images_needed"]].isna().all(axis=None)
    assert tuple(pairs.loc[0, ["wins_worst", "wins_best", "images"]]) == (0, 1, 0)


def test_images_without_any_score_change_nothing_but_their_number() -> None:
    """Sixty images, of which 26 have an object to localize: comparisons are those of these images."""
    values = noise(4, 26) + np.array([[0.0], [0.1], [0.8], [3.0]])
    alone = table_of(dict(zip("abcd", values, strict=True)))
    healthy = alone.assign(image=alone["image"] + 26, score=NAN)
    more = healthy.assign(image=healthy["image"] + 26)
    table = pd.concat([alone, healthy, more[more["image"] < 60]], ignore_index=True)
    (order, pairs), (order_alone, pairs_alone) = (
        order_tables(each, HIGHER, ("a",)) for each in (table, alone)
    )
    assert set(order["all_images"]) == {60}
    pd.testing.assert_frame_equal(order.assign(all_images=26), order_alone)
    pd.testing.assert_frame_equal(pairs, pairs_alone)
    wide = table.pivot(index="image", columns="method", values="score")
    expected, assessed = (assess(each, direction="higher", resamples=50) for each in (wide.dropna(), wide))
    pd.testing.assert_frame_equal(assessed.order, expected.order)
    pd.testing.assert_frame_equal(assessed.pairs, expected.pairs)
    assert assessed.alpha == expected.alpha
    assert words.undefined_words(order, "a metric") == []
    assert " on 26 of 60 images and account" in words.basis_words(order)
    none, _ = order_tables(table.assign(score=NAN), HIGHER)
    assert none[["images", "all_images", "undefined"]].to_numpy().tolist() == [[0, 60, 1]] * 4


def test_a_third_method_without_scores_takes_no_image_from_a_pair() -> None:
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(20, 3)) * 0.1 + [2.0, 1.0, 0.0]
    pairs = []
    for missing in (0, 15):
        scores[:missing, 2] = np.nan
        wide = pd.DataFrame(scores, columns=["a", "b", "c"])
        [pair, *_] = ComparedScores(wide, "higher", {}, rule=Rule()).pair_rows()
        pairs.append(pair)
    assert [pair["images"] for pair in pairs] == [20, 20]
    assert pairs[0]["wins"] == pairs[1]["wins"] == 1
    assert pairs[1]["wins_p"] < 0.05


def test_neighbors_among_many_methods_need_more_images_than_a_pair() -> None:
    """``wins_p`` compares win rates against all methods, in which neighbors differ by one of the others."""
    scores = np.random.default_rng(0).normal(size=(20, 8)) * 0.01 + np.arange(8.0)
    wide = pd.DataFrame(scores, columns=list("abcdefgh"))
    pairs = {
        (row["method"], row["other"]): row
        for row in ComparedScores(wide, "higher", {}, rule=Rule()).pair_rows()
    }
    assert {row["wins"] for row in pairs.values()} == {0}
    assert pairs["a", "b"]["finding"] == "not distinguishable"
    assert pairs["a", "h"]["finding"] == "worse"
    [alone] = ComparedScores(wide[["a", "b"]], "higher", {}, rule=Rule()).pair_rows()
    assert alone["finding"] == "worse"


@pytest.mark.parametrize("methods", [3, 6])
def test_the_images_needed_are_those_of_the_test(methods: int) -> None:
    """Under perfect agreement, the number is the smallest one with which the test finds the pair different."""

    def compared(images: int) -> comparison.Comparison:
        return comparison.Comparison(np.tile(-np.arange(methods), (images, 1)))

    for pair in ((0, 1), (1, 2), (0, methods - 1)):
        needed = next(images for images in range(2, 60) if compared(images).adjusted_p[pair] <= 0.05)
        for images in (10, 20, 40):
            assert abs(compared(images).images_needed(*pair) - needed) <= 2


@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0])
def test_a_pair_that_is_not_distinguishable_needs_more_images(spread: float) -> None:
    for images in (5, 12, 30):
        scores = spread * noise(5, images, seed=images).T - np.arange(5)
        compared = comparison.Comparison(scores)
        for pair in compared.pairs:
            if min(compared.adjusted_p[pair], compared.adjusted_p[pair[::-1]]) > 0.05:
                assert compared.images_needed(*pair) > images

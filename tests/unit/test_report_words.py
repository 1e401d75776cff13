"""Each sentence of the report under its condition, and not under what looks like it."""

import numpy as np
import pandas as pd
import pytest
from report_tables import NAN, order_rows, ranking_rows, reliability_rows

from saliency_assay.report.summary import (
    Finding,
    baseline_words,
    first_words,
    missing_words,
    multiplicity_words,
    single_images_words,
    summary_words,
    top_words,
)
from saliency_assay.report.words import (
    ONE_SEED,
    alpha_row,
    alpha_words,
    groups,
    halves_words,
    joined,
    number,
    order_words,
    percent,
    rank_set,
    ranking_words,
    reliability_words,
    single_image_words,
    undefined_words,
)

CLEAR = order_rows({"a": (1, 1), "b": (2, 2), "random": (3, 3)})
TIED = order_rows({"a": (1, 2), "b": (1, 3), "c": (2, 3)})
HIGH = {"alpha": 1.0, "alpha_low": 1.0, "alpha_high": 1.0}
NAMES = {("x", "x"): "X", ("y", "y"): "Y", ("z", "z"): "Z"}


# ---- ranked first


def test_a_method_with_the_rank_set_1_is_ranked_first() -> None:
    assert order_words(CLEAR) == (
        "a is ranked first (mean 9, 95 % confidence interval 8.5 to 9.5); 60 images; rank sets account for variation"
        f" over images; {ONE_SEED}. Every other method is significantly better than the baseline (random)."
    )


def test_a_method_that_is_not_worse_than_any_need_not_be_first() -> None:
    """The leader by means is alone in no more than the images can distinguish."""
    words = order_words(TIED)
    assert words.startswith("a and b are not distinguishable at the top (rank sets 1–2 and 1–3); 60 images;")
    assert "first" not in words
    same = order_rows({"a": (1, 3), "b": (1, 3), "c": (1, 3)})
    assert order_words(same).startswith("a, b and c are not distinguishable at the top (rank set 1–3 each)")


def test_one_method_at_the_top_that_some_other_is_not_worse_than_is_not_ranked_first() -> None:
    """a is better than b alone, b better than c: c is not distinguishable from a."""
    words = order_words(order_rows({"a": (1, 2), "b": (2, 2), "c": (2, 3)}))
    assert words.startswith(
        "a may be ranked first (rank set 1–2) but is not distinguishable from every other"
    )


def test_where_every_method_is_worse_than_another_none_is_ranked_first() -> None:
    """Comparisons on other images for every pair can go around in a circle."""
    words = order_words(order_rows({"a": (2, 2), "b": (2, 2), "c": (2, 2)}))
    assert words.startswith(
        "No method is ranked first: each is worse than another one on the images on which both"
    )


@pytest.mark.parametrize("seeds", [1, 3])
def test_every_line_on_ranks_has_images_variation_and_seeds(seeds: int) -> None:
    over = "images × seeds" if seeds > 1 else "cut-outs × scenes"
    basis = "3 training seeds" if seeds > 1 else "other trainings may order the methods differently"
    for rows in (CLEAR, TIED):
        changed = rows.assign(seeds=seeds, over=over, images=[40, 60, 60])
        (shared, alone) = (
            top_words([Finding("X", changed, None)]),
            first_words([Finding("X", changed, None)]),
        )
        for words in filter(None, (order_words(changed), shared, alone)):
            assert "40–60 images; rank sets account for variation over" in words
            assert over in words
            assert basis in words


def test_few_images_detect_large_differences_only() -> None:
    few = "With so few images (20) only large differences can be detected."
    assert few in order_words(CLEAR.assign(images=20))
    assert "so few images" not in order_words(CLEAR.assign(images=30))


def test_a_single_image_has_a_mean_without_an_interval() -> None:
    words = order_words(CLEAR.assign(low=NAN, high=NAN, images=1))
    assert words.startswith("a is ranked first (mean 9); 1 image;")


def test_a_single_method_with_scores_has_no_rank() -> None:
    rows = order_rows({"a": (1, 1), "b": (NAN, NAN)}).assign(rank_low=NAN, rank_high=NAN)
    assert order_words(rows) == "Fewer than two methods have a score, so there are no ranks."
    assert "no ranks" in first_words([Finding("X", rows, None)])


def test_the_summary_counts_metrics_with_the_errors_to_expect() -> None:
    findings = [Finding("X", CLEAR, None), Finding("Y", TIED, None), Finding("Z", CLEAR, None)]
    words = first_words(findings)
    assert words.startswith(
        "One method is ranked first on 2 of 3 metrics: a on X and Z. 60 images; rank sets"
    )
    assert words.endswith("of 3 metrics up to 0.15 are expected to contain an error.")
    assert top_words(findings).startswith(
        "Not distinguishable at the top: a and b on Y (rank sets 1–2 and 1–3). 60 images;"
    )
    assert first_words(findings[1:2]).startswith(
        "No method that uses the model is ranked first (0 of 1 metric)."
    )
    assert top_words(findings[:1]) == ""
    assert multiplicity_words(1) == ""
    assert "of 40 metrics up to 2 are" in multiplicity_words(40)


# ---- baselines


def test_a_baseline_that_no_method_is_better_than_makes_a_score_no_evidence() -> None:
    rows = order_rows({"random": (1, 2), "a": (1, 2), "b": (3, 3)}, above_controls={"a": 0.0, "b": 0.0})
    words = order_words(rows)
    assert "random (a baseline) and a are not distinguishable at the top (rank set 1–2 each)" in words
    assert (
        "random is a baseline that does not use the model, and no method is significantly better than it"
        in words
    )
    assert words.endswith("Not significantly better than the baseline (random): a and b.")
    first, weak = baseline_words([Finding("X", rows, None)])
    assert first.startswith("No method is significantly better than these baselines: random on X. There,")
    assert weak == "Not significantly better than every baseline: a and b (X)."
    assert first_words([Finding("X", rows, None)]).startswith("No method that uses the model is ranked first")


def test_better_than_the_baselines_follows_from_comparisons_and_not_from_ranks() -> None:
    """m has the rank of a and a smaller rank set than random, and is not significantly better than random."""
    rows = order_rows({"a": (1, 1), "m": (2, 3), "random": (2, 3)}, above_controls={"m": 0.0})
    assert order_words(rows).endswith("Not significantly better than the baseline (random): m.")
    assert baseline_words([Finding("X", rows, None)]) == [
        "Not significantly better than every baseline: m (X)."
    ]
    assert baseline_words([Finding("X", CLEAR, None)]) == []


def test_a_study_of_baselines_alone_has_no_method_above_them() -> None:
    words = order_words(order_rows({"random": (1, 2), "edge": (1, 2)}))
    assert "random and edge are baselines that do not use the model" in words
    assert "Every other method" not in words
    assert "Not significantly better than every" not in words


def test_without_baselines_there_is_no_comparison_with_them() -> None:
    assert "baseline" not in order_words(TIED)
    assert "baseline" not in order_words(order_rows({"a": (1, 1), "b": (2, 2), "random": (NAN, NAN)}))


# ---- missing scores


def test_a_method_without_scores_on_many_images_is_a_finding() -> None:
    """It may be ranked first on the images that it has scores on."""
    rows = order_rows({"a": (1, 1), "b": (2, 2)}, undefined={"a": 0.5, "b": 0.05})
    words = (
        "a has no score on 50\u00a0% of the images under X; it is compared with each other method only on images on"
        " which both have a score."
    )
    assert undefined_words(rows, "X") == [words]
    assert words in summary_words([Finding("X", rows, None)])
    assert undefined_words(CLEAR, "X") == []


def test_several_methods_without_scores_are_one_finding_and_those_without_any_another() -> None:
    rows = order_rows({"a": (1, 2), "b": (1, 2), "c": (NAN, NAN)}, undefined={"a": 0.5, "b": 0.06})
    none, some = undefined_words(rows, "X")
    assert none == "c has no score on any image under X and is not ranked."
    assert some.startswith(
        "a (50\u00a0%) and b (6\u00a0%) have no score on a part of the images under X; two methods"
    )


# ---- α


def test_metrics_under_which_the_same_scores_are_missing_share_a_sentence() -> None:
    rows = order_rows({"a": (1, 1), "b": (2, 2)}, undefined={"a": 0.5})
    other = order_rows({"a": (1, 1), "b": (2, 2)}, undefined={"a": 0.1})
    [first, second] = missing_words(
        [
            Finding("X", rows, None),
            Finding("Y", other, None),
            Finding("Z", rows, None),
            Finding("W", CLEAR, None),
        ]
    )
    assert first.startswith("a has no score on 50\u00a0% of the images under X and Z; ")
    assert second.startswith("a has no score on 10\u00a0% of the images under Y; ")


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (0.9, 0.8, 0.95, "images rank the methods alike"),
        (0.7, 0.5, 0.8, "images rank the methods more alike than by chance, but α may be below 0.65"),
        (0.3, 0.1, 0.5, "differs from image to image"),
        (0.05, -0.1, 0.08, "hardly more alike than by chance"),
        (0.38, -0.01, 0.87, "too wide to say"),
        (0.7, -0.01, 0.99, "too wide to say"),
        (1.0, NAN, NAN, "too few images for a confidence interval"),
        (NAN, NAN, NAN, "or all methods tie"),
    ],
)
def test_the_meaning_of_alpha_follows_from_its_interval(
    value: float, low: float, high: float, words: str
) -> None:
    assert words in alpha_words({"alpha": value, "alpha_low": low, "alpha_high": high})


def test_a_negative_alpha_is_not_called_a_contradiction() -> None:
    """A random sample of images has no negative α in its population: one below 0 is chance."""
    words = alpha_words({"alpha": -0.3, "alpha_low": -0.5, "alpha_high": -0.1})
    assert (
        words
        == "images rank the methods hardly more alike than by chance, so the means say little about one image"
    )


def test_alpha_without_an_interval_is_a_value_and_no_claim() -> None:
    row = alpha_row(reliability_rows((1.0, NAN, NAN), images=5), "good", "good")
    assert row is not None
    assert reliability_words(row, 0.999) == "α = 1.00 (5 images): too few images for a confidence interval."
    assert single_image_words(CLEAR, row) == ""
    shown, few = single_images_words([Finding("X", CLEAR, row)])
    assert shown.endswith("on no metric.")
    assert few == "Too few images for a confidence interval of α: X (α = 1.00)."


def test_alpha_of_several_seeds_is_their_mean_with_the_outermost_ends() -> None:
    table = reliability_rows((0.9, 0.8, 1.0), (0.5, 0.3, 0.6), controls=("with", "without"))
    table.loc[table["controls"] == "with", ["alpha", "alpha_low"]] = -1
    row = alpha_row(table, "good", "good")
    assert row is not None
    assert (row["alpha"], row["alpha_low"], row["alpha_high"]) == (0.7, 0.3, 1.0)
    assert reliability_words(row, 0.95).startswith(
        "α without baselines = 0.70 (95 % confidence interval 0.30 to 1.00, 60 images, mean of 2 seeds with"
    )
    assert alpha_row(table, "bad", "bad") is None


def test_one_seed_without_an_interval_leaves_none() -> None:
    row = alpha_row(reliability_rows((0.9, 0.8, 1.0), (0.5, NAN, NAN)), "good", "good")
    assert row is not None
    assert np.isnan(row["alpha_low"])
    assert np.isnan(row["alpha_high"])


# ---- single images


def test_the_order_of_means_holds_for_single_images_where_the_leader_wins_most() -> None:
    words = single_image_words(CLEAR.assign(wins=[0.9, 0.1, 0.0]), HIGH)
    assert (
        words
        == "a, which is ranked first by its mean, also has the best score on most single images (90\u00a0%)."
    )
    (shown,) = single_images_words([Finding("X", CLEAR, HIGH)])
    assert shown.endswith("on X (a, best on 100\u00a0%).")


def test_a_leader_that_wins_few_images_does_not_hold_for_single_ones() -> None:
    """α is 1.00 and a is ranked first by large scores on a tenth of the images; b is best on the others."""
    rows = CLEAR.assign(wins=[0.1, 0.9, 0.0])
    words = single_image_words(rows, HIGH)
    assert words == (
        "a, which is ranked first by its mean, has the best score on only 10\u00a0% of the images, b on 90\u00a0%: the"
        " means are decided by few images."
    )
    shown, few = single_images_words([Finding("X", rows, HIGH)])
    assert shown.endswith("on no metric.")
    assert few == f"On X, images rank the methods alike, but {words}"
    assert "most single images" not in few
    spread = single_image_words(CLEAR.assign(wins=[0.5, 0.3, 0.2]), HIGH)
    assert (
        spread == "a, which is ranked first by its mean, has the best score on only 50\u00a0% of the images."
    )


@pytest.mark.parametrize(
    ("rows", "alpha"),
    [
        (CLEAR, {**HIGH, "alpha_low": 0.64}),
        (CLEAR, {**HIGH, "alpha_low": NAN}),
        (CLEAR, None),
        (TIED, HIGH),
        (order_rows({"a": (1, 2), "b": (2, 2), "c": (2, 3)}), HIGH),
    ],
)
def test_single_images_need_a_reliable_ranking_and_a_method_ranked_first(
    rows: pd.DataFrame, alpha: dict[str, float] | None
) -> None:
    assert single_image_words(rows, alpha) == ""
    assert single_images_words([Finding("X", rows, alpha)])[0].endswith("on no metric.")


def test_a_baseline_ranked_first_is_no_order_to_expect() -> None:
    rows = order_rows({"random": (1, 1), "a": (2, 2)}, above_controls={"a": 0.0})
    (shown,) = single_images_words([Finding("X", rows, HIGH)])
    assert shown.endswith("on no metric.")


# ---- agreement


def test_raters_other_than_images_are_named_and_undefined_ones_left_out() -> None:
    rows = pd.DataFrame({"between": ["halves", "seeds"], "raters": [2, 3], "correlation": [0.934, NAN]})
    assert halves_words(rows) == (
        "Mean Spearman's ρ between the orders of the methods' means over two random halves of the images: 0.93."
    )


def test_metrics_rank_methods_alike_by_correlations_within_images() -> None:
    words = ranking_words(ranking_rows({("x", "y"): 0.5, ("x", "z"): 0.1, ("y", "z"): NAN}), NAMES)
    assert (
        words
        == "Metrics that rank the methods of single images alike (mean Spearman's ρ ≥ 0.5, 60 images): X and Y."
    )


def test_metrics_with_opposite_orders_are_no_group_however_alike_images_are_scored() -> None:
    """Two metrics that share the difficulty of images, and rank the methods in opposite orders on each of them."""
    words = ranking_words(ranking_rows({("x", "y"): -1.0}), NAMES)
    assert words.startswith("No two metrics rank the methods of single images alike")
    assert "evidence" not in words


def test_a_group_has_no_two_metrics_below_the_limit() -> None:
    """The mean over the group would be 0.53."""
    words = ranking_words(ranking_rows({("x", "y"): 0.9, ("y", "z"): 0.6, ("x", "z"): 0.1}), NAMES)
    assert words.endswith(": X and Y.")
    agreement = np.array([[1, 0.6, 0.9, 0], [0.6, 1, 0.5, 0], [0.9, 0.5, 1, 0], [0, 0, 0, 1]])
    assert groups(agreement, list("abcd")) == [["a", "b", "c"], ["d"]]


def test_two_methods_have_no_correlation_to_compare_metrics_by() -> None:
    assert ranking_words(ranking_rows({("x", "y"): 1.0}, methods=2), NAMES) == ""
    assert ranking_words(ranking_rows({("x", "y"): NAN}), NAMES) == ""
    assert ranking_words(ranking_rows({("x", "other"): 1.0}), NAMES) == ""
    assert ranking_words(ranking_rows({}), {("x", "x"): "X"}) == ""


# ---- numbers


def test_numbers_in_words() -> None:
    assert [percent(share) for share in (0, 0.001, 0.5, 0.999, 1)] == [
        "0\u00a0%",
        "< 1\u00a0%",
        "50\u00a0%",
        "> 99\u00a0%",
        "100\u00a0%",
    ]
    assert [number(value) for value in (0.12345, -3.0, 1234.4, -0.0)] == ["0.123", "-3", "1,234", "0"]
    assert [joined("abc"), joined("a"), joined("")] == ["a, b and c", "a", ""]
    assert [rank_set(1.0, 1.0), rank_set(2.0, 10.0), rank_set(NAN, NAN)] == ["1", "2–10", ""]

"""Each sentence of the report under its condition, and not under what looks like it."""

import re

import pandas as pd
import pytest
from report_tables import NAN, finding, order_rows, pair_rows, ranking_rows, reliability_rows

from saliency_assay.reliability.reliability_tables import rank_text
from saliency_assay.reliability.verdicts import UNTESTED, alpha_row
from saliency_assay.report.pages import words as sentences
from saliency_assay.report.pages.summary import answers, basis_words, multiplicity_words
from saliency_assay.report.pages.words import (
    alpha_words,
    joined,
    number,
    percent,
    ranking_words,
    undefined_words,
)

CLEAR = order_rows({"a": (1, 1), "b": (2, 2), "random": (3, 3)})
TIED = order_rows({"a": (1, 2), "b": (1, 3), "c": (2, 3)})
ALONE = order_rows({"a": (1, 2), "b": (2, 2), "c": (2, 3)})
"""a is better than b alone, b better than c: c is not distinguishable from a."""
CIRCLE = order_rows({"a": (2, 2), "b": (2, 2), "c": (2, 2)})
"""Comparisons on other images for every pair can go around in a circle."""
UNRANKED = order_rows({"a": (1, 1), "b": (NAN, NAN)}).assign(rank_low=NAN, rank_high=NAN)
EVEN = order_rows({"random": (1, 2), "a": (1, 2), "b": (3, 3)}, above_baselines={"a": 0.0, "b": 0.0})
LED = order_rows({"random": (1, 1), "a": (2, 3), "b": (2, 3)}, above_baselines={"a": 0.0, "b": 0.0})
MIXED = order_rows({"a": (1, 1), "m": (2, 3), "random": (2, 3)}, above_baselines={"m": 0.0})
"""m has the rank of a and a smaller rank set than random, and is not significantly better than random."""
TWO_BASELINES = order_rows(
    {"a": (1, 1), "m": (2, 3), "random": (2, 3), "edge": (4, 4)}, above_baselines={"m": 0.0}
)
HIGH = {"alpha": 1.0, "alpha_low": 1.0, "alpha_high": 1.0, "two_valued": False, "methods": 3}
HIGH |= {"concordance": 1.0, "concordance_low": 1.0, "concordance_high": 1.0}
NAMES = {("x", "x"): "X", ("y", "y"): "Y", ("z", "z"): "Z"}


def order_words(rows: pd.DataFrame, pairs: pd.DataFrame | None = None) -> str:
    return sentences.order_words(rows, pair_rows(rows) if pairs is None else pairs)


# ---- ranked first


@pytest.mark.parametrize(
    ("rows", "phrases"),
    [
        (CLEAR, ["a ranks first (mean 9.00, 95 % CI 8.50 to 9.50). "]),
        (CLEAR, ["Every other method is significantly better than the baseline method (random)."]),
        (TIED, ["No method ranks first: a and b are not distinguishable (rank sets 1–2 and 1–3)."]),
        (
            order_rows(dict.fromkeys("abc", (1, 3))),
            ["a, b and c are not distinguishable (rank set 1–3 each)."],
        ),
        (ALONE, ["a may rank first (rank set 1–2) but is not distinguishable from at least one other"]),
        (CIRCLE, ["No method ranks first: every method is significantly worse than another one"]),
        (UNRANKED, ["Fewer than two methods have a score"]),
        (
            EVEN,
            [
                "random is a baseline method, which does not use the model, and no method is shown to be better"
            ],
        ),
        (LED, ["random is a baseline method, which does not use the model, and significantly better"]),
        (MIXED, ["Not significantly better than the baseline method (random): m."]),
        (TWO_BASELINES, ["Not significantly better than every baseline method (random and edge): m."]),
    ],
)
def test_the_order_in_words(rows: pd.DataFrame, phrases: list[str]) -> None:
    words = order_words(rows)
    for phrase in phrases:
        assert phrase in words


@pytest.mark.parametrize(
    ("rows", "phrase"),
    [
        (TIED, "a ranks first"),
        (order_rows({"a": (1, 1), "b": (2, 2), "random": (NAN, NAN)}), "baseline"),
        (order_rows({"random": (1, 2), "edge": (1, 2)}), "Not significantly better than every"),
    ],
)
def test_what_the_order_does_not_say(rows: pd.DataFrame, phrase: str) -> None:
    assert phrase not in order_words(rows)


@pytest.mark.parametrize("seeds", [1, 3])
def test_summaries_have_images_variation_and_seeds(seeds: int) -> None:
    over = "images × seeds" if seeds > 1 else "cut-outs × scenes"
    basis = "3 training seeds" if seeds > 1 else "retraining may change the order of the methods"
    for rows in (CLEAR, TIED):
        changed = rows.assign(seeds=seeds, over=over, images=[40, 60, 60])
        words = basis_words([finding("X", changed, None)])
        assert " on 40–60 images and" in words
        assert f"account for variation over {over}." in words
        assert basis in words


def test_the_images_that_would_distinguish_the_best_methods_are_stated() -> None:
    """a and b lead and are not distinguishable; the numbers are those of this pair."""
    pairs = pair_rows(TIED, {("a", "b"): {"detectable": 0.25, "images_needed": 3401.0}})
    text = sentences.power_words(TIED, pairs)
    assert "With 60 images, differences in win rate below 0.250 cannot be detected" in text
    assert "about 3,500 images would distinguish a from b" in text
    assert text in order_words(TIED, pairs)
    assert sentences.power_words(CLEAR, pair_rows(CLEAR)) == ""  # a is better than all
    means = sentences.power_words(TIED.assign(ranked_by="means"), pairs)
    assert "differences in mean below 0.25" in means


def test_equivalent_methods_need_no_further_images() -> None:
    assert sentences.power_words(TIED, pair_rows(TIED, finding="equivalent")) == ""
    # The best method is compared with the next one that is open.
    pairs = pair_rows(TIED, {("a", "b"): {"finding": "equivalent"}})
    assert "distinguish a from c" in sentences.power_words(TIED, pairs)


def test_one_training_seed_ranks_nothing() -> None:
    rows = order_rows({"a": (1, 3), "b": (1, 3), "random": (1, 3)}, over=UNTESTED, lead_p=NAN)
    text = order_words(rows, pair_rows(rows, finding="not tested"))
    assert "cannot be distinguished from training noise" in text
    assert not re.search("first|evidence|distinguishable", text)
    untested = finding("X", rows, None)
    assert [str(line) for line in answers([untested])] == [text]
    assert basis_words([untested]) == ""


def test_the_basis_has_the_errors_to_expect() -> None:
    findings = [finding("X", CLEAR, None), finding("Y", TIED, None), finding("Z", CLEAR, None)]
    assert basis_words(findings).endswith("of 3 metrics, up to 0.15 are expected to contain an error.")
    assert multiplicity_words(1) == ""
    assert "of 40 metrics, up to 2 are" in multiplicity_words(40)
    assert basis_words([finding("X", UNRANKED, None)]) == ""


# ---- missing scores


def test_a_method_without_scores_on_many_images_is_a_finding() -> None:
    """It may be ranked first on the images that it has scores on."""
    rows = order_rows({"a": (1, 1), "b": (2, 2)}, undefined={"a": 0.5, "b": 0.05})
    (words,) = undefined_words(rows, "X")
    assert words.startswith("a has no score for 50\u00a0% of the images under X;")
    assert undefined_words(CLEAR, "X") == []


def test_with_several_seeds_missing_scores_are_a_share_of_images_and_seeds() -> None:
    """One of three seeds has no score on any image, the others on all."""
    rows = order_rows({"a": (1, 1), "b": (2, 2)}, undefined={"a": 1 / 3}, seeds=3)
    (words,) = undefined_words(rows, "X")
    assert words.startswith("a has no score for 33\u00a0% of the cases (images × seeds) under X;")
    (both,) = undefined_words(rows.assign(undefined=1 / 3), "X")
    assert "have no score for some of the cases (images × seeds) under X;" in both


# ---- α


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (0.9, 0.8, 0.95, "images agree on the ranking (CI ≥ 0.65)"),
        (0.7, 0.5, 0.8, "images agree on the ranking more than by chance, but α may be below 0.65"),
        (0.3, 0.1, 0.5, "agree only partly on the ranking (CI above 0 and below 0.65)"),
        (-0.3, -0.5, -0.1, "at most slightly more than by chance"),  # no contradiction: one below 0 is chance
        (0.3, -0.1, 0.6, "are not shown to agree on the ranking more than by chance (whole CI of α < 0.65)"),
        (0.7, -0.01, 0.99, "too wide to show"),
        (1.0, NAN, NAN, "too few images for a confidence interval"),
        (NAN, NAN, NAN, "or all methods tie"),
    ],
)
def test_the_meaning_of_alpha_follows_from_its_interval(
    value: float, low: float, high: float, words: str
) -> None:
    assert words in alpha_words({"alpha": value, "alpha_low": low, "alpha_high": high, "methods": 3})


BOTH_KINDS = reliability_rows((0.9, 0.8, 1.0), (0.5, 0.3, 0.6), baselines=("with", "without"))
BOTH_KINDS.loc[BOTH_KINDS["baselines"] == "with", ["alpha", "alpha_low"]] = -1
TWO_VALUED = reliability_rows((0.2, 0.1, 0.3), two_valued=True)


@pytest.mark.parametrize(
    ("rows", "phrase"),
    [
        (BOTH_KINDS, "α = 0.70 without baselines (95 % CI 0.30 to 1.00, 60 images, mean of 2 seeds"),
        (reliability_rows((1.0, NAN, NAN), images=5), "α = 1.00 (5 images); too few images"),
        (
            reliability_rows((0.9, 0.8, 1.0), (0.5, NAN, NAN)),
            "α = 0.70 (60 images, mean of 2 seeds); too few",
        ),
        (reliability_rows((0.9, 0.8, 1.0), (NAN, NAN, NAN)), "α is undefined for 1 of 2 seeds."),
        (TWO_VALUED, "a share of 0.90 (95 % CI 0.85 to 0.95)"),  # ties lower α but not the concordance
        (TWO_VALUED.assign(two_valued=False), "agree only partly"),
        (
            reliability_rows((NAN, NAN, NAN), baselines=("without",), methods=1),
            "α without baselines is undefined: fewer than two methods.",
        ),
    ],
)
def test_reliability_in_words(rows: pd.DataFrame, phrase: str) -> None:
    row = alpha_row(rows, "good", "good")
    assert row is not None
    words = sentences.reliability_words(row, 0.95)
    assert phrase in words
    assert ("partly" in words) == ("partly" in phrase)
    assert alpha_row(rows, "bad", "bad") is None


# ---- single images


def test_the_method_ranked_first_is_the_best_on_most_images_where_it_wins_most() -> None:
    words = sentences.single_image_words(CLEAR.assign(best_share=[0.9, 0.1, 0.0]), HIGH)
    assert words.startswith("a, which ranks first, also has the best score on most single images (90\u00a0%")


def test_a_leader_that_wins_few_images_is_not_the_best_on_most() -> None:
    """α is 1.00 and a is ranked first by large scores on a tenth of the images; b is best on the others."""
    rows = CLEAR.assign(best_share=[0.1, 0.9, 0.0])
    words = sentences.single_image_words(rows, HIGH)
    assert "the best score on only 10\u00a0% of the images (ties shared), b on 90\u00a0%:" in words
    spread = sentences.single_image_words(CLEAR.assign(best_share=[0.5, 0.3, 0.2]), HIGH)
    assert spread.endswith("on only 50\u00a0% of the images (ties shared).")


def test_a_share_of_the_few_images_with_a_score_is_no_share_of_most() -> None:
    """b has a score on a tenth of the images, and the best one on 90 % of these."""
    rows = CLEAR.assign(best_share=[0.4, 0.9, 0.0], undefined=[0.0, 0.9, 0.0])
    assert sentences.single_image_words(rows, HIGH).endswith("on only 40\u00a0% of the images (ties shared).")
    assert sentences.single_image_words(CLEAR.assign(undefined=[0.9, 0.0, 0.0]), HIGH) == ""


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
    assert sentences.single_image_words(rows, alpha) == ""


# ---- agreement


def test_raters_other_than_images_are_named_and_undefined_ones_left_out() -> None:
    rows = pd.DataFrame({"between": ["halves", "seeds"], "raters": [2, 3], "correlation": [0.934, NAN]})
    assert sentences.halves_words(rows).endswith("by two random halves of the images: 0.93.")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # z is alike to y alone: a pair does not stand for a group.
        (
            ranking_rows({("x", "y"): 0.5, ("x", "z"): 0.1, ("y", "z"): 0.9}),
            "is at least 0.5 for: Y and Z (60 images); X and Y (60 images).",
        ),
        # Two metrics that share the difficulty of images, and rank the methods in opposite orders.
        (ranking_rows({("x", "y"): -1.0}), "The only comparable pair of scores"),
        (ranking_rows({("x", "y"): 1.0}, images=29), None),
        (ranking_rows({("x", "y"): 1.0}, images=30), "for: X and Y (30 images)."),
        (ranking_rows({("x", "y"): 1.0}, methods=2), None),
        (ranking_rows({("x", "y"): NAN}), None),
        (ranking_rows({("x", "other"): 1.0}), None),
    ],
)
def test_pairs_of_metrics_rank_methods_alike_by_correlations_within_images(
    rows: pd.DataFrame, expected: str | None
) -> None:
    words = ranking_words(rows, NAMES)
    assert words == "" if expected is None else expected in words


# ---- numbers


def test_numbers_in_words() -> None:
    assert [percent(share) for share in (0, 0.001, 0.5, 0.999, 1)] == [
        "0\u00a0%",
        "< 1\u00a0%",
        "50\u00a0%",
        "> 99\u00a0%",
        "100\u00a0%",
    ]
    assert [number(value) for value in (0.12345, -3.0, 1234.4, -0.0)] == ["0.123", "−3.00", "1,234", "0.00"]
    assert [joined("abc"), joined("a"), joined("")] == ["a, b and c", "a", ""]
    assert [rank_text(1.0, 1.0), rank_text(2.0, 10.0), rank_text(NAN, NAN)] == ["1", "2–10", ""]

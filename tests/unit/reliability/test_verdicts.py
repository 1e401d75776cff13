"""Verdicts on metrics claim no more than was shown: counterexamples in which a looser rule would claim more."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_tables import NAN, finding, order_rows, pair_rows, reliability_rows

from saliency_assay.reliability.order_tables import UNTESTED, order_tables
from saliency_assay.reliability.verdicts import (
    AT_CHANCE,
    CLEAR,
    NO_RANKS,
    NOT_SEPARATED,
    RELIABLE,
    TOO_FEW,
    TRAINING_NOISE,
    Verdict,
    agreement_text,
    alpha_row,
    images_agree,
    images_text,
    round_up,
    verdict,
)
from saliency_assay.report.pages import words
from saliency_assay.report.pages.summary import (
    answers,
    basis_words,
    warning_words,
)

FALSE_CLAIMS = ("tells nothing", "no difference", "no effect", "equal to", "useless", "as good as")
"""What no sentence says of methods whose difference is not significant."""
ORDER = order_rows({"a": (1, 1), "b": (2, 2), "random": (3, 3)})
OPEN = order_rows({"a": (1, 3), "b": (1, 3), "random": (1, 3)}, above_baselines=0.0, images=8)
AGREED = (0.9, 0.8, 0.95)


def alpha_of(*alphas: tuple[float, float, float], **changed: Any) -> dict[str, Any]:
    row = alpha_row(reliability_rows(*alphas, **changed), "good", "good")
    assert row is not None
    return row


def judged(
    order: pd.DataFrame,
    alpha: tuple[float, float, float] = AGREED,
    changed: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
    **all_changed: Any,
) -> Verdict:
    """Return the verdict on a metric with this order of methods, α and changes of its pairs."""
    return verdict(order, pair_rows(order, changed, **all_changed), alpha_of(alpha))


def sentences(order: pd.DataFrame, pairs: pd.DataFrame, alpha: tuple[float, float, float] = AGREED) -> str:
    """Return all sentences on one metric, of its paragraph, of the summary and of the card."""
    metric = finding("X", order, alpha_of(alpha), pairs)
    texts = [words.order_words(order, pairs), *map(str, answers([metric])), basis_words([metric])]
    texts += [*warning_words([metric]), words.reliability_words(alpha_of(alpha), 0.95)]
    return " ".join([*texts, metric.verdict().text])


def scored(scores: Mapping[str, Any], baselines: tuple[str, ...] = ("random",)) -> tuple[pd.DataFrame, ...]:
    """Return order and pairs of methods with these scores of the images."""
    rows = [
        ("good", "good", "d", "m", 0, method, image, float(score))
        for method, of_method in scores.items()
        for image, score in enumerate(of_method)
    ]
    columns = ["metric", "variant", "data", "model", "seed", "method", "image", "score"]
    return order_tables(pd.DataFrame(rows, columns=columns), {"good": "higher"}, baselines)


def test_a_clear_order_on_which_images_agree_is_reliable() -> None:
    result = judged(ORDER)
    assert result.kind == RELIABLE
    assert result.is_shown
    assert np.isnan(result.images)
    assert "2 of 2" in result.text


# ---- counterexamples


def test_1_eight_images_without_a_significant_difference_show_no_equality() -> None:
    result = judged(OPEN)
    assert result.kind == TOO_FEW
    assert "about 340 images" in result.text
    assert not any(claim in sentences(OPEN, pair_rows(OPEN)) for claim in FALSE_CLAIMS)
    assert "not separate" not in sentences(OPEN, pair_rows(OPEN))


def test_2_random_significantly_best_is_neither_reliable_nor_too_few_images() -> None:
    order = order_rows({"random": (1, 1), "a": (2, 2), "b": (3, 3)}, above_baselines={"a": 0.0, "b": 0.0})
    result = judged(order)
    assert result.kind == NOT_SEPARATED
    assert "better than every method" in result.text
    assert not result.is_shown


def test_3_scores_0_and_1_with_99_percent_of_images_in_favor_are_reliable() -> None:
    """Most methods tie on every image."""
    place = np.arange(400)
    scores = {"a": place < 400, "b": place % 4 < 3, "c": place % 2 == 0, "random": np.zeros(400)}
    order, pairs = scored(scores)
    concordance = {"concordance": 0.99, "concordance_low": 0.97, "concordance_high": 1.0}
    low = alpha_of((0.2, 0.1, 0.3), two_valued=True, **concordance)
    result = verdict(order, pairs, low)
    assert result.kind == RELIABLE
    assert "concordance" in result.text
    open_row = {**low, "concordance_low": 0.8}
    assert verdict(order, pairs, open_row).kind == CLEAR
    assert "open" in verdict(order, pairs, open_row).text


def test_4_wins_of_65_to_63_are_no_order() -> None:
    """A few large scores give a the far better mean."""
    place = np.arange(128)
    a = np.where(place < 65, 1.0, -1.0) + np.where(place < 5, 100.0, 0.0)
    order, pairs = scored({"a": a, "b": np.zeros(128)}, baselines=())
    result = verdict(order, pairs, alpha_of(AGREED))
    assert result.kind == TOO_FEW
    assert result.images > 128
    assert "skewed" not in sentences(order, pairs)  # the comparison of win rates does not depend on it
    assert "ranks first" not in words.order_words(order, pairs).replace("No method ranks first", "")


def test_5_equal_methods_that_are_all_better_than_random_are_separated_but_not_ordered() -> None:
    order = order_rows({**dict.fromkeys("abcde", (1, 5)), "random": (6, 6)})
    result = judged(order, images_needed=331.0)
    assert result.kind == TOO_FEW
    assert "better than every baseline method: 5 of 5" in result.text
    assert "0 of 10" in result.text
    assert "separate" not in sentences(order, pair_rows(order))


def test_6_skewed_scores_are_not_tested_and_not_equal() -> None:
    order = OPEN.assign(ranked_by="means", images=40)
    untested = {"finding": "not tested", "images_needed": NAN, "detectable": NAN, "wins_high": 0.9}
    pairs = pair_rows(order, skew_images=900.0, **untested)
    result = verdict(order, pairs, alpha_of(AGREED))
    assert result.kind == TOO_FEW
    assert result.images == 900
    assert verdict(order, pairs.assign(images_needed=1200), alpha_of(AGREED)).images == 1200
    assert "too skewed" in result.text
    assert "cannot be detected" not in sentences(order, pairs)


def test_7_one_training_seed_of_a_retrain_study_shows_nothing() -> None:
    order = OPEN.assign(over=UNTESTED, lead_p=NAN, lead_low=NAN, lead_high=NAN, images=10_000)
    pairs = pair_rows(order, finding="not tested", wins_low=NAN, wins_high=NAN)
    assert verdict(order, pairs, alpha_of(AGREED)).kind == TRAINING_NOISE
    text = sentences(order, pairs)
    assert "training noise" in text
    for claim in ("ranks first", "distinguishable", "evidence", "significant", "images would"):
        assert claim not in text


def test_8_equivalent_methods_need_no_more_images() -> None:
    """The margin shows that both are equal for the purpose, which is an order as clear as it can be."""
    order = order_rows({"a": (1, 2), "b": (1, 2), "random": (3, 3)})
    assert judged(order).kind == TOO_FEW
    result = judged(order, changed={("a", "b"): {"finding": "equivalent"}})
    assert result.kind == RELIABLE
    assert "images would do" not in result.text


def test_9_missing_scores_that_could_reverse_a_finding_are_named() -> None:
    order = ORDER.assign(undefined=[0.4, 0.0, 0.0])
    result = judged(order, changed={("a", "b"): {"wins_worst": 0.4, "wins_best": 0.98}})
    assert result.kind == CLEAR
    assert "missing scores could reverse comparisons (1)" in result.text
    assert judged(order).kind == RELIABLE  # even the worst scores leave a better than b
    few = ORDER.assign(undefined=[0.04, 0, 0])
    assert judged(few, changed={("a", "b"): {"wins_worst": 0.4}}).kind == RELIABLE
    worse = order_rows({"a": (2, 2), "b": (1, 1), "random": (3, 3)}, undefined={"a": 0.4})
    assert judged(worse, changed={("a", "b"): {"wins_worst": 0.02, "wins_best": 0.6}}).kind == CLEAR


def test_12_methods_that_all_tie_with_random_are_not_separated() -> None:
    """Scores 0 and 1 that are 1 for all methods on every one of 500 images: nothing distinguishes them."""
    order, pairs = scored({"a": np.ones(500), "b": np.ones(500), "random": np.ones(500)})
    undefined = alpha_of((NAN, NAN, NAN), concordance=NAN, concordance_low=NAN, concordance_high=NAN)
    result = verdict(order, pairs, undefined)
    assert result.kind == NOT_SEPARATED
    few = scored({"a": np.ones(8), "b": np.ones(8), "random": np.ones(8)})
    assert verdict(*few, undefined).kind == TOO_FEW


def test_13_a_tie_with_a_baseline_is_shown_only_by_a_narrow_interval() -> None:
    order = order_rows({"a": (1, 2), "random": (1, 2)}, above_baselines=0.0)
    wide = {("a", "random"): {"wins": 0.5, "wins_low": 0.35, "wins_high": 0.65, "images_needed": np.inf}}
    result = judged(order, changed=wide)
    assert result.kind == TOO_FEW
    # An interval of ±0.15 with 60 images is one of ±0.1 with 60 × 1.5² = 135 images.
    assert result.images == pytest.approx(135)
    assert "about 140 images" in result.text
    narrow = {("a", "random"): {"wins": 0.5, "wins_low": 0.41, "wins_high": 0.59}}
    assert judged(order, changed=narrow).kind == NOT_SEPARATED


def test_14_more_images_do_not_make_a_method_better_than_a_baseline_that_is_ahead() -> None:
    """The observed difference from random, which 331 images would show, is one in favor of random."""
    order = order_rows({"random": (1, 2), "a": (1, 2)}, above_baselines=0.0)
    result = judged(order, changed={("random", "a"): {"wins": 0.35, "wins_low": 0.2, "wins_high": 0.5}})
    assert result.kind == TOO_FEW
    assert "100 times" in result.text
    behind = judged(order, changed={("random", "a"): {"wins": 0.55, "wins_low": 0.39, "wins_high": 0.7}})
    assert behind.images == pytest.approx(60 * (0.16 / 0.15) ** 2)


def test_15_without_a_baseline_a_ranking_is_at_most_clear() -> None:
    result = judged(order_rows({"a": (1, 1), "b": (2, 2)}))
    assert result.kind == CLEAR
    assert "no baseline method" in result.text
    missing = order_rows({"a": (1, 1), "b": (2, 2), "random": (NAN, NAN)}, above_baselines=NAN)
    assert "no baseline method" in judged(missing).text


@pytest.mark.parametrize(
    ("alpha", "phrase"),
    [
        ((NAN, NAN, NAN), "undefined"),
        ((0.9, NAN, NAN), "too few images for an interval"),
        ((0.6, 0.4, 0.8), "open"),
        ((0.3, -0.2, 0.9), "open"),
        ((0.3, 0.2, 0.6), "rank methods differently"),
        ((0.0, -0.1, 0.1), "rank methods differently"),
    ],
)
def test_16_images_that_are_not_shown_to_agree_make_no_ranking_reliable(
    alpha: tuple[float, float, float], phrase: str
) -> None:
    result = judged(ORDER, alpha)
    assert result.kind == CLEAR
    assert phrase in result.text
    assert verdict(ORDER, pair_rows(ORDER), None).kind == CLEAR
    assert images_agree(alpha_of((0.3, -0.2, 0.9))) is None  # contains chance


def test_an_open_interval_has_minus_signs() -> None:
    alpha = {"alpha": 0.4, "alpha_low": -0.02, "alpha_high": 0.99, "two_valued": False}
    assert agreement_text(alpha).endswith("(CI of α −0.02 to 0.99)")


def test_18_the_worst_seed_decides_whether_images_agree() -> None:
    pairs = pair_rows(ORDER)
    assert verdict(ORDER, pairs, alpha_of(AGREED, (0.9, 0.5, 0.95))).kind == CLEAR
    assert verdict(ORDER, pairs, alpha_of(AGREED, (0.9, NAN, NAN))).kind == CLEAR
    assert verdict(ORDER, pairs, alpha_of(AGREED, AGREED)).kind == RELIABLE


def test_19_one_method_with_scores_or_only_baselines_have_no_verdict_on_methods() -> None:
    assert judged(order_rows({"a": (NAN, NAN), "b": (NAN, NAN)})).kind == NO_RANKS
    assert judged(order_rows({"random": (1, 1), "edge": (2, 2)})).kind == NO_RANKS
    order = order_rows({"a": (1, 1), "random": (2, 2)})
    alone = verdict(order, pair_rows(order), alpha_of((NAN, NAN, NAN), methods=1))
    assert alone.kind == CLEAR
    assert "only one method" in alone.text
    assert verdict(ORDER, pair_rows(ORDER), alpha_of(AGREED), at_chance=True).kind == AT_CHANCE


def test_20_half_of_the_pairs_must_be_distinguished() -> None:
    """Three of six pairs are, or two; the third smallest number of images would do."""
    half = order_rows({"a": (1, 1), "b": (2, 4), "c": (2, 4), "d": (2, 4), "random": (5, 5)})
    assert judged(half).kind == RELIABLE
    fewer = half.assign(rank_low=[1, 1, 2, 2, 5], rank_high=[2, 4, 4, 4, 5])
    needed = {("a", "b"): 700.0, ("b", "c"): 512.0, ("b", "d"): 900.0, ("c", "d"): NAN}
    changed: dict[tuple[str, str], Any] = {pair: {"images_needed": n} for pair, n in needed.items()}
    changed |= {pair: {"finding": "better"} for pair in (("a", "c"), ("a", "d"))}
    result = judged(fewer, changed=changed)
    assert result.kind == TOO_FEW
    assert "2 of 6" in result.text
    assert result.images == 512
    assert "about 520 images would do" in result.text


def test_21_a_significant_but_negligible_advantage_over_random_is_named() -> None:
    order = ORDER.assign(images=100_000)
    small = {"wins": 0.53, "wins_low": 0.52, "wins_high": 0.54, "wins_worst": 0.53, "wins_best": 0.53}
    result = judged(order, changed={("a", "random"): small, ("b", "random"): small})
    assert result.kind == CLEAR
    assert "negligible" in result.text


def test_22_each_method_must_be_close_to_some_baseline_but_not_all_to_the_same() -> None:
    order = order_rows(
        {"a": (1, 3), "b": (1, 4), "random": (1, 4), "edge": (1, 4)}, above_baselines={"a": 0.0, "b": 0.0}
    )
    close = {"wins_high": 0.58}
    result = judged(order, changed={("a", "random"): close, ("b", "edge"): close})
    assert result.kind == NOT_SEPARATED
    assert judged(order, changed={("a", "random"): close}).kind == TOO_FEW
    # Worse by means, although the interval of the win rate is wide.
    worse = {"finding": "worse"}
    assert judged(order, changed={("a", "random"): worse, ("b", "edge"): worse}).kind == NOT_SEPARATED


def test_23_without_an_interval_nothing_is_negligible() -> None:
    order = order_rows({"a": (1, 2), "random": (1, 2)}, above_baselines=0.0, images=1)
    result = judged(order, wins=0.5, wins_low=NAN, wins_high=NAN, images_needed=NAN, detectable=NAN)
    assert result.kind == TOO_FEW
    assert np.isnan(result.images)
    assert "would do" not in result.text


# ---- numbers of images


def test_required_numbers_are_rounded_up_and_never_absurd() -> None:
    assert [*map(round_up, (9, 61, 340, 341, 1001.0, 0.29 * 1000))] == [9, 61, 340, 350, 1100, 290]
    assert images_text(NAN, 60) == ""
    assert images_text(6000, 60) == "about 6,000 images would do"
    for needed in (6001, np.inf):
        assert images_text(needed, 60).startswith("more than 100 times as many images")
    assert images_text(40, 60, "help") == "about 61 images would help"

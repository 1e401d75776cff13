"""The overview against tables of which one sees what must be said; names of any kind are shown as text."""

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest

from saliency_assay.directions import arrow
from saliency_assay.report.agreement import agreement_table
from saliency_assay.report.heat_map import heat_map
from saliency_assay.report.overview import (
    StudyResult,
    agreement_words,
    build_page,
    in_short,
    main_names,
    overview_page,
    summary_page,
)
from saliency_assay.report.provenance import data_facts
from saliency_assay.report.reliability import consistency_table, order_table, reliability_table
from saliency_assay.report.words import (
    alpha_row,
    alpha_words,
    group_words,
    groups,
    halves_words,
    joined,
    number,
    order_words,
    percent,
    reliability_words,
)

NAN = float("nan")
DIRECTIONS = {"good": "higher", "bad": "lower"}
EVIL = "<script>alert('1')</script> \"q\" & _"


def scored(methods: dict[str, list[float]], metric: str = "good", variant: str = "") -> pd.DataFrame:
    rows = [
        {"method": method, "image": image, "score": score}
        for method, scores in methods.items()
        for image, score in enumerate(scores)
    ]
    named = {
        "study": "s",
        "data": "d",
        "model": "m",
        "seed": 0,
        "metric": metric,
        "variant": variant or metric,
    }
    return pd.DataFrame(rows).assign(**named)


def tables_of(scores: pd.DataFrame, controls: tuple[str, ...] = ()) -> dict[str, pd.DataFrame]:
    return {
        "order": order_table(scores, DIRECTIONS, controls, resamples=500),
        "reliability": reliability_table(scores, controls, resamples=500, level=0.95),
        "consistency": consistency_table(scores, DIRECTIONS),
        "agreement": agreement_table(scores, np.zeros(60, dtype=int), splits=50),
    }


def study(tables: dict[str, pd.DataFrame], **changed: Any) -> StudyResult:
    methods = list(dict.fromkeys(tables["order"]["method"])) if tables else ["a"]
    given = {
        "name": "s",
        "kind": "fidelity",
        "data": "digits",
        "models": ["m (resnet8; 97 % right)"],
        "asks": {},
    }
    return StudyResult(**{**given, "methods": methods, "tables": tables, **changed})


CLEAR = {"a": [3.0, 4, 5] * 20, "b": [1.0, 2, 3] * 20, "random": [0.0, 1, 2] * 20}
ALIKE = {"a": [1.0, 2] * 30, "b": [2.0, 1] * 30, "c": [0.0, 0.5] * 30}

# --- words --------------------------------------------------------------------------------------------------


def test_words_name_the_one_that_is_first_and_how_surely() -> None:
    said = order_words(tables_of(scored(CLEAR), ("random",))["order"])
    assert said.startswith("a is first in 100\u00a0% of the resamples of 60 images (mean 4, 95 % interval 3.")
    assert said.endswith(
        "Every method is better than the control (random) in at least 95\u00a0% of the resamples."
    )


def test_words_do_not_tell_apart_what_images_do_not() -> None:
    said = order_words(tables_of(scored(ALIKE))["order"])
    assert re.match(
        r"(a and b|b and a) are not told apart by 60 images: first in \d+\xa0% and \d+\xa0% of", said
    )


def test_a_control_in_front_is_said_to_show_nothing() -> None:
    methods = {"a": [1.0, 2] * 30, "random": [5.0, 6] * 30}
    said = order_words(tables_of(scored(methods), ("random",))["order"])
    assert "random knows no model, so a good score here is no sign that a map explains one." in said


def test_methods_that_do_not_beat_a_control_are_named() -> None:
    methods = {"a": [9.0, 8] * 30, "b": [1.0, 2] * 30, "random": [3.0, 4] * 30}
    assert order_words(tables_of(scored(methods), ("random",))["order"]).endswith(
        " Not surely better than the control (random): b."
    )


def test_few_images_and_missing_scores_are_said() -> None:
    assert "So few images (3 for some) say little." in order_words(
        tables_of(scored({"a": [3.0, 4, 5], "b": [1.0, 2, 3]}))["order"]
    )
    alone = tables_of(scored({"a": [3.0, 4, 5], "b": [NAN] * 3}))["order"]
    assert order_words(alone) == "Fewer than two methods have a score, so there is nothing to rank."


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (0.9, 0.8, 0.95, "images rank the methods alike, so"),
        (0.7, 0.5, 0.8, "images seem to rank the methods alike"),
        (0.3, 0.1, 0.5, "differs from image to image"),
        (0.1, -0.1, 0.3, "more alike than by chance"),
        (-0.3, -0.5, -0.1, "contradict each other"),
        (0.05, -0.1, 0.08, "no more alike than by chance: the order"),
        (0.38, -0.01, 0.87, "do not tell whether single maps"),
        (NAN, NAN, NAN, "all methods are ranked alike"),
    ],
)
def test_what_alpha_means(value: float, low: float, high: float, words: str) -> None:
    assert words in alpha_words({"alpha": value, "alpha_low": low, "alpha_high": high})


def test_other_raters_than_images_are_named_and_unknown_ones_left_out() -> None:
    rows = pd.DataFrame({"between": ["halves", "seeds"], "raters": [2, 3], "correlation": [0.934, NAN]})
    assert halves_words(rows) == (
        "The orders of all methods by two random halves of the images correlate by 0.93 on average."
    )


def test_alpha_of_several_seeds_is_their_mean_with_the_outermost_ends() -> None:
    one, two = (
        scored(CLEAR),
        scored({"a": [1.0, 2] * 30, "b": [2.0, 1] * 30, "random": [0.0] * 60}).assign(seed=1),
    )
    table = reliability_table(pd.concat([one, two]), ("random",), resamples=200, level=0.95)
    found = alpha_row(table, "good", "good")
    rows = table[table["controls"] == "without"]
    assert found is not None
    assert found["alpha"] == rows["alpha"].mean() < 0.6
    assert (found["alpha_low"], found["alpha_high"]) == (rows["alpha_low"].min(), rows["alpha_high"].max())
    assert "mean of 2 seeds and the outermost ends" in reliability_words(found, 0.95)
    assert alpha_row(table, "bad", "bad") is None


def test_a_study_of_controls_alone_has_no_row_without_them() -> None:
    tables = tables_of(scored({"random": [1.0, 2] * 30, "edge": [0.0, 1] * 30}), ("random", "edge"))
    assert list(tables["reliability"]["controls"]) == ["with"]
    assert tables["order"]["above_controls"].isna().all()
    assert "know no model" in Page(summary_page(study(tables))).text or "knows no model" in summary_page(
        study(tables)
    )


def test_a_method_of_a_better_rank_need_not_be_surely_better_than_a_control() -> None:
    generator = np.random.default_rng(0)
    noise = {
        name: list(generator.normal(mean, 1, 60)) for name, mean in {"a": 3, "m": 0.05, "random": 0}.items()
    }
    order = tables_of(scored(noise), ("random",))["order"]
    share = order.set_index("method")["above_controls"]
    assert share["a"] == 1
    assert 0.05 < share["m"] < 0.95
    assert np.isnan(share["random"])
    assert order_words(order).endswith(" Not surely better than the control (random): m.")


def test_entries_of_one_score_are_told_apart() -> None:
    order = pd.DataFrame({"metric": ["aopc_morf"] * 2, "variant": ["aopc", "aopc_morf"]})
    assert list(main_names(order).values()) == ["aopc morf (aopc)", "aopc morf (aopc_morf)"]


def test_groups_of_metrics_that_agree() -> None:
    names = ["a", "b", "c", "d"]
    agreement = np.eye(4)
    agreement[0, 2] = agreement[2, 0] = 0.8
    agreement[1, 3] = agreement[3, 1] = NAN
    found = sorted(map(sorted, groups(agreement, names)))
    assert found == [["a", "c"], ["b"], ["d"]]
    assert group_words([["a", "c"], ["b"]]).endswith("not several: a and c. b belongs to no group.")
    assert group_words([["b"], ["d"]]).startswith("No metrics form a group")
    assert group_words([["b"]]) == ""
    assert groups(agreement[:1, :1], ["a"]) == [["a"]]


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


# --- which variants -----------------------------------------------------------------------------------------


def test_a_score_is_its_variant_without_a_sub_variant_else_its_last() -> None:
    variants = ["aopc L=10", "aopc L=20", "mcs", "mcs scale"]
    order = pd.DataFrame({"metric": ["aopc_morf"] * 2 + ["mcs"] * 2, "variant": variants})
    assert main_names(order) == {("aopc_morf", "aopc L=20"): "aopc morf L=20", ("mcs", "mcs"): "mcs"}


# --- pages --------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Tags, text, and the cells of tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self._silent = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._silent = tag in ("style", "script")

    def handle_endtag(self, tag: str) -> None:
        self._silent = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self._silent else data


def test_the_heat_map_has_rank_share_mean_interval_and_alpha() -> None:
    tables = tables_of(scored(CLEAR), ("random",))
    text = heat_map(tables["order"], tables["reliability"], main_names(tables["order"]), title="t", level=0.9)
    page = Page(text)
    assert "good ↑" in page.text
    head = '<th scope="row" data-value="a">a</th><td style="background:#8cc0e6" data-value="4" data-csv='
    row = re.search(head + r'"rank 1, mean 4 \[.*?\], first in 1\.000"><b>1</b>(.*?)</td>', text)
    assert row is not None
    assert re.fullmatch(
        r'<span class="first">first in 100\u00a0%</span><small>4 \[3\.\d+, 4\.\d+\]</small>', row[1]
    )
    assert 'style="background:#ffffff" data-value="1" data-csv="rank 3' in text  # random is last, in white
    assert "control: knows no model" in page.text
    # Without controls: a is above b in every image.
    foot = "single maps: α without controls <small>90 % interval</small></th><td>"
    assert f"{foot}<b>1.00</b><small>[1.00, 1.00]</small>" in text


@pytest.mark.parametrize(
    ("direction", "mark"),
    [
        ("higher", '<span title="higher is better">↑</span>'),
        ("lower", '<span title="lower is better">↓</span>'),
        ("target 0", '<span title="closer to 0 is better">→ 0</span>'),
    ],
)
def test_the_heat_map_says_which_scores_are_better(direction: str, mark: str) -> None:
    tables = tables_of(scored(CLEAR))
    order = tables["order"].assign(direction=direction)
    text = heat_map(order, tables["reliability"], main_names(order), title="t", level=0.9)
    assert f"<button>good {mark}</button>" in text
    found = in_short([study({**tables, "order": order})])
    assert f"good {arrow(direction)}" in found["metric"].iloc[0]


def test_a_method_that_is_not_above_the_controls_is_hatched() -> None:
    tables = tables_of(scored({"a": CLEAR["random"], "random": CLEAR["a"]}), ("random",))
    text = heat_map(tables["order"], tables["reliability"], main_names(tables["order"]), title="t", level=0.9)
    hatched = "repeating-linear-gradient(135deg,#ffffff 0 5px,#fff 5px 10px)"
    assert f'data-value="a">a</th><td style="background:{hatched}" data-value="1"' in text
    assert 'control: knows no model</small></th><td style="background:#8cc0e6"' in text
    assert Page(text).text.count("not surely better than the controls") == 1


def test_the_heat_map_says_where_there_is_no_score() -> None:
    tables = tables_of(scored({**CLEAR, "c": [NAN] * 60}))
    text = heat_map(tables["order"], tables["reliability"], main_names(tables["order"]), title="t", level=0.9)
    assert "<td>no score</td>" in text


def test_in_short_has_a_row_for_every_score() -> None:
    scores = pd.concat([scored(CLEAR), scored(CLEAR, "bad", "bad")])
    result = study(tables_of(scores, ("random",)), asks={"good": "what it measures"})
    found = in_short([result, study({}, kind="gallery")])
    assert list(found["metric"]) == ["good ↑: what it measures", "bad ↓"]
    assert list(found["wins on single images"]) == ["a 100\u00a0%", "random 100\u00a0%"]
    assert list(found["not surely better than the controls"]) == ["", "a and b"]
    assert list(found["first (share of resamples)"]) == ["a (100\u00a0%)", "random, a control (100\u00a0%)"]
    words = "1.00: images rank the methods alike, so what holds on average holds for most single maps"
    assert list(found["single maps (α without controls)"]) == [words, words]


def test_metrics_that_agree_are_told_with_the_sign_of_their_directions() -> None:
    opposite = {method: [-score for score in scores] for method, scores in CLEAR.items()}
    scores = pd.concat([scored(CLEAR), scored(opposite, "bad", "bad")])
    assert "good and bad." in agreement_words(study(tables_of(scores, ("random",))))


def test_the_overview_answers_what_is_best_how_surely_and_on_what() -> None:
    result = study(tables_of(scored(CLEAR), ("random",)), cautions=["Mind the gap."])
    page = Page(overview_page([result], seeds=[0], ran="0.2 hours of computing on cpu."))
    for said in (
        "3 methods scored, controls included, in 1 study; 1 training seed. 0.2 hours of computing on cpu.",
        "a is first by good (100\u00a0%).",
        "Single maps are ranked alike (α surely at least 0.65) by good.",
        "One training seed: nothing here says whether another training",
        "Run on digits. Models: m (resnet8; 97 % right). Methods: a, b and random.",
        "Mind the gap.",
    ):
        assert said in page.text, said


def test_a_study_without_scores_is_shown_without_ranks() -> None:
    page = Page(overview_page([study({}, kind="gallery")], seeds=[0, 1], ran=""))
    assert "nothing is scored" in page.text
    assert "table" not in page.tags


def test_without_studies_the_overview_lists_data_sets_and_models() -> None:
    sets = [
        data_facts(name, (7, 3, 4, 5), {"classes": {"class": ["a", "b"]}, "digest": "d1"}) for name in "xy"
    ]
    page = Page(build_page(sets, ["m"], seeds=[0, 1], ran="2 jobs."))
    assert "no studies; 2 data sets built, 1 model trained with 2 seeds. 2 jobs." in page.text
    assert page.tags.count("tr") == 3  # the head, x and y
    assert "2 (class)" in page.text
    assert ("href", "accuracy.html") in page.attributes
    page = Page(build_page(sets, [], seeds=[0], ran=EVIL))
    assert "trained" not in page.text
    assert ("href", "accuracy.html") not in page.attributes
    assert EVIL in page.text


def test_names_are_text() -> None:
    scores = scored({EVIL: [3.0, 4] * 20, "b": [1.0, 2] * 20}, "good", EVIL)
    result = study(tables_of(scores, (EVIL,)), name=EVIL, data=EVIL, models=[EVIL], asks={"good": EVIL})
    for text in (overview_page([result], seeds=[0], ran=EVIL), summary_page(result)):
        page = Page(text)
        assert page.tags.count("script") == 1  # the page's own
        assert EVIL in page.text
        assert not any(name.startswith("on") or name in ("q", "1") for name, _ in page.attributes)


def test_the_summary_has_a_paragraph_for_every_score() -> None:
    scores = pd.concat([scored(CLEAR), scored(ALIKE, "bad", "bad")])
    page = Page(summary_page(study(tables_of(scores, ("random",)))))
    assert page.tags.count("h3") == 3  # two scores, and which agree
    said = "α without controls = 1.00 (99.9 % interval 1.00 to 1.00): images rank the methods alike"
    assert said in page.text

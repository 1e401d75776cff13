"""The overview and a study's summary; names of any kind are shown as text."""

import json
import re
from typing import Any

import pandas as pd
import pytest
from parsed_pages import Page
from report_tables import NAN, order_rows, ranking_rows, reliability_rows

from saliency_assay.plotting.page import page_templates
from saliency_assay.registry.directions import arrow
from saliency_assay.registry.labels import Labels
from saliency_assay.report.pages.heat_map import heat_map
from saliency_assay.report.pages.overview import (
    StudyResult,
    build_page,
    main_scores,
    overview_page,
    summary_page,
    summary_table,
)
from saliency_assay.report.pages.provenance import data_facts
from saliency_assay.report.pages.reader import with_reader
from saliency_assay.report.pages.render import TEMPLATES

EVIL = "<script>alert('1')</script> \"q\" & _"
AGREEMENT = pd.DataFrame(columns=["metric", "variant", "between", "raters", "methods", "correlation"])
LABELS = Labels(entry_scores={"good": {"good": "good"}, "bad": {"bad": "bad"}})
CLEAR = order_rows({"a": (1, 1), "b": (2, 2), "random": (3, 3)})
TIED = order_rows({"a": (1, 2), "b": (1, 2), "random": (1, 3)}, above_baselines={"a": 0.0, "b": 0.0})
RELIABLE = reliability_rows((1.0, 0.99, 1.0), baselines=("with", "without"))


def named(table: pd.DataFrame, metric: str, **changed: Any) -> pd.DataFrame:
    """The rows of a metric as those of another one."""
    return table.assign(metric=metric, variant=metric, **changed)


def tables_of(order: pd.DataFrame = CLEAR, **changed: pd.DataFrame) -> dict[str, pd.DataFrame]:
    tables = {
        "order": order,
        "reliability": pd.concat([named(RELIABLE, metric) for metric in order["metric"].unique()]),
        "rankings": ranking_rows({}),
        "agreement": AGREEMENT,
    }
    return {**tables, **changed}


def study(tables: dict[str, pd.DataFrame], **changed: Any) -> StudyResult:
    methods = list(dict.fromkeys(tables["order"]["method"])) if tables else ["a"]
    given = {
        "name": "s",
        "label": "Study S",
        "page": "Study S",
        "labels": LABELS,
        "question": "What?",
        "data": "digits",
        "models": ["m (resnet8; 97 % right)"],
        "score_summaries": {},
    }
    return StudyResult(**{**given, "methods": methods, "tables": tables, **changed})


# --- which variants -----------------------------------------------------------------------------------------


def test_a_score_is_its_variant_without_a_sub_variant_else_its_last() -> None:
    variants = ["aopc L=10", "aopc L=20", "mcs", "mcs scale"]
    order = pd.DataFrame({"metric": ["aopc_morf"] * 2 + ["mcs"] * 2, "variant": variants})
    assert main_scores(order) == [("aopc_morf", "aopc L=20"), ("mcs", "mcs")]


# --- pages --------------------------------------------------------------------------------------------------


def heat(order: pd.DataFrame, reliability: pd.DataFrame = RELIABLE) -> str:
    names = {pair: pair[0] for pair in main_scores(order)}
    shown = heat_map(order, reliability, names, title="t", level=0.9)
    return str(page_templates(TEMPLATES).get_template("heat_map.html.j2").module.heat_map(shown))


def cell(text: str, method: str) -> str:
    """Return the cells of a method's row."""
    return text.partition(f'data-value="{method}">')[2].partition("</tr>")[0]


def test_the_heat_map_has_rank_set_mean_interval_and_alpha() -> None:
    text = heat(CLEAR.assign(rank_high=[1, 3, 3], rank_low=[1, 2, 2]))
    assert "good ↑" in Page(text).text
    assert cell(text, "a") == (
        'a</th><td style="background:#8cc0e6" data-value="9" data-csv="rank 1, mean 9 [8.5, 9.5]"><b>1</b>'
        "<small>9 [8.5, 9.5]</small></td>"
    )
    # Three quarters of the way from the first rank to the last.
    assert (
        'style="background:#e2eff9" data-value="8" data-csv="rank 2–3, mean 8 [7.5, 8.5]"><b>2–3</b>' in text
    )
    assert "random <small>baseline: does not use the model</small>" in cell(text, "random")
    foot = "α without baselines <small>90 % confidence interval</small></th><td>"
    assert f"{foot}<b>1.00</b><small>[0.99, 1.00]</small>" in text


def test_a_method_that_is_not_above_the_baselines_is_hatched_whatever_its_ranks() -> None:
    text = heat(order_rows({"a": (1, 1), "b": (1, 1), "random": (2, 2)}, above_baselines={"b": 0.0}))
    assert 'background:#8cc0e6"' in cell(text, "a")
    assert "repeating-linear-gradient(135deg,#8cc0e6 0 5px,#fff 5px 10px)" in cell(text, "b")
    assert Page(text).text.count("not significantly better than every baseline") == 1


def test_the_heat_map_shows_missing_scores_ranks_and_intervals() -> None:
    text = heat(order_rows({"a": (1, 1), "b": (2, 2), "c": (NAN, NAN)}, undefined={"a": 0.5}))
    assert "<td>no score</td>" in cell(text, "c")
    assert "<small>50\u00a0% of scores missing</small>" in cell(text, "a")
    assert 'background:#ffffff"' in cell(text, "b")  # the last of the two methods that are ranked
    alone = heat(order_rows({"a": (1, 1)}).assign(rank_low=NAN, rank_high=NAN, low=NAN, high=NAN))
    assert 'background:#ffffff" data-value="9" data-csv="mean 9"><b></b><small>9</small>' in alone
    few = heat(CLEAR, reliability_rows((0.5, NAN, NAN)))
    assert "<b>0.50</b><small>too few images for a CI</small>" in few
    seeds = reliability_rows((0.5, 0.4, 0.6), (NAN, NAN, NAN))
    assert "<td><small>undefined for 1 of 2 seeds</small></td>" in heat(CLEAR, seeds)


@pytest.mark.parametrize(
    ("direction", "mark"),
    [
        ("higher", '<span title="higher is better">↑</span>'),
        ("lower", '<span title="lower is better">↓</span>'),
        ("target 0", '<span title="closer to 0 is better">→ 0</span>'),
    ],
)
def test_the_heat_map_says_which_scores_are_better(direction: str, mark: str) -> None:
    order = CLEAR.assign(direction=direction)
    assert f"<button>good {mark}</button>" in heat(order)
    assert summary_table([study(tables_of(order))])["metric"].iloc[0] == f"good {arrow(direction)}"


def test_the_summary_table_has_a_row_for_every_score() -> None:
    order = pd.concat([CLEAR, named(TIED, "bad", direction="lower")])
    result = study(tables_of(order), score_summaries={"good": "what it measures"})
    found = summary_table([result, study({})])
    assert list(found["metric"]) == ["good ↑: what it measures", "bad ↓"]
    assert list(found["images with the best score"]) == [
        "a 100\u00a0%",
        "a 100\u00a0%, b 0\u00a0% and random 0\u00a0%",
    ]
    assert list(found["not significantly better than every baseline"]) == ["", "a and b"]
    assert list(found["best methods (rank set)"]) == ["a (1)", "a (1–2), b (1–2) and random, baseline (1–3)"]
    assert list(found["training seeds"]) == ["1", "1"]
    reliability = found["inter-rater reliability (α, without baselines)"]
    assert list(reliability) == ["1.00: images agree on the ranking (CI ≥ 0.65)"] * 2


def test_the_overview_summarizes_ranks_baselines_and_reliability() -> None:
    rankings = ranking_rows({("good", "bad"): 0.9})
    result = study(
        tables_of(pd.concat([CLEAR, named(TIED, "bad")]), rankings=rankings), cautions=["Mind the gap."]
    )
    page = Page(overview_page([result], seeds=[0], ran="0.2 hours of computing on cpu."))
    for words in (
        "3 methods (including baselines) in 1 study; 1 training seed. 0.2 hours of computing on cpu.",
        "On 1 of 2 metrics, a method that uses the model ranks first: a on good. Rank sets are based on 60 images",
        "The best methods are not distinguishable on these metrics: a, b and random (baseline) on bad"
        " (rank sets 1–2, 1–2 and 1–3).",
        "No method is significantly better than these baselines: random on bad.",
        "has the best score on most of them: good (a, 100\u00a0%).",
        "of K metrics, up to about K × 5 %",
        "Mean Spearman's ρ over methods within images is at least 0.5 for: good and bad (60 images).",
        "Data: digits. Models: m (resnet8; 97 % right). Methods: a, b and random.",
        "Mind the gap.",
    ):
        assert words in page.text, words
    assert page.text.count("so retraining may change the order of the methods") == 1


def test_scores_of_a_caption_study_are_not_compared_as_metrics() -> None:
    """Its two scores are one metric under two models."""
    order = pd.concat([CLEAR, named(TIED, "bad")])
    tables = tables_of(order, rankings=ranking_rows({("good", "bad"): 0.9}))
    for variants, count in (("variants", 1), ("models", 0)):
        result = study(tables, variants=variants)
        assert summary_page(result).count("is at least 0.5 for") == count
        assert overview_page([result], seeds=[0], ran="").count("is at least 0.5 for") == count


def test_a_study_without_scores_is_shown_without_ranks() -> None:
    page = Page(overview_page([study({}, question="Mind the gap.")], seeds=[0, 1], ran=""))
    assert "Mind the gap." in page.text
    assert "table" not in page.tags


def test_without_studies_the_overview_lists_data_sets_and_models() -> None:
    sets = [
        data_facts(name, (7, 3, 4, 5), {"classes": {"class": ["a", "b"]}, "digest": "d1"}) for name in "xy"
    ]
    page = Page(build_page(sets, ["m"], seeds=[0, 1], ran="2 jobs."))
    assert "No studies configured; 2 data sets built, 1 model trained with 2 seeds. 2 jobs." in page.text
    assert page.tags.count("tr") == 3  # the head, x and y
    assert "2 (class)" in page.text
    assert ("href", "accuracy.html") in page.attributes
    page = Page(build_page(sets, [], seeds=[0], ran=EVIL))
    assert "trained" not in page.text
    assert ("href", "accuracy.html") not in page.attributes
    assert EVIL in page.text


def test_names_are_text() -> None:
    order = order_rows({EVIL: (1, 1), "b": (2, 2)}, baseline={EVIL: True}, above_baselines={"b": 0.0})
    tables = tables_of(order.assign(variant=EVIL), reliability=RELIABLE.assign(variant=EVIL))
    result = study(tables, name=EVIL, label=EVIL, data=EVIL, models=[EVIL], score_summaries={"good": EVIL})
    for text in (overview_page([result], seeds=[0], ran=EVIL), summary_page(result)):
        page = Page(text)
        assert page.tags.count("script") == 1  # the page's own
        assert EVIL in page.text
        assert not any(name.startswith("on") or name in ("q", "1") for name, _ in page.attributes)


def test_the_summary_has_a_paragraph_for_every_score() -> None:
    agreement = pd.DataFrame(
        [("good", "good", "halves", 2, 3, 0.9), ("good", "", "variants", 2, 3, 0.4)],
        columns=list(AGREEMENT),
    )
    tables = tables_of(
        pd.concat([CLEAR.assign(undefined=[0, 0.5, 0]), named(TIED, "bad")]),
        rankings=ranking_rows({("good", "bad"): 0.9}),
        agreement=agreement,
    )
    page = Page(summary_page(study(tables)))
    assert page.tags.count("h3") == 4  # two scores, variants and metrics
    for words in (
        "a ranks first (mean 9, 95 % CI 8.5 to 9.5). Rank sets are based on 60 images",
        "b has no score for 50\u00a0% of the images under good;",
        "Krippendorff's α = 1.00 without baselines (99.9 % CI 0.99 to 1.00, 60 images); images agree",
        "a, which ranks first, also has the best score on most single images (100\u00a0%).",
        "by two random halves of the images: 0.90.",
        "good: Mean Spearman's ρ between the rankings of the methods by 2 variants: 0.40.",
        "is at least 0.5 for: good and bad (60 images).",
    ):
        assert words in page.text, words


# --- the report ---------------------------------------------------------------------------------------------


def test_the_reader_goes_into_snakemakes_report() -> None:
    text = with_reader("<html><body>‹report›</body></html>", ["figures/overview.html", EVIL])
    assert text.startswith("<html><body>‹report›<script>const reader = {")
    assert text.endswith("</script>\n</body></html>")
    reader = re.search(r"<script>const reader = (.*);</script>\n<script>'use strict';", text)
    assert reader is not None
    book = json.loads(reader[1])
    assert (book["order"], book["title"]) == (["figures/overview.html", EVIL], "Saliency Assay")
    assert book["shell"].count("<!--body-->") == 1
    assert "</" not in reader[1]  # ends no script


def test_a_report_that_is_no_page_is_refused() -> None:
    with pytest.raises(ValueError, match="no </body>"):
        with_reader("not found", [])

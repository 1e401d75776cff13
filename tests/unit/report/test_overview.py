"""The overview and a study's summary; names of any kind are shown as text."""

import json
import re
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from parsed_pages import Page
from report_tables import NAN, finding, order_rows, pair_rows, ranking_rows, reliability_rows

from saliency_assay.plotting.page import page_templates
from saliency_assay.plotting.palette import cell_colors
from saliency_assay.plotting.text import Answer
from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.verdicts import NOT_SEPARATED, TOO_FEW, UNTESTED
from saliency_assay.report.pages.examples import FIRST, LAST, Example, Examples, examples, selected_methods
from saliency_assay.report.pages.heat_map import heat_map
from saliency_assay.report.pages.overview import build_page, numbers_table, overview_page, summary_page
from saliency_assay.report.pages.provenance import data_facts
from saliency_assay.report.pages.reader import with_reader
from saliency_assay.report.pages.render import TEMPLATES
from saliency_assay.report.pages.study import StudyResult, main_scores
from saliency_assay.report.pages.summary import Disagreement, Finding, Lead
from saliency_assay.report.pages.trust import trust_page

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
        "pairs": pair_rows(order),
        "reliability": pd.concat([named(RELIABLE, metric) for metric in order["metric"].unique()]),
        "rankings": ranking_rows({}),
        "agreement": AGREEMENT,
    }
    return {**tables, **changed}


def study(tables: dict[str, pd.DataFrame], **changed: Any) -> StudyResult:
    methods = list(dict.fromkeys(tables["order"]["method"])) if tables else ["a"]
    fields = {
        "name": "s",
        "label": "Study S",
        "page": "Study S",
        "labels": LABELS,
        "question": "What?",
        "data": "digits",
        "models": ["m (resnet8; 97 % right)"],
        "score_summaries": {},
        "measured": {"good": "faithfulness", "bad": "robustness"},
    }
    return StudyResult(**{**fields, "methods": methods, "tables": tables, **changed})


# --- which variants -----------------------------------------------------------------------------------------


def test_a_score_is_its_variant_without_a_sub_variant_else_its_last() -> None:
    variants = ["aopc L=10", "aopc L=20", "mcs", "mcs scale"]
    order = pd.DataFrame({"metric": ["aopc_morf"] * 2 + ["mcs"] * 2, "variant": variants})
    assert main_scores(order) == [("aopc_morf", "aopc L=20"), ("mcs", "mcs")]


# --- pages --------------------------------------------------------------------------------------------------


def heat(
    order: pd.DataFrame,
    reliability: pd.DataFrame = RELIABLE,
    measured: dict[str, str] | None = None,
    controls: pd.DataFrame | None = None,
) -> str:
    names = {pair: pair[0] for pair in main_scores(order)}
    shown = heat_map(order, reliability, names, measured or {}, title="t", level=0.9, controls=controls)
    return str(page_templates(TEMPLATES).get_template("heat_map.html.j2").module.heat_map(shown))


def cell(text: str, method: str) -> str:
    """Return the cells of a method's row."""
    return text.partition(f'data-value="{method}">')[2].partition("</tr>")[0]


def test_the_heat_map_has_rank_set_mean_interval_and_alpha() -> None:
    text = heat(CLEAR.assign(rank_high=[1, 3, 3], rank_low=[1, 2, 2]))
    for direction, mark in (("higher", "↑"), ("lower", "↓"), ("target 0", "→ 0")):
        assert f"good {mark}" in Page(heat(CLEAR.assign(direction=direction))).text
    background, color = cell_colors(1, 1, 3)
    assert f"background-color:{background};color:{color}" in cell(text, "a")
    assert 'data-csv="rank 1, mean 9 [8.5, 9.5]"' in cell(text, "a")
    assert 'data-csv="rank 2–3, mean 8 [7.5, 8.5]" title="8.00 [7.50, 8.50]">2–3<small>' in cell(text, "b")
    assert "random <small>baseline</small>" in cell(text, "random")
    foot = text.partition("α without baselines</th>")[2]
    assert foot.startswith('<td><span title="[0.99, 1.00]">1.00</span><small>[0.99, 1.00]</small>')


def test_the_heat_map_has_the_share_of_the_range_between_controls() -> None:
    controls = pd.DataFrame({"method": ["a", "b", "random", "mask"], "control": ["", "", "lower", "upper"]})
    controls = controls.assign(
        metric="good", variant="good", mean=[9.0, 8.0, 7.0, 10.0], lower="random", reason=""
    )
    controls = controls.assign(share=[0.666, NAN, NAN, NAN], share_low=[-0.1, *[NAN] * 3], share_high=1.2)
    text = heat(CLEAR, controls=controls)
    assert '<span class="share">67 % <span>[−10, 120 %]</span></span>' in cell(text, "a")
    assert "67 % [−10, 120 %] of the range between the controls" in cell(text, "a")
    assert 'class="share"' not in cell(text, "b")
    assert 'class="shares"' in text
    assert "mask <small>best possible map</small>" in cell(text, "mask")
    assert "100 %" in cell(text, "mask")
    assert "<small>10.0</small>" in cell(text, "mask")
    others = CLEAR[CLEAR["method"] != "b"].assign(metric="bad", variant="bad")
    both = pd.concat([CLEAR, others])
    best = pd.DataFrame(
        [{"method": "b", "control": "upper", "metric": "bad", "variant": "bad", "mean": 9.0, "share": NAN}]
    )
    best = pd.concat([controls, best.assign(lower="random", reason="")])
    assert "failed" not in cell(heat(both, controls=best), "b")
    assert "failed" in cell(heat(both, controls=controls), "b")
    refused = heat(CLEAR, controls=controls.assign(share=NAN, reason="not above"))
    assert "not above" in cell(refused, "mask")
    assert 'class="shares"' not in refused
    assert "best possible map" not in heat(CLEAR)


@pytest.mark.parametrize(
    ("order", "verdict"),
    [
        (
            CLEAR,
            "yes<small>a: win rate 90\u00a0%, b 80\u00a0%, p = 0.010</small>"
            "<small>without a test: mean better by 1.00 [0.500, 1.50] than b</small>",
        ),
        (
            TIED,
            "no<small>a: win rate 90\u00a0%, b 80\u00a0%, p = 0.500</small>"
            "<small>without a test: mean better by 1.00 [0.500, 1.50] than b</small>",
        ),
        (  # the tested quantity is the mean
            CLEAR.assign(ranked_by="means"),
            "yes<small>a: mean better by 1.00 [0.500, 1.50] than b, p = 0.010</small></td>",
        ),
        (  # the best mean is of other images, as scores are missing
            TIED.assign(lead=-2.0, ranked_by="means"),
            "no<small>a has the best mean, but b is better on the same images, by 2.00</small>",
        ),
        (  # a wins most images, b has the better mean
            CLEAR.assign(lead=[-2.0, 2.0, 1.0], lead_low=-2.5, lead_high=0.5),
            "yes<small>a: win rate 90\u00a0%, b 80\u00a0%, p = 0.010</small>"
            "<small>without a test: mean worse by 2.00 [−0.500, 2.50] than b</small>",
        ),
        (
            TIED.assign(over=UNTESTED, lead_low=NAN, lead_high=NAN, lead_p=NAN),
            "not tested<small>a</small><small>mean better by 1.00 than b</small>",
        ),
        (CLEAR.assign(lead=NAN, lead_p=NAN), "–</td>"),  # on different images
    ],
)
def test_the_heat_map_states_whether_the_lead_is_significant(order: pd.DataFrame, verdict: str) -> None:
    row = heat(order).partition("significant lead</th>")[2].partition("</tr>")[0].replace("\n", "")
    assert row.partition(">")[2].startswith(verdict)


def test_metrics_are_grouped_by_what_they_measure_and_baselines_are_apart() -> None:
    order = pd.concat([named(CLEAR, name) for name in ("new", "robust", "faithful", "custom", "localized")])
    measured = {
        "robust": "robustness",
        "faithful": "faithfulness",
        "custom": "taste",
        "localized": "localization",
    }
    text = heat(order, measured=measured)
    places = [text.index(f"<button>{name} ") for name in ("faithful", "localized", "robust", "custom", "new")]
    assert places == sorted(places)
    groups = re.findall(r'colspan="1"[^>]*>([A-Za-z]+)</th>', text)
    assert groups == ["Faithfulness", "Localization", "Robustness", "Taste", "Other"]
    together = heat(order, measured=dict.fromkeys(order["metric"], "localization"))
    assert 'colspan="5" title="is the attribution on the object?">Localization</th>' in together
    methods, baselines = text.split('<tbody class="baselines">')
    assert ('data-value="b"' in methods, 'data-value="random"' in baselines) == (True, True)


def test_a_method_that_is_not_above_the_baselines_is_hatched_whatever_its_ranks() -> None:
    text = heat(order_rows({"a": (1, 1), "b": (1, 1), "random": (2, 2)}, above_baselines={"b": 0.0}))
    assert "hatched" not in cell(text, "a")
    assert 'class="hatched"' in cell(text, "b")
    assert Page(text).text.count("not significantly better than every baseline method") == 1


def test_the_heat_map_shows_missing_scores_ranks_and_intervals() -> None:
    text = heat(order_rows({"a": (1, 1), "b": (2, 2), "c": (NAN, NAN)}, undefined={"a": 0.5}))
    assert '<td class="none">no score</td>' in cell(text, "c")
    assert "50\u00a0% of scores missing</span>" in cell(text, "a")
    assert cell_colors(2, 2, 2)[0] in cell(text, "b")  # the last of the two methods that are ranked
    alone = heat(order_rows({"a": (1, 1)}).assign(rank_low=NAN, rank_high=NAN, low=NAN, high=NAN))
    assert 'data-value="9" data-csv="mean 9" title="9.00"><small>9.00</small>' in alone
    few = heat(CLEAR, reliability_rows((0.5, NAN, NAN)))
    assert '<span title="too few images for a CI">0.50</span>' in few
    seeds = reliability_rows((0.5, 0.4, 0.6), (NAN, NAN, NAN))
    assert '<span title="undefined for 1 of 2 seeds">–</span>' in heat(CLEAR, seeds)


# --- the card of a study ------------------------------------------------------------------------------------


def test_the_answer_has_a_line_for_each_leading_method() -> None:
    led = order_rows({"a": (2, 2), "b": (3, 3), "random": (1, 1)}, above_baselines={"a": 0.0, "b": 0.0})
    orders = {"x": CLEAR, "y": CLEAR, "z": order_rows({"a": (2, 2), "b": (1, 1)}), "v": TIED, "w": led}
    order = pd.concat([named(rows, name) for name, rows in orders.items()])
    size = "win rate 90\u00a0%, b 80\u00a0%, p = 0.001; mean better by 1.00 [0.500, 1.50]"
    for rows, lines in (
        (CLEAR, [Answer("leads b on good", "a", size)]),
        (
            order,  # under v, images are too few to tell, and w does not separate methods from baseline methods
            [
                Answer("leads b on x and y", "a", f"x: {size}"),
                Answer("leads a on z", "b", "win rate 80\u00a0%, a 90\u00a0%, p = 0.001"),
            ],
        ),
        (led, [Answer(f"No metric shows an order of the methods: {NOT_SEPARATED}.")]),
        (TIED, [Answer(f"No metric shows an order of the methods: {TOO_FEW}.")]),
        (
            order_rows({"a": (1, 1)}),
            [Answer("Fewer than two methods have a score under any metric, so there are no ranks.")],
        ),
        (
            order_rows({"a": (1, 1), "random": (2, 2)}),
            [Answer("a is the only ranked method that uses the model, so it has no competitor.")],
        ),
        (
            order_rows({"random": (1, 1), "edge": (2, 2)}),
            [Answer("Only baseline methods are ranked, so no method is compared.")],
        ),
    ):
        assert study(tables_of(rows)).answers == lines
    assert study({}).answers == []
    assert study(tables_of(), kind_answers=[Answer("Yes.")]).answers == [Answer("Yes.")]


def test_of_many_leading_methods_the_others_are_named_together() -> None:
    places = [sorted("abcde", key=lambda name, best=best: name != best) for best in "aaabbccde"]
    ranks = [{name: (place, place) for place, name in enumerate(names, 1)} for names in places]
    many = pd.concat([named(order_rows(each), f"m{place}") for place, each in enumerate(ranks)])
    lines = study(tables_of(many)).answers
    assert [(line.method, line.text) for line in lines] == [
        ("a", "leads all 4 other methods on m0, m1 and m2"),
        ("b", "leads all 4 other methods on m3 and m4"),
        ("c", "leads all 4 other methods on m5 and m6"),
        ("", "d and e lead on m7 and m8."),
    ]


def test_a_lead_under_a_metric_that_shows_no_order_is_stated_with_its_reason() -> None:
    ranks = {"a": (1, 1), **dict.fromkeys("bcdef", (2, 6)), "random": (7, 7)}
    result = study(tables_of(order_rows(ranks)))
    assert [verdict.kind for verdict in result.verdicts] == [TOO_FEW]
    shown, lead = map(str, result.answers)
    assert TOO_FEW in shown
    assert lead == "a leads on good, but images are too few to tell the order of the methods."


def test_metrics_that_order_methods_in_opposite_ways_are_named() -> None:
    opposite = named(order_rows({"a": (2, 2), "b": (1, 1), "random": (3, 3)}), "bad")
    result = study(tables_of(pd.concat([CLEAR, opposite])))
    (pair,) = result.disagreements
    assert pair == Disagreement("a", "b", ["good"], ["bad"])
    assert pair.text in Page(summary_page(result)).text
    assert study(tables_of(pd.concat([CLEAR, named(TIED, "bad")]))).disagreements == []
    assert study(tables_of(pd.concat([CLEAR, opposite])), variants="models").disagreements == []


def test_the_numbers_for_a_paper_are_numeric() -> None:
    table = numbers_table(study(tables_of()))
    assert table.loc[0, ["mean", "CI low", "CI high", "rank low", "lead in mean", "α"]].tolist() == [
        9,
        8.5,
        9.5,
        1,
        1,
        1,
    ]
    text = summary_page(study(tables_of()))
    assert "Export for a paper" in text
    assert "\\begin{tabular}" in text


def test_warnings_name_the_metrics_and_the_most_important_is_first() -> None:
    agreed = tables_of(pd.concat([CLEAR, named(CLEAR, "bad")]))
    assert study(agreed, cautions=["Mind the gap."]).warnings == ["Mind the gap."]
    led = order_rows({"a": (1, 2), "random": (1, 2)}, undefined={"a": 0.06}, above_baselines={"a": 0.0})
    low = pd.concat([RELIABLE, named(reliability_rows((0.3, 0.1, 0.64)), "bad")])
    result = study(tables_of(pd.concat([CLEAR, named(led, "bad")]), reliability=low), notes=["Note."])
    assert result.warnings == [
        "Too few images to tell: bad.",
        "Scores are missing: bad.",
    ]
    different = tables_of(pd.concat([CLEAR, named(CLEAR, "bad")]), reliability=low)
    assert study(different).warnings == ["Clear on average, but images rank methods differently: bad."]
    assert result.warnings_with_seed[2].startswith("The results are for one training seed")
    page = summary_page(result)
    assert page.index("More notes") < page.index("Note.")
    better = order_rows({"a": (2, 2), "random": (1, 1)}, above_baselines={"a": 0.0})
    assert study(tables_of(better)).warnings == ["Does not separate methods from baseline methods: good."]
    few = named(order_rows({"a": (1, 1), "b": (2, 2)}, images=29), "bad")
    assert study(tables_of(pd.concat([CLEAR, few]))).warnings == []  # a small number alone is no warning


@pytest.mark.parametrize(
    ("above", "warned"),
    [
        ({"a": 1.0, "b": 0.0}, True),
        ({"a": 0.0, "b": 0.0}, False),  # perhaps too few images
        ({"a": 1.0, "b": 1.0}, False),
        ({"a": 1.0, "b": NAN}, False),
    ],
)
def test_a_reference_color_is_named_if_only_its_method_is_no_better_than_baselines(
    above: dict[str, float], warned: bool
) -> None:
    weak = order_rows({"a": (1, 1), "b": (2, 3), "random": (2, 3)}, above_baselines={**above, "random": NAN})
    tables = tables_of(pd.concat([named(weak, "good"), named(CLEAR, "bad")]))  # only good is of faithfulness
    result = study(tables, reference_colors={"a": "black", "b": "black"})
    named_methods = [warning.split()[0] for warning in result.warnings if "black" in warning]
    assert named_methods == (["b"] if warned else [])


def findings(*tables: pd.DataFrame) -> list[Finding]:
    return [finding("metric", table, None) for table in tables]


def test_examples_are_of_the_best_and_the_worst_method_and_of_a_baseline() -> None:
    ranks = {"a": (2, 3), "b": (1, 1), "c": (3, 4), "edge": (2, 2), "random": (5, 5)}
    last = {"a": (3, 3), "b": (1, 1), "c": (2, 2), "edge": (4, 5), "random": (4, 5)}
    few = order_rows({"a": (1, 1)})
    selected = selected_methods(findings(order_rows(ranks), order_rows(ranks), order_rows(last), few))
    assert selected == {FIRST: "b", LAST: "c", "baseline": "edge"}
    tied = order_rows({"a": (1, 3), "b": (1, 3), "random": (1, 3)})
    assert selected_methods(findings(tied)) == {"a": "a", "b": "b", "baseline": "random"}
    assert selected_methods(findings(order_rows({"a": (1, 1), "random": (2, 2)}))) == {
        FIRST: "a",
        "baseline": "random",
    }
    assert selected_methods([]) == selected_methods(findings(few)) == {}


def test_examples_have_the_maps_of_the_first_model() -> None:
    content = {
        "titles": list("pqrst"),
        "images": [f"i{place}" for place in range(5)],
        "maps": {
            model: {method: [f"{model}{method}{place}" for place in range(5)] for method in "abc"}
            for model in ("m", "n")
        },
    }
    shown = examples(content, findings(order_rows({"b": (1, 1), "a": (2, 2)})), ["a", "b", "c"])
    assert shown == Examples(
        "m",
        {FIRST: "b", LAST: "a"},
        [Example("pqrst"[place], f"i{place}", [f"mb{place}", f"ma{place}"]) for place in range(4)],
    )
    text = overview_page([study({}, methods=list("abc"), thumbnails=content)], seeds=[0], ran="")
    assert "data:image/png;base64,mc3" in text
    assert "nc3" not in text
    missing = {**content, "maps": {"m": {method: [""] * 5 for method in "abc"}}}
    assert "<td>×</td>" in overview_page([study({}, methods=["a"], thumbnails=missing)], seeds=[0], ran="")


def test_the_overview_summarizes_ranks_baselines_and_reliability() -> None:
    rankings = ranking_rows({("good", "bad"): 0.9})
    result = study(
        tables_of(pd.concat([CLEAR, named(TIED, "bad")]), rankings=rankings), cautions=["Mind the gap."]
    )
    page = Page(overview_page([result], seeds=[0], ran="0.2 hours of computing on cpu."))
    for words in (
        "1 study, 3 scored methods, 1 training seed; 0.2 hours of computing on cpu.",
        *[" ".join(filter(None, [line.method, line.text, line.detail])) for line in result.answers],
        *result.warnings,
        "reliable good (α\u00a01.00)",
        "too few images to tell bad",
        "of K metrics, up to about K × 5 %",
    ):
        assert words in page.text, words
    page = Page(summary_page(result))
    for words in (
        result.answers[0].text,
        "of 2 metrics, up to 0.1 are expected to contain an error.",
        "is at least 0.5 for: good and bad (60 images).",
        "Mind the gap.",
    ):
        assert words in page.text, words


def test_scores_of_a_caption_study_are_not_compared_as_metrics() -> None:
    """Its two scores are one metric under two models."""
    order = pd.concat([CLEAR, named(TIED, "bad")])
    tables = tables_of(order, rankings=ranking_rows({("good", "bad"): 0.9}))
    for variants, count in (("variants", 1), ("models", 0)):
        result = study(tables, variants=variants)
        assert summary_page(result).count("is at least 0.5 for") == count


def test_a_study_without_scores_is_shown_without_ranks() -> None:
    page = Page(overview_page([study({}, question="Mind the gap.")], seeds=[0, 1], ran=""))
    assert "Mind the gap." in page.text
    assert "1 study, 1 method, 2 training seeds" in page.text
    assert "table" not in page.tags


def test_an_answer_and_a_caution_need_no_scores() -> None:
    result = study({}, kind_answers=[Answer("The order is kept.")], cautions=["Mind the gap."])
    text = Page(overview_page([result], seeds=[0], ran="")).text
    assert "The order is kept." in text
    assert "Mind the gap." in text


def test_without_studies_the_overview_lists_data_sets_and_models() -> None:
    sets = [
        data_facts(name, (7, 3, 4, 5), {"classes": {"class": ["a", "b"]}, "digest": "d1"}) for name in "xy"
    ]
    page = Page(build_page(sets, ["m"], seeds=[0, 1], ran="2 jobs."))
    assert "No studies configured; 2 data sets built, 1 model trained with 2 seeds. 2 jobs." in page.text
    assert page.tags.count("tr") == 3  # the head, x and y
    assert "2 (class)" in page.text
    assert ("href", "accuracy.html") in page.attributes


def test_names_are_text() -> None:
    order = order_rows({EVIL: (1, 1), "b": (2, 2)}, baseline={EVIL: True}, above_baselines={"b": 0.0})
    tables = tables_of(order.assign(variant=EVIL), reliability=RELIABLE.assign(variant=EVIL))
    result = study(tables, name=EVIL, label=EVIL, data=EVIL, models=[EVIL], score_summaries={"good": EVIL})
    for text in (overview_page([result], seeds=[0], ran=EVIL), summary_page(result), trust_page([result])):
        page = Page(text)
        assert page.tags.count("script") == 1  # the page's own
        assert EVIL in page.text
        assert not any(name.startswith("on") or name in ("q", "1") for name, _ in page.attributes)


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


def test_the_size_of_a_lead_begins_with_what_is_tested() -> None:
    lead = Lead("a", "M", ("b", "c"), "b", 0.2, 0.1, 0.3, 0.8, 0.6, 0.001, by_means=False)
    rates = "M: win rate 80\u00a0%, b 60\u00a0%, p = 0.001"
    assert lead.text == f"{rates}; mean better by 0.200 [0.100, 0.300]"
    assert replace(lead, low=-0.1).text == rates
    assert replace(lead, by_means=True).text == "M: mean better by 0.200 [0.100, 0.300] than b, p = 0.001"

"""Page on trust in metrics: the verdict on each metric, with its reasons."""

from dataclasses import replace
from typing import Any

import pandas as pd
from parsed_pages import Page
from report_tables import NAN, order_rows, pair_rows, ranking_rows, reliability_rows

from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.evidence import (
    AGAINST,
    FOR,
    NOT_MEASURED,
    NOT_SHOWN,
    SUPPORTED,
    evidence_table,
)
from saliency_assay.reliability.verdicts import CLEAR as CLEAR_VERDICT
from saliency_assay.reliability.verdicts import KINDS, RELIABLE, TOO_FEW, TRAINING_NOISE, UNTESTED
from saliency_assay.report.pages.overview import summary_page
from saliency_assay.report.pages.study import StudyResult
from saliency_assay.report.pages.trust import (
    ADVICE,
    DO_NOT_USE,
    Axis,
    Number,
    evidenced_metrics,
    metrics_to_use,
    trust_page,
    trusted_metrics,
    verdict_counts,
)

CLEAR = order_rows({"a": (1, 1), "b": (2, 2), "random": (3, 3)})
TIED = order_rows({"a": (1, 2), "b": (1, 2), "random": (1, 3)}, above_baselines={"a": 0.0, "b": 0.0})


def study(
    orders: dict[str, pd.DataFrame],
    alphas: dict[str, tuple[float, float, float]],
    correlations: dict[tuple[str, str], float] | None = None,
    **changed: Any,
) -> StudyResult:
    """Return a study with one row of tables for each metric; metrics without an entry in ``alphas`` are reliable."""
    reliability = {name: reliability_rows(alphas.get(name, (0.9, 0.7, 1.0))) for name in orders}
    named = {
        kind: pd.concat([rows.assign(metric=name, variant=name) for name, rows in tables.items()])
        for kind, tables in (("order", orders), ("reliability", reliability))
    }
    named["pairs"] = pair_rows(named["order"])
    fields: dict[str, Any] = {
        **{"name": "s", "label": "Study S", "page": "Study S page", "question": "What?", "data": "digits"},
        **{"models": [], "score_summaries": {}, "measured": {"good": "faithfulness"}, "methods": ["a", "b"]},
        "labels": Labels(entry_scores={name: {name: name} for name in orders}),
        "tables": {**named, "rankings": ranking_rows(correlations or {}), "agreement": pd.DataFrame()},
    }
    return StudyResult(**{**fields, **changed})


def test_every_metric_has_its_reliability_images_baselines_and_metrics_that_agree() -> None:
    orders = {"good": CLEAR, "bad": TIED.assign(images=[60, 36, 60], undefined=[0, 0.4, 0]), "third": CLEAR}
    alphas = {"good": (0.4, -0.5, 1.0), "bad": (0.5, NAN, NAN), "third": (NAN, NAN, NAN)}
    result = study(orders, alphas, {("good", "bad"): 0.4, ("good", "third"): 0.9})
    good, bad, third = trusted_metrics(result)
    assert (good.study, good.page, good.folder, good.measures) == (
        "Study S",
        "Study S page",
        "s",
        "faithfulness",
    )
    assert (good.alpha, good.images) == (Number("0.40", 0.4, "[−0.50, 1.00]"), Number("60 of 60", 60))
    assert good.axis == Axis(84.0, 30.0, 120.0, 60.0, 99.0)
    assert (good.baselines, good.agreeing.text) == (Number("2 of 2", 1), "1 of 2")
    assert "third (ρ\u00a0=\u00a00.90)" in good.agreeing.note
    assert good.seeds == 1
    kinds = [metric.verdict.kind for metric in (good, bad, third)]
    assert kinds == [CLEAR_VERDICT, TOO_FEW, CLEAR_VERDICT]
    assert "α" in third.reasons
    assert (bad.axis, bad.baselines) == (Axis(90.0, None, None, 60.0, 99.0), Number("0 of 2", 0))
    assert bad.images == Number("36–60 of 60", 36, "up to 40\u00a0% of scores missing")
    assert (third.alpha.value, third.axis, third.measures) == (None, None, "other")


def test_images_are_counted_of_all_images() -> None:
    missing = CLEAR.assign(images=[30, 45, 0], undefined=[0.5, 0.25, 1.0])
    assert trusted_metrics(study({"good": missing}, {}))[0].images.text == "0–45 of 60"
    none = CLEAR.assign(images=0, undefined=1.0)
    assert trusted_metrics(study({"good": none}, {}))[0].images.text == "0 of 60"
    seeds = CLEAR.assign(seeds=3, images=[60, 59, 60], undefined=[0.1, 0.1, 0])
    (metric,) = trusted_metrics(study({"good": seeds}, {}))
    assert (metric.images.text, metric.seeds) == ("59–60 of 60", 3)


def test_with_one_training_seed_methods_are_not_compared_with_baselines() -> None:
    (metric,) = trusted_metrics(study({"good": TIED.assign(over=UNTESTED)}, {}))
    assert metric.verdict.kind == TRAINING_NOISE
    assert (metric.baselines.value, metric.baselines.note) == (None, "one training seed")


def test_metrics_are_compared_if_they_share_enough_methods_and_images() -> None:
    orders = {"good": CLEAR, "bad": CLEAR}

    def agreeing(**changed: Any) -> str:
        result = study(orders, {}, {("good", "bad"): 0.9})
        rankings = result.tables["rankings"].assign(**changed)
        first, second = trusted_metrics(study(orders, {}, tables={**result.tables, "rankings": rankings}))
        assert first.agreeing.text == second.agreeing.text
        return first.agreeing.text if first.agreeing.value is not None else first.agreeing.note

    assert agreeing() == "1 of 1"
    assert "methods" in agreeing(methods=2)
    assert "images" in agreeing(images=29)
    models = study(orders, {}, {("good", "bad"): 0.9}, variants="models")
    assert [metric.agreeing.value for metric in trusted_metrics(models)] == [None, None]
    assert trusted_metrics(study({"good": CLEAR}, {}))[0].agreeing.value is None


def test_the_page_lists_all_metrics_by_verdict_with_the_number_of_each() -> None:
    result = study({"good": CLEAR, "bad": TIED, "third": CLEAR}, {"third": (0.4, 0.3, 0.5)})
    unscored = study({"good": CLEAR}, {}, tables={})
    counts = {TOO_FEW: 1, CLEAR_VERDICT: 1, RELIABLE: 1}
    assert verdict_counts([result, unscored]) == {kind: counts.get(kind, 0) for kind in KINDS}
    text = trust_page([result, unscored])
    page = Page(text)
    metrics = [row[1][0].split()[0] for row in page.rows[1:]]
    assert metrics == ["good", "third", "bad"]
    assert page.rows[1][0][0].partition(" images")[0] == RELIABLE
    assert text.count('<svg class="axis"') == 3
    assert ("data-page", "Study S page") in page.attributes
    assert ("href", "s/study.html") in page.attributes
    assert page.text.count("retraining may change the order of the methods") == 1


def test_metrics_to_use_are_grouped_by_verdict() -> None:
    alphas = {"third": (0.4, 0.3, 0.5), "open": (0.6, 0.5, 0.9)}
    orders = {"good": CLEAR, "bad": TIED, **dict.fromkeys(alphas, CLEAR)}
    result = replace(study(orders, alphas), score_summaries={"bad": "a bad one"})
    result.tables["pairs"].loc[result.tables["pairs"]["metric"] == "open", "skew_images"] = 5000
    advice = {
        name: [(group.kind, group.metrics) for group in groups]
        for name, groups in metrics_to_use([result]).items()
    }
    assert advice == {
        ADVICE[RELIABLE]: [(RELIABLE, [("good (α\u00a00.90)", "")])],
        ADVICE[CLEAR_VERDICT]: [(CLEAR_VERDICT, [("third", ""), ("open\u00a0*", "")])],
        DO_NOT_USE: [(TOO_FEW, [("bad", "a bad one")])],
    }


def test_concordance_is_shown_where_it_decides_in_place_of_a_low_alpha() -> None:
    result = study({"good": CLEAR}, {"good": (0.38, 0.2, 0.5)})
    concordance = {"concordance": 0.97, "concordance_low": 0.95, "concordance_high": 0.99}
    two_valued = result.tables["reliability"].assign(two_valued=True, **concordance)
    agreement = pd.DataFrame(columns=["metric", "variant", "correlation"])
    result = replace(result, tables={**result.tables, "reliability": two_valued, "agreement": agreement})
    (metric,) = trusted_metrics(result)
    note = "[0.20, 0.50]; concordance\u00a00.97 [0.95, 0.99] decides"
    assert (metric.verdict.kind, metric.alpha) == (RELIABLE, Number("0.38", 0.38, note))
    ((group,),) = metrics_to_use([result]).values()
    assert group.metrics == [("good (concordance\u00a00.97)", "")]
    (evidenced,) = evidenced_metrics(
        evidence_table({"s": {"reliability": two_valued}}, None, {}, ["good"]), [result]
    )
    assert evidenced.cells[0].statistic.note == note
    assert "concordance\u00a00.97" in summary_page(result)


def test_the_evidence_on_a_metric_is_listed_with_what_was_not_measured() -> None:
    result = study({"good": CLEAR, "bad": CLEAR}, {"bad": (0.4, 0.3, 0.5)})
    score = {"variant": "good", "metric": "good"}
    ends = {"lower": "random", "upper": "object_mask", "range": 0.5, "range_low": 0.25, "range_high": 0.75}
    order = {"micro": 0.6, "micro_low": 0.3, "micro_high": 0.9}
    tables = {"reliability": result.tables["reliability"], "controls": pd.DataFrame([score | ends])}
    tables["known_order"] = pd.DataFrame([score | order])
    table = evidence_table({"s": tables}, None, {}, ["good", "bad"])
    good, bad = evidenced_metrics(table, [result])
    assert (good.name, good.conclusion, bad.conclusion) == ("good", SUPPORTED, NOT_SHOWN)
    assert [cell.finding for cell in good.cells] == [FOR, FOR, *[NOT_MEASURED] * 4, FOR]
    assert [cell.finding for cell in bad.cells] == [AGAINST, *[NOT_MEASURED] * 6]
    reliability, known_order, *_, ends_cell = good.cells
    assert reliability.statistic == Number("α\u00a0=\u00a00.90", 0.9, "[0.70, 1.00]")
    assert known_order.axis == Axis(96.0, 78.0, 114.0, 60.0, 60.0)
    assert (ends_cell.axis, ends_cell.statistic.note, ends_cell.source) == (None, "[0.250, 0.750]", "Study S")
    assert good.reasons.startswith("for: reliability, known order, range between controls; not measured:")
    page = Page(trust_page([result], table))
    (heads,) = [row for row in page.rows if row[1][0] == "conclusion"]
    measured = ["reliability", "known order", "range between controls"]
    assert [name for name, _ in heads] == ["metric", "conclusion", *measured]
    assert "1 metric of single maps has no evidence other than reliability." in page.text
    assert "truth on designed networks (add a designed study)" in page.text
    only_reliable = evidence_table({"s": {"reliability": tables["reliability"]}}, None, {}, ["good", "bad"])
    text = Page(trust_page([result], only_reliable)).text
    assert "2 metrics of single maps have no evidence other than reliability." in text
    assert "Not measured in this run: known order" in text
    assert "Further evidence" not in Page(trust_page([result])).text


def test_metrics_of_studies_that_rate_no_methods_have_evidence_too() -> None:
    rated = study({"good": CLEAR}, {})
    designed = replace(rated, name="designed", tables={}, labels=Labels(metrics={"only": "Only here"}))
    score = {"metric": "only", "variant": "only", "rank_low": 1, "rho": 0.5, "rho_low": 0.1, "rho_high": 0.9}
    tables = {
        "s": {"reliability": rated.tables["reliability"]},
        "designed": {"metric_truth": pd.DataFrame([score])},
    }
    table = evidence_table(tables, None, {}, ["good", "only"])
    names = {metric.name: metric.cells[4].finding for metric in evidenced_metrics(table, [rated, designed])}
    assert list(names.values()) == [NOT_MEASURED, FOR]
    assert list(names)[1] == designed.labels.score("only", "only")


def test_a_page_without_metrics_has_no_table() -> None:
    assert "table" not in Page(trust_page([study({"good": CLEAR}, {}, tables={})])).tags

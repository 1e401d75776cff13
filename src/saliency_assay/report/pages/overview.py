"""Overview, the first page of the report, with a card for each study; and the first part of a study's page."""

from collections.abc import Mapping, Sequence

import pandas as pd

from saliency_assay.plotting.html import table_of
from saliency_assay.plotting.text import joined
from saliency_assay.reliability.comparison import MEANS, WINS
from saliency_assay.reliability.verdicts import alpha_row
from saliency_assay.report.export.export import STATISTICS, study_tex, tidy_table
from saliency_assay.report.pages import words
from saliency_assay.report.pages.examples import Examples, examples
from saliency_assay.report.pages.heat_map import HeatMap, heat_map
from saliency_assay.report.pages.preview import preview
from saliency_assay.report.pages.render import render
from saliency_assay.report.pages.study import MOST_WARNINGS, StudyResult
from saliency_assay.report.pages.summary import basis_words, one_seed_words
from saliency_assay.report.pages.trust import metrics_to_use

MOST_DISAGREEMENTS = (
    3  # most pairs of methods on which metrics disagree, on a study's page, that are not folded
)

TESTED = {WINS: "win rates", MEANS: "means"}
"""Quantities that rank sets and p-values compare."""


def overview_page(
    results: Sequence[StudyResult], *, seeds: Sequence[int], ran: str, not_computed: Sequence[str] = ()
) -> str:
    """Return the overview as an HTML page.

    Args:
        results: studies in the order of the configuration.
        seeds: training seeds.
        ran: text with hours, devices and versions, see ``provenance.ran``.
        not_computed: sentences on methods and metrics whose jobs failed.
    """
    scored = [result for result in results if result.tables]
    methods = dict.fromkeys(method for result in scored or results for method in result.methods)
    counts = ", ".join(
        [
            _count_text(len(results), "study", "studies"),
            _count_text(len(methods), "scored method" if scored else "method"),
            f"{_count_text(len(seeds), 'training seed')};",
        ]
    )
    heat_maps = [_heat_map(result) for result in results]
    studies = [  # studies without scores are last
        (result, heat and preview(heat), _examples(result))
        for result, heat in zip(results, heat_maps, strict=True)
    ]
    studies.sort(key=lambda study: study[1] is None)
    return render(
        "overview",
        counts=counts,
        ran=ran,
        one_seed=one_seed_words({result.label: result.findings for result in scored}),
        legends=[heat for heat in heat_maps if heat][:1],
        studies=studies,
        answered=[result for result, *_ in studies if result.answers or result.warnings],
        use=metrics_to_use(results),
        contents=_contents(scored),
        not_computed=not_computed,
    )


def _contents(scored: Sequence[StudyResult]) -> dict[str, str]:
    """Return the titles of the sections of the overview by their anchors."""
    maps = "Ranks, maps and failures" if any(result.failures for result in scored) else "Ranks and maps"
    sections = {"results": "Results of the studies", "metrics": "Which metrics to use", "maps": maps}
    if any(result.disagreements for result in scored):
        sections["disagreements"] = "Where metrics disagree"
    return sections | {"export": "Export for a paper"}


def build_page(
    data: Sequence[Mapping[str, object]], models: Sequence[str], *, seeds: Sequence[int], ran: str
) -> str:
    """Return the overview of a configuration without studies: its data sets and models.

    Args:
        data: result of ``report.pages.provenance.data_facts`` for each data set.
        models: labels of the trained models.
        seeds: training seeds.
        ran: text with hours and versions, see ``provenance.ran``.
    """
    counts = f"No studies configured; {_count_text(len(data), 'data set')} built"
    if models:
        counts += f", {_count_text(len(models), 'model')} trained with {_count_text(len(seeds), 'seed')}"
    sets = table_of(pd.DataFrame(data), "Data sets", 0)
    return render("build", counts=f"{counts}.", ran=ran, models=models, data=sets)


def summary_page(result: StudyResult, *, not_computed: Sequence[str] = ()) -> str:
    """Return the first part of a study's page: its question and the interpretation of its tables.

    ``not_computed`` are sentences on its methods and metrics whose jobs failed.
    """
    metrics, variants = [], {}
    if result.tables:
        agreement = result.tables["agreement"]
        judged = zip(result.names, result.findings, result.verdicts, strict=True)
        for (metric, variant), finding, verdict in judged:
            rows, alpha, pairs = finding.rows, finding.alpha, finding.pairs
            texts = [f"Verdict: {verdict.text}.", words.order_words(rows, pairs)]
            texts += words.undefined_words(rows, finding.name)
            if alpha is not None:
                texts.append(words.reliability_words(alpha, result.level))
            texts.append(words.single_image_words(rows, alpha))
            texts.append(words.halves_words(words.rows_of(agreement, metric, variant)))
            metrics.append(
                (finding.name, result.score_summaries.get(metric, ""), " ".join(filter(None, texts)))
            )
        for metric in dict.fromkeys(result.tables["order"]["metric"]):
            variants[result.labels.score(metric)] = words.halves_words(words.rows_of(agreement, metric, ""))
    return render(
        "study",
        result=result,
        not_computed=not_computed,
        heat=_heat_map(result),
        most_warnings=MOST_WARNINGS,
        most_disagreements=MOST_DISAGREEMENTS,
        numbers=table_of(numbers_table(result), f"{result.label}: results", 4) if result.tables else None,
        latex=_latex(result) if result.tables else "",
        basis=basis_words(result.findings) if result.tables else "",
        metrics=metrics,
        variants={name: text for name, text in variants.items() if text},
    )


def _heat_map(result: StudyResult) -> HeatMap | None:
    if not result.tables:
        return None
    title = f"{result.label}: rank sets of the methods"
    judged = zip(result.names, result.verdicts, strict=True)
    return heat_map(
        result.tables["order"],
        result.tables["reliability"],
        result.names,
        result.measured,
        title=title,
        level=result.level,
        summaries=result.score_summaries,
        reasons={pair: verdict.text for pair, verdict in judged if not verdict.is_shown},
        controls=result.tables.get("controls"),
    )


def numbers_table(result: StudyResult) -> pd.DataFrame:
    """Return means, intervals, ranks, leads and α of all methods and metrics as numbers, for a paper."""
    order, alphas = _named(result, result.tables["order"]), result.tables["reliability"]
    alpha_rows = [
        alpha_row(alphas, *pair) or {}
        for pair in order[["metric", "variant"]].itertuples(index=False, name=None)
    ]
    tested = joined(dict.fromkeys(TESTED[name] for name in order["ranked_by"]))
    columns: dict[str, object] = {
        "metric": [
            result.labels.score(*pair) for pair in zip(order["metric"], order["variant"], strict=True)
        ],
        **{name: order[name] for name in ("method", "direction", "images", "mean")},
        "CI low": order["low"],
        "CI high": order["high"],
        "rank low": order["rank_low"],
        "rank high": order["rank_high"],
        "lead in mean": order["lead"],
        "lead CI low": order["lead_low"],
        "lead CI high": order["lead_high"],
        "lead over": order["lead_over"].fillna(""),
        "win rate": order["win_rate"],
        f"p ({tested})": order["lead_p"],
        "α": [row.get("alpha", float("nan")) for row in alpha_rows],
        "α CI low": [row.get("alpha_low", float("nan")) for row in alpha_rows],
        "α CI high": [row.get("alpha_high", float("nan")) for row in alpha_rows],
    }
    if order["model"].nunique() > 1:
        columns["model"] = order["model"].map(result.labels.model)
    return pd.DataFrame(columns)


def _named(result: StudyResult, table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the metrics and variants that pages name."""
    pairs = zip(table["metric"], table["variant"], strict=True)
    return table[[pair in result.names for pair in pairs]].reset_index(drop=True)


def _latex(result: StudyResult) -> str:
    order, reliability = _named(result, result.tables["order"]), result.tables["reliability"]
    missing = {name: float("nan") for name in STATISTICS if name not in reliability}
    scores = tidy_table(result.name, "", order, reliability.assign(**missing))
    return study_tex(result.name, scores, [], level=result.level, labels=result.labels)


def _examples(result: StudyResult) -> Examples | None:
    findings = result.findings if result.tables else []
    return examples(result.thumbnails, findings, result.methods) if result.thumbnails else None


def _count_text(number: int, name: str, plural: str = "") -> str:
    return f"{number} {name if number == 1 else plural or name + 's'}"

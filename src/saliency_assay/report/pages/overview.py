"""Overview, the first page of the report: the run, rank sets of the methods, and reliability; and a study's summary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.plotting.html import table_of
from saliency_assay.plotting.text import joined, span_text
from saliency_assay.registry import directions
from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.figures import scored_names
from saliency_assay.reliability.tables import rank_text
from saliency_assay.report.pages import words
from saliency_assay.report.pages.heat_map import HeatMap, heat_map
from saliency_assay.report.pages.render import render
from saliency_assay.report.pages.summary import Finding, summary_words


@dataclass(frozen=True)
class StudyResult:
    """Results of one study for the overview and its summary page."""

    name: str
    """Key in the configuration, which is its folder of figures."""
    label: str
    page: str
    """Page of the report with its figures and tables."""
    question: str
    """Question that its kind of study answers."""
    data: str
    """Description of its data set."""
    models: Sequence[str]
    """Descriptions of its models with their accuracy."""
    labels: Labels
    score_summaries: Mapping[str, str]
    """Summary of each score, by name."""
    methods: Sequence[str]
    """Labels of its methods."""
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """``order``, ``reliability``, ``rankings`` and ``agreement`` from ``reliability.tables`` and
    ``reliability.agreement``, methods by their labels in ``order``; empty if no method is scored."""
    level: float = 0.999
    """Confidence level of the intervals of α."""
    variants: str = "variants"
    """Kind of the variants of a score: ``variants`` of a metric, or ``models``, all of which have sentences."""
    cautions: Sequence[str] = ()
    """Sentences on limitations of the ranks."""

    @property
    def about(self) -> list[str]:
        """Paragraphs with its question, data, models and methods."""
        run = f"Data: {self.data}. Models: {'; '.join(self.models)}. Methods: {joined(self.methods)}."
        return [self.question, run]

    @property
    def names(self) -> dict[tuple[str, str], str]:
        """Labels of the metrics and variants that have sentences."""
        order = self.tables["order"]
        # Models expect different maps, so none of them is left out.
        pairs = scored_names(order, most=len(order)) if self.variants == "models" else main_scores(order)
        return {pair: self.labels.score(*pair) for pair in pairs}

    @property
    def findings(self) -> list[Finding]:
        """Rank sets and reliability of each of ``names``."""
        order, reliability = self.tables["order"], self.tables["reliability"]
        return [
            Finding(name, _select(order, *pair), words.alpha_row(reliability, *pair))
            for pair, name in self.names.items()
        ]

    @property
    def agreement(self) -> str:
        """Sentence on metrics that agree on the ranking; empty if variants are models, as they share one metric."""
        return "" if self.variants == "models" else words.ranking_words(self.tables["rankings"], self.names)


def main_scores(order: pd.DataFrame) -> list[tuple[str, str]]:
    """Return metric and variant of one variant of each score: the one without a sub-variant, else the last."""
    bare = [" " not in variant for variant in order["variant"]]
    entries = [variant.partition(" ")[0] for variant in order["variant"]]
    keyed = order.assign(bare=bare, entry=entries)
    has_bare = keyed.groupby(["metric", "entry"], sort=False)["bare"].transform("any")
    return list(scored_names(keyed[keyed["bare"] | ~has_bare], most=0))


def summary_table(results: Sequence[StudyResult]) -> pd.DataFrame:
    """Return one row for each study and score: the best methods and the reliability of the ranking."""
    rows = []
    for result in results:
        if not result.tables:
            continue
        for (metric, _), finding in zip(result.names, result.findings, strict=True):
            scored = words.ranked(finding.rows)
            leading = words.top(scored).to_dict("records")
            name = f"{finding.name} {directions.arrow(str(finding.rows['direction'].iloc[0]))}"
            rows.append(
                {
                    "study": result.label,
                    "metric": f"{name}: {summary}"
                    if (summary := result.score_summaries.get(metric))
                    else name,
                    "best methods (rank set)": joined(map(_rank_text, leading)) or "none",
                    "images with the best score": joined(
                        f"{row['method']} {words.percent(row['wins'])}" for row in leading
                    ),
                    "not significantly better than every baseline": joined(words.weak_methods(finding.rows)),
                    "images": span_text(scored["images"]) if len(scored) else "0",
                    "training seeds": span_text(finding.rows["seeds"]),
                    "inter-rater reliability (α, without baselines)": _alpha_text(finding.alpha),
                }
            )
    return pd.DataFrame(rows)


def overview_page(results: Sequence[StudyResult], *, seeds: Sequence[int], ran: str) -> str:
    """Return the overview as an HTML page.

    Args:
        results: studies in the order of the configuration.
        seeds: training seeds.
        ran: text with hours, devices and versions, see ``provenance.ran``.
    """
    scored = [result for result in results if result.tables]
    methods = dict.fromkeys(method for result in scored for method in result.methods)
    counts = f"{_count_text(len(methods), 'method')} (including baselines) in"
    counts += f" {_count_text(len(results), 'study', 'studies')}; {_count_text(len(seeds), 'training seed')}."
    table, title = summary_table(results), "Best methods and reliability by metric"
    heat_title = "rank sets of the methods, means with 95 % CI, and reliability"
    return render(
        "overview",
        counts=counts,
        ran=ran,
        summaries={result.label: [*summary_words(result.findings), *result.cautions] for result in scored},
        summary=table_of(table, title, 2) if len(table) else None,
        studies=[(result, _heat_map(result, heat_title)) for result in results],
    )


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


def summary_page(result: StudyResult) -> str:
    """Return the first part of a study's page: its question and the interpretation of its tables."""
    metrics, variants = [], {}
    if result.tables:
        agreement = result.tables["agreement"]
        for (metric, variant), finding in zip(result.names, result.findings, strict=True):
            texts = [words.order_words(finding.rows), *words.undefined_words(finding.rows, finding.name)]
            if finding.alpha is not None:
                texts.append(words.reliability_words(finding.alpha, result.level))
            texts.append(words.single_image_words(finding.rows, finding.alpha))
            texts.append(words.halves_words(_select(agreement, metric, variant)))
            metrics.append(
                (finding.name, result.score_summaries.get(metric, ""), " ".join(filter(None, texts)))
            )
        for metric in dict.fromkeys(result.tables["order"]["metric"]):
            variants[result.labels.score(metric)] = words.halves_words(_select(agreement, metric, ""))
    return render(
        "study",
        result=result,
        heat=_heat_map(result, "rank sets of the methods"),
        metrics=metrics,
        variants={name: text for name, text in variants.items() if text},
    )


def _heat_map(result: StudyResult, title: str) -> HeatMap | None:
    if not result.tables:
        return None
    order, reliability = result.tables["order"], result.tables["reliability"]
    full_title = f"{result.label}: {title}"
    return heat_map(order, reliability, result.names, title=full_title, level=result.level)


def _alpha_text(alpha: Mapping[str, Any] | None) -> str:
    if alpha is None:
        return "–"
    return (
        words.alpha_words(alpha)
        if np.isnan(alpha["alpha"])
        else f"{words.two(alpha['alpha'])}: {words.alpha_words(alpha)}"
    )


def _rank_text(row: Mapping[Any, Any]) -> str:
    note = ", baseline" if row["baseline"] else ""
    return f"{row['method']}{note} ({rank_text(row['rank_low'], row['rank_high'])})"


def _select(table: pd.DataFrame, metric: str, variant: str) -> pd.DataFrame:
    return table[(table["metric"] == metric) & (table["variant"] == variant)]


def _count_text(number: int, name: str, plural: str = "") -> str:
    return f"{number} {name if number == 1 else plural or name + 's'}"

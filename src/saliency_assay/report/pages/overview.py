"""Overview, the first page of the report, with a card for each study; and the first part of a study's page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from saliency_assay.plotting.html import table_of
from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.figures import scored_names
from saliency_assay.report.pages import words
from saliency_assay.report.pages.examples import Examples, examples
from saliency_assay.report.pages.heat_map import HeatMap, heat_map
from saliency_assay.report.pages.render import render
from saliency_assay.report.pages.summary import (
    Finding,
    answer_words,
    has_one_seed,
    summary_words,
    warning_words,
)


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
    measured: Mapping[str, str]
    """Property of a map that each score measures, by name."""
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
    thumbnails: Mapping[str, Any] = field(default_factory=dict)
    """Images and maps for the overview, see ``plotting.thumbnails.thumbnails``; empty for the summary page."""

    @property
    def short_question(self) -> str:
        """Its question without the explanation that follows."""
        return "".join(self.question.partition("?")[:2])

    @property
    def answer(self) -> str:
        """Its result in one or two sentences; empty if no method is scored."""
        return answer_words(self.findings) if self.tables else ""

    @property
    def warnings(self) -> list[str]:
        """Short sentences on the limits of its ranks."""
        return [*(warning_words(self.findings) if self.tables else []), *self.cautions]

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


def overview_page(results: Sequence[StudyResult], *, seeds: Sequence[int], ran: str) -> str:
    """Return the overview as an HTML page.

    Args:
        results: studies in the order of the configuration.
        seeds: training seeds.
        ran: text with hours, devices and versions, see ``provenance.ran``.
    """
    methods = dict.fromkeys(method for result in results if result.tables for method in result.methods)
    counts = f"{_count_text(len(methods), 'method')} (including baselines) in"
    counts += f" {_count_text(len(results), 'study', 'studies')}; {_count_text(len(seeds), 'training seed')}."
    studies = [(result, _heat_map(result), _examples(result)) for result in results]
    legends = [heat for _, heat, _ in studies if heat][:1]
    one_seed = (
        words.ONE_SEED if any(has_one_seed(result.findings) for result in results if result.tables) else ""
    )
    return render("overview", counts=counts, ran=ran, one_seed=one_seed, legends=legends, studies=studies)


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
        heat=_heat_map(result),
        one_seed=words.ONE_SEED if result.tables and has_one_seed(result.findings) else "",
        sentences=summary_words(result.findings) if result.tables else [],
        metrics=metrics,
        variants={name: text for name, text in variants.items() if text},
    )


def _heat_map(result: StudyResult) -> HeatMap | None:
    if not result.tables:
        return None
    order, reliability = result.tables["order"], result.tables["reliability"]
    title = f"{result.label}: rank sets of the methods"
    return heat_map(order, reliability, result.names, result.measured, title=title, level=result.level)


def _examples(result: StudyResult) -> Examples | None:
    findings = result.findings if result.tables else []
    return examples(result.thumbnails, findings, result.methods) if result.thumbnails else None


def _select(table: pd.DataFrame, metric: str, variant: str) -> pd.DataFrame:
    return table[(table["metric"] == metric) & (table["variant"] == variant)]


def _count_text(number: int, name: str, plural: str = "") -> str:
    return f"{number} {name if number == 1 else plural or name + 's'}"

"""Trust in metrics: the verdict on every metric of a run with what it is based on, and all evidence on it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

import pandas as pd

from saliency_assay.plotting.text import span_text
from saliency_assay.registry.properties import OTHER
from saliency_assay.reliability import evidence, verdicts
from saliency_assay.reliability.reliability_tables import PAIR
from saliency_assay.reliability.verdicts import KINDS, Verdict, alpha_row
from saliency_assay.report.pages import words
from saliency_assay.report.pages.render import render
from saliency_assay.report.pages.study import StudyResult
from saliency_assay.report.pages.summary import one_seed_words

LEVELS = {kind: 2 if kind == verdicts.RELIABLE else int(kind in verdicts.SHOWN) for kind in KINDS}
"""Color of each verdict: 0 if no order was shown, 1 if it is clear on average, 2 if it is reliable."""
ADVICE = {verdicts.RELIABLE: "Use", verdicts.CLEAR: "Use, but not for single images"}
DO_NOT_USE = "Do not use in this run"
"""Advice on metrics whose verdict shows an order of the methods, and on others."""
SKEWED = "\u00a0*"
"""Mark of metrics with means that depend on a few images."""
CONCLUSIONS = (evidence.SUPPORTED, evidence.NOT_SHOWN, evidence.CONTRADICTED)
CONCLUSION_RULES = {
    evidence.SUPPORTED: "Reliability and a comparison with a known answer (known order, or truth on designed "
    "networks) are for the metric; no evidence is against it.",
    evidence.NOT_SHOWN: "No evidence on validity is against the metric, but reliability is not for it, no comparison "
    "with a known answer is for it, or models do not agree.",
    evidence.CONTRADICTED: "Evidence on validity is against the metric: known order, meta-consistency, truth on "
    "designed networks, or range between controls.",
}
FINDING_LEVELS = {evidence.AGAINST: 0, evidence.FOR: 2}
"""Colors of findings, as in ``LEVELS``; others are 1."""
NOT_COMPARED = "not compared"
LEFT, RIGHT = -1.0, 1.0  # ends of the axis of α; values outside are plotted at the ends
WIDTH = 120  # pixels of the axis


@dataclass(frozen=True)
class Axis:
    """α and its interval as places on the axis, in pixels; ``low`` and ``high`` are None without an interval."""

    value: float
    low: float | None
    high: float | None
    zero: float
    threshold: float


@dataclass(frozen=True)
class Number:
    """Content of a cell, and the number by which it is sorted; None if it has none."""

    text: str
    value: float | None
    note: str = ""


@dataclass(frozen=True)
class TrustedMetric:
    """Row of ``templates/trust.html.j2``: one metric of a study."""

    study: str
    page: str
    folder: str
    name: str
    summary: str
    measures: str
    alpha: Number  # with its interval as note
    axis: Axis | None
    images: Number  # images with a score, of all images
    seeds: int
    baselines: Number  # number of methods that are better than every baseline method
    agreeing: Number  # number of metrics that order the methods of single images similarly
    verdict: Verdict

    @property
    def place(self) -> int:
        """Place of the verdict in ``verdicts.KINDS``."""
        return KINDS.index(self.verdict.kind)

    @property
    def reasons(self) -> str:
        """Reasons of the verdict as text."""
        return "; ".join(self.verdict.reasons)


@dataclass(frozen=True)
class AdvisedMetrics:
    """Metrics with the same verdict."""

    kind: str
    level: int
    metrics: Sequence[tuple[str, str]]
    """Their labels with notes, and the summaries of their scores."""


@dataclass(frozen=True)
class EvidenceCell:
    """One kind of evidence on a metric."""

    finding: str
    """A value of ``finding`` of ``evidence.evidence_table``, or ``evidence.NOT_MEASURED``."""
    statistic: Number = Number("", None)
    """The statistic with its interval as note."""
    axis: Axis | None = None
    source: str = ""
    """Study with these numbers, and the number of studies if there are several."""

    @property
    def is_measured(self) -> bool:
        """True if it has a finding."""
        return self.finding not in (evidence.NOT_MEASURED, evidence.UNTESTABLE)


@dataclass(frozen=True)
class EvidencedMetric:
    """Row of the table of evidence: one metric of all studies."""

    name: str
    measures: str
    conclusion: str
    cells: Sequence[EvidenceCell]
    """One of each of ``evidence.KINDS``."""

    @property
    def has_more(self) -> bool:
        """True if it has evidence other than reliability, which the table of verdicts has."""
        measured = zip(evidence.KINDS, self.cells, strict=True)
        return any(cell.is_measured for kind, cell in measured if kind is not evidence.RELIABILITY)

    @property
    def place(self) -> int:
        """Place of the conclusion in ``CONCLUSIONS``."""
        return CONCLUSIONS.index(self.conclusion)

    @property
    def reasons(self) -> str:
        """Evidence for and against the metric as text, and what was not measured."""
        names: dict[str, list[str]] = {}
        for kind, cell in zip(evidence.KINDS, self.cells, strict=True):
            names.setdefault(cell.finding, []).append(kind.label)
        shown = (evidence.AGAINST, evidence.FOR, evidence.OPEN, evidence.NOT_MEASURED)
        return "; ".join(f"{finding}: {', '.join(names[finding])}" for finding in shown if finding in names)


def trust_page(results: Sequence[StudyResult], evidence_rows: pd.DataFrame | None = None) -> str:
    """Return the page on the metrics of all studies, the most reliable first.

    Args:
        results: studies in the order of the configuration; those without scores are left out.
        evidence_rows: result of ``evidence.evidence_table``; None to leave it out.
    """
    scored = [result for result in results if result.tables]
    every = [] if evidence_rows is None else evidenced_metrics(evidence_rows, results)
    evidenced = [metric for metric in every if metric.has_more]
    places = range(len(evidence.KINDS))
    measured = [place for place in places if any(metric.cells[place].is_measured for metric in evidenced)]
    metrics = [metric for result in scored for metric in trusted_metrics(result)]
    return render(
        "trust",
        metrics=sorted(metrics, key=lambda metric: -metric.place),
        counts=verdict_counts(scored),
        one_seed=one_seed_words({result.label: result.findings for result in scored}),
        alpha_head=f"α with {100 * scored[0].level:.4g} % CI" if scored else "",
        levels=[LEVELS[kind] for kind in KINDS],
        kinds=KINDS,
        evidenced=evidenced,
        only_reliable=len(every) - len(evidenced),
        evidence_kinds=evidence.KINDS,
        measured=measured,
        sources=_sources(every),
        conclusions={
            name: [metric for metric in evidenced if metric.conclusion == name] for name in CONCLUSIONS
        },
        finding_levels=FINDING_LEVELS,
        conclusion_rules=CONCLUSION_RULES,
        reliable=words.RELIABLE,
        concordance=verdicts.CONCORDANCE,
        negligible=verdicts.NEGLIGIBLE,
        agree=words.AGREE,
        few=words.FEW,
        least_methods=words.LEAST_METHODS,
        undefined=words.percent(words.UNDEFINED),
    )


def _sources(metrics: Sequence[EvidencedMetric]) -> dict[str, list[str]]:
    """Return what a configuration lacks that gives the kinds of evidence that no metric has, with these kinds."""
    sources: dict[str, list[str]] = {}
    for place, kind in enumerate(evidence.KINDS):
        findings = {metric.cells[place].finding for metric in metrics}
        if kind is not evidence.RELIABILITY and findings == {evidence.NOT_MEASURED}:
            sources.setdefault(kind.source, []).append(kind.label)
    return sources


def evidenced_metrics(table: pd.DataFrame, results: Sequence[StudyResult]) -> list[EvidencedMetric]:
    """Return the rows of the table of evidence, by their conclusions.

    Args:
        table: result of ``evidence.evidence_table``.
        results: all studies; of several variants of a score, only those that pages of rated studies name are shown.
    """
    rated = [result for result in results if result.tables]
    names = {pair: name for result in reversed(rated) for pair, name in result.names.items()}
    measured = {score: measures for result in results for score, measures in result.measured.items()}
    labels = {result.name: result.label for result in results}
    metrics = []
    for (metric, variant), rows in table.groupby(evidence.SCORE, sort=False):
        pair = str(metric), str(variant)
        name = names.get(pair) or _unrated_name(pair, rows, results, names)
        if not name:
            continue
        of_kind = {row["evidence"]: dict[str, Any](row) for _, row in rows.iterrows()}
        cells = [_evidence_cell(kind, of_kind.get(kind.name), labels) for kind in evidence.KINDS]
        if of_kind.get(evidence.RELIABILITY.name):
            cells[0] = _with_concordance(cells[0], pair, of_kind[evidence.RELIABILITY.name]["study"], rated)
        measures = measured.get(pair[0], OTHER)
        metrics.append(EvidencedMetric(name, measures, rows["conclusion"].iloc[0], cells))
    return sorted(metrics, key=lambda metric: metric.place)


def _unrated_name(
    pair: tuple[str, str],
    rows: pd.DataFrame,
    results: Sequence[StudyResult],
    names: Iterable[tuple[str, str]],
) -> str:
    """Return the label of a score of a metric that no rated study has; empty for a variant that pages do not name."""
    entry = pair[1].partition(" ")[0]
    if any(metric == pair[0] and variant.partition(" ")[0] == entry for metric, variant in names):
        return ""
    labels = [result.labels for result in results if result.name in set(rows["study"])]
    return labels[0].score(*pair) if labels else ""


def _evidence_cell(
    kind: evidence.Kind, row: Mapping[str, Any] | None, labels: Mapping[str, str]
) -> EvidenceCell:
    if row is None or row["finding"] == evidence.UNTESTABLE:
        return EvidenceCell(evidence.NOT_MEASURED if row is None else evidence.UNTESTABLE)
    numbers = [row[name] for name in ("value", "low", "high")]
    text = words.two if kind.range else words.number
    interval = "no CI" if isnan(row["low"]) else f"[{text(row['low'])}, {text(row['high'])}]"
    source = labels.get(row["study"], row["study"])
    source += f", {row['studies']} studies" if row["studies"] > 1 else ""
    return EvidenceCell(
        row["finding"],
        Number(f"{kind.statistic}\u00a0=\u00a0{text(row['value'])}", row["value"], interval),
        None if kind.range is None else _place(numbers, kind.range, kind.threshold),
        source,
    )


def _with_concordance(
    cell: EvidenceCell, pair: tuple[str, str], study: str, rated: Iterable[StudyResult]
) -> EvidenceCell:
    """Return the cell of reliability with concordance if it decides in place of α."""
    alphas = [alpha_row(result.tables["reliability"], *pair) for result in rated if result.name == study]
    concordance = words.concordance_text(alphas[0]) if alphas and alphas[0] else ""
    if not concordance or not cell.statistic.text:
        return cell
    note = f"{cell.statistic.note}; {concordance} decides"
    return replace(cell, statistic=replace(cell.statistic, note=note))


def metrics_to_use(results: Sequence[StudyResult]) -> dict[str, list[AdvisedMetrics]]:
    """Return the metrics to use and not to use, by verdict, the best first.

    A metric with verdicts in several studies is followed by their labels, and a reliable one by the statistic on which
    the verdict rests. ``SKEWED`` marks metrics with an order of win rates whose means are too skewed to be tested.
    """
    metrics = [
        (finding, result.label, result.score_summaries.get(metric, ""), verdict)
        for result in results
        if result.tables
        for (metric, _), finding, verdict in zip(result.names, result.findings, result.verdicts, strict=True)
    ]
    studies = Counter(finding.name for finding, *_ in metrics)
    named: dict[str, list[tuple[str, str]]] = {}
    for finding, study, summary, verdict in metrics:
        notes = [study] if studies[finding.name] > 1 else []
        if verdict.kind == verdicts.RELIABLE and finding.alpha:
            name, value, *_ = verdicts.deciding_statistic(finding.alpha)
            notes.append(f"{name}\u00a0{words.two(value)}")
        is_skewed = not verdicts.is_by_means(finding.rows) and finding.pairs["skew_images"].notna().any()
        mark = SKEWED if verdict.is_shown and is_skewed else ""
        text = f"{finding.name}{mark} ({', '.join(notes)})" if notes else f"{finding.name}{mark}"
        named.setdefault(verdict.kind, []).append((text, summary))
    advice: dict[str, list[AdvisedMetrics]] = {}
    for kind in sorted(named, key=KINDS.index, reverse=True):
        group = AdvisedMetrics(kind, LEVELS[kind], named[kind])
        advice.setdefault(ADVICE.get(kind, DO_NOT_USE), []).append(group)
    return advice


def verdict_counts(results: Sequence[StudyResult]) -> dict[str, int]:
    """Return the number of metrics of all studies with each of ``verdicts.KINDS``."""
    counts = Counter(verdict.kind for result in results if result.tables for verdict in result.verdicts)
    return {kind: counts[kind] for kind in KINDS}


def trusted_metrics(result: StudyResult) -> list[TrustedMetric]:
    """Return the metrics of a study with scores."""
    names = result.names
    return [
        TrustedMetric(
            study=result.label,
            page=result.page,
            folder=result.name,
            name=finding.name,
            summary=result.score_summaries.get(pair[0], ""),
            measures=result.measured.get(pair[0], OTHER),
            alpha=_alpha(finding.alpha),
            axis=_axis(finding.alpha),
            images=_images(finding.rows),
            seeds=int(finding.rows["seeds"].max()),
            baselines=_baselines(finding.rows),
            agreeing=_agreeing(result, names, pair),
            verdict=verdict,
        )
        for pair, finding, verdict in zip(names, result.findings, result.verdicts, strict=True)
    ]


def _alpha(alpha: Mapping[str, Any] | None) -> Number:
    if alpha is None or isnan(alpha["alpha"]):
        return Number("–", None, "undefined")
    interval = f"too few {verdicts.units_text(alpha)} for a CI"
    if not isnan(alpha["alpha_low"]):
        interval = f"[{words.two(alpha['alpha_low'])}, {words.two(alpha['alpha_high'])}]"
    if concordance := words.concordance_text(alpha):
        interval = f"{interval}; {concordance} decides"
    return Number(words.two(alpha["alpha"]), round(alpha["alpha"], 4), interval)


def _axis(alpha: Mapping[str, Any] | None) -> Axis | None:
    if alpha is None or isnan(alpha["alpha"]):
        return None
    numbers = [alpha[name] for name in ("alpha", "alpha_low", "alpha_high")]
    return _place(numbers, (LEFT, RIGHT), words.RELIABLE)


def _place(numbers: Sequence[float], ends: tuple[float, float], threshold: float) -> Axis | None:
    """Return a statistic and the ends of its interval as places on an axis; None without the statistic."""

    def place(number: float) -> float:
        left, right = ends
        return round(WIDTH * (min(max(number, left), right) - left) / (right - left), 1)

    value, low, high = (None if isnan(number) else place(number) for number in numbers)
    return None if value is None else Axis(value, low, high, place(0), place(threshold))


def _images(rows: pd.DataFrame) -> Number:
    """Return the smallest and the largest number of images of a method, and the number of all images."""
    images, total, missing = rows["images"], rows["all_images"].max(), rows["undefined"].max()
    notes = [words.grouped_text(rows)]
    notes += [f"up to {words.percent(missing)} of scores missing"] if missing > words.UNDEFINED else []
    return Number(f"{span_text(images)} of {total}", float(images.min()), ", ".join(filter(None, notes)))


def _baselines(rows: pd.DataFrame) -> Number:
    """Return how many of the ranked methods are significantly better than every baseline method."""
    if verdicts.is_untested(rows):
        return Number(NOT_COMPARED, None, "one training seed")
    compared = words.ranked(rows)["above_baselines"].dropna()
    if compared.empty:
        return Number(NOT_COMPARED, None, "no baseline method")
    return Number(f"{int(compared.sum())} of {len(compared)}", round(compared.mean(), 4))


def _agreeing(result: StudyResult, names: Mapping[tuple[str, str], str], pair: tuple[str, str]) -> Number:
    """Return how many metrics order the methods of single images similarly, and the one that does so most.

    Metrics are compared under the conditions of ``words.ranking_words``. Models of a study share one metric.
    """
    if result.variants == "models" or len(names) < 2:
        return Number(NOT_COMPARED, None, "no other metric")
    rankings = result.tables["rankings"]
    if (rankings["methods"] < words.LEAST_METHODS).all():
        return Number(NOT_COMPARED, None, f"fewer than {words.LEAST_METHODS} methods")
    enough = (rankings["methods"] >= words.LEAST_METHODS) & words.enough_images(rankings)
    compared = rankings[enough & rankings["correlation"].notna()]
    correlations = {}
    for *keys, correlation in compared[[*PAIR, "correlation"]].itertuples(index=False, name=None):
        one, other = tuple(keys[:2]), tuple(keys[2:])
        if pair in (one, other) and one in names and other in names:
            correlations[other if one == pair else one] = correlation
    if not correlations:
        units = "groups" if "groups" in rankings else "images"
        return Number(NOT_COMPARED, None, f"fewer than {words.FEW} {units} ranked by both")
    agreeing = sum(correlation >= words.AGREE for correlation in correlations.values())
    closest = max(correlations, key=correlations.__getitem__)
    note = f"closest: {names[closest]} (ρ\u00a0=\u00a0{words.two(correlations[closest])})"
    return Number(f"{agreeing} of {len(correlations)}", float(agreeing), note)

"""Trust in metrics: whether the ranking of the methods under each metric of a run means something."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import pandas as pd

from saliency_assay.plotting.text import joined, span_text
from saliency_assay.registry.properties import OTHER
from saliency_assay.reliability.tables import PAIR
from saliency_assay.report.pages import words
from saliency_assay.report.pages.study import StudyResult
from saliency_assay.report.pages.summary import Finding

LEFT, RIGHT = -0.2, 1.0  # ends of the axis of α; values outside are drawn at the ends
WIDTH = 120  # pixels of the axis


@dataclass(frozen=True)
class Axis:
    """α and its interval as places on the axis, in pixels; ``low`` and ``high`` are None without an interval."""

    value: float
    low: float | None
    high: float | None
    threshold: float


@dataclass(frozen=True)
class TrustedMetric:
    """Row of ``templates/trust.html.j2``: one metric of a study."""

    study: str
    page: str
    name: str
    measures: str
    alpha: str  # α, or a dash
    interval: str
    axis: Axis | None
    images: str
    missing: str  # largest share of missing scores of a method; empty below 5 %
    baselines: str  # comparison of the methods with the baselines
    closest: str  # metric that orders the methods of single images most similarly
    reasons: Sequence[str]  # why its ranking tells nothing


def reasons(finding: Finding) -> list[str]:
    """Return why the ranking of the methods under a metric tells nothing; empty if none of these conditions holds.

    - Fewer than two methods have a rank set.
    - Every rank set begins with 1: no method is significantly worse than another one.
    - The rank set of a baseline begins with 1: no method is significantly better than this baseline.
    - ``alpha_high`` ≤ ``words.LITTLE``: images agree on the ranking hardly more than by chance.
    """
    ranked = words.ranked(finding.rows)
    if len(ranked) < 2:
        return ["fewer than two methods have scores"]
    texts = []
    leading = ranked[ranked["rank_low"] == 1]
    if len(leading) == len(ranked):
        texts.append("no method is distinguishable from another one")
    elif leading["baseline"].any():
        names = joined(leading.loc[leading["baseline"], "method"])
        texts.append(f"no method is significantly better than {names}")
    if finding.alpha is not None and finding.alpha["alpha_high"] <= words.LITTLE:
        texts.append("images agree on the ranking hardly more than by chance")
    return texts


def trusted_metrics(result: StudyResult) -> list[TrustedMetric]:
    """Return the metrics of a study with scores."""
    rows = []
    for (metric, variant), finding in zip(result.names, result.findings, strict=True):
        alpha, undefined = finding.alpha, finding.rows["undefined"].max()
        defined = alpha is not None and not isnan(alpha["alpha"])
        rows.append(
            TrustedMetric(
                study=result.label,
                page=result.page,
                name=finding.name,
                measures=result.measured.get(metric, OTHER),
                alpha=words.two(alpha["alpha"]) if alpha and defined else "–",
                interval=_interval_text(alpha) if alpha and defined else "undefined",
                axis=_axis(alpha) if alpha and defined else None,
                images=span_text(finding.rows["images"]),
                missing=words.percent(undefined) if undefined > words.UNDEFINED else "",
                baselines=_baselines_text(finding.rows),
                closest="" if result.variants == "models" else _closest_text(result, (metric, variant)),
                reasons=reasons(finding),
            )
        )
    return rows


def _interval_text(alpha: Mapping[str, Any]) -> str:
    if isnan(alpha["alpha_low"]):
        return "too few images for a CI"
    return f"[{words.two(alpha['alpha_low'])}, {words.two(alpha['alpha_high'])}]"


def _axis(alpha: Mapping[str, Any]) -> Axis:
    def place(value: float) -> float:
        return round(WIDTH * (min(max(value, LEFT), RIGHT) - LEFT) / (RIGHT - LEFT), 1)

    low, high = (None if isnan(alpha[name]) else place(alpha[name]) for name in ("alpha_low", "alpha_high"))
    return Axis(place(alpha["alpha"]), low, high, place(words.RELIABLE))


def _baselines_text(rows: pd.DataFrame) -> str:
    """Return how many of the ranked methods are significantly better than every baseline."""
    compared = words.ranked(rows)["above_baselines"].dropna()
    if compared.empty:
        return "no baseline"
    return f"{int(compared.sum())} of {len(compared)} methods are better"


def _closest_text(result: StudyResult, pair: tuple[str, str]) -> str:
    """Return the metric with the highest mean correlation within images, as far as ``words.ranking_words`` compares."""
    rankings = result.tables["rankings"]
    enough = (rankings["methods"] >= words.LEAST_METHODS) & (rankings["images"] >= words.FEW)
    compared = rankings[enough & rankings["correlation"].notna()]
    correlations = {}
    for *names, correlation in compared[[*PAIR, "correlation"]].itertuples(index=False, name=None):
        one, other = tuple(names[:2]), tuple(names[2:])
        if pair in (one, other) and one in result.names and other in result.names:
            correlations[other if one == pair else one] = correlation
    if not correlations:
        return ""
    closest = max(correlations, key=correlations.__getitem__)
    return f"{result.names[closest]} (ρ = {words.two(correlations[closest])})"

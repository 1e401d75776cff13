"""Trust in metrics: whether the ranking of the methods under each metric of a run means something."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import pandas as pd

from saliency_assay.plotting.text import joined, span_text
from saliency_assay.registry.properties import OTHER
from saliency_assay.reliability.tables import PAIR
from saliency_assay.report.pages import words
from saliency_assay.report.pages.render import render
from saliency_assay.report.pages.study import StudyResult
from saliency_assay.report.pages.summary import Finding, one_seed_words

NOTHING, CARE, RELIABLE = VERDICTS = ("tells nothing", "use with care", "reliable")
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
    measures: str
    alpha: Number  # with its interval as note
    axis: Axis | None
    images: Number  # images with a score, of all images
    seeds: int
    baselines: Number  # number of methods that are better than every baseline
    agreeing: Number  # number of metrics that order the methods of single images similarly
    nothing: Sequence[str]  # why its ranking tells nothing
    care: Sequence[str]  # why its ranking is not reliable

    @property
    def verdict(self) -> str:
        """One of ``VERDICTS``."""
        return NOTHING if self.nothing else CARE if self.care else RELIABLE

    @property
    def place(self) -> int:
        """Place of the verdict in ``VERDICTS``."""
        return VERDICTS.index(self.verdict)

    @property
    def reasons(self) -> str:
        """Reasons of the verdict as text, the ones why the ranking tells nothing if there are some."""
        return "; ".join(self.nothing or self.care)


def trust_page(results: Sequence[StudyResult]) -> str:
    """Return the page on the metrics of all studies, those whose ranking tells nothing first.

    Args:
        results: studies in the order of the configuration; those without scores are left out.
    """
    scored = [result for result in results if result.tables]
    metrics = [metric for result in scored for metric in trusted_metrics(result)]
    return render(
        "trust",
        metrics=sorted(metrics, key=lambda metric: metric.place),
        counts=verdict_counts(scored),
        one_seed=one_seed_words({result.label: result.findings for result in scored}),
        alpha_head=f"α with {100 * scored[0].level:.4g} % CI" if scored else "",
        reliable=words.RELIABLE,
        little=words.LITTLE,
        agree=words.AGREE,
        few=words.FEW,
        least_methods=words.LEAST_METHODS,
        undefined=words.percent(words.UNDEFINED),
    )


def verdict_counts(results: Sequence[StudyResult]) -> dict[str, int]:
    """Return the number of metrics of all studies with each of ``VERDICTS``."""
    counts = Counter(
        metric.verdict for result in results if result.tables for metric in trusted_metrics(result)
    )
    return {verdict: counts[verdict] for verdict in VERDICTS}


def reasons(finding: Finding, result: StudyResult | None = None) -> list[str]:
    """Return why the ranking of the methods under a metric tells nothing; empty if none of these conditions holds.

    - A model of the study is not better than chance.
    - Fewer than two methods have a rank set.
    - Every rank set begins with 1: no method is significantly worse than another one.
    - The rank set of a baseline begins with 1: no method is significantly better than this baseline.
    - ``alpha_high`` ≤ ``words.LITTLE``: images agree on the ranking hardly more than by chance.
    """
    ranked = words.ranked(finding.rows)
    texts = ["a model is not better than chance"] if result is not None and result.at_chance else []
    if len(ranked) < 2:
        return [*texts, "fewer than two methods have scores"]
    leading = ranked[ranked["rank_low"] == 1]
    if len(leading) == len(ranked):
        texts.append("no method is distinguishable from another one")
    elif leading["baseline"].any():
        names = joined(leading.loc[leading["baseline"], "method"])
        texts.append(f"no method is significantly better than {names}")
    if finding.alpha is not None and finding.alpha["alpha_high"] <= words.LITTLE:
        texts.append("images agree on the ranking hardly more than by chance")
    return texts


def cautions(finding: Finding) -> list[str]:
    """Return why a ranking that tells something is not reliable; empty if none of these conditions holds.

    - ``alpha_low`` < ``words.RELIABLE``, or α has no interval: images may not agree on the ranking.
    - No single method has the rank set 1.
    - No baseline has a rank set.
    - A method has scores for fewer than ``words.FEW`` images, or lacks more than ``words.UNDEFINED`` of its scores.
    """
    alpha, ranked, texts = finding.alpha, words.ranked(finding.rows), []
    if alpha is None or isnan(alpha["alpha"]):
        texts.append("α is undefined")
    elif isnan(alpha["alpha_low"]):
        texts.append("too few images for an interval of α")
    elif alpha["alpha_high"] < words.RELIABLE:
        texts.append(
            "images agree only partly on the ranking"
            if alpha["alpha_low"] > 0
            else "images do not agree on the ranking"
        )
    elif alpha["alpha_low"] < words.RELIABLE:
        texts.append("images may disagree on the ranking")
    if words.first(ranked) is None:
        texts.append("no single method is best")
    if not ranked["baseline"].any():
        texts.append("no baseline to compare with")
    if len(ranked) and ranked["images"].min() < words.FEW:
        texts.append(f"fewer than {words.FEW} images")
    if (finding.rows["undefined"] > words.UNDEFINED).any():
        texts.append("scores are missing")
    return texts


def trusted_metrics(result: StudyResult) -> list[TrustedMetric]:
    """Return the metrics of a study with scores."""
    names = result.names
    return [
        TrustedMetric(
            study=result.label,
            page=result.page,
            folder=result.name,
            name=finding.name,
            measures=result.measured.get(pair[0], OTHER),
            alpha=_alpha(finding.alpha),
            axis=_axis(finding.alpha),
            images=_images(finding.rows),
            seeds=int(finding.rows["seeds"].max()),
            baselines=_baselines(finding.rows),
            agreeing=_agreeing(result, names, pair),
            nothing=reasons(finding, result),
            care=cautions(finding),
        )
        for pair, finding in zip(names, result.findings, strict=True)
    ]


def _alpha(alpha: Mapping[str, Any] | None) -> Number:
    if alpha is None or isnan(alpha["alpha"]):
        return Number("–", None, "undefined")
    interval = "too few images for a CI"
    if not isnan(alpha["alpha_low"]):
        interval = f"[{words.two(alpha['alpha_low'])}, {words.two(alpha['alpha_high'])}]"
    return Number(words.two(alpha["alpha"]), round(alpha["alpha"], 4), interval)


def _axis(alpha: Mapping[str, Any] | None) -> Axis | None:
    if alpha is None or isnan(alpha["alpha"]):
        return None

    def place(value: float) -> float:
        return round(WIDTH * (min(max(value, LEFT), RIGHT) - LEFT) / (RIGHT - LEFT), 1)

    low, high = (None if isnan(alpha[name]) else place(alpha[name]) for name in ("alpha_low", "alpha_high"))
    return Axis(place(alpha["alpha"]), low, high, place(0), place(words.RELIABLE))


def _images(rows: pd.DataFrame) -> Number:
    """Return the smallest and the largest number of images of a method, and the number of all images.

    With one seed, ``images`` and the share of missing scores give the number of all images. With several, it is
    the largest one of ``images``, because an image counts for a method if it has a score for any seed.
    """
    images, undefined = rows["images"], rows["undefined"]
    total = images.max()
    if (rows["seeds"] == 1).all() and (undefined < 1).any():
        defined = rows[undefined < 1]
        total = round((defined["images"] / (1 - defined["undefined"])).max())
    missing = undefined.max()
    note = f"up to {words.percent(missing)} of scores missing" if missing > words.UNDEFINED else ""
    return Number(f"{span_text(images)} of {total}", float(images.min()), note)


def _baselines(rows: pd.DataFrame) -> Number:
    """Return how many of the ranked methods are significantly better than every baseline."""
    compared = words.ranked(rows)["above_baselines"].dropna()
    if compared.empty:
        return Number(NOT_COMPARED, None, "no baseline")
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
    enough = (rankings["methods"] >= words.LEAST_METHODS) & (rankings["images"] >= words.FEW)
    compared = rankings[enough & rankings["correlation"].notna()]
    correlations = {}
    for *keys, correlation in compared[[*PAIR, "correlation"]].itertuples(index=False, name=None):
        one, other = tuple(keys[:2]), tuple(keys[2:])
        if pair in (one, other) and one in names and other in names:
            correlations[other if one == pair else one] = correlation
    if not correlations:
        return Number(NOT_COMPARED, None, f"fewer than {words.FEW} images ranked by both")
    agreeing = sum(correlation >= words.AGREE for correlation in correlations.values())
    closest = max(correlations, key=correlations.__getitem__)
    note = f"closest: {names[closest]} (ρ\u00a0=\u00a0{words.two(correlations[closest])})"
    return Number(f"{agreeing} of {len(correlations)}", float(agreeing), note)

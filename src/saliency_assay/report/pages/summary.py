"""Sentences about all metrics of a study, each with the condition under which it is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.plotting.text import joined
from saliency_assay.report.pages import words


@dataclass(frozen=True)
class Finding:
    """One metric and variant of a study."""

    name: str  # its label
    rows: pd.DataFrame  # its rows of order.csv
    alpha: Mapping[str, Any] | None  # as report.pages.words.alpha_row gives it


def summary_words(findings: Sequence[Finding]) -> list[str]:
    """Return all sentences on the metrics of a study, those without a basis left out."""
    return [
        first_words(findings),
        *top_words(findings),
        *baseline_words(findings),
        *missing_words(findings),
        *single_images_words(findings),
    ]


def missing_words(findings: Sequence[Finding]) -> list[str]:
    """Return the sentences on missing scores, one for all metrics under which the same methods lack as many."""
    alike: dict[tuple[tuple[str, float, int], ...], list[Finding]] = {}
    for finding in findings:
        lacking = finding.rows[finding.rows["undefined"] > words.UNDEFINED]
        key = tuple(lacking[["method", "undefined", "seeds"]].itertuples(index=False, name=None))
        alike.setdefault(key, []).append(finding)
    return [
        text
        for same in alike.values()
        for text in words.undefined_words(same[0].rows, joined(finding.name for finding in same))
    ]


def first_words(findings: Sequence[Finding]) -> str:
    """Return which methods are ranked first on which metrics, their rank set being 1, and which baselines are.

    The number of metrics comes with ``multiplicity_words``, and the ranks of the study with ``basis_words``.
    """
    compared = _compared(findings)
    if not compared:
        return "Fewer than two methods have a score under any metric, so there are no ranks."
    metrics: dict[bool, dict[str, list[str]]] = {False: {}, True: {}}
    for finding in compared:
        if (row := words.first(finding.rows)) is not None:
            metrics[bool(row["control"])].setdefault(row["method"], []).append(finding.name)
    (methods, count), (baselines, of_baselines) = (
        (of, sum(map(len, of.values()))) for of in metrics.values()
    )
    total = f"{count} of {len(compared)} metric{'s' if len(compared) > 1 else ''}"
    text = f"No method that uses the model is ranked first ({total})."
    if count:
        text = f"On {total} a method that uses the model is ranked first: {_listed(methods)}."
    if of_baselines:
        text += f" A baseline is ranked first on {of_baselines}: {_listed(baselines)}."
    return f"{text} {_basis(compared)}{multiplicity_words(len(compared))}"


def top_words(findings: Sequence[Finding]) -> list[str]:
    """Return the sentences on the metrics under which no method is ranked first.

    - Several methods have ``rank_low`` 1, a baseline among them or not: they are not distinguishable at the top.
    - One has: it is not distinguishable from at least one other method.
    - None has: each is worse than another one.

    A sentence comes with ``basis_words`` only where they are not those of ``first_words``.
    """
    compared = _compared(findings)
    shared: dict[str, Finding] = {}
    alone: dict[str, Finding] = {}
    none: dict[str, Finding] = {}
    for finding in compared:
        leading = words.top(words.ranked(finding.rows))
        if words.first(finding.rows) is not None:
            continue
        if len(leading) > 1:
            shared[f"{words.leading_words(leading)} on {finding.name} {words.sets_words(leading)}"] = finding
        elif len(leading):
            alone[words.open_words(leading, f" on {finding.name}")] = finding
        else:
            none[finding.name] = finding
    texts = {
        f"Not distinguishable at the top: {'; '.join(shared)}.": shared,
        f"{'; '.join(alone)}.": alone,
        f"No method is ranked first on {joined(none)}: {words.CIRCLE}.": none,
    }
    basis = _basis(compared) if compared else ""
    return [
        text if (own := _basis(list(of.values()))) == basis else f"{text} {own}"
        for text, of in texts.items()
        if of
    ]


def multiplicity_words(metrics: int) -> str:
    """Return the number of metrics whose rank sets are expected to contain an error; empty for one metric.

    Rank sets hold simultaneously for the methods of one metric, not over metrics. By linearity the expected number is
    at most 0.05 × ``metrics``, whatever the metrics have in common.
    """
    if metrics < 2:
        return ""
    expected = f"{(1 - words.CONFIDENCE) * metrics:.2g}"
    return (
        f" Rank sets hold with {100 * words.CONFIDENCE:.0f} % confidence for each metric, not for all at once: of"
        f" {metrics} metrics up to {expected} are expected to contain an error."
    )


def baseline_words(findings: Sequence[Finding]) -> list[str]:
    """Return where baselines are not outperformed.

    - A baseline has ``rank_low`` 1, so no method is better than it: a good score under that metric is no evidence.
    - Else a method has ``above_controls`` 0: it is not significantly better than at least one baseline.
    """
    leading, weak = [], []
    for finding in findings:
        baselines = finding.rows.loc[finding.rows["control"] & (finding.rows["rank_low"] == 1), "method"]
        if len(baselines):
            leading.append(f"{joined(baselines)} on {finding.name}")
        elif names := words.weak_methods(finding.rows):
            weak.append(f"{joined(names)} ({finding.name})")
    texts = []
    if leading:
        texts.append(
            f"No method is significantly better than these baselines: {'; '.join(leading)}. There, a good score is no"
            " evidence that a map explains the model."
        )
    if weak:
        texts.append(f"Not shown to be better than all baselines: {'; '.join(weak)}.")
    return texts


def single_images_words(findings: Sequence[Finding]) -> list[str]:
    """Return for which metrics images rank the methods alike and the method ranked first is best on most of them.

    Metrics led by a baseline are left out, because α is without baselines. Empty where no metric has ranks.

    - ``alpha_low`` ≥ ``RELIABLE``, one method ranked first, and it wins on more than ``MOST`` of the images.
    - The same but for the wins: the sentence of ``single_image_words``.
    - α has no interval: the number of images is too small.
    - No metric of the first kind: "is shown" does not claim that the order differs from image to image.
    """
    alike, texts, unknown = [], [], []
    for finding in (compared := _compared(findings)):
        row, alpha = words.first(finding.rows), finding.alpha
        if alpha is not None and not np.isnan(alpha["alpha"]) and np.isnan(alpha["alpha_low"]):
            unknown.append(f"{finding.name} (α = {words.two(alpha['alpha'])})")
        if row is None or row["control"] or not (text := words.single_image_words(finding.rows, alpha)):
            continue
        if row["wins"] > words.MOST:
            alike.append(f"{finding.name} ({row['method']}, {words.percent(row['wins'])})")
        else:
            texts.append(f"On {finding.name}, images rank the methods alike, but {text}")
    if alike:
        texts.insert(
            0,
            "Images rank the methods alike, and the method ranked first has the best score on most of them:"
            f" {joined(alike)}.",
        )
    elif compared:
        texts.insert(
            0,
            "No metric is shown to rank the methods of single images alike with one method (baselines aside) ranked"
            " first and best on most images.",
        )
    if unknown:
        texts.append(f"Too few images for a confidence interval of α: {joined(unknown)}.")
    return texts


def _compared(findings: Sequence[Finding]) -> list[Finding]:
    """Return those under which at least two methods are ranked."""
    return [finding for finding in findings if len(words.ranked(finding.rows)) > 1]


def _listed(metrics: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{method} on {joined(names)}" for method, names in metrics.items())


def _basis(findings: Sequence[Finding]) -> str:
    text = words.basis_words(pd.concat([words.ranked(finding.rows) for finding in findings]))
    return f"{text[0].upper()}{text[1:]}."

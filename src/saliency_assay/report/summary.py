"""Sentences about all metrics of a study, each with the condition under which it is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.report.words import (
    CONFIDENCE,
    MOST,
    RELIABLE,
    UNDEFINED,
    basis_words,
    first,
    joined,
    leading_words,
    percent,
    ranked,
    sets_words,
    single_image_words,
    top,
    two,
    undefined_words,
    weak_methods,
)


@dataclass(frozen=True)
class Finding:
    """One metric and variant of a study."""

    name: str
    """Its label."""
    rows: pd.DataFrame
    """Its rows of ``order.csv``."""
    alpha: Mapping[str, Any] | None
    """As ``report.words.alpha_row`` gives it."""


def summary_words(findings: Sequence[Finding]) -> list[str]:
    """Return all sentences on the metrics of a study, those without a basis left out."""
    texts = [first_words(findings), top_words(findings), *baseline_words(findings), *missing_words(findings)]
    return [*filter(None, texts), *single_images_words(findings)]


def missing_words(findings: Sequence[Finding]) -> list[str]:
    """Return the sentences on missing scores, one for all metrics under which the same methods lack as many."""
    alike: dict[tuple[tuple[str, float], ...], list[Finding]] = {}
    for finding in findings:
        lacking = finding.rows[finding.rows["undefined"] > UNDEFINED]
        key = tuple(lacking[["method", "undefined"]].itertuples(index=False, name=None))
        alike.setdefault(key, []).append(finding)
    return [
        text
        for same in alike.values()
        for text in undefined_words(same[0].rows, joined(finding.name for finding in same))
    ]


def first_words(findings: Sequence[Finding]) -> str:
    """Return which methods are ranked first on which metrics: their rank set is 1. Baselines are left out.

    The number of metrics comes with ``multiplicity_words``, and the ranks with ``basis_words``.
    """
    alone: dict[str, list[str]] = {}
    for finding in findings:
        row = first(finding.rows)
        if row is not None and not row["control"]:
            alone.setdefault(row["method"], []).append(finding.name)
    compared = [finding for finding in findings if len(ranked(finding.rows)) > 1]
    if not compared:
        return "Fewer than two methods have a score under any metric, so there are no ranks."
    count = sum(map(len, alone.values()))
    of = f"{count} of {len(compared)} metric{'s' if len(compared) > 1 else ''}"
    named = "; ".join(f"{method} on {joined(names)}" for method, names in alone.items())
    text = f"One method is ranked first on {of}: {named}."
    if not alone:
        text = f"No method that uses the model is ranked first ({of})."
    return f"{text} {_basis(compared)}{multiplicity_words(len(compared))}"


def top_words(findings: Sequence[Finding]) -> str:
    """Return the methods that may be first where none is ranked first: ``rank_low`` is 1, a baseline among them or not.

    Empty where one method is ranked first under every metric.
    """
    texts, shared = [], []
    for finding in findings:
        leading = top(ranked(finding.rows))
        if len(leading) and first(finding.rows) is None:
            texts.append(f"{leading_words(leading)} on {finding.name} {sets_words(leading)}")
            shared.append(finding)
    return f"Not distinguishable at the top: {'; '.join(texts)}. {_basis(shared)}" if texts else ""


def multiplicity_words(metrics: int) -> str:
    """Return the number of metrics whose rank sets are expected to contain an error; empty for one metric.

    Rank sets hold simultaneously for the methods of one metric, not over metrics. By linearity the expected number is
    at most 0.05 × ``metrics``, whatever the metrics have in common.
    """
    if metrics < 2:
        return ""
    expected = f"{(1 - CONFIDENCE) * metrics:.2g}"
    return (
        f" Rank sets hold with {100 * CONFIDENCE:.0f} % confidence for each metric, not for all at once: of {metrics}"
        f" metrics up to {expected} are expected to contain an error."
    )


def baseline_words(findings: Sequence[Finding]) -> list[str]:
    """Return where baselines are not outperformed.

    - A baseline has ``rank_low`` 1, so no method is better than it: a good score under that metric is no evidence.
    - A method has ``above_controls`` 0: it is not significantly better than every baseline.
    """
    leading, weak = [], []
    for finding in findings:
        baselines = finding.rows.loc[finding.rows["control"] & (finding.rows["rank_low"] == 1), "method"]
        if len(baselines):
            leading.append(f"{joined(baselines)} on {finding.name}")
        if names := weak_methods(finding.rows):
            weak.append(f"{joined(names)} ({finding.name})")
    texts = []
    if leading:
        texts.append(
            f"No method is significantly better than these baselines: {'; '.join(leading)}. There, a good score is no"
            " evidence that a map explains the model."
        )
    if weak:
        texts.append(f"Not significantly better than every baseline: {'; '.join(weak)}.")
    return texts


def single_images_words(findings: Sequence[Finding]) -> list[str]:
    """Return for which metrics the order of the means holds for single images. Metrics led by a baseline are left out.

    - ``alpha_low`` ≥ ``RELIABLE``, one method ranked first, and it wins on more than ``MOST`` of the images: it holds.
    - The same but for the wins: the sentence of ``single_image_words``.
    - α has no interval: the number of images is too small.
    - No metric of the first kind: that is said, and is no statement that the order differs from image to image.
    """
    held, texts, unknown = [], [], []
    for finding in findings:
        row, alpha = first(finding.rows), finding.alpha
        if alpha is not None and not np.isnan(alpha["alpha"]) and np.isnan(alpha["alpha_low"]):
            unknown.append(f"{finding.name} (α = {two(alpha['alpha'])})")
        if row is None or row["control"] or not (words := single_image_words(finding.rows, alpha)):
            continue
        if row["wins"] > MOST:
            held.append(f"{finding.name} ({row['method']}, best on {percent(row['wins'])})")
        else:
            texts.append(f"On {finding.name}, images rank the methods alike, but {words}")
    texts.insert(
        0,
        f"The order of the means is shown to hold for single images (interval of α from {RELIABLE} on, and the method"
        f" ranked first has the best score on more than {percent(MOST)} of the images) on"
        f" {joined(held) if held else 'no metric'}.",
    )
    if unknown:
        texts.append(f"Too few images for a confidence interval of α: {joined(unknown)}.")
    return texts


def _basis(findings: Sequence[Finding]) -> str:
    text = basis_words(pd.concat([ranked(finding.rows) for finding in findings]))
    return f"{text[0].upper()}{text[1:]}."

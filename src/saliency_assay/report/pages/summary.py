"""Sentences about all metrics of a study, with the conditions under which they are written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.plotting.text import joined
from saliency_assay.reliability import verdicts
from saliency_assay.reliability.order_tables import BETTER
from saliency_assay.reliability.verdicts import Verdict, verdict
from saliency_assay.report.pages import words

MOST_NAMED = 3  # most methods that the answer of a study names
MOST_METRICS = 4  # most metrics that a short sentence names


@dataclass(frozen=True)
class Finding:
    """Results of one metric and variant of a study."""

    name: str  # label
    rows: pd.DataFrame  # rows of order.csv
    alpha: Mapping[str, Any] | None  # result of reliability.verdicts.alpha_row
    pairs: pd.DataFrame  # rows of pairs.csv

    def verdict(self, *, at_chance: bool = False) -> Verdict:
        """Return the verdict; ``at_chance`` if a model of the study is not shown to be better than chance."""
        return verdict(self.rows, self.pairs, self.alpha, at_chance=at_chance)


@dataclass(frozen=True)
class Lead:
    """Method that is significantly better than every other one that uses the model, under one metric."""

    method: str
    metric: str
    others: tuple[str, ...]
    """The other methods that use the model; baselines are no competitors."""
    second: str
    """The best of them."""
    size: float
    """Difference of the means of the two on the same images, positive if the method is better; NaN without one."""
    low: float
    high: float
    wins: float
    """Probability that the method has the better score of the two on an image, ties half."""

    @property
    def text(self) -> str:
        """The metric with size and strength of the lead."""
        return f"{self.metric}: {self.size_text}"

    @property
    def size_text(self) -> str:
        """Size and strength of the lead."""
        interval = "" if np.isnan(self.low) else f" [{words.number(self.low)}, {words.number(self.high)}]"
        size = f"by {words.number(self.size)}{interval} over {self.second}, " if self.size > 0 else ""
        over = "" if size else f" than {self.second}"
        return f"{size}better{over} on {words.percent(self.wins)} of images, ties half"


def lead_of(finding: Finding) -> Lead | None:
    """Return the lead under a metric; None if no method is better than every other one that uses the model.

    Baselines are left out. The comparisons are those of the rank sets, whose confidence is simultaneous.
    """
    rows = words.ranked(finding.rows)
    models = [name for name in words.best_first(finding.rows) if not _is_baseline(rows, name)]
    compared = verdicts.both_ways(finding.pairs, by_means=verdicts.is_by_means(rows))
    for method in models:
        others = [name for name in models if name != method]
        if others and all(compared.get((method, name), {}).get("finding") == BETTER for name in others):
            pair = compared[method, others[0]]
            numbers = (pair[name] for name in ("difference", "difference_low", "difference_high", "wins"))
            return Lead(method, finding.name, tuple(others), others[0], *map(float, numbers))
    return None


def leads(findings: Sequence[Finding]) -> dict[str, list[Lead]]:
    """Return the leads of each method, the method with the most first."""
    by_method: dict[str, list[Lead]] = {}
    for lead in filter(None, map(lead_of, _compared(findings))):
        by_method.setdefault(lead.method, []).append(lead)
    return dict(sorted(by_method.items(), key=lambda item: -len(item[1])))


def answer_words(findings: Sequence[Finding]) -> str:
    """Return the answer of a study in one sentence: which method leads, on which metrics, by how much and over whom.

    - A method leads on a metric if it is significantly better than every other method that uses the model (see
      ``lead_of``), with ``words.CONFIDENCE``; baselines are no competitors.
    - The ``MOST_NAMED`` methods that lead on the most metrics are named. Of the first one, size and strength of its
      lead on its first metric are stated.
    - Metrics that do not separate methods from baselines are left out, and so are those without ranks. If there are no
      others, the answer says why.
    """
    compared = _compared(findings)
    if not compared:
        return _no_ranks_text(findings)
    if not any(_models(finding) for finding in compared):
        return "Only baseline methods are ranked, so no method is compared."
    compared = [finding for finding in compared if finding.verdict().kind != verdicts.NOT_SEPARATED]
    if not compared:
        return "No metric separates the methods from baseline methods, so no method leads."
    by_method = leads(compared)
    if not by_method:
        return _no_lead_text(compared)
    texts = []
    for method, of_method in list(by_method.items())[:MOST_NAMED]:
        metrics = [lead.metric for lead in of_method]
        listed = metrics[:MOST_METRICS] if len(metrics) > MOST_METRICS + 1 else metrics
        if unnamed := len(metrics) - len(listed):
            listed.append(f"{unnamed} other metrics")
        if texts:
            texts.append(f"{method} leads on {joined(listed)}")
        else:
            texts.append(f"{method} is significantly better than {_others_text(of_method)} on {joined(listed)}")
            texts[0] += f" ({of_method[0].size_text if len(metrics) == 1 else of_method[0].text})"
    text = "; ".join(texts)
    if others := list(by_method.values())[MOST_NAMED:]:
        count = sum(map(len, others))
        text += f"; {len(others)} other method{'s' if len(others) > 1 else ''} on {count}"
    leading = {lead.metric for of_method in by_method.values() for lead in of_method}
    if rest := [finding.name for finding in compared if finding.name not in leading]:
        named_rest = joined(rest) if len(rest) <= MOST_METRICS else f"the other {len(rest)} metrics"
        text += f"; no method leads on {named_rest}"
    return f"{text}."


def _no_lead_text(compared: Sequence[Finding]) -> str:
    """Return the answer if no method leads on any of the metrics."""
    if all(len(_models(finding)) < 2 for finding in compared):
        (name, *_) = [name for finding in compared for name in _models(finding)]
        return f"{name} is the only ranked method that uses the model, so it has no competitor."
    names = [finding.name for finding in compared]
    where = joined(names) if len(names) <= MOST_METRICS else f"any of {len(names)} metrics"
    return f"No method is significantly better than all others that use the model on {where}."


def _others_text(of_method: Sequence[Lead]) -> str:
    others = dict.fromkeys(name for lead in of_method for name in lead.others)
    if len(others) <= MOST_NAMED:
        return joined(others)
    return f"all {len(others)} other methods that use the model"


def _models(finding: Finding) -> list[str]:
    """Return the ranked methods that use the model."""
    rows = words.ranked(finding.rows)
    return list(rows.loc[~rows["baseline"].astype(bool), "method"])


def _is_baseline(rows: pd.DataFrame, method: str) -> bool:
    return bool(rows.loc[rows["method"] == method, "baseline"].iloc[0])


def disagreements(findings: Sequence[Finding]) -> list[str]:
    """Return a sentence for each two metrics that order two methods that use the model in opposite ways.

    Both differences are significant. Pairs of metrics with the most such pairs of methods are first.
    """
    better = {finding.name: _better_pairs(finding) for finding in _compared(findings)}
    opposite = {
        (one, other): [pair for pair in better[one] if pair[::-1] in better[other]]
        for one, other in combinations(better, 2)
    }
    by_count = sorted(opposite.items(), key=lambda item: -len(item[1]))
    return [_disagreement_text(*metrics, pairs) for metrics, pairs in by_count if pairs]


def _disagreement_text(one: str, other: str, pairs: Sequence[tuple[str, str]]) -> str:
    better, worse = pairs[0]
    text = f"{one} and {other}: {better} is significantly better than {worse} on {one}, and worse on {other}"
    if more := len(pairs) - 1:
        text += f" ({more} more pair{'s' if more > 1 else ''} of methods)"
    return f"{text}."


def _better_pairs(finding: Finding) -> list[tuple[str, str]]:
    """Return the pairs of methods that use the model of which the first is significantly better."""
    models, by_means = set(_models(finding)), verdicts.is_by_means(words.ranked(finding.rows))
    return [
        names
        for names, pair in verdicts.both_ways(finding.pairs, by_means=by_means).items()
        if pair["finding"] == BETTER and models.issuperset(names)
    ]


def _no_ranks_text(findings: Sequence[Finding]) -> str:
    if any(verdicts.is_untested(words.ranked(finding.rows)) for finding in findings):
        return f"{words.NOISE} No method is ranked."
    return "Fewer than two methods have a score under any metric, so there are no ranks."


def warning_words(findings: Sequence[Finding]) -> list[str]:
    """Return short warnings about the ranks of a study, each with its metrics, the most important one first.

    - The verdict is ``NOT_SEPARATED``: it is shown that baselines are not outperformed.
    - The verdict is ``TOO_FEW``: too few images to tell.
    - ``verdicts.images_agree`` is False: the whole interval is below the limit of agreement.
    - A method lacks more than ``UNDEFINED`` of its scores.
    """
    kinds = [finding.verdict().kind for finding in findings]
    conditions = {
        "Does not separate methods from baseline methods": [kind == verdicts.NOT_SEPARATED for kind in kinds],
        "Too few images to tell": [kind == verdicts.TOO_FEW for kind in kinds],
        f"Images rank methods differently (α < {words.RELIABLE})": [
            verdicts.images_agree(finding.alpha) is False for finding in findings
        ],
        "Scores are missing": [
            bool((finding.rows["undefined"] > words.UNDEFINED).any()) for finding in findings
        ],
    }
    texts = []
    for text, applies in conditions.items():
        names = [finding.name for finding, is_concerned in zip(findings, applies, strict=True) if is_concerned]
        if names:
            total = f"{len(names)} of {len(findings)} metrics"
            texts.append(f"{text}: {joined(names) if len(names) <= MOST_METRICS else total}.")
    return texts


def color_words(findings: Sequence[Finding], colors: Mapping[str, str]) -> list[str]:
    """Return a sentence for each method that may be no better than baselines because of its reference color.

    Under no metric is it significantly better than every baseline method, under which another method is at least once, so that
    the images are not too few.

    Args:
        findings: results of metrics of faithfulness.
        colors: color that stands for absence in each method that has such a color.
    """
    rows = [words.ranked(finding.rows)[["method", "above_baselines"]] for finding in findings]
    best = pd.concat(rows).groupby("method")["above_baselines"].max() if rows else pd.Series(dtype=float)
    if not (best == 1).any():
        return []
    metrics = f"any of {len(findings)} metrics" if len(findings) > 1 else "the metric"
    return [
        f"{method} is not significantly better than every baseline method on {metrics} of faithfulness, unlike other methods;"
        f" its reference color, {color}, may be too similar to the pixels that it hides: compare another color."
        for method, color in colors.items()
        if best.get(method) == 0
    ]


def has_one_seed(findings: Sequence[Finding]) -> bool:
    """Return True if ranks of any metric are based on a single training seed or weights file."""
    return any((words.ranked(finding.rows)["seeds"] == 1).any() for finding in _compared(findings))


def one_seed_words(findings: Mapping[str, Sequence[Finding]]) -> str:
    """Return the warning about studies with a single training seed or weights file; empty if there is none.

    Args:
        findings: results of the studies with scores, by their labels.
    """
    names = [label for label, of_study in findings.items() if has_one_seed(of_study)]
    if not names:
        return ""
    where = f" ({joined(names)})" if len(names) < len(findings) else ""
    return f"One training seed or weights file{where}: retraining may change the order of the methods."


def summary_words(findings: Sequence[Finding]) -> list[str]:
    """Return all applicable sentences on the metrics of a study."""
    return [
        first_words(findings),
        *top_words(findings),
        *baseline_words(findings),
        *missing_words(findings),
        *single_images_words(findings),
    ]


def missing_words(findings: Sequence[Finding]) -> list[str]:
    """Return the sentences on missing scores, one for each group of metrics with the same incomplete methods."""
    groups: dict[tuple[tuple[str, float, int], ...], list[Finding]] = {}
    for finding in findings:
        lacking = finding.rows[finding.rows["undefined"] > words.UNDEFINED]
        key = tuple(lacking[["method", "undefined", "seeds"]].itertuples(index=False, name=None))
        groups.setdefault(key, []).append(finding)
    return [
        text
        for group in groups.values()
        for text in words.undefined_words(group[0].rows, joined(finding.name for finding in group))
    ]


def first_words(findings: Sequence[Finding]) -> str:
    """Return the sentences on the methods, and the baselines, that rank first on a metric (rank set 1).

    ``basis_words`` and ``multiplicity_words`` follow.
    """
    compared = _compared(findings)
    if not compared:
        return _no_ranks_text(findings)
    metrics: dict[bool, dict[str, list[str]]] = {False: {}, True: {}}
    for finding in compared:
        if (row := words.first(finding.rows)) is not None:
            metrics[bool(row["baseline"])].setdefault(row["method"], []).append(finding.name)
    (methods, count), (baselines, of_baselines) = (
        (by_method, sum(map(len, by_method.values()))) for by_method in metrics.values()
    )
    text = f"No method that uses the model ranks first on any metric (0 of {len(compared)})."
    if count:
        total = f"{count} of {len(compared)} metric{'s' if len(compared) > 1 else ''}"
        text = f"On {total}, a method that uses the model ranks first: {_list_by_method(methods)}."
    if of_baselines:
        total = f"{of_baselines} metric{'s' if of_baselines > 1 else ''}"
        text += f" On {total}, a baseline method ranks first: {_list_by_method(baselines)}."
    return f"{text} {_basis_text(compared)}{multiplicity_words(len(compared))}"


def top_words(findings: Sequence[Finding]) -> list[str]:
    """Return the sentences on the metrics under which no method ranks first.

    - Several methods have ``rank_low`` 1, a baseline among them or not: they are not distinguishable.
    - One has: it is not distinguishable from at least one other method.
    - None has: every method is worse than another one.

    ``basis_words`` follow a sentence only if they differ from those of ``first_words``.
    """
    compared = _compared(findings)
    several: dict[str, Finding] = {}
    alone: dict[str, Finding] = {}
    none: dict[str, Finding] = {}
    for finding in compared:
        leading = words.top(words.ranked(finding.rows))
        if words.first(finding.rows) is not None:
            continue
        if len(leading) > 1:
            several[f"{words.leading_words(leading)} on {finding.name} {words.sets_words(leading)}"] = finding
        elif len(leading):
            alone[words.open_words(leading, f" on {finding.name}")] = finding
        else:
            none[finding.name] = finding
    texts = {
        f"The best methods are not distinguishable on these metrics: {'; '.join(several)}.": several,
        f"{'; '.join(alone)}.": alone,
        f"No method ranks first on {joined(none)}: {words.CIRCLE}.": none,
    }
    basis = _basis_text(compared) if compared else ""
    return [
        text if (group_basis := _basis_text(list(group.values()))) == basis else f"{text} {group_basis}"
        for text, group in texts.items()
        if group
    ]


def multiplicity_words(metrics: int) -> str:
    """Return the sentence on the expected number of metrics with an error in their rank sets; empty for one metric.

    Rank sets are simultaneous for the methods of one metric, not over metrics. By linearity of the expectation the
    number is at most 0.05 × ``metrics`` under any dependence between metrics.
    """
    if metrics < 2:
        return ""
    expected = f"{(1 - words.CONFIDENCE) * metrics:.2g}"
    return (
        f" Rank sets have {100 * words.CONFIDENCE:.0f} % simultaneous confidence for each metric, without correction"
        f" for the number of metrics: of {metrics} metrics, up to {expected} are expected to contain an error."
    )


def baseline_words(findings: Sequence[Finding]) -> list[str]:
    """Return the sentences on metrics under which baselines are not outperformed.

    - Baselines are better than every method that uses the model: a good score is not evidence.
    - Else a baseline has ``rank_low`` 1, so no method is shown to be better: a good score is not evidence so far.
    - Else a method has ``above_baselines`` 0: it is not significantly better than at least one baseline.
    """
    better, leading, not_better = [], [], []
    for finding in _compared(findings):
        rows = words.ranked(finding.rows)
        models, baselines = (list(rows.loc[rows["baseline"] == kind, "method"]) for kind in (False, True))
        first = list(rows.loc[rows["baseline"] & (rows["rank_low"] == 1), "method"])
        compared = verdicts.both_ways(finding.pairs, by_means=verdicts.is_by_means(rows))
        if names := verdicts.better_baselines(compared, models, baselines):
            better.append(f"{joined(names)} on {finding.name}")
        elif first:
            leading.append(f"{joined(first)} on {finding.name}")
        elif names := words.weak_methods(finding.rows):
            not_better.append(f"{joined(names)} ({finding.name})")
    texts = []
    if better:
        texts.append(
            f"These baseline methods are significantly better than every method that uses the model: {'; '.join(better)}."
            " On these metrics, a good score is not evidence that a map explains the model."
        )
    if leading:
        texts.append(
            f"No method is shown to be better than these baseline methods: {'; '.join(leading)}. So far, a good score on these"
            " metrics is not evidence that a map explains the model."
        )
    if not_better:
        texts.append(f"Not significantly better than every baseline method: {'; '.join(not_better)}.")
    return texts


def single_images_words(findings: Sequence[Finding]) -> list[str]:
    """Return the sentences on the metrics for which images agree on the ranking and the first method is best on most.

    Metrics under which a baseline method ranks first are left out, because α is computed without baselines. Empty if no metric
    has ranks.

    - Images agree (``verdicts.images_agree``), and ``best_share`` of the method that ranks first is above ``MOST``.
    - The same with a smaller share: the sentence of ``single_image_words``.
    - α has no interval: too few images.
    - No metric of the first kind: the sentence does not claim that the order differs from image to image.
    """
    agreeing, texts, no_interval, units = [], [], [], "images"
    for finding in (compared := _compared(findings)):
        row, alpha = words.first(finding.rows), finding.alpha
        if alpha is not None and not np.isnan(alpha["alpha"]) and np.isnan(alpha["alpha_low"]):
            no_interval.append(f"{finding.name} (α = {words.two(alpha['alpha'])})")
            units = verdicts.units_text(alpha)
        text = words.single_image_words(finding.rows, alpha)
        if row is None or row["baseline"] or not text:
            continue
        if row["best_share"] > words.MOST:
            agreeing.append(f"{finding.name} ({row['method']}, {words.percent(row['best_share'])})")
        else:
            texts.append(f"On {finding.name}, images agree on the ranking, but {text}")
    if agreeing:
        texts.insert(
            0,
            "Images agree on the ranking, and the method that ranks first has the best score on most of them (methods"
            f" that tie share an image): {joined(agreeing)}.",
        )
    elif compared:
        texts.insert(
            0,
            "No metric is shown to meet all three conditions: images agree on the ranking"
            f" (CI of α ≥ {words.RELIABLE}), a method that uses the model ranks first, and it has the best score on"
            " most images.",
        )
    if no_interval:
        texts.append(f"Too few {units} for a confidence interval of α: {joined(no_interval)}.")
    return texts


def _compared(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with ranks."""
    return [finding for finding in findings if not words.no_order_words(finding.rows)]


def _list_by_method(metrics: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{method} on {joined(names)}" for method, names in metrics.items())


def _basis_text(findings: Sequence[Finding]) -> str:
    return words.basis_words(pd.concat([words.ranked(finding.rows) for finding in findings]))

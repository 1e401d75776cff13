"""Sentences about all metrics of a study, with the conditions under which they are written."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.plotting.text import joined
from saliency_assay.reliability import verdicts
from saliency_assay.reliability.verdicts import Verdict, verdict
from saliency_assay.report.pages import words

MOST_NAMED = 3  # most methods that the answer of a study names


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


def answer_words(findings: Sequence[Finding]) -> str:
    """Return the answer of a study in one sentence: on how many metrics each method is better than all others.

    - A method is counted under a metric if it alone has the rank set 1, which is significant at ``words.CONFIDENCE``;
      baselines are marked.
    - Only the ``MOST_NAMED`` methods with the most metrics are named. One that is ranked under only some of the metrics
      is counted out of these.
    - Under the remaining metrics, no single method ranks first.
    - Metrics without ranks are left out; if there are no others, the answer says why.
    """
    compared = _compared(findings)
    if not compared:
        return _no_ranks_text(findings)
    counts = first_counts(findings)
    total, metrics = len(compared), f"{len(compared)} metric{'s' if len(compared) > 1 else ''}"
    better, named = (
        f"significantly better than {_others_text(compared)}",
        counts[False].most_common(MOST_NAMED),
    )
    of_metrics = f" of {metrics}"
    if named:
        (best, most), *others = named
        text = f"{best} is {better} on {most}{_count_text(compared, best) or of_metrics}"
        text += "".join(f", {method} on {count}{_count_text(compared, method)}" for method, count in others)
        if unnamed := len(counts[False]) - len(named):
            rest = counts[False].total() - sum(count for _, count in named)
            text += f", {unnamed} other method{'s' if unnamed > 1 else ''} on {rest}"
    elif counts[True]:
        text = f"No method that uses the model is {better} (0 of {metrics})"
    else:
        text = f"No method is {better} on {'the only metric' if total == 1 else f'any of {metrics}'}"
    if counts[True]:
        names = joined(
            f"{method} on {count}{_count_text(compared, method)}"
            for method, count in counts[True].most_common()
        )
        text += f"{',' if named else ';'} the baseline{'s' if len(counts[True]) > 1 else ''} {names}"
    leading = counts[False].total() + counts[True].total()
    if leading and total > leading:
        rest_text = (
            f"{total - leading if total - leading > 1 else 'one'}{'' if of_metrics in text else of_metrics}"
        )
        text += f"; on the other {rest_text}, no method is"
    return f"{text}."


def _ranked_count(findings: Sequence[Finding], method: str) -> int:
    """Return the number of metrics that rank a method."""
    return sum(method in set(words.ranked(finding.rows)["method"]) for finding in findings)


def _count_text(findings: Sequence[Finding], method: str) -> str:
    """Return the number of metrics that rank a method, to follow a number of metrics; empty if all do."""
    count = _ranked_count(findings, method)
    if count == len(findings):
        return ""
    return f" of the {count} metrics that rank it" if count > 1 else " (the only metric that ranks it)"


def _no_ranks_text(findings: Sequence[Finding]) -> str:
    if any(verdicts.is_untested(words.ranked(finding.rows)) for finding in findings):
        return f"{words.NOISE} No method is ranked."
    return "Fewer than two methods have a score under any metric, so there are no ranks."


def first_counts(findings: Sequence[Finding]) -> dict[bool, Counter[str]]:
    """Return the number of metrics on which each method ranks first, of methods (False) and of baselines (True)."""
    leading = [row for finding in _compared(findings) if (row := words.first(finding.rows)) is not None]
    return {
        kind: Counter(row["method"] for row in leading if bool(row["baseline"]) == kind)
        for kind in (False, True)
    }


def _others_text(findings: Sequence[Finding]) -> str:
    """Return the methods with which one is compared, with their number if it is the same under all metrics."""
    counts = {len(words.ranked(finding.rows)) - 1 for finding in findings}
    if counts in ({1}, {2}):
        return "the other method" if counts == {1} else "both others"
    return f"all {counts.pop()} others" if len(counts) == 1 else "all others"


def warning_words(findings: Sequence[Finding]) -> list[str]:
    """Return short warnings about the ranks of a study, with the number of metrics that each concerns.

    - The verdict is ``NOT_SEPARATED``: it is shown that baselines are not outperformed.
    - The verdict is ``TOO_FEW``: too few images to tell.
    - ``verdicts.images_agree`` is False: the whole interval is below the limit of agreement.
    - A method lacks more than ``UNDEFINED`` of its scores.
    """
    kinds = Counter(finding.verdict().kind for finding in findings)
    counts = {
        "Methods are not separated from baselines": kinds[verdicts.NOT_SEPARATED],
        "Too few images to tell": kinds[verdicts.TOO_FEW],
        f"Images rank methods differently (whole CI of α < {words.RELIABLE})": sum(
            verdicts.images_agree(finding.alpha) is False for finding in findings
        ),
        "Scores are missing": sum(
            (finding.rows["undefined"] > words.UNDEFINED).any() for finding in findings
        ),
    }
    metrics = f"{len(findings)} metric{'s' if len(findings) > 1 else ''}"
    return [f"{text} on {count} of {metrics}." for text, count in counts.items() if count]


def color_words(findings: Sequence[Finding], colors: Mapping[str, str]) -> list[str]:
    """Return a sentence for each method that may be no better than baselines because of its reference color.

    Under no metric is it significantly better than every baseline, under which another method is at least once, so that
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
        f"{method} is not significantly better than every baseline on {metrics} of faithfulness, unlike other methods;"
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
        text += f" On {total}, a baseline ranks first: {_list_by_method(baselines)}."
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
            f"These baselines are significantly better than every method that uses the model: {'; '.join(better)}."
            " On these metrics, a good score is not evidence that a map explains the model."
        )
    if leading:
        texts.append(
            f"No method is shown to be better than these baselines: {'; '.join(leading)}. So far, a good score on these"
            " metrics is not evidence that a map explains the model."
        )
    if not_better:
        texts.append(f"Not significantly better than every baseline: {'; '.join(not_better)}.")
    return texts


def single_images_words(findings: Sequence[Finding]) -> list[str]:
    """Return the sentences on the metrics for which images agree on the ranking and the first method is best on most.

    Metrics under which a baseline ranks first are left out, because α is computed without baselines. Empty if no metric
    has ranks.

    - Images agree (``verdicts.images_agree``), and ``best_share`` of the method that ranks first is above ``MOST``.
    - The same with a smaller share: the sentence of ``single_image_words``.
    - α has no interval: too few images.
    - No metric of the first kind: the sentence does not claim that the order differs from image to image.
    """
    agreeing, texts, no_interval = [], [], []
    for finding in (compared := _compared(findings)):
        row, alpha = words.first(finding.rows), finding.alpha
        if alpha is not None and not np.isnan(alpha["alpha"]) and np.isnan(alpha["alpha_low"]):
            no_interval.append(f"{finding.name} (α = {words.two(alpha['alpha'])})")
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
        texts.append(f"Too few images for a confidence interval of α: {joined(no_interval)}.")
    return texts


def _compared(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with ranks."""
    return [finding for finding in findings if not words.no_order_words(finding.rows)]


def _list_by_method(metrics: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{method} on {joined(names)}" for method, names in metrics.items())


def _basis_text(findings: Sequence[Finding]) -> str:
    return words.basis_words(pd.concat([words.ranked(finding.rows) for finding in findings]))

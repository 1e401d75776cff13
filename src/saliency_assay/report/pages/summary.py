"""Sentences about all metrics of a study, with the conditions under which they are written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from saliency_assay.plotting.text import Answer, joined
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
    win_rate: float
    """Probability of a better score than another method on an image, averaged over the other methods; ties half."""
    second_rate: float
    """Win rate of the second."""
    p: float
    """Largest adjusted p-value of the comparisons with the others."""
    by_means: bool
    """True if rank sets compare means."""

    @property
    def text(self) -> str:
        """The metric with the lead over the second."""
        return f"{self.metric}: {self.size_text}"

    @property
    def size_text(self) -> str:
        """Win rates and difference of means of the method and the second, with the p-value of what is tested.

        The difference is left out if it has no interval or one that contains 0; win rates are left out if means are
        tested.
        """
        means = ""
        if self.size > 0 and self.low > 0:
            interval = f"[{words.number(self.low)}, {words.number(self.high)}]"
            means = f"mean better by {words.number(self.size)} {interval}"
        p = words.p_text(self.p)
        if self.by_means:
            return f"{means or 'mean better'} than {self.second}, {p}"
        rates = (
            f"win rate {words.percent(self.win_rate)}, {self.second} {words.percent(self.second_rate)}, {p}"
        )
        return "; ".join(filter(None, [rates, means]))


def lead_of(finding: Finding) -> Lead | None:
    """Return the lead under a metric; None if no method is better than every other one that uses the model.

    Baselines are left out. The comparisons are those of the rank sets, whose confidence is simultaneous.
    """
    rows = words.ranked(finding.rows)
    models = [name for name in words.best_first(finding.rows) if not _is_baseline(rows, name)]
    by_means = verdicts.is_by_means(rows)
    compared = verdicts.both_ways(finding.pairs, by_means=by_means)
    for method in models:
        others = [name for name in models if name != method]
        if others and all(compared.get((method, name), {}).get("finding") == BETTER for name in others):
            pair = compared[method, others[0]]
            size, low, high = (
                float(pair[name]) for name in ("difference", "difference_low", "difference_high")
            )
            rates = rows.set_index("method")["win_rate"].loc[[method, others[0]]]
            tested = "difference_p" if by_means else "wins_p"
            return Lead(
                method=method,
                metric=finding.name,
                others=tuple(others),
                second=others[0],
                size=size,
                low=low,
                high=high,
                win_rate=rates.iloc[0],
                second_rate=rates.iloc[1],
                p=max(float(compared[method, name][tested]) for name in others),
                by_means=by_means,
            )
    return None


def leads(findings: Sequence[Finding]) -> dict[str, list[Lead]]:
    """Return the leads of each method, the method with the most first."""
    by_method: dict[str, list[Lead]] = {}
    for lead in filter(None, map(lead_of, _compared(findings))):
        by_method.setdefault(lead.method, []).append(lead)
    return dict(sorted(by_method.items(), key=lambda item: -len(item[1])))


def answers(findings: Sequence[Finding]) -> list[Answer]:
    """Return the answer of a study, a line for each method that leads: over whom, on which metrics, by how much.

    - A method leads on a metric if it is significantly better than every other method that uses the model (see
      ``lead_of``), with ``words.CONFIDENCE``; baselines are no competitors.
    - The ``MOST_NAMED`` methods that lead on the most metrics have a line, with the lead on the first metric.
    - Only metrics whose verdict shows an order of the methods count. A lead on another metric is named with the reason
      why it does not count. If there are no others, the answer says why.
    """
    compared = _compared(findings)
    if not compared:
        return [Answer(_no_ranks_text(findings))]
    if not any(_models(finding) for finding in compared):
        return [Answer("Only baseline methods are ranked, so no method is compared.")]
    shown = [finding for finding in compared if finding.verdict().is_shown]
    by_method = leads(shown)
    lines = []
    for method, of_method in list(by_method.items())[:MOST_NAMED]:
        on = f"leads {_others_text(of_method)} on {_listed([lead.metric for lead in of_method])}"
        lead = of_method[0]
        lines.append(Answer(on, method, lead.text if len(of_method) > 1 else lead.size_text))
    if others := list(by_method.values())[MOST_NAMED:]:
        metrics = [lead.metric for of_method in others for lead in of_method]
        lines.append(
            Answer(f"{joined(of_method[0].method for of_method in others)} lead on {_listed(metrics)}.")
        )
    leading = {lead.metric for of_method in by_method.values() for lead in of_method}
    if rest := [finding for finding in shown if finding.name not in leading]:
        lines.append(Answer(_no_lead_text(rest)))
    if not shown:
        lines.append(Answer(_not_shown_text(compared)))
    too_few = [finding for finding in compared if finding.verdict().kind == verdicts.TOO_FEW]
    for method, of_method in list(leads(too_few).items())[:MOST_NAMED]:
        on = _listed([lead.metric for lead in of_method])
        lines.append(
            Answer(f"{method} leads on {on}, but images are too few to tell the order of the methods.")
        )
    return lines


def _no_lead_text(shown: Sequence[Finding]) -> str:
    """Return the answer for metrics on which no method leads."""
    if all(len(_models(finding)) < 2 for finding in shown):
        (name, *_) = [name for finding in shown for name in _models(finding)]
        return f"{name} is the only ranked method that uses the model, so it has no competitor."
    return f"No method leads on {_listed([finding.name for finding in shown])}."


def _not_shown_text(compared: Sequence[Finding]) -> str:
    """Return the answer if no metric shows an order of the methods."""
    kinds = dict.fromkeys(finding.verdict().kind for finding in compared)
    return f"No metric shows an order of the methods: {joined(kinds)}."


def _others_text(of_method: Sequence[Lead]) -> str:
    others = dict.fromkeys(name for lead in of_method for name in lead.others)
    if len(others) == 1:
        return joined(others)
    return "both other methods" if len(others) == 2 else f"all {len(others)} other methods"


def _models(finding: Finding) -> list[str]:
    """Return the ranked methods that use the model."""
    rows = words.ranked(finding.rows)
    return list(rows.loc[~rows["baseline"].astype(bool), "method"])


def _is_baseline(rows: pd.DataFrame, method: str) -> bool:
    return bool(rows.loc[rows["method"] == method, "baseline"].iloc[0])


@dataclass(frozen=True)
class Disagreement:
    """Two methods of which metrics prefer different ones; all differences are significant."""

    method: str
    other: str
    better: Sequence[str]
    """Metrics under which the method is better."""
    worse: Sequence[str]

    @property
    def text(self) -> str:
        """A sentence that names the metrics."""
        better, worse = _listed(self.better), _listed(self.worse)
        return f"{self.method} is significantly better than {self.other} on {better}, and worse on {worse}."


def disagreements(findings: Sequence[Finding]) -> list[Disagreement]:
    """Return the pairs of methods that use the model of which metrics prefer different ones.

    Metrics whose verdict shows no order of the methods are left out. Pairs on which most metrics disagree are first.
    """
    compared = [each for each in _compared(findings) if each.verdict().is_shown]
    better: dict[tuple[str, str], list[str]] = {}
    for finding in compared:
        for pair in _better_pairs(finding):
            better.setdefault(pair, []).append(finding.name)
    pairs = [pair for pair in better if pair[::-1] in better and len(better[pair]) >= len(better[pair[::-1]])]
    pairs = [
        pair for place, pair in enumerate(pairs) if pair[::-1] not in pairs[:place]
    ]  # ties of the counts
    pairs.sort(key=lambda pair: -len(better[pair[::-1]]))
    return [Disagreement(*pair, better[pair], better[pair[::-1]]) for pair in pairs]


def _listed(metrics: Sequence[str]) -> str:
    """Return the names of metrics as text, at most ``MOST_METRICS`` and one."""
    if len(metrics) <= MOST_METRICS + 1:
        return joined(metrics)
    return joined([*metrics[:MOST_METRICS], f"{len(metrics) - MOST_METRICS} other metrics"])


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

    - The verdict is ``NOT_SEPARATED``, ``TOO_FEW``, or ``CLEAR`` because images do not agree on the ranking.
    - A method lacks more than ``UNDEFINED`` of its scores.
    """
    kinds = [finding.verdict().kind for finding in findings]
    disagree = [verdicts.images_agree(finding.alpha) is False for finding in findings]
    conditions = {
        "Does not separate methods from baseline methods": [kind == verdicts.NOT_SEPARATED for kind in kinds],
        "Too few images to tell": [kind == verdicts.TOO_FEW for kind in kinds],
        "Clear on average, but images rank methods differently": [
            kind == verdicts.CLEAR and differs for kind, differs in zip(kinds, disagree, strict=True)
        ],
        "Scores are missing": [
            bool((finding.rows["undefined"] > words.UNDEFINED).any()) for finding in findings
        ],
    }
    texts = []
    for text, applies in conditions.items():
        names = [
            finding.name for finding, is_concerned in zip(findings, applies, strict=True) if is_concerned
        ]
        if names:
            total = f"{len(names)} of {len(findings)} metrics"
            texts.append(f"{text}: {joined(names) if len(names) <= MOST_METRICS else total}.")
    return texts


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
        f"{method} is not significantly better than every baseline method on {metrics} of faithfulness, unlike other"
        f" methods; its reference color, {color}, may be too similar to the pixels that it hides."
        for method, color in colors.items()
        if best.get(method) == 0
    ]


def has_one_seed(findings: Sequence[Finding]) -> bool:
    """Return True if ranks of any metric are based on a single training seed or weights file."""
    return any((words.ranked(finding.rows)["seeds"] == 1).any() for finding in _compared(findings))


def one_seed_words(findings: Mapping[str, Sequence[Finding]]) -> str:
    """Return the warning about studies with a single training seed or weights file; empty if there is none.

    Studies that rank no methods are left out.

    Args:
        findings: results of the studies with scores, by their labels.
    """
    ranked = [label for label, of_study in findings.items() if _compared(of_study)]
    names = [label for label in ranked if has_one_seed(findings[label])]
    if not names:
        return ""
    where = f" ({joined(names)})" if len(names) < len(ranked) else ""
    return f"One training seed or weights file{where}: retraining may change the order of the methods."


def basis_words(findings: Sequence[Finding]) -> str:
    """Return the sentences on what the rank sets of a study compare, and on their confidence; empty without ranks."""
    compared = _compared(findings)
    return f"{_basis_text(compared)}{multiplicity_words(len(compared))}" if compared else ""


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


def _compared(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with ranks."""
    return [finding for finding in findings if not words.no_order_words(finding.rows)]


def _basis_text(findings: Sequence[Finding]) -> str:
    return words.basis_words(pd.concat([words.ranked(finding.rows) for finding in findings]))

"""Results of one study, which the overview and the first part of the study's page show."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from saliency_assay.plotting.text import Answer
from saliency_assay.registry.labels import Labels
from saliency_assay.registry.properties import FAITHFULNESS
from saliency_assay.reliability.figures import scored_names
from saliency_assay.reliability.verdicts import CHANCE_REASON, Verdict, alpha_row
from saliency_assay.report.pages import words
from saliency_assay.report.pages.summary import (
    Disagreement,
    Finding,
    answers,
    color_words,
    disagreements,
    has_one_seed,
    warning_words,
)

MOST_WARNINGS = 3  # most warnings that are not folded
LONG = 100  # characters of a warning above which the overview shortens it
BEFORE_SEED = 2  # place of the warning about a single training seed among the others


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
    """``order``, ``pairs``, ``reliability``, ``rankings`` and ``agreement`` from ``reliability.reliability_tables`` and
    ``reliability.agreement``, methods by their labels in ``order`` and ``pairs``; empty if no method is scored."""
    level: float = 0.999
    """Confidence level of the intervals of α."""
    variants: str = "variants"
    """Kind of the variants of a score: ``variants`` of a metric, or ``models``, all of which have sentences."""
    reference_colors: Mapping[str, str] = field(default_factory=dict)
    """Color that stands for absence, by the labels of the methods that have such a color."""
    accuracies: Sequence[str] = ()
    """Labels of its models with their test accuracies."""
    kind_answers: Sequence[Answer] = ()
    """Answer that its kind of study has in place of the one from ranks; empty if it has none."""
    cautions: Sequence[str] = ()
    """Sentences on limitations of the ranks, from its kind of study."""
    notes: Sequence[str] = ()
    """Sentences on its methods and images that limit no ranks."""
    at_chance: Sequence[str] = ()
    """Sentences on its models that are not shown to be better than chance, see ``chance.chance_caution``."""
    thumbnails: Mapping[str, Any] = field(default_factory=dict)
    """Images and maps for the overview, see ``plotting.thumbnails.thumbnails``; empty for the summary page."""

    @property
    def failures(self) -> Mapping[str, Any] | None:
        """Images on which the best method has its worst scores, see ``failures.failures``; None without."""
        return self.thumbnails.get("failures") or None

    @property
    def short_question(self) -> str:
        """Its question without the explanation that follows."""
        return "".join(self.question.partition("?")[:2])

    @property
    def answers(self) -> list[Answer]:
        """Lines of its result, the most important first; empty if no method is scored."""
        if self.at_chance and (self.tables or self.kind_answers):
            return [Answer(f"Not interpretable: {CHANCE_REASON}.")]
        return list(self.kind_answers) or (answers(self.findings) if self.tables else [])

    @cached_property
    def warnings(self) -> list[str]:
        """Short sentences on the limits of its ranks, the most important first."""
        if not self.tables:
            return [*self.at_chance, *self.cautions]
        of_faithfulness = [
            finding
            for finding in self.findings
            if self.measured.get(str(finding.rows["metric"].iloc[0])) == FAITHFULNESS
        ]
        of_colors = color_words(of_faithfulness, self.reference_colors)
        return [
            *self.at_chance,
            *self.cautions,
            *warning_words(self.findings),
            *of_colors,
        ]

    @property
    def warnings_with_seed(self) -> list[str]:
        """The warnings, with that about a single training seed or weights file among the first if it applies."""
        texts = list(self.warnings)
        if self.tables and has_one_seed(self.findings):
            texts.insert(BEFORE_SEED, words.ONE_SEED)
        return texts

    @cached_property
    def disagreements(self) -> list[Disagreement]:
        """Methods that metrics order in opposite ways; none if variants are models."""
        return [] if self.variants == "models" or not self.tables else disagreements(self.findings)

    @property
    def short_warnings(self) -> list[str]:
        """The first ``MOST_WARNINGS`` warnings, long ones without the explanation that follows."""
        return [_shortened(warning) for warning in self.warnings[:MOST_WARNINGS]]

    @property
    def names(self) -> dict[tuple[str, str], str]:
        """Labels of the metrics and variants that have sentences."""
        return {pair: self.labels.score(*pair) for pair in named_scores(self.tables["order"], self.variants)}

    @cached_property
    def findings(self) -> list[Finding]:
        """Rank sets and reliability of each of ``names``."""
        order, pairs, reliability = (self.tables[name] for name in ("order", "pairs", "reliability"))
        return [
            Finding(
                name, words.rows_of(order, *pair), alpha_row(reliability, *pair), words.rows_of(pairs, *pair)
            )
            for pair, name in self.names.items()
        ]

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """Verdict on each of ``names``."""
        return [finding.verdict(at_chance=bool(self.at_chance)) for finding in self.findings]

    @property
    def agreement(self) -> str:
        """Sentence on metrics that agree on the ranking; empty if variants are models, as they share one metric."""
        return "" if self.variants == "models" else words.ranking_words(self.tables["rankings"], self.names)


def named_scores(order: pd.DataFrame, variants: str) -> list[tuple[str, str]]:
    """Return metric and variant of the scores that pages name: ``main_scores``, or all if ``variants`` are models."""
    # Models expect different maps, so none of them is left out.
    return list(scored_names(order, most=len(order))) if variants == "models" else main_scores(order)


def _shortened(warning: str) -> str:
    """Return a warning; one with more than ``LONG`` characters ends at its first colon or semicolon."""
    return warning if len(warning) <= LONG else f"{re.split('[:;] ', warning, maxsplit=1)[0].rstrip('.')}."


def main_scores(order: pd.DataFrame) -> list[tuple[str, str]]:
    """Return metric and variant of one variant of each score: the one without a sub-variant, else the last."""
    bare = [" " not in variant for variant in order["variant"]]
    entries = [variant.partition(" ")[0] for variant in order["variant"]]
    keyed = order.assign(bare=bare, entry=entries)
    has_bare = keyed.groupby(["metric", "entry"], sort=False)["bare"].transform("any")
    return list(scored_names(keyed[keyed["bare"] | ~has_bare], most=0))

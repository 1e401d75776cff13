"""The first page of the report: the run, and the ranks of the methods with their uncertainty and reliability."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.plotting.html import table_of
from saliency_assay.plotting.metric_results import span_text
from saliency_assay.plotting.page import page
from saliency_assay.plotting.style import joined, readable
from saliency_assay.registry import directions
from saliency_assay.reliability.figures import scored_names
from saliency_assay.reliability.tables import rank_text
from saliency_assay.report.pages.heat_map import heat_map
from saliency_assay.report.pages.summary import Finding, summary_words
from saliency_assay.report.pages.words import (
    alpha_row,
    alpha_words,
    halves_words,
    order_words,
    percent,
    ranked,
    ranking_words,
    reliability_words,
    single_image_words,
    top,
    two,
    undefined_words,
    weak_methods,
)

READ = """<details open><summary>How to read this page</summary>
<dl>
<dt>rank set</dt><dd>The ranks that a method may have, such as 1–2: from 1 + the number of methods that are
significantly better to the number of methods less those that are significantly worse. Methods are compared in pairs, on
the images on which both have a score. For a score with a target, methods are ranked by the mean distance of each
image's score from it, not by the distance of the mean. A method is ranked first if its rank set is 1. Several methods
whose rank sets begin with 1 are not distinguishable at the top.</dd>
<dt>95 % confidence</dt><dd>The rank sets of all methods under one metric hold simultaneously with 95 % confidence.
They are not corrected for the number of metrics: of K metrics, up to about K × 5 % are expected to contain an
error.</dd>
<dt>[low, high]</dt><dd>The 95 % confidence interval of the mean. The first line of each summary states what it accounts
for: images, the cut-outs and scenes they are composed of, or training seeds. With one training seed, other trainings of
the same model may order the methods differently.</dd>
<dt>baseline</dt><dd>A method that does not use the model: <code>random</code>, <code>edge</code>,
<code>constant</code>. A cell is hatched if its method is not shown to be better than all baselines, whatever its rank
set.</dd>
<dt>α</dt><dd>Krippendorff's α, the inter-rater reliability of the ranking: 1 if all images rank the methods alike, 0
if they agree as often as by chance. With a low α, the order of the means says little about the next image. Computed
without baselines. The usual demand is 0.65 (Tomsett et al., 2020).</dd>
<dt>wins</dt><dd>The share of the images on which no other method has a better score.</dd>
</dl>
<p>Ranks of different metrics are not averaged, because metrics measure different things.</p></details>"""


@dataclass(frozen=True)
class StudyResult:
    """What the overview knows of one study."""

    name: str
    question: str
    """What its kind of study asks."""
    data: str
    """What it ran on, as a phrase."""
    models: Sequence[str]
    """Each with its accuracy, as a phrase."""
    asks: Mapping[str, str]
    """What each score is, by name."""
    methods: Sequence[str]
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """``order``, ``reliability``, ``rankings`` and ``agreement`` as ``report.reliability`` and ``report.agreement``
    make them; empty where nothing is scored."""
    level: float = 0.999
    """Of the intervals of α."""
    variants: str = "variants"
    """What the variants of a score are: ``variants`` of a metric, or ``models``, all of which the words are about."""
    cautions: Sequence[str] = ()
    """Sentences on limits of the ranks."""

    @property
    def names(self) -> dict[tuple[str, str], str]:
        """The metrics and variants that the words are about, and what they are called."""
        order = self.tables["order"]
        # What is known to matter differs from model to model.
        return scored_names(order, most=len(order)) if self.variants == "models" else main_names(order)

    @property
    def findings(self) -> list[Finding]:
        """The order and the reliability of each of ``names``."""
        order, reliability = self.tables["order"], self.tables["reliability"]
        return [
            Finding(name, _rows(order, *pair), alpha_row(reliability, *pair))
            for pair, name in self.names.items()
        ]

    @property
    def agreement(self) -> str:
        """The sentence on metrics that rank methods alike; scores of several models are one metric's."""
        return "" if self.variants == "models" else ranking_words(self.tables["rankings"], self.names)


def main_names(order: pd.DataFrame) -> dict[tuple[str, str], str]:
    """What every score is called, one variant for each: the one without sub-variant, else the last."""
    bare = [" " not in variant for variant in order["variant"]]
    entries = [variant.partition(" ")[0] for variant in order["variant"]]
    keyed = order.assign(bare=bare, entry=entries)
    has_bare = keyed.groupby(["metric", "entry"], sort=False)["bare"].transform("any")
    return scored_names(keyed[keyed["bare"] | ~has_bare], most=0)


def summary_table(results: Sequence[StudyResult]) -> pd.DataFrame:
    """Return a row for each study and score: the methods at the top, and the reliability of the ranking."""
    rows = []
    for result in results:
        if not result.tables:
            continue
        for (metric, _), finding in zip(result.names, result.findings, strict=True):
            scored = ranked(finding.rows)
            leading = top(scored).to_dict("records")
            name = f"{finding.name} {directions.arrow(str(finding.rows['direction'].iloc[0]))}"
            rows.append(
                {
                    "study": result.name,
                    "metric": f"{name}: {asks}" if (asks := result.asks.get(metric)) else name,
                    "top (rank set)": joined(map(_ranked, leading)) or "none",
                    "wins on single images": joined(
                        f"{row['method']} {percent(row['wins'])}" for row in leading
                    ),
                    "not shown to be better than all baselines": joined(weak_methods(finding.rows)),
                    "images": span_text(scored["images"]) if len(scored) else "0",
                    "training seeds": span_text(finding.rows["seeds"]),
                    "α without baselines": _alpha(finding.alpha),
                }
            )
    return pd.DataFrame(rows)


def overview_page(results: Sequence[StudyResult], *, seeds: Sequence[int], ran: str) -> str:
    """Return the overview as an HTML page.

    Args:
        results: the studies in the order of the configuration.
        seeds: training seeds.
        ran: hours, device and versions, as a phrase.
    """
    scored = dict.fromkeys(method for result in results if result.tables for method in result.methods)
    what = f"{_count(len(scored), 'method')} scored, baselines included, in {_count(len(results), 'study', 'studies')}"
    body = [
        "<h1>Results</h1>",
        f"<p>{escape(what)}; {_count(len(seeds), 'training seed')}. {escape(ran)}</p>",
    ]
    table = summary_table(results)
    if len(table):
        body.append("<h2>Summary</h2>")
        body += [_summary(result) for result in results if result.tables]
        body += [READ, table_of(table, "Methods at the top, and reliability of each metric", 2)]
    body += [_section(result) for result in results]
    body.append(
        '<h2>More</h2><p><a data-page="Methods" href="methods.html">Methods</a>: what each is, and what it costs. '
        '<a data-page="Metrics" href="metrics.html">Metrics</a>: formulas, directions, reliability. '
        '<a data-page="Models" href="accuracy.html">Models</a>: how good the explained models are. '
        '<a data-page="Provenance" href="provenance.html">Provenance</a>: configuration, versions, times.</p>'
    )
    return page("\n".join(body), title="Overview")


def build_page(
    data: Sequence[Mapping[str, object]], models: Sequence[str], *, seeds: Sequence[int], ran: str
) -> str:
    """Return the overview of a configuration without studies: its data sets and models.

    Args:
        data: as ``report.pages.provenance.data_facts`` gives each data set.
        models: names of the trained models.
        seeds: training seeds.
        ran: hours and versions, as a phrase.
    """
    made = f"The configuration has no studies; {_count(len(data), 'data set')} built"
    trained = f", {_count(len(models), 'model')} trained with {_count(len(seeds), 'seed')}" if models else ""
    links = (
        '<a data-page="Models" href="accuracy.html">Models</a>: accuracy and training curves. '
        if models
        else ""
    )
    body = [
        "<h1>Data sets and models</h1>" if models else "<h1>Data sets</h1>",
        f"<p>{escape(f'{made}{trained}. {ran}')}</p>",
        table_of(pd.DataFrame(data), "Data sets", 0),
        f'<p>{links}<a data-page="Provenance" href="provenance.html">Provenance</a>: configuration, versions,'
        " times.</p>",
    ]
    return page("\n".join(body), title="Overview")


def summary_page(result: StudyResult) -> str:
    """Return the first part of a study's own page: its question, and its tables in words."""
    body = [f"<h1>{escape(result.name)}</h1>", _about(result)]
    if result.tables:
        order, agreed = result.tables["order"], result.tables["agreement"]
        title = f"{result.name}: rank sets of the methods"
        body.append(
            heat_map(order, result.tables["reliability"], result.names, title=title, level=result.level)
        )
        body.append("<h2>Interpretation</h2>")
        for (metric, variant), finding in zip(result.names, result.findings, strict=True):
            texts = [order_words(finding.rows), *undefined_words(finding.rows, finding.name)]
            if finding.alpha is not None:
                texts.append(reliability_words(finding.alpha, result.level))
            texts.append(single_image_words(finding.rows, finding.alpha))
            texts.append(halves_words(_rows(agreed, metric, variant)))
            description = f" <small>{escape(result.asks.get(metric, ''))}</small>"
            text = " ".join(filter(None, texts))
            body.append(f"<h3>{escape(finding.name)}{description}</h3>\n<p>{escape(text)}</p>")
        over = {metric: halves_words(_rows(agreed, metric, "")) for metric in dict.fromkeys(order["metric"])}
        listed = "".join(
            f"<li>{escape(f'{readable(metric)}: {words}')}</li>" for metric, words in over.items() if words
        )
        if listed:
            body.append(f"<h3>Variants of a score</h3>\n<ul>{listed}</ul>")
        if words := result.agreement:
            body.append(f"<h3>Agreement of metrics</h3>\n<p>{escape(words)}</p>")
    body.append(
        '<p><a data-page="Overview" href="../overview.html">Overview</a>, with how to read rank sets and α.</p>'
    )
    return page("\n".join(body), title=f"{result.name}: summary")


def _section(result: StudyResult) -> str:
    name = escape(result.name)
    link = f'<p><a data-page="Study {name}" href="{name}/study.html">All of {name}</a></p>'
    parts = [f"<h2>{name}</h2>", _about(result)]
    if result.tables:
        order, reliability = result.tables["order"], result.tables["reliability"]
        title = f"{result.name}: rank sets of the methods, with means, confidence intervals and reliability"
        parts.append(heat_map(order, reliability, result.names, title=title, level=result.level))
        if words := result.agreement:
            parts.append(f"<p>{escape(words)}</p>")
    return "\n".join([*parts, link])


def _about(result: StudyResult) -> str:
    models = "; ".join(result.models)
    lines = [
        result.question,
        f"Run on {result.data}. Models: {models}. Methods: {joined(result.methods)}.",
    ]
    about = "".join(f"<p>{escape(line)}</p>" for line in lines)
    cautions = "".join(f"<li>{escape(caution)}</li>" for caution in result.cautions)
    return about + (f"<ul>{cautions}</ul>" if cautions else "")


def _summary(result: StudyResult) -> str:
    texts = [*summary_words(result.findings), *result.cautions]
    listed = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<h3>{escape(result.name)}</h3>\n<ul>{listed}</ul>"


def _alpha(alpha: Mapping[str, Any] | None) -> str:
    if alpha is None:
        return "–"
    return alpha_words(alpha) if np.isnan(alpha["alpha"]) else f"{two(alpha['alpha'])}: {alpha_words(alpha)}"


def _ranked(row: Mapping[Any, Any]) -> str:
    note = ", a baseline" if row["control"] else ""
    return f"{row['method']}{note} ({rank_text(row['rank_low'], row['rank_high'])})"


def _rows(table: pd.DataFrame, metric: str, variant: str) -> pd.DataFrame:
    return table[(table["metric"] == metric) & (table["variant"] == variant)]


def _count(number: int, name: str, several: str = "") -> str:
    return f"{number} {name if number == 1 else several or name + 's'}"

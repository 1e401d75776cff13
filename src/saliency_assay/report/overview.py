"""The page that is read first: what was run, which method is first at what, how sure that is, and for single maps."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.directions import arrow
from saliency_assay.report.heat_map import heat_map
from saliency_assay.report.html import table_of
from saliency_assay.report.material import span_text
from saliency_assay.report.page import page
from saliency_assay.report.reliability import PAIR
from saliency_assay.report.reliability_figures import scored_names
from saliency_assay.report.style import readable
from saliency_assay.report.words import (
    RELIABLE,
    alpha_row,
    alpha_words,
    group_words,
    groups,
    halves_words,
    joined,
    order_words,
    percent,
    reliability_words,
    unsure_words,
)

KINDS = {
    "bam": "Do maps show what the model was made to rely on? Objects are pasted into scenes, so it is known which"
    " pixels matter: one model is told the objects, another the scenes (BAM: Yang & Kim, 2019).",
    "fidelity": "Do maps say what the model answers? Metrics of single maps, image by image.",
    "localisation": "Do maps lie on the object that the model was trained to name? Metrics of single maps, image by"
    " image.",
    "caption": "Do maps point at the half of an image that the model uses, the picture or its caption?"
    " (Yeh et al., 2019, section 5, Table 3)",
    "retrain": "Is what a map marks missed when the model is trained again without it? (ROAR: Hooker et al., 2019;"
    " IteROAR)",
    "gallery": "The same images under every method, to be looked at; nothing is scored.",
}
READ = """<details open><summary>How to read this page</summary>
<dl>
<dt>rank</dt><dd>1 + the number of methods that are surely better: whose mean over images is better in at least 95 % of
the resamples of images. Only sure defeats count, so rank 1 is “not surely beaten”, and a method whose scores vary
much can have a better rank than one with a better mean.</dd>
<dt>first in … %</dt><dd>the share of resamples in which the method has the best mean: how sure its first place
is.</dd>
<dt>[low, high]</dt><dd>the 95 % interval of the mean over resamples of images. It knows nothing of other training
seeds, models or data, nor of how many metrics are compared.</dd>
<dt>control</dt><dd>a “method” that knows no model: <code>random</code>, <code>edge</code>, <code>constant</code>. A
method that is not surely better than the controls has shown nothing under this metric: its cell is hatched, whatever
its rank.</dd>
<dt>α</dt><dd>Krippendorff's α: whether single images put the methods into the same order. 1: all do; 0: as by chance.
A low α means that the order of the means cannot be expected of the next map, however sure it is on average. Without
controls; the level of its interval stands beside it. 0.65 is what Tomsett et al. (2020) name as the usual demand.</dd>
<dt>wins</dt><dd>the share of single images on which no other method has a better score.</dd>
</dl>
<p>Ranks of different metrics are not averaged: they do not measure the same thing.</p></details>"""


@dataclass(frozen=True)
class StudyResult:
    """What the overview knows of one study."""

    name: str
    kind: str
    data: str
    """What it ran on, as a phrase."""
    models: Sequence[str]
    """Each with its accuracy, as a phrase."""
    asks: Mapping[str, str]
    """What each score is, by name."""
    methods: Sequence[str]
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """``order``, ``reliability``, ``agreement`` and ``consistency`` as ``report.reliability`` and ``report.agreement``
    make them; empty where nothing is scored."""
    level: float = 0.999
    """Of the intervals of α."""
    cautions: Sequence[str] = ()
    """What else must be known before the ranks are read."""

    @property
    def names(self) -> dict[tuple[str, str], str]:
        """The metrics and variants that the words are about, and what they are called."""
        order = self.tables["order"]
        # What is known to matter differs from model to model.
        return scored_names(order, most=len(order)) if self.kind == "caption" else main_names(order)


def main_names(order: pd.DataFrame) -> dict[tuple[str, str], str]:
    """What every score is called, one variant for each: the one without sub-variant, else the last."""
    bare = [" " not in variant for variant in order["variant"]]
    entries = [variant.partition(" ")[0] for variant in order["variant"]]
    keyed = order.assign(bare=bare, entry=entries)
    has_bare = keyed.groupby(["metric", "entry"], sort=False)["bare"].transform("any")
    return scored_names(keyed[keyed["bare"] | ~has_bare], most=0)


def in_short(results: Sequence[StudyResult]) -> pd.DataFrame:
    """A row for each study and score: what is asked, which method is first, how surely, and what single maps say."""
    rows = []
    for result in results:
        if not result.tables:
            continue
        order, reliability = result.tables["order"], result.tables["reliability"]
        for (metric, variant), name in result.names.items():
            rows_of = _rows(order, metric, variant)
            ranked = rows_of[rows_of["rank"].notna()].sort_values("best", ascending=False, kind="stable")
            first = ranked[ranked["rank"] == ranked["rank"].min()].to_dict("records")
            alpha = alpha_row(reliability, metric, variant)
            rows.append(
                {
                    "study": result.name,
                    "metric": _asked(
                        f"{name} {arrow(rows_of['direction'].iloc[0])}", result.asks.get(metric)
                    ),
                    "first (share of resamples)": joined(map(_first, first)) or "no scores",
                    "wins on single images": joined(
                        f"{row['method']} {percent(row['wins'])}" for row in first
                    ),
                    "not surely better than the controls": unsure_words(rows_of),
                    "images": span_text(ranked["images"]) if len(ranked) else "0",
                    "single maps (α without controls)": _single(alpha),
                }
            )
    return pd.DataFrame(rows)


def overview_page(results: Sequence[StudyResult], *, seeds: Sequence[int], ran: str) -> str:
    """The overview as a page of its own.

    Args:
        results: the studies in the order of the configuration.
        seeds: training seeds.
        ran: hours, device and versions, as a phrase.
    """
    scored = dict.fromkeys(method for result in results if result.tables for method in result.methods)
    what = f"{_count(len(scored), 'method')} scored, controls included, in {_count(len(results), 'study', 'studies')}"
    several = len(seeds) > 1
    body = [
        "<h1>What was found</h1>",
        f"<p>{escape(what)}; {_count(len(seeds), 'training seed')}. {escape(ran)}</p>",
    ]
    short = in_short(results)
    if len(short):
        body.append("<h2>In short</h2>")
        body += [_in_words(result) for result in results if result.tables]
        body.append(READ)
        title = "Which method is first at what, and how sure that is"
        body.append(table_of(short, title, 2))
        if not several:
            body.append(
                '<p class="note">One training seed: nothing here says whether another training of the same'
                " model would give the same order.</p>"
            )
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
        data: as ``report.provenance.data_facts`` gives each data set.
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
    """The first part of a study's own page: what it asks, and all that its tables say in words."""
    body = [f"<h1>{escape(result.name)}</h1>", _about(result)]
    if result.tables:
        order, reliability = result.tables["order"], result.tables["reliability"]
        names, agreed = result.names, result.tables["agreement"]
        body.append(
            heat_map(
                order, reliability, names, title=f"{result.name}: ranks of the methods", level=result.level
            )
        )
        body.append("<h2>In words</h2>")
        for (metric, variant), name in names.items():
            texts = [order_words(_rows(order, metric, variant))]
            if (row := alpha_row(reliability, metric, variant)) is not None:
                texts.append(reliability_words(row, result.level))
            texts.append(halves_words(_rows(agreed, metric, variant)))
            asked = f" <small>{escape(result.asks.get(metric, ''))}</small>"
            body.append(f"<h3>{escape(name)}{asked}</h3>\n<p>{escape(' '.join(filter(None, texts)))}</p>")
        over = [
            (metric, halves_words(_rows(agreed, metric, ""))) for metric in dict.fromkeys(order["metric"])
        ]
        if said := [f"{readable(metric)}: {words}" for metric, words in over if words]:
            listed = "".join(f"<li>{escape(each)}</li>" for each in said)
            body.append(f"<h3>Other variants of a score</h3>\n<ul>{listed}</ul>")
        if agree := agreement_words(result):
            body.append(f"<h3>Which metrics agree</h3>\n<p>{escape(agree)}</p>")
    body.append(
        '<p><a data-page="Overview" href="../overview.html">Overview</a>, with how to read ranks and α.</p>'
    )
    return page("\n".join(body), title=f"{result.name}: summary")


def agreement_words(result: StudyResult) -> str:
    """Which metrics of a study find the maps of the same images good; controls aside."""
    order, table = result.tables["order"], result.tables["consistency"]
    names = result.names
    controls = set(order.loc[order["control"], "method"])
    known = table[~table["method"].isin(controls)]
    means = known.groupby(PAIR, sort=False)["agreement"].mean()
    places = {pair: place for place, pair in enumerate(names)}
    matrix = np.eye(len(names))
    for *pair, mean in means.reset_index().itertuples(index=False, name=None):
        a, b = places.get((pair[0], pair[1])), places.get((pair[2], pair[3]))
        if a is not None and b is not None:
            matrix[a, b] = matrix[b, a] = mean
    return group_words(groups(matrix, list(names.values())))


def _section(result: StudyResult) -> str:
    name = escape(result.name)
    link = f'<p><a data-page="Study {name}" href="{name}/study.html">All of {name}</a></p>'
    parts = [f"<h2>{name}</h2>", _about(result)]
    if result.tables:
        order, reliability = result.tables["order"], result.tables["reliability"]
        title = f"{result.name}: ranks of the methods, with means, intervals and reliability"
        parts.append(heat_map(order, reliability, result.names, title=title, level=result.level))
        if agree := agreement_words(result):
            parts.append(f"<p>{escape(agree)}</p>")
    return "\n".join([*parts, link])


def _about(result: StudyResult) -> str:
    models = "; ".join(result.models)
    lines = [
        KINDS[result.kind],
        f"Run on {result.data}. Models: {models}. Methods: {joined(result.methods)}.",
    ]
    about = "".join(f"<p>{escape(line)}</p>" for line in lines)
    cautions = "".join(f"<li>{escape(caution)}</li>" for caution in result.cautions)
    return about + (f"<ul>{cautions}</ul>" if cautions else "")


def _in_words(result: StudyResult) -> str:
    """The ranks of a study in a few sentences."""
    order, reliability = result.tables["order"], result.tables["reliability"]
    alone: dict[str, list[str]] = {}
    shared, led, reliable, unsure = [], [], [], []
    for (metric, variant), name in result.names.items():
        rows = _rows(order, metric, variant)
        first = rows[rows["rank"] == rows["rank"].min()]
        if first["control"].any():
            led.append(f"{name} ({joined(first.loc[first['control'], 'method'])})")
        elif len(first) == 1:
            alone.setdefault(first["method"].iloc[0], []).append(f"{name} ({percent(first['best'].iloc[0])})")
        elif len(first):
            shared.append(name)
        alpha = alpha_row(reliability, metric, variant)
        if alpha is not None and alpha["alpha_low"] >= RELIABLE and not first["control"].any():
            reliable.append(name)
        if weak := unsure_words(rows):
            unsure.append(f"{weak} ({name})")
    texts = [f"{method} is first by {joined(names)}." for method, names in alone.items()]
    texts += [f"No single method is first by {joined(shared)}."] if shared else []
    nothing = (
        f"A control is first, or shares the first place, by {joined(led)}: there, a good score shows nothing."
    )
    texts += [nothing] if led else []
    texts += [f"Not surely better than the controls: {'; '.join(unsure)}."] if unsure else []
    by = joined(reliable) if reliable else "no metric"
    texts += [f"Single maps are ranked alike (α surely at least {RELIABLE}) by {by}.", *result.cautions]
    listed = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<h3>{escape(result.name)}</h3>\n<ul>{listed}</ul>"


def _asked(name: str, asks: str | None) -> str:
    return f"{name}: {asks}" if asks else name


def _single(alpha: Mapping[str, Any] | None) -> str:
    """What single maps say, in words behind the number."""
    if alpha is None:
        return "–"
    return alpha_words(alpha) if np.isnan(alpha["alpha"]) else f"{alpha['alpha']:.2f}: {alpha_words(alpha)}"


def _first(row: Mapping[Hashable, Any]) -> str:
    control = ", a control" if row["control"] else ""
    return f"{row['method']}{control} ({percent(row['best'])})"


def _rows(table: pd.DataFrame, metric: str, variant: str) -> pd.DataFrame:
    return table[(table["metric"] == metric) & (table["variant"] == variant)]


def _count(number: int, name: str, several: str = "") -> str:
    return f"{number} {name if number == 1 else several or name + 's'}"

"""Example images of a study with the maps of the methods that rank first and last most often and of a baseline."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from saliency_assay.report.pages.summary import Finding, leads
from saliency_assay.report.pages.words import first as first_row
from saliency_assay.report.pages.words import ranked

MOST_IMAGES = 4
FIRST, LAST = "most often first", "most often last"
MOST_METHODS = 4  # most methods of a study without scores


@dataclass(frozen=True)
class Example:
    """One image and its maps as base64-encoded PNG files, maps in the order of ``Examples.columns``."""

    title: str
    image: str
    maps: Sequence[str]


@dataclass(frozen=True)
class Examples:
    """Content of ``templates/examples.html.j2``."""

    model: str
    columns: Mapping[str, str]  # method by role, such as ``baseline``
    rows: Sequence[Example]


def examples(thumbnails: Mapping[str, Any], findings: Sequence[Finding], methods: Sequence[str]) -> Examples:
    """Return the first images of a gallery with the maps of its first model.

    Args:
        thumbnails: content of ``gallery.json``, see ``plotting.thumbnails.thumbnails``.
        findings: results that select the methods; see ``selected_methods``.
        methods: labels of the methods of the study; the first ones are shown if no method is scored.
    """
    model, maps = next(iter(thumbnails["maps"].items()))
    selected = selected_methods(findings) or {name: name for name in methods if name in maps}
    columns = {role: name for role, name in list(selected.items())[:MOST_METHODS] if name in maps}
    images = zip(thumbnails["titles"], thumbnails["images"], strict=True)
    rows = [
        Example(title, image, [maps[method][place] for method in columns.values()])
        for place, (title, image) in enumerate(images)
    ]
    return Examples(model, columns, rows[:MOST_IMAGES])


def selected_methods(findings: Sequence[Finding]) -> dict[str, str]:
    """Return a method that is ``most often first``, one that is ``most often last`` and a ``baseline``.

    The first one leads on the most metrics, see ``summary.leads``. The last one
    has, alone, the largest ``rank_low`` of the methods that use the model, and none has a larger ``rank_high``, on the
    most metrics. A method that does so on
    no metric has no role; its key is then its name. Ranks are not averaged over metrics.
    """
    first, last = Counter[str](), Counter[str]()
    leading = [first_row(rows) for finding in findings if len(rows := ranked(finding.rows)) > 1]
    baselines: dict[str, None] = {}
    for rows in (ranked(finding.rows) for finding in findings):
        if len(rows) < 2:
            continue
        baselines |= dict.fromkeys(rows.loc[rows["baseline"], "method"])
        methods = rows[~rows["baseline"]]
        lowest = methods["rank_low"] == methods["rank_low"].max()
        worst = lowest & (lowest.sum() == 1) & (methods["rank_high"] == methods["rank_high"].max())
        first.update(dict.fromkeys(methods["method"], 0))
        last.update(dict(zip(methods["method"], worst.astype(int), strict=True)))
    if not first:
        return {}
    counts = Counter({method: len(of_method) for method, of_method in leads(findings).items()})
    if not counts:  # a method without competitors leads nobody
        counts = Counter(row["method"] for row in leading if row is not None and not row["baseline"])
    (best, wins) = (counts or first).most_common(1)[0]
    selected = {FIRST if wins else best: best}
    if others := [(name, count) for name, count in last.most_common() if name != best]:
        worst, losses = others[0]
        selected[LAST if losses else worst] = worst
    if baselines:
        selected["baseline"] = next(iter(baselines))
    return selected

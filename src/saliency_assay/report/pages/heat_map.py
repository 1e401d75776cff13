"""Table of methods × metrics: rank sets, means with their intervals, and the reliability of each metric."""

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.plotting.html import breakable
from saliency_assay.plotting.metric_results import span_text
from saliency_assay.registry import directions
from saliency_assay.reliability.tables import rank_text
from saliency_assay.report.pages.words import (
    UNDEFINED,
    alpha_row,
    alpha_words,
    number,
    percent,
    two,
)

BEST, WORST = (0x8C, 0xC0, 0xE6), (0xFF, 0xFF, 0xFF)  # one hue, also distinct in gray; black text on both
TABLE = """<div class="scroll" tabindex="0" role="region" aria-label="{title}">
<table class="heat">
<caption>{title}</caption>
<thead><tr><th scope="col" aria-sort="none"><button>method</button></th>{head}</tr></thead>
<tbody>
{rows}
</tbody>
<tfoot>
{foot}
</tfoot>
</table>
</div>"""


def heat_map(
    order: pd.DataFrame,
    reliability: pd.DataFrame,
    names: Mapping[tuple[str, str], str],
    *,
    title: str,
    level: float,
) -> str:
    """Return the rank sets of one study as an HTML table, methods in the order of ``order``.

    The color of a cell follows the middle of its rank set. A cell is hatched where the method is not shown to be
    better than all baselines.

    Args:
        order: as ``reliability.tables.order_table`` gives it, of one set and model.
        reliability: as ``reliability.tables.reliability_table`` gives it, of the same.
        names: metrics and variants to show, and their labels.
        title: text.
        level: of the intervals of α.
    """
    methods = list(dict.fromkeys(order["method"]))
    controls = set(order.loc[order["control"], "method"])
    columns = {
        pair: order[(order["metric"] == pair[0]) & (order["variant"] == pair[1])].set_index("method")
        for pair in names
    }
    head = "".join(
        f'<th scope="col" aria-sort="none"><button>{escape(name)} {_arrow(columns[pair])}</button></th>'
        for pair, name in names.items()
    )
    rows = []
    for method in methods:
        note = " <small>baseline: does not use the model</small>" if method in controls else ""
        label = breakable(method) + note
        cells = "".join(
            _cell(of.loc[method], int(of["rank_low"].count())) if method in of.index else "<td></td>"
            for of in columns.values()
        )
        rows.append(f'<tr><th scope="row" data-value="{escape(method)}">{label}</th>{cells}</tr>')
    reliable = {pair: alpha_row(reliability, *pair) for pair in names}
    without = any(row and row["controls"] == "without" for row in reliable.values())
    label = (
        f"α{' without baselines' if without else ''} <small>{100 * level:.4g} % confidence interval</small>"
    )
    foot = [
        _foot(label, [_alpha(row) for row in reliable.values()]),
        _foot("images", [span_text(of["images"]) for of in columns.values()]),
    ]
    return TABLE.format(title=escape(title), head=head, rows="\n".join(rows), foot="\n".join(foot))


def _arrow(rows: pd.DataFrame) -> str:
    direction = str(rows["direction"].iloc[0])
    return f'<span title="{directions.phrase(direction)}">{directions.arrow(direction)}</span>'


def _cell(row: pd.Series, methods: int) -> str:
    if np.isnan(row["mean"]):
        return "<td>no score</td>"
    ranks, background, notes = rank_text(row["rank_low"], row["rank_high"]), "#ffffff", ""
    if ranks:
        worse = ((row["rank_low"] + row["rank_high"]) / 2 - 1) / max(methods - 1, 1)
        color = (f"{round(a + (b - a) * worse):02x}" for a, b in zip(BEST, WORST, strict=True))
        background = f"#{''.join(color)}"
    if row["above_controls"] == 0:
        background = f"repeating-linear-gradient(135deg,{background} 0 5px,#fff 5px 10px)"
        notes += "<small>not shown to be better than all baselines</small>"
    if row["undefined"] > UNDEFINED:
        notes += f"<small>{percent(row['undefined'])} of the scores missing</small>"
    mean, exact = number(row["mean"]), f"{row['mean']:.6g}"
    if not np.isnan(row["low"]):
        mean += f" [{number(row['low'])}, {number(row['high'])}]"
        exact += f" [{row['low']:.6g}, {row['high']:.6g}]"
    saved = f"rank {ranks}, mean {exact}" if ranks else f"mean {exact}"
    look = f'style="background:{background}" data-value="{row["mean"]:.6g}" data-csv="{saved}"'
    return f"<td {look}><b>{ranks}</b><small>{mean}</small>{notes}</td>"


def _alpha(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "undefined"
    if np.isnan(row["alpha"]):
        return f"<small>{alpha_words(row)}</small>"
    interval = "too few images for an interval"
    if not np.isnan(row["alpha_low"]):
        interval = f"[{two(row['alpha_low'])}, {two(row['alpha_high'])}]"
    width = round(100 * min(max(row["alpha"], 0), 1))
    meter = f'<span class="meter" aria-hidden="true"><i style="width:{width}%"></i></span>'
    return f"<b>{two(row['alpha'])}</b><small>{interval}</small>{meter}"


def _foot(label: str, cells: list[str]) -> str:
    return f'<tr><th scope="row">{label}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'

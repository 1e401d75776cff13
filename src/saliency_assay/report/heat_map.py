"""Methods × metrics in one picture: rank, mean with its interval, and how reliable each metric is."""

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.directions import arrow, phrase
from saliency_assay.report.html import breakable
from saliency_assay.report.material import span_text
from saliency_assay.report.words import SURE, alpha_row, number, percent

BEST, WORST = (0x8C, 0xC0, 0xE6), (0xFF, 0xFF, 0xFF)  # one hue, told apart in grey too; black text on both
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
    """The ranks of one study as an HTML table, methods in the order of ``order``.

    Args:
        order: as ``report.reliability.order_table`` gives it, of one set and model.
        reliability: as ``report.reliability.reliability_table`` gives it, of the same.
        names: metrics and variants to show, and what they are called.
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
        label = breakable(method) + (" <small>control: knows no model</small>" if method in controls else "")
        cells = "".join(
            _cell(of.loc[method], len(of)) if method in of.index else "<td></td>" for of in columns.values()
        )
        rows.append(f'<tr><th scope="row" data-value="{escape(method)}">{label}</th>{cells}</tr>')
    reliable = {pair: alpha_row(reliability, *pair) for pair in names}
    without = (
        " without controls" if any(row and row["controls"] == "without" for row in reliable.values()) else ""
    )
    held = f"{100 * level:.4g} % interval"
    foot = [
        _foot(f"single maps: α{without} <small>{held}</small>", [_alpha(row) for row in reliable.values()]),
        _foot("images", [span_text(of["images"]) for of in columns.values()]),
    ]
    return TABLE.format(title=escape(title), head=head, rows="\n".join(rows), foot="\n".join(foot))


def _arrow(rows: pd.DataFrame) -> str:
    direction = str(rows["direction"].iloc[0])
    return f'<span title="{phrase(direction)}">{arrow(direction)}</span>'


def _cell(row: pd.Series, methods: int) -> str:
    if np.isnan(row["rank"]):
        return "<td>no score</td>"
    worse = (row["rank"] - 1) / max(methods - 1, 1)
    colour = "".join(f"{round(a + (b - a) * worse):02x}" for a, b in zip(BEST, WORST, strict=True))
    first = f'<span class="first">first in {percent(row["best"])}</span>' if row["best"] >= 0.005 else ""
    shown, unsure = f"#{colour}", ""
    if row["above_controls"] < SURE:  # a rank that says nothing shall not look as one that does
        shown = f"repeating-linear-gradient(135deg,#{colour} 0 5px,#fff 5px 10px)"
        unsure = "<small>not surely better than the controls</small>"
    interval = f"<small>{number(row['mean'])} [{number(row['low'])}, {number(row['high'])}]</small>"
    ends = f"{row['mean']:.6g} [{row['low']:.6g}, {row['high']:.6g}]"
    told = f"rank {row['rank']:.0f}, mean {ends}, first in {row['best']:.3f}"
    look = f'style="background:{shown}" data-value="{row["mean"]:.6g}" data-csv="{told}"'
    return f"<td {look}><b>{row['rank']:.0f}</b>{first}{interval}{unsure}</td>"


def _alpha(row: Mapping[str, Any] | None) -> str:
    if row is None or np.isnan(row["alpha"]):
        return "undefined"
    width = round(100 * min(max(row["alpha"], 0), 1))
    meter = f'<span class="meter" aria-hidden="true"><i style="width:{width}%"></i></span>'
    interval = (
        ""
        if np.isnan(row["alpha_low"])
        else f"<small>[{_two(row['alpha_low'])}, {_two(row['alpha_high'])}]</small>"
    )
    return f"<b>{_two(row['alpha'])}</b>{interval}{meter}"


def _foot(label: str, cells: list[str]) -> str:
    return f'<tr><th scope="row">{label}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def _two(value: float) -> str:
    """Two decimals, and no 0 below 0."""
    return f"{value:.2f}".replace("-0.00", "0.00")

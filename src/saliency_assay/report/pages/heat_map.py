"""Table of methods × metrics: rank sets, means with their intervals, and the reliability of each metric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.plotting.text import span_text
from saliency_assay.registry import directions
from saliency_assay.reliability.tables import rank_text
from saliency_assay.report.pages.words import UNDEFINED, alpha_row, alpha_words, number, percent, two

BEST, WORST = (0x8C, 0xC0, 0xE6), (0xFF, 0xFF, 0xFF)  # one hue, also distinct in gray; black text on both


@dataclass(frozen=True)
class ScoreCell:
    """The score of a method under one metric."""

    ranks: str = ""  # the rank set, empty without one
    mean: str = ""  # with its interval; empty where no image has a score
    background: str = ""  # in CSS
    value: str = ""  # the mean, by which rows are sorted
    saved: str = ""  # the cell in a CSV file
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class AlphaCell:
    """The reliability of one metric."""

    value: str  # empty where it is undefined
    note: str  # its interval, or why there is none
    percent: int = 0  # the length of its bar


@dataclass(frozen=True)
class MetricColumn:
    """A metric and variant."""

    name: str
    direction: str
    arrow: str
    alpha: AlphaCell | None
    images: str


@dataclass(frozen=True)
class MethodRow:
    """A method; ``cells`` has its score under each metric, None where it is not scored."""

    method: str
    baseline: bool
    cells: Sequence[ScoreCell | None]


@dataclass(frozen=True)
class HeatMap:
    """The rank sets of one study, as ``templates/heat_map.html.j2`` shows them."""

    title: str
    level: str  # of the intervals of α
    without_baselines: bool  # true if α is computed without them
    columns: Sequence[MetricColumn]
    rows: Sequence[MethodRow]


def heat_map(
    order: pd.DataFrame,
    reliability: pd.DataFrame,
    names: Mapping[tuple[str, str], str],
    *,
    title: str,
    level: float,
) -> HeatMap:
    """Return the rank sets of one study, methods in the order of ``order``.

    The color of a cell follows the middle of its rank set. A cell is hatched where the method is not shown to be
    better than all baselines.

    Args:
        order: as ``reliability.tables.order_table`` gives it, of one set and model.
        reliability: as ``reliability.tables.reliability_table`` gives it, of the same.
        names: metrics and variants to show, and their labels.
        title: text.
        level: of the intervals of α.
    """
    baselines = set(order.loc[order["control"], "method"])
    alphas = {pair: alpha_row(reliability, *pair) for pair in names}
    scores = {
        pair: order[(order["metric"] == pair[0]) & (order["variant"] == pair[1])].set_index("method")
        for pair in names
    }
    rows = [
        MethodRow(method, method in baselines, [_score(of, method) for of in scores.values()])
        for method in dict.fromkeys(order["method"])
    ]
    columns = []
    for pair, name in names.items():
        direction = str(scores[pair]["direction"].iloc[0])
        phrase, arrow = directions.phrase(direction), directions.arrow(direction)
        columns.append(
            MetricColumn(name, phrase, arrow, _alpha(alphas[pair]), span_text(scores[pair]["images"]))
        )
    without = any(row and row["controls"] == "without" for row in alphas.values())
    return HeatMap(title, f"{100 * level:.4g} %", without, columns, rows)


def _score(scores: pd.DataFrame, method: str) -> ScoreCell | None:
    if method not in scores.index:
        return None
    row = dict[Any, Any](scores.loc[method])
    ranked = int(scores["rank_low"].count())
    if np.isnan(row["mean"]):
        return ScoreCell()
    ranks, background, notes = rank_text(row["rank_low"], row["rank_high"]), "#ffffff", []
    if ranks:
        worse = ((row["rank_low"] + row["rank_high"]) / 2 - 1) / max(ranked - 1, 1)
        color = (f"{round(a + (b - a) * worse):02x}" for a, b in zip(BEST, WORST, strict=True))
        background = f"#{''.join(color)}"
    if row["above_controls"] == 0:
        background = f"repeating-linear-gradient(135deg,{background} 0 5px,#fff 5px 10px)"
        notes.append("not shown to be better than all baselines")
    if row["undefined"] > UNDEFINED:
        notes.append(f"{percent(row['undefined'])} of the scores missing")
    mean, exact = number(row["mean"]), f"{row['mean']:.6g}"
    if not np.isnan(row["low"]):
        mean += f" [{number(row['low'])}, {number(row['high'])}]"
        exact += f" [{row['low']:.6g}, {row['high']:.6g}]"
    saved = f"rank {ranks}, mean {exact}" if ranks else f"mean {exact}"
    return ScoreCell(ranks, mean, background, f"{row['mean']:.6g}", saved, notes)


def _alpha(row: Mapping[str, Any] | None) -> AlphaCell | None:
    if row is None:
        return None
    if np.isnan(row["alpha"]):
        return AlphaCell("", alpha_words(row))
    interval = "too few images for an interval"
    if not np.isnan(row["alpha_low"]):
        interval = f"[{two(row['alpha_low'])}, {two(row['alpha_high'])}]"
    return AlphaCell(two(row["alpha"]), interval, round(100 * min(max(row["alpha"], 0), 1)))

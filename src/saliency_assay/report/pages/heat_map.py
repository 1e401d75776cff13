"""Heat map of methods × metrics: rank sets, means with their intervals, and the reliability of each metric."""

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
    """Score of a method under one metric."""

    ranks: str = ""  # rank set, empty without one
    mean: str = ""  # mean with its interval; empty if no image has a score
    background: str = ""  # CSS value
    value: str = ""  # mean, the sort key
    saved: str = ""  # content of the cell in a CSV file
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class AlphaCell:
    """Reliability of one metric."""

    value: str  # α, empty if undefined
    note: str  # its interval, or the reason why it has none
    percent: int = 0  # length of its bar


@dataclass(frozen=True)
class MetricColumn:
    """Column of a metric and variant."""

    name: str
    direction: str
    arrow: str
    alpha: AlphaCell | None
    images: str


@dataclass(frozen=True)
class MethodRow:
    """Row of a method; ``cells`` has its score under each metric, None where it is not scored."""

    method: str
    baseline: bool
    cells: Sequence[ScoreCell | None]


@dataclass(frozen=True)
class HeatMap:
    """Rank sets of one study, the content of ``templates/heat_map.html.j2``."""

    title: str
    level: str  # confidence level of the intervals of α
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

    The color of a cell follows the middle of its rank set. A cell is hatched if the method is not significantly better
    than all baselines.

    Args:
        order: result of ``reliability.tables.order_table`` for one set and model.
        reliability: result of ``reliability.tables.reliability_table`` for the same.
        names: labels of the metrics and variants to show.
        title: title of the heat map.
        level: confidence level of the intervals of α.
    """
    baselines = set(order.loc[order["baseline"], "method"])
    alphas = {pair: alpha_row(reliability, *pair) for pair in names}
    scores = {
        pair: order[(order["metric"] == pair[0]) & (order["variant"] == pair[1])].set_index("method")
        for pair in names
    }
    rows = [
        MethodRow(
            method, method in baselines, [_score_cell(metric_rows, method) for metric_rows in scores.values()]
        )
        for method in dict.fromkeys(order["method"])
    ]
    columns = []
    for pair, name in names.items():
        direction = str(scores[pair]["direction"].iloc[0])
        phrase, arrow = directions.phrase(direction), directions.arrow(direction)
        columns.append(
            MetricColumn(name, phrase, arrow, _alpha_cell(alphas[pair]), span_text(scores[pair]["images"]))
        )
    without_baselines = any(row and row["baselines"] == "without" for row in alphas.values())
    return HeatMap(title, f"{100 * level:.4g} %", without_baselines, columns, rows)


def _score_cell(scores: pd.DataFrame, method: str) -> ScoreCell | None:
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
    if row["above_baselines"] == 0:
        background = f"repeating-linear-gradient(135deg,{background} 0 5px,#fff 5px 10px)"
        notes.append("not significantly better than every baseline")
    if row["undefined"] > UNDEFINED:
        notes.append(f"{percent(row['undefined'])} of scores missing")
    mean, saved_mean = number(row["mean"]), f"{row['mean']:.6g}"
    if not np.isnan(row["low"]):
        mean += f" [{number(row['low'])}, {number(row['high'])}]"
        saved_mean += f" [{row['low']:.6g}, {row['high']:.6g}]"
    saved = f"rank {ranks}, mean {saved_mean}" if ranks else f"mean {saved_mean}"
    return ScoreCell(ranks, mean, background, f"{row['mean']:.6g}", saved, notes)


def _alpha_cell(row: Mapping[str, Any] | None) -> AlphaCell | None:
    if row is None:
        return None
    if np.isnan(row["alpha"]):
        return AlphaCell("", alpha_words(row))
    interval = "too few images for a CI"
    if not np.isnan(row["alpha_low"]):
        interval = f"[{two(row['alpha_low'])}, {two(row['alpha_high'])}]"
    return AlphaCell(two(row["alpha"]), interval, round(100 * min(max(row["alpha"], 0), 1)))

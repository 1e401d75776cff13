"""Heat map of methods × metrics: rank sets, means with their intervals, and the reliability of each metric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.plotting.palette import cell_colors, css
from saliency_assay.plotting.text import with_minus_signs
from saliency_assay.registry.directions import Direction
from saliency_assay.registry.properties import OTHER, PROPERTIES
from saliency_assay.reliability.reliability_tables import rank_text
from saliency_assay.reliability.verdicts import alpha_row, is_by_means, is_untested, units_text
from saliency_assay.report.pages.words import (
    UNDEFINED,
    alpha_words,
    concordance_text,
    first,
    grouped_text,
    number,
    p_text,
    percent,
    ranked,
    rows_of,
    scored_text,
    two,
)

WIDTH, LETTER, MARGIN = (
    900,
    8.5,
    30,
)  # pixels of all columns on a page, of a letter of a name, and beside a name
UNTESTED_NOTE = "there is one training seed, so differences cannot be distinguished from training noise"
MANY_METHODS = 20  # methods above which a heat map scrolls in a separate area


@dataclass(frozen=True)
class ScoreCell:
    """Score of a method under one metric."""

    ranks: str = ""  # rank set, empty without one
    mean: str = ""  # mean with its interval; empty if no image has a score
    background: str = "#ffffff"  # CSS colors
    color: str = "#000000"
    hatched: bool = False  # true if the method is not significantly better than every baseline method
    key: str = ""  # sort key: twice the middle of the rank set, or the mean without one
    saved: str = ""  # content of the cell in a CSV file
    notes: Sequence[str] = ()
    absent: str = "no score"  # text without a mean
    share: str = ""  # share of the range between the controls, empty without one
    share_interval: str = ""
    dark: tuple[str, str] = ("transparent", "inherit")  # background and text color on dark pages

    @property
    def style(self) -> str:
        """Colors as a style attribute."""
        return css((self.background, self.color), self.dark)

    @property
    def details(self) -> str:
        """Mean with its interval, share of the range between the controls, and the notes."""
        share = (
            [f"{self.share} {self.share_interval} of the range between the controls"] if self.share else []
        )
        return "; ".join([self.mean, *share, *self.notes])


@dataclass(frozen=True)
class AlphaCell:
    """Reliability of one metric."""

    value: str  # α, empty if undefined
    note: str  # its interval, or the reason why it has none, and concordance if this decides
    decides: str = ""  # concordance if it decides in place of α
    percent: int = 0  # length of its bar


@dataclass(frozen=True)
class LeadCell:
    """Lead of the best method."""

    verdict: str  # whether the method is significantly better than all others
    test: str  # the method, with the tested quantity and its p-value
    means: str  # difference of means with its interval, unless it is tested
    note: str


@dataclass(frozen=True)
class MetricColumn:
    """Column of a metric and variant."""

    name: str
    measures: str  # property of a map that it measures
    direction: str
    arrow: str
    alpha: AlphaCell | None
    images: str
    lead: LeadCell | None = None
    reason: str = ""  # verdict with its reasons if no order of the methods was shown
    summary: str = ""  # of the score


@dataclass(frozen=True)
class Group:
    """Adjacent columns of metrics that measure the same property."""

    measures: str
    question: str
    columns: int


@dataclass(frozen=True)
class MethodRow:
    """Row of a method; ``cells`` has its score under each metric, None where it is not scored."""

    method: str
    cells: Sequence[ScoreCell | None]


@dataclass(frozen=True)
class HeatMap:
    """Rank sets of one study, the content of ``templates/heat_map.html.j2``."""

    title: str
    level: str  # confidence level of the intervals of α
    without_baselines: bool  # true if α is computed without them
    columns: Sequence[MetricColumn]
    methods: Sequence[MethodRow]
    baselines: Sequence[MethodRow]
    best: Sequence[MethodRow] = ()
    """Upper controls, which are not ranked; with cells of the metrics under which they are the best possible map."""

    @property
    def has_shares(self) -> bool:
        """True if a cell has a share of the range between the controls."""
        return any(cell and cell.share for row in (*self.methods, *self.baselines) for cell in row.cells)

    @property
    def groups(self) -> list[Group]:
        """Groups of the columns, from left to right."""
        return [
            Group(measures, PROPERTIES.get(measures, ""), len(list(columns)))
            for measures, columns in groupby(self.columns, key=lambda column: column.measures)
        ]

    @property
    def legend(self) -> dict[str, str]:
        """Example colors of rank sets as style attributes, by description."""
        sets = {"first": (1, 1), "last": (2, 2), "grayer: larger rank set (uncertain)": (1, 2)}
        return {
            text: css(cell_colors(low, high, 2), cell_colors(low, high, 2, dark=True))
            for text, (low, high) in sets.items()
        }

    @property
    def upright(self) -> bool:
        """True if the names of metrics are rotated, so that many columns fit."""
        return is_upright([column.name for column in self.columns])

    @property
    def tall(self) -> bool:
        """True if the heat map scrolls in a separate area, so that the names of metrics stay in sight."""
        return len(self.methods) + len(self.baselines) > MANY_METHODS


def is_upright(names: Sequence[str]) -> bool:
    """Return True if columns that are as wide as the longest word of their names do not fit on a page."""
    words = [max(map(len, name.split()), default=0) for name in names]
    return sum(LETTER * longest + MARGIN for longest in words) > WIDTH


def heat_map(
    order: pd.DataFrame,
    reliability: pd.DataFrame,
    names: Mapping[tuple[str, str], str],
    measured: Mapping[str, str],
    *,
    title: str,
    level: float,
    reasons: Mapping[tuple[str, str], str] = MappingProxyType({}),
    summaries: Mapping[str, str] = MappingProxyType({}),
    controls: pd.DataFrame | None = None,
) -> HeatMap:
    """Return the rank sets of one study, methods in the order of ``order``, metrics grouped by what they measure.

    The lightness of a cell follows the middle of its rank set, and its saturation decreases with the size of the set,
    so that uncertain ranks are gray. A cell is hatched if the method is not significantly better than every baseline.

    Args:
        order: first result of ``reliability.order_tables.order_tables`` for one set and model.
        reliability: result of ``reliability.reliability_tables.reliability_table`` for the same.
        names: labels of the metrics and variants to show.
        measured: for each metric the property that it measures.
        title: title of the heat map.
        level: confidence level of the intervals of α.
        reasons: for metrics and variants under which no order of the methods was shown, the verdict.
        summaries: summary of each score, by name.
        controls: result of ``reliability.controls.controls_table`` for the same.
    """
    shown = sorted(names, key=lambda pair: _group_place(measured.get(pair[0], OTHER)))
    alphas = [alpha_row(reliability, *pair) for pair in shown]
    scores = [rows_of(order, *pair).set_index("method") for pair in shown]
    columns = []
    for pair, rows, alpha in zip(shown, scores, alphas, strict=True):
        direction = Direction(rows["direction"].iloc[0])
        columns.append(
            MetricColumn(
                names[pair],
                measured.get(pair[0], OTHER),
                with_minus_signs(direction.phrase),
                with_minus_signs(direction.arrow),
                _alpha_cell(alpha),
                f"{scored_text(rows)}{f' ({groups})' if (groups := grouped_text(rows)) else ''}",
                _lead_cell(rows),
                reasons.get(pair, ""),
                summaries.get(pair[0], ""),
            )
        )
    methods: dict[bool, list[MethodRow]] = {False: [], True: []}
    of_controls = {} if controls is None else dict(list(controls.groupby(["metric", "variant"], sort=False)))
    ends = [of_controls.get(pair, pd.DataFrame(columns=["method", "control"])) for pair in shown]
    for method, baseline in dict(zip(order["method"], order["baseline"], strict=True)).items():
        cells = [
            _with_share(_score_cell(rows, method), shares[shares["method"] == method])
            for rows, shares in zip(scores, ends, strict=True)
        ]
        methods[bool(baseline)].append(MethodRow(method, cells))
    uppers = dict.fromkeys(name for rows in ends for name in rows.loc[rows["control"] == "upper", "method"])
    without_baselines = any(row and row["baselines"] == "without" for row in alphas)
    return HeatMap(
        title,
        f"{100 * level:.4g} %",
        without_baselines,
        columns,
        methods[False],
        baselines=methods[True],
        best=[MethodRow(name, [_best_cell(rows, name) for rows in ends]) for name in uppers],
    )


def _group_place(measures: str) -> tuple[int, str]:
    """Return the sort key of a group: named properties in the order of ``PROPERTIES``, custom ones before ``other``."""
    known = list(PROPERTIES)
    return (known.index(measures), "") if measures in known else (known.index(OTHER) - 1, measures)


def _score_cell(scores: pd.DataFrame, method: str) -> ScoreCell | None:
    if method not in scores.index:
        return None
    row = dict[Any, Any](scores.loc[method])
    if np.isnan(row["mean"]):
        return ScoreCell()
    notes = []
    if row["above_baselines"] == 0:
        notes.append("not significantly better than every baseline method")
    if row["undefined"] > UNDEFINED:
        notes.append(f"{percent(row['undefined'])} of scores missing")
    mean, saved_mean = number(row["mean"]), f"{row['mean']:.6g}"
    if not np.isnan(row["low"]):
        mean += f" [{number(row['low'])}, {number(row['high'])}]"
        saved_mean += f" [{row['low']:.6g}, {row['high']:.6g}]"
    ranks = rank_text(row["rank_low"], row["rank_high"])
    if not ranks:
        return ScoreCell("", mean, key=f"{row['mean']:.6g}", saved=f"mean {saved_mean}", notes=notes)
    rank_set = row["rank_low"], row["rank_high"], int(scores["rank_low"].count())
    background, color = cell_colors(*rank_set)
    hatched = row["above_baselines"] == 0
    key = f"{row['rank_low'] + row['rank_high']:g}"
    return ScoreCell(
        ranks,
        mean,
        background,
        color,
        hatched,
        key,
        f"rank {ranks}, mean {saved_mean}",
        notes,
        dark=cell_colors(*rank_set, dark=True),
    )


def _with_share(cell: ScoreCell | None, controls: pd.DataFrame) -> ScoreCell | None:
    """Return a cell with the share of the range between the controls that its method reaches."""
    if cell is None and (controls["control"] == "upper").any():
        return ScoreCell(absent="control")  # which is not ranked
    if cell is None or controls.empty or np.isnan(share := controls["share"].iloc[0]):
        return cell
    low, high = controls["share_low"].iloc[0], controls["share_high"].iloc[0]
    interval = "" if np.isnan(low) or np.isnan(high) else f"[{_whole(low)}, {_whole(high)} %]"
    return replace(cell, share=f"{_whole(share)} %", share_interval=interval)


def _whole(share: float) -> str:
    return with_minus_signs(f"{round(100 * share)}")


def _best_cell(controls: pd.DataFrame, method: str) -> ScoreCell:
    """Return the mean of an upper control; empty under metrics for which it is not the best possible map."""
    rows = controls[(controls["method"] == method) & (controls["control"] == "upper")]
    if rows.empty or np.isnan(mean := rows["mean"].iloc[0]):
        return ScoreCell(absent="–")
    notes = [reason] if (reason := rows["reason"].iloc[0]) else []
    share = "" if notes or not rows["lower"].iloc[0] else "100 %"
    return ScoreCell(
        "!" if notes else "",
        number(mean),
        key=f"{mean:.6g}",
        saved=f"mean {mean:.6g}",
        notes=notes,
        share=share,
    )


def _lead_cell(scores: pd.DataFrame) -> LeadCell | None:
    """Return the lead of the best method; None if no two methods have scores of the same images.

    The best method ranks first. If none does, it has the highest win rate or, if rank sets compare means, the best
    mean.
    """
    if (compared := ranked(scores.reset_index()).dropna(subset=["lead"])).empty:
        return None
    leader, significant = first(compared), first(compared) is not None
    by_means = is_by_means(compared)
    if leader is None:
        leader = compared.sort_values("win_rate", na_position="first").iloc[-1]
        if by_means:  # the others are compared with the method of the best mean
            rows = compared[compared["method"].isin(compared["lead_over"].mode())]
            leader = (compared if rows.empty else rows).sort_values("lead").iloc[-1]
    row = dict[Any, Any](leader)
    marked = f"{row['method']}{' (baseline)' if row['baseline'] else ''}"
    size, low, high = row["lead"], row["lead_low"], row["lead_high"]
    better = "better"
    if size < 0:
        size, low, high, better = -size, -high, -low, "worse"
    interval = "" if np.isnan(low) else f" [{number(low)}, {number(high)}]"
    means = f"mean {better} by {number(size)}{interval} than {row['lead_over']}"
    if is_untested(compared):
        return LeadCell("not tested", marked, means, f"{marked}: {means}; {UNTESTED_NOTE}")
    if by_means and row["lead"] < 0:  # scores are missing, so that means are of other images
        text = f"{marked} has the best mean, but {row['lead_over']} is better on the same images, by {number(size)}"
        return LeadCell("no", text, "", text)
    verdict = ("baseline" if row["baseline"] else "yes") if significant else "no"
    p = "not tested against all methods" if np.isnan(row["lead_p"]) else p_text(row["lead_p"])
    if by_means:
        test, means = f"{marked}: {means}, {p}", ""
    else:
        others = compared[compared["method"] != row["method"]].set_index("method")["win_rate"]
        second = f"{others.idxmax()} {percent(others.max())}"
        test = f"{marked}: win rate {percent(row['win_rate'])}, {second}, {p}"
        means = f"without a test: {means}"
    is_better = "significantly better than every other method" if significant else "not significantly better"
    note = "; ".join(filter(None, [test, means, f"it is {is_better} (p is adjusted for all comparisons)"]))
    return LeadCell(verdict, test, means, note)


def _alpha_cell(row: Mapping[str, Any] | None) -> AlphaCell | None:
    if row is None:
        return None
    if np.isnan(row["alpha"]):
        return AlphaCell("", alpha_words(row))
    interval = f"too few {units_text(row)} for a CI"
    if not np.isnan(row["alpha_low"]):
        interval = f"[{two(row['alpha_low'])}, {two(row['alpha_high'])}]"
    concordance = concordance_text(row)
    note = f"{interval}; {concordance} decides" if concordance else interval
    decides = concordance.partition(" [")[0]
    return AlphaCell(two(row["alpha"]), note, decides, round(100 * min(max(row["alpha"], 0), 1)))

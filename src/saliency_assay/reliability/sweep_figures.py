"""Figures of sweeps: scores over the values of a method's parameters, and ranks over those of a metric's."""

import json
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullLocator
from numpy import ndarray as Array

from saliency_assay.plotting.palette import BLACK, CYCLE, SHAPES, looks
from saliency_assay.plotting.style import set_logarithmic
from saliency_assay.plotting.text import better, groups_text, span_text, with_minus_signs
from saliency_assay.registry.directions import Direction
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.registry.sweeps import Family, Value, value_text, values_text
from saliency_assay.reliability.comparison import WINS
from saliency_assay.reliability.figures import scored_names
from saliency_assay.reliability.sweeps import SELECTED, SELECTION_IMAGES

MOST_PANELS = 12
COLUMNS = 3
WIDE = 10.0
"""Ratio of the largest to the smallest value of a parameter from which its axis is logarithmic."""
GAP = 0.025
"""Distance of lines at one value, as a share of the range of the axis."""
BAND = 0.5
"""Largest width of all bands at one value, as a share of the distance of values."""
RING: dict[str, Any] = {
    "marker": "o",
    "markersize": 13,
    "markerfacecolor": "none",
    "linestyle": "",
    "color": BLACK,
    "zorder": 5,
}


def sweep_figure(table: pd.DataFrame, family: Family, labels: Labels = UNLABELED) -> Figure:
    """Plot the mean scores of a family's members over their parameter, with intervals: a panel for each score.

    Args:
        table: result of ``reliability.sweeps.sweep_table`` for one set and model.
        family: the family of methods.
        labels: labels of scores.
    """
    table = table[table["family"] == family.name]
    names = list(scored_names(table, labels, most=MOST_PANELS))[:MOST_PANELS]
    figure, panels = _panels(len(names), 2.9)
    for axes, (metric, variant) in zip(panels, names, strict=True):
        rows = table[(table["metric"] == metric) & (table["variant"] == variant)]
        plot_sweep(axes, rows, family)
        axes.set_title(labels.score(metric, variant), fontsize=10)
    handles = [*_lines(family), Line2D([], [], **RING, label="selected")]
    over = f"{span_text(table['images'])} images{groups_text(table.get('groups', ()))}"
    title = f"{family.label}: {over}; the best value is selected on"
    title += f" {span_text(table[SELECTION_IMAGES])} of them"
    figure.legend(handles=handles, title=title, loc="outside upper center", ncols=len(handles))
    return figure


def plot_sweep(axes: Axes, rows: pd.DataFrame, family: Family) -> None:
    """Plot the mean scores of a family's members under one score over the parameter with the most values.

    Args:
        axes: axes of the plot.
        rows: rows of ``sweep_table`` of one family, metric and variant.
        family: the family of methods.
    """
    parameter = family.parameters[0]
    values = [json.loads(text) for text in rows["values"]]
    places = _positions(axes, [each[parameter] for each in values])
    positions = dict(zip(rows["method"], places, strict=True))
    lines = _look(family)
    for index, (others, look) in enumerate(lines.items()):
        of_line = rows[[_others(each, parameter) == others for each in values]]
        of_line = of_line.assign(x=of_line["method"].map(positions)).sort_values("x")
        x = _shifted(axes, of_line["x"].to_numpy(), GAP * (index - (len(lines) - 1) / 2))
        ends = np.abs(of_line[["low", "high"]].to_numpy().T - of_line["mean"].to_numpy())
        label = others or family.label
        axes.errorbar(x, of_line["mean"], ends, label=label, capsize=3, markersize=5, **look)
        selected = of_line[SELECTED].to_numpy(bool)
        axes.plot(x[selected], of_line["mean"][selected], **RING)
    axes.margins(x=0.1)
    axes.set_xlabel(parameter.replace("_", " "))
    axes.set_ylabel(f"mean, 95 % CI\n{better(str(rows['direction'].iloc[0]))}")


def rank_sweep_figure(
    order: pd.DataFrame, agreement: pd.DataFrame, family: Family, labels: Labels = UNLABELED
) -> Figure:
    """Plot the ranks of methods over the members of a family of metrics, with rank sets as bands.

    Args:
        order: result of ``reliability.order_tables.order_tables`` for one set and model.
        agreement: result of ``reliability.metric_sweeps.metric_sweep_table`` for the same.
        family: the family of metrics.
        labels: labels of methods and scores.
    """
    order = scores_of_family(order, family)
    names = list(dict.fromkeys(zip(order["metric"], order["sub_variant"], strict=True)))
    if len(names) > MOST_PANELS:
        names = list({metric: (metric, sub_variant) for metric, sub_variant in names}.values())[:MOST_PANELS]
    methods = list(dict.fromkeys(order["method"]))
    figure, panels = _panels(len(names), 1.6 + 0.28 * len(methods))
    for axes, (metric, sub_variant) in zip(panels, names, strict=True):
        rows = order[(order["metric"] == metric) & (order["sub_variant"] == sub_variant)]
        plot_rank_sweep(axes, rows, family, labels)
        of_score = agreement[
            (agreement["family"] == family.name)
            & (agreement["metric"] == metric)
            & (agreement["sub_variant"].fillna("") == sub_variant)
        ]
        title = score_title(rows, family, labels)
        axes.set_title(f"{title}\n{agreement_text(of_score)}", fontsize=9)
    handles = [
        Line2D([], [], **look.line(), label=labels.method(method))
        for method, look in looks(methods, labels).items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 3 * len(panels)))
    return figure


def scores_of_family(order: pd.DataFrame, family: Family) -> pd.DataFrame:
    """Return the rows of a family of metrics in ``order_tables``, with the columns ``entry`` and ``sub_variant``.

    The score of a custom metric, which has the name of its entry, has that of the family.
    """
    parts = order["variant"].str.partition(" ")
    metric = order["metric"].where(order["metric"] != parts[0], family.name)
    rows = order.assign(entry=parts[0], sub_variant=parts[2], metric=metric)
    return rows[parts[0].isin(list(family.members))]


def score_title(rows: pd.DataFrame, family: Family, labels: Labels = UNLABELED) -> str:
    """Return the label of the score of rows of ``scores_of_family``, without the values of the parameters."""
    metric, variant, entry = (str(rows[name].iloc[0]) for name in ("metric", "variant", "entry"))
    is_custom = metric not in labels.scores
    label, values = labels.score(entry if is_custom else metric, variant), values_text(family.members[entry])
    for text in (f" ({values})", f", {values}", f"{values}, "):
        label = label.replace(text, "")
    return label


def plot_rank_sweep(axes: Axes, rows: pd.DataFrame, family: Family, labels: Labels = UNLABELED) -> None:
    """Plot the ranks of methods under one score of the members of a family of metrics, with rank sets as bands.

    Args:
        axes: axes of the plot.
        rows: rows of ``order_tables`` of one score and sub-variant, with the member in the column ``entry``.
        family: the family of metrics.
        labels: labels of methods.
    """
    members = [member for member in family.members if member in set(rows["entry"])]
    places = {member: place for place, member in enumerate(members)}
    rows = rows.assign(place=rows["entry"].map(places), rank=ranks_in(rows)).sort_values(
        "place", kind="stable"
    )
    methods = list(dict.fromkeys(rows["method"]))
    for index, (method, look) in enumerate(looks(methods, labels).items()):
        of_method = rows[(rows["method"] == method) & rows["rank"].notna()]
        x = of_method["place"] + BAND * ((index + 0.5) / len(methods) - 0.5)
        bands: dict[str, Any] = {"color": look.color, "alpha": 0.35, "linewidth": max(2, 24 / len(methods))}
        axes.vlines(x, of_method["rank_low"] - 0.2, of_method["rank_high"] + 0.2, **bands)
        axes.plot(x, of_method["rank"], **look.line(), markersize=5, label=labels.method(method))
    texts = [values_text(family.members[member]) for member in members]
    common = family.parameters[0].replace("_", " ") if len(family.parameters) == 1 else ""
    axes.set_xticks(
        range(len(members)), [text.removeprefix(f"{common} ").replace(", ", "\n") for text in texts]
    )
    axes.set_xlim(-0.5, len(members) - 0.5)
    axes.set_xlabel(common)
    axes.set_ylim(len(methods) + 0.5, 0.5)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("rank (1 is best)\nand rank set (95 %)")


def ranks_in(rows: pd.DataFrame) -> "pd.Series[float]":
    """Return the rank of each method among those of its entry, by what decides rank sets: win rates or means."""
    is_wins = (rows["ranked_by"] == WINS).all()
    direction = Direction(str(rows["direction"].iloc[0]))
    values = (
        rows["win_rate"] if is_wins else pd.Series(direction.oriented(rows["mean"].to_numpy()), rows.index)
    )
    return values.groupby(rows["entry"]).rank(ascending=False, method="min").where(rows["rank_low"].notna())


def agreement_text(rows: pd.DataFrame) -> str:
    """Return the smallest agreement of two members and, of the two with the most, the number of pairs that flip."""
    records = [row for row in rows.to_dict("records") if not np.isnan(row["rho"])]
    if not records:
        return "fewer than three methods to compare"
    least = min(records, key=lambda row: float(row["rho"]))
    ends = f" [{least['rho_low']:.2f}, {least['rho_high']:.2f}]" if not np.isnan(least["rho_low"]) else ""
    most = max(records, key=lambda row: int(row["flips"]))
    of_pairs = f"most flips: {most['flips']} of {most['distinguishable']} distinguishable pairs"
    return with_minus_signs(f"smallest ρ = {least['rho']:.2f}{ends}\n{of_pairs}")


def _panels(count: int, height: float) -> tuple[Figure, list[Axes]]:
    columns = min(COLUMNS, max(count, 1))
    rows = max(ceil(count / columns), 1)
    figure = Figure(figsize=(3.7 * columns + 0.8, height * rows + 0.8))
    panels = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axes in panels[count:]:
        axes.set_visible(False)
    return figure, panels[:count]


def _positions(axes: Axes, values: list[Value]) -> list[float]:
    """Return the position of each value on the horizontal axis, whose ticks are the values."""
    distinct = {value_text(value): value for value in values}
    numbers = [
        value for value in distinct.values() if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    if len(numbers) < len(distinct):
        places = {text: float(place) for place, text in enumerate(distinct)}
        axes.set_xlim(-0.5, len(distinct) - 0.5)
    else:
        places = {text: float(value) for text, value in zip(distinct, numbers, strict=True)}
        if min(numbers) > 0 and max(numbers) >= WIDE * min(numbers):
            set_logarithmic(axes, "x")
            axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(list(places.values()), list(places))
    return [places[value_text(value)] for value in values]


def _shifted(axes: Axes, x: Array, share: float) -> Array:
    """Return positions moved by a share of their range, so that the intervals of several lines do not overlap."""
    is_log = axes.get_xscale() == "log"
    shifted: Array = x * (x.max() / x.min()) ** share if is_log else x + share * np.ptp(x)
    return shifted


def _others(values: dict[str, Value], parameter: str) -> str:
    """Return the values of all parameters but one, which a line has in common."""
    return values_text({key: value for key, value in values.items() if key != parameter})


def _look(family: Family) -> dict[str, dict[str, Any]]:
    """Return color and marker of each line by the values of its other parameters."""
    parameter = family.parameters[0]
    names = dict.fromkeys(_others(dict(values), parameter) for values in family.members.values())
    shapes = list(SHAPES.values())
    return {
        name: {"color": CYCLE[index % len(CYCLE)], "marker": shapes[index % len(shapes)]}
        for index, name in enumerate(names)
    }


def _lines(family: Family) -> list[Line2D]:
    return [Line2D([], [], **look, label=name or family.label) for name, look in _look(family).items()]

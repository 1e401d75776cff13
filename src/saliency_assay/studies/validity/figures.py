"""Figure of a validity study: reliability of every score against its agreement with the known order."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray as Array

from saliency_assay.plotting.palette import BLUE, GRAY, ORANGE
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.registry.properties import PROPERTIES
from saliency_assay.studies.validity.validity_tables import AGREES, is_usable

ROW, PANEL = 0.19, 3.6  # inches: height of a name, and least height of a panel


def validity_scatter(table: pd.DataFrame, level: float, labels: Labels = UNLABELED) -> Figure:
    """Plot ρ with the known order against Krippendorff's α: a panel for each property, a number for each score.

    Args:
        table: see ``tables.recommendations_table``.
        level: level of the intervals of α.
        labels: labels of the scores.
    """
    plotted = table[table["rho"].notna() & table["alpha"].notna()]
    present = [name for name in PROPERTIES if (plotted["measures"] == name).any()]
    heights = [max(PANEL, ROW * (plotted["measures"] == name).sum() + 0.6) for name in present] or [PANEL]
    figure = Figure(figsize=(9.5, sum(heights)))
    panels = figure.subplots(len(heights), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
    for axes, name in zip(panels, present, strict=False):
        _panel(axes, plotted[plotted["measures"] == name], labels)
        axes.set_title(f"{name}: {PROPERTIES[name]}", fontsize=10, loc="left")
        axes.set_ylabel("ρ with the known order of degraded maps\nhigher is better →")
    panels[-1].set_xlabel(
        f"Krippendorff's α of the ranks of methods (higher is better →), with {100 * level:g} % intervals;"
        " vertical: 95 % intervals"
    )
    missing = len(table) - len(plotted)
    if missing:
        figure.text(
            0.01, 0.0, f"not shown, because α or ρ is not defined: {missing} scores", fontsize=8, va="bottom"
        )
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, labels: Labels) -> None:
    rows = rows.sort_values("rho", ascending=False, kind="stable")
    x = rows["alpha"].to_numpy()
    for number, row in enumerate((row for _, row in rows.iterrows()), start=1):
        usable = is_usable(row["verdict"])
        color = BLUE if usable else ORANGE
        axes.errorbar(
            row["alpha"],
            row["rho"],
            xerr=_lengths(row, "alpha"),
            yerr=_lengths(row, "rho"),
            fmt="o" if usable else "s",
            color=color,
            markersize=5,
            elinewidth=0.6,
        )
        axes.annotate(str(number), (row["alpha"], row["rho"]), (4, 3), textcoords="offset points", fontsize=8)
    names = [
        f"{number}  {labels.score(row['metric'], row['variant'])}{'' if is_usable(row['verdict']) else ' *'}"
        for number, row in enumerate((row for _, row in rows.iterrows()), start=1)
    ]
    axes.text(1.02, 1, "\n".join(names), transform=axes.transAxes, va="top", fontsize=8, linespacing=1.35)
    for line in (axes.axhline, axes.axvline):
        line(0, color=GRAY, linewidth=0.8, linestyle="--")
    low, high = min(0.0, float(x.min())) - 0.05, max(0.3, float(x.max())) + 0.08
    axes.set_xlim(min(low, axes.get_xlim()[0]), max(high, axes.get_xlim()[1]))
    axes.axhline(AGREES, color=GRAY, linewidth=0.8, linestyle=":")
    bottom, top = axes.get_ylim()
    axes.set_ylim(min(-0.1, bottom), max(AGREES + 0.05, top))
    axes.grid(visible=True, axis="both")


def _lengths(row: "pd.Series[Any]", name: str) -> Array:
    """Return the lengths of error bars below and above a point ``[2, 1]``; 0 without an interval."""
    ends = np.array([row[name] - row[f"{name}_low"], row[f"{name}_high"] - row[name]])
    lengths: Array = np.nan_to_num(ends).clip(0).reshape(2, 1)
    return lengths

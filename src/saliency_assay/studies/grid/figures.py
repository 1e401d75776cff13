"""Figures of grid studies: boxes of localization scores, and aggregated maps."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from numpy import ndarray as Array

from saliency_assay.plotting.gallery import bare, show_map
from saliency_assay.plotting.palette import BLUE, GRAY, SKY
from saliency_assay.plotting.text import span_text
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.studies.grid.grid_tables import BINS, QUANTILES

ENDS = ("whislo", "q1", "med", "q3", "whishi")
MEAN: dict[str, Any] = {"marker": "D", "color": "black", "markersize": 4, "linestyle": "none"}
UNIFORM: dict[str, Any] = {"color": GRAY, "linestyle": "--", "linewidth": 1}
BRIGHTEST = 99.5
"""Percentile of all aggregated maps of a method that is the brightest color, as in the authors' program."""


def localization_boxes(table: pd.DataFrame, *, cells: int, labels: Labels = UNLABELED) -> Figure:
    """Plot boxes of localization scores by method, a panel for each setting: Rao et al. (2022), Figs. 4 and 5.

    Args:
        table: from ``grid_tables.localization_table``.
        cells: images in a row of a grid.
        labels: labels of methods and scores.
    """
    settings, methods = (list(dict.fromkeys(table[name])) for name in ("metric", "method"))
    figure = Figure(figsize=(1.8 + 3.2 * len(settings), 0.3 * len(methods) + 1.6))
    panels = figure.subplots(1, len(settings), squeeze=False, sharey=True)[0]
    for axes, setting in zip(panels, settings, strict=True):
        rows = table[table["metric"] == setting].set_index("method").reindex(methods).reset_index()
        scored = rows.dropna(subset=["median"])
        axes.axvline(1 / cells**2, **UNIFORM)
        axes.bxp(
            [dict(zip(ENDS, values, strict=True)) for values in scored[list(QUANTILES)].to_numpy()],
            positions=scored.index.to_numpy(),
            orientation="horizontal",
            widths=0.6,
            showfliers=False,
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": SKY, "edgecolor": BLUE, "alpha": 0.6},
            medianprops={"color": BLUE, "linewidth": 1.6},
        )
        # Rounding may put an end on the wrong side of the mean; a mean without an interval has NaN, and no bar.
        ends = np.array([scored["mean"] - scored["low"], scored["high"] - scored["mean"]]).clip(0)
        axes.errorbar(scored["mean"], scored.index, xerr=ends, elinewidth=1.2, **MEAN)
        for place in rows.index[rows["median"].isna()]:
            axes.text(0.5, place, "×", ha="center", va="center")
        axes.set_xlim(-0.03, 1.03)
        axes.set_title(labels.score(setting), fontsize=10)
        counts = span_text(scored["images"].tolist() or [0])
        axes.set_xlabel(f"higher is better →\nn = {counts} maps")
    panels[0].set_yticks(range(len(methods)), [labels.method(method) for method in methods])
    panels[0].set_ylim(len(methods) - 0.5, -0.5)
    handles = [
        Patch(facecolor=SKY, edgecolor=BLUE, label="quartiles and median; whiskers: 5–95 %"),
        Line2D([], [], label="mean with 95 % interval", **MEAN),
        Line2D([], [], label=f"uniform map: {1 / cells**2:.3g}", **UNIFORM),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9)
    return figure


def aggregated_maps(maps: Mapping[str, Array], cells: int, labels: Labels = UNLABELED) -> Figure:
    """Plot AggAtt of each method, ``[B, h, w]``, a row for each, with the outline of the explained, first cell.

    Rao et al. (2022), Fig. 6. The brightest color is the 99.5th percentile of the maps of a method.
    """
    columns = len(BINS) - 1
    figure = Figure(figsize=(1.9 + 1.15 * columns, 1.15 * len(maps) + 0.5))
    grid = figure.subplots(len(maps), columns, squeeze=False)
    for row, (method, bins) in zip(grid, maps.items(), strict=True):
        defined = bins[np.isfinite(bins)]
        brightest = np.percentile(defined, BRIGHTEST) if len(defined) else 0.0
        for axes, aggregated in zip(row, bins, strict=True):
            show_map(axes, np.clip(aggregated / brightest, 0, 1) if brightest > 0 else np.nan * aggregated)
            high, wide = (side / cells for side in aggregated.shape)
            axes.add_patch(
                Rectangle((-0.5, -0.5), wide, high, edgecolor=SKY, facecolor="none", linewidth=1.4)
            )
        row[0].set_ylabel(labels.method(method), rotation=0, ha="right", va="center", fontsize=9)
    for axes, low, high in zip(grid[0], BINS[:-1], BINS[1:], strict=True):
        axes.set_title(f"{100 * low:g}–{100 * high:g} %", fontsize=9)
    bare(figure)
    return figure

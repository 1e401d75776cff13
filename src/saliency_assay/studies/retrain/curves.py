"""Curves of the retrain study: accuracy against the occluded share, and overlap of masks by iteration."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy import ndarray as Array

from saliency_assay.plotting.style import BLUE, GRAY, GREEN, ORANGE, PURPLE, SKY, VERMILION, line_styles
from saliency_assay.plotting.text import NO_SCORE, span_text
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.studies.retrain.tables import OVERLAPS, by_iteration, expected, named

WIDTH = 10.4  # inches: the report's 1,000 pixels
PANEL = 3.2  # inches, height of a row of panels
LINE = 0.19  # inches, height of a line of the legend
LETTERS_AN_INCH = 12
COLORS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY)
LINES = ("-", "-.", ":")  # dashes are used for baseline methods
BASELINE_STYLES: dict[str, dict[str, Any]] = {
    "random": {"color": GRAY, "linestyle": "--", "marker": "x"},
    "edge": {"color": "black", "linestyle": "--", "marker": "+"},
}
method_styles = partial(line_styles, colors=COLORS, lines=LINES, fixed=BASELINE_STYLES)
CHANCE: dict[str, Any] = {"color": "black", "linewidth": 1, "linestyle": (0, (1, 3))}
RANDOM: dict[str, Any] = {"color": GRAY, "linewidth": 6, "alpha": 0.35, "solid_capstyle": "butt"}
MOST: dict[str, Any] = {"color": "black", "linewidth": 1, "linestyle": ":"}
ACROSS = {
    "nominal": "nominally occluded,\ni·k / A (% of pixels)",
    "measured": r"occluded in $D_i$ (measured),"
    "\nmean CMA / A (% of pixels)",
}
MEANINGS = {
    "mmo": r"MMO: overlap of $\bar{m}_i$ and $\bar{m}_{i+1}$"
    "\n(% of a mask's k pixels)",
    "mamo": r"MAMO: $\bar{m}_0$ to $\bar{m}_i$ with $\bar{m}_{i+1}$"
    "\n(% of a mask's k pixels)",
    "cma": r"CMA: area of $\bar{m}_0$ to $\bar{m}_i$"
    "\n(% of the image's A pixels)",
}


def accuracy_curves(
    means: pd.DataFrame,
    *,
    area: int,
    occluded: int,
    iterations: int,
    classes: int,
    labels: Labels = UNLABELED,
) -> Figure:
    """Plot test accuracy of f_i against the share of pixels occluded in D_i, one panel per protocol and fill.

    Lines are means over seeds, bands their range. The nominal share is i·k/A; where masks overlap, fewer pixels are
    occluded, and additional panels plot the accuracy against the measured share.

    ``means`` are the study's ``tables.means``; for the other arguments see ``tables.summary``.

    Raises:
        ValueError: see ``tables.by_iteration``.
    """
    rows = by_iteration(means, iterations)
    accuracy_rows = rows[rows["metric"] == "accuracy"]
    accuracy = accuracy_rows.assign(
        score=100 * accuracy_rows["score"], nominal=100 * accuracy_rows["iteration"] * occluded / area
    )
    accuracy["measured"] = _measured_shares(accuracy, rows, area)
    panels = [
        (across, str(protocol), str(fill))
        for protocol, protocol_rows in accuracy.groupby("protocol", sort=False)
        for across in ("nominal", "measured")
        if across == "nominal" or _shares_differ(protocol_rows)
        for fill in accuracy["fill"].unique()
    ]
    figure, grid = _grid(len(panels), columns=_column_count(len(panels), accuracy["fill"].nunique()))
    styles = method_styles(list(rows["method"].unique()))
    for axes, (across, protocol, fill) in zip(grid, panels, strict=True):
        panel_rows = accuracy[(accuracy["protocol"] == protocol) & (accuracy["fill"] == fill)]
        _plot_lines(axes, panel_rows, styles, across)
        axes.axhline(100 / classes, **CHANCE)
        axes.set_title(named(protocol, fill), fontsize=10)
        axes.set_xlabel(ACROSS[across], fontsize=9)
        axes.set_ylabel(r"test accuracy of $f_i$ (%)", fontsize=9)
    upper_limit = min(102.0, 1.06 * float(accuracy["score"].max()))
    figure.axes[0].set_ylim(0, max(upper_limit, 110 / classes))
    chance = Line2D([], [], label=f"chance: {100 / classes:.3g} %", **CHANCE)
    _add_legend(figure, _labeled(styles, labels), [chance], _legend_title(accuracy_rows, area, occluded))
    return figure


def _measured_shares(accuracy: pd.DataFrame, rows: pd.DataFrame, area: int) -> Array:
    """Return, by row of ``accuracy``, the share of pixels (%) occluded in its seed's D_i: CMA of iteration i − 1."""
    keys = ["protocol", "fill", "method", "seed", "iteration"]
    occluded_areas = rows[rows["metric"] == "cma"].assign(iteration=lambda table: table["iteration"] + 1)
    areas = occluded_areas.set_index(keys)["score"].reindex(pd.MultiIndex.from_frame(accuracy[keys]))
    return np.where(accuracy["iteration"] == 0, 0.0, 100 * areas.to_numpy() / area)


def _shares_differ(accuracy: pd.DataFrame) -> bool:
    """Return True if nominal and measured shares differ by more than rounding."""
    shares = accuracy[["nominal", "measured"]].dropna()
    return not np.allclose(shares["nominal"], shares["measured"], rtol=0, atol=1e-6)


def overlap_curves(
    means: pd.DataFrame, *, area: int, occluded: int, iterations: int, labels: Labels = UNLABELED
) -> Figure:
    """Plot MMO, MAMO and CMA by iteration, in columns, one row per protocol and fill.

    Lines are means over images and seeds, bands the range of seeds. The wide gray line is the expectation for
    independent random masks; the dotted line is (i + 1)·k, the CMA of disjoint masks, which ends at ρA.

    ``means`` are the study's ``tables.means``; for the other arguments see ``tables.summary``.

    Raises:
        ValueError: see ``tables.by_iteration``.
    """
    rows = by_iteration(means, iterations)
    rows = rows[rows["metric"].isin(OVERLAPS)]
    arms = rows[["protocol", "fill"]].drop_duplicates().itertuples(index=False, name=None)
    panels = [(protocol, fill, metric) for protocol, fill in arms for metric in OVERLAPS]
    figure, grid = _grid(len(panels), columns=len(OVERLAPS), share="col")
    styles = method_styles(list(means["method"].unique()))
    for axes, (protocol, fill, metric) in zip(grid, panels, strict=True):
        panel_rows = rows[
            (rows["protocol"] == protocol) & (rows["fill"] == fill) & (rows["metric"] == metric)
        ]
        denominator = area if metric == "cma" else occluded
        panel_rows = panel_rows.assign(score=100 * panel_rows["score"] / denominator)
        last = iterations - (1 if metric == "cma" else 2)
        _plot_references(axes, metric, last, area=area, occluded=occluded)
        _plot_lines(axes, panel_rows, styles, "iteration")
        axes.set_title(named(protocol, fill), fontsize=10)
        axes.set_xlabel("iteration i", fontsize=9)
        axes.set_ylabel(MEANINGS[metric], fontsize=9)
        axes.set_xlim(-0.5, max(last, 0) + 0.5)
        axes.set_xticks(range(0, last + 1, max(1, last // 5)))
    for axes in grid[: len(OVERLAPS)]:  # after everything on the shared axis is plotted
        axes.set_ylim(0, 1.06 * axes.get_ylim()[1])
    references = [
        Line2D([], [], label="expected of random masks", **RANDOM),
        Line2D([], [], label="no overlap: (i + 1)·k", **MOST),
    ]
    _add_legend(figure, _labeled(styles, labels), references, _legend_title(rows, area, occluded))
    return figure


def _plot_references(axes: Axes, metric: str, last: int, *, area: int, occluded: int) -> None:
    """Plot the expected values of random masks at iterations 0 … last, and for CMA the maximum."""
    denominator = area if metric == "cma" else occluded
    steps = np.arange(last + 1)
    random = np.array([expected(metric, int(i), area=area, occluded=occluded) for i in steps]) / denominator
    maximum = (steps + 1) * occluded / area
    if len(steps) == 1:  # a line of one point would be invisible
        steps, random, maximum = steps[0] + np.array([-0.4, 0.4]), random.repeat(2), maximum.repeat(2)
    axes.plot(steps, 100 * random, **RANDOM)
    if metric == "cma":
        axes.plot(steps, 100 * maximum, **MOST)


def _column_count(panels: int, fills: int) -> int:
    return fills if fills > 1 else min(panels, 3)


def _grid(panels: int, *, columns: int, share: Any = True) -> tuple[Figure, list[Axes]]:
    lines = -(-panels // columns)
    width = WIDTH if columns > 1 else 0.7 * WIDTH
    figure = Figure(figsize=(width, PANEL * lines))
    grid = figure.subplots(lines, columns, squeeze=False, sharey=share).flat[:]
    for axes in grid:
        axes.tick_params(labelleft=True, labelsize=9)
    for axes in grid[panels:]:
        axes.set_visible(False)
    return figure, list(grid[:panels])


def _plot_lines(axes: Axes, table: pd.DataFrame, styles: dict[str, dict[str, Any]], x_column: str) -> None:
    """Plot each method's mean ``score`` over seeds against the mean of the column ``x_column``, by iteration."""
    if table.empty:
        axes.text(0.5, 0.5, NO_SCORE, transform=axes.transAxes, ha="center", va="center")
    for method, style in styles.items():
        method_rows = table[table["method"] == method]
        if method_rows.empty:
            continue
        by_seed = method_rows.groupby("iteration")
        x = by_seed[x_column].mean() if x_column != "iteration" else sorted(method_rows["iteration"].unique())
        scores = by_seed["score"].agg(["mean", "min", "max"])
        axes.plot(x, scores["mean"], linewidth=1.5, markersize=5, **style)
        if method_rows["seed"].nunique() > 1:
            axes.fill_between(x, scores["min"], scores["max"], color=style["color"], alpha=0.15, linewidth=0)


def _legend_title(rows: pd.DataFrame, area: int, occluded: int) -> str:
    """Return the meaning of lines and bands, the number of images and seeds, and the size of a mask."""
    seeds = rows["seed"].nunique()
    spread = f"mean and range of {seeds} seeds" if seeds > 1 else "one seed (no band)"
    images = rows.loc[rows["images"] > 0, "images"].tolist()
    images_text = f"n = {span_text(images)} test images"
    return f"{spread}; {images_text}; masks of k = {occluded:,} of A = {area:,} pixels"


def _labeled(styles: dict[str, dict[str, Any]], labels: Labels) -> dict[str, dict[str, Any]]:
    return {labels.method(method): style for method, style in styles.items()}


def _add_legend(
    figure: Figure, styles: dict[str, dict[str, Any]], extra: Sequence[Artist], title: str
) -> None:
    """Add a legend of methods and references below the panels, with a title; the figure grows by its height."""
    handles: list[Artist] = [
        Line2D([], [], markersize=5, label=name, **style) for name, style in styles.items()
    ]
    handles += extra
    longest = max(len(str(handle.get_label())) for handle in handles) + 6
    columns = max(1, min(len(handles), int(LETTERS_AN_INCH * figure.get_figwidth()) // longest))
    figure.set_figheight(figure.get_figheight() + LINE * (1 + -(-len(handles) // columns)))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=columns,
        fontsize=9,
        handlelength=3,
        title=title,
        title_fontsize=9,
    )

"""Curves of the retrain study: accuracy against what is occluded, and the overlap of masks by iteration."""

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

from saliency_assay.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, looks_of
from saliency_assay.plotting.text import NO_SCORE, readable, span_text
from saliency_assay.studies.retrain.tables import OVERLAPS, by_iteration, expected, named

WIDTH = 10.4  # inches: the report's 1,000 pixels
PANEL = 3.2
LINE = 0.19
LETTERS_AN_INCH = 12
COLOURS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY)
LINES = ("-", "-.", ":")  # dashes are the controls'
CONTROLS: dict[str, dict[str, Any]] = {
    "random": {"color": GREY, "linestyle": "--", "marker": "x"},
    "edge": {"color": "black", "linestyle": "--", "marker": "+"},
}
looks = partial(looks_of, colors=COLOURS, lines=LINES, fixed=CONTROLS)
CHANCE: dict[str, Any] = {"color": "black", "linewidth": 1, "linestyle": (0, (1, 3))}
RANDOM: dict[str, Any] = {"color": GREY, "linewidth": 6, "alpha": 0.35, "solid_capstyle": "butt"}
MOST: dict[str, Any] = {"color": "black", "linewidth": 1, "linestyle": ":"}
ACROSS = {
    "nominal": "occluded if masks did not overlap,\ni·k / A (% of pixels)",
    "measured": r"occluded in $D_i$ as measured,"
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
    means: pd.DataFrame, *, area: int, occluded: int, iterations: int, classes: int
) -> Figure:
    """Test accuracy of f_i against the share of pixels that D_i lacks, a panel for each protocol and fill.

    Lines are means over seeds, bands their range. The share is i·k/A; where masks overlap D_i lacks fewer, and further
    panels show the accuracy against what it really lacks.

    ``means`` are the study's ``tables.means``; for the other arguments see ``tables.summary``.

    Raises:
        ValueError: see ``tables.by_iteration``.
    """
    rows = by_iteration(means, iterations)
    counted = rows[rows["metric"] == "accuracy"]
    accuracy = counted.assign(
        score=100 * counted["score"], nominal=100 * counted["iteration"] * occluded / area
    )
    accuracy["measured"] = _measured(accuracy, rows, area)
    panels = [
        (across, str(protocol), str(fill))
        for protocol, of_protocol in accuracy.groupby("protocol", sort=False)
        for across in ("nominal", "measured")
        if across == "nominal" or _apart(of_protocol)
        for fill in accuracy["fill"].unique()
    ]
    figure, grid = _grid(len(panels), columns=_columns(len(panels), accuracy["fill"].nunique()))
    of_methods = looks(list(rows["method"].unique()))
    for axes, (across, protocol, fill) in zip(grid, panels, strict=True):
        here = accuracy[(accuracy["protocol"] == protocol) & (accuracy["fill"] == fill)]
        _lines(axes, here, of_methods, across)
        axes.axhline(100 / classes, **CHANCE)
        axes.set_title(named(protocol, fill), fontsize=10)
        axes.set_xlabel(ACROSS[across], fontsize=9)
        axes.set_ylabel(r"test accuracy of $f_i$ (%)", fontsize=9)
    top = min(102.0, 1.06 * float(accuracy["score"].max()))
    figure.axes[0].set_ylim(0, max(top, 110 / classes))
    chance = Line2D([], [], label=f"chance: {100 / classes:.3g} %", **CHANCE)
    _legend(figure, of_methods, [chance], _said(counted, area, occluded))
    return figure


def _measured(accuracy: pd.DataFrame, rows: pd.DataFrame, area: int) -> Array:
    """For each row of ``accuracy`` the share of pixels (%) that its seed's D_i lacks: CMA of iteration i − 1."""
    keys = ["protocol", "fill", "method", "seed", "iteration"]
    lacking = rows[rows["metric"] == "cma"].assign(iteration=lambda table: table["iteration"] + 1)
    found = lacking.set_index(keys)["score"].reindex(pd.MultiIndex.from_frame(accuracy[keys]))
    return np.where(accuracy["iteration"] == 0, 0.0, 100 * found.to_numpy() / area)


def _apart(accuracy: pd.DataFrame) -> bool:
    both = accuracy[["nominal", "measured"]].dropna()
    return not np.allclose(both["nominal"], both["measured"], rtol=0, atol=1e-6)


def overlap_curves(means: pd.DataFrame, *, area: int, occluded: int, iterations: int) -> Figure:
    """MMO, MAMO and CMA by iteration, in columns, a row for each protocol and fill.

    Lines are means over images and seeds, bands the range of seeds. The broad grey line is the expectation for
    independent random masks, the dotted one (i + 1)·k, the CMA of masks that never overlap, which ends at ρA.

    ``means`` are the study's ``tables.means``; for the other arguments see ``tables.summary``.

    Raises:
        ValueError: see ``tables.by_iteration``.
    """
    rows = by_iteration(means, iterations)
    rows = rows[rows["metric"].isin(OVERLAPS)]
    arms = rows[["protocol", "fill"]].drop_duplicates().itertuples(index=False, name=None)
    panels = [(protocol, fill, metric) for protocol, fill in arms for metric in OVERLAPS]
    figure, grid = _grid(len(panels), columns=len(OVERLAPS), share="col")
    of_methods = looks(list(means["method"].unique()))
    for axes, (protocol, fill, metric) in zip(grid, panels, strict=True):
        here = rows[(rows["protocol"] == protocol) & (rows["fill"] == fill) & (rows["metric"] == metric)]
        whole = area if metric == "cma" else occluded
        here = here.assign(score=100 * here["score"] / whole)
        last = iterations - (1 if metric == "cma" else 2)
        _references(axes, metric, last, area=area, occluded=occluded)
        _lines(axes, here, of_methods, "iteration")
        axes.set_title(named(protocol, fill), fontsize=10)
        axes.set_xlabel("iteration i", fontsize=9)
        axes.set_ylabel(MEANINGS[metric], fontsize=9)
        axes.set_xlim(-0.5, max(last, 0) + 0.5)
        axes.set_xticks(range(0, last + 1, max(1, last // 5)))
    for axes in grid[: len(OVERLAPS)]:  # once all that shares the axis is drawn
        axes.set_ylim(0, 1.06 * axes.get_ylim()[1])
    extra = [
        Line2D([], [], label="expected of random masks", **RANDOM),
        Line2D([], [], label="no overlap: (i + 1)·k", **MOST),
    ]
    _legend(figure, of_methods, extra, _said(rows, area, occluded))
    return figure


def _references(axes: Axes, metric: str, last: int, *, area: int, occluded: int) -> None:
    """What random masks would have at iterations 0 … last, and for CMA the most there can be."""
    whole = area if metric == "cma" else occluded
    across = np.arange(last + 1)
    random = np.array([expected(metric, int(i), area=area, occluded=occluded) for i in across]) / whole
    most = (across + 1) * occluded / area
    if len(across) == 1:  # a line of one point would not be seen
        across, random, most = across[0] + np.array([-0.4, 0.4]), random.repeat(2), most.repeat(2)
    axes.plot(across, 100 * random, **RANDOM)
    if metric == "cma":
        axes.plot(across, 100 * most, **MOST)


def _columns(panels: int, fills: int) -> int:
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


def _lines(axes: Axes, table: pd.DataFrame, of_methods: dict[str, dict[str, Any]], across: str) -> None:
    """For each method the mean ``score`` over seeds against the mean of the column ``across``, by iteration."""
    if table.empty:
        axes.text(0.5, 0.5, NO_SCORE, transform=axes.transAxes, ha="center", va="center")
    for method, style in of_methods.items():
        of_method = table[table["method"] == method]
        if of_method.empty:
            continue
        by_seed = of_method.groupby("iteration")
        x = by_seed[across].mean() if across != "iteration" else sorted(of_method["iteration"].unique())
        found = by_seed["score"].agg(["mean", "min", "max"])
        axes.plot(x, found["mean"], linewidth=1.5, markersize=5, **style)
        if of_method["seed"].nunique() > 1:
            axes.fill_between(x, found["min"], found["max"], color=style["color"], alpha=0.15, linewidth=0)


def _said(rows: pd.DataFrame, area: int, occluded: int) -> str:
    """What lines and bands are, of how many images and seeds, and how large a mask is."""
    seeds = rows["seed"].nunique()
    spread = f"mean and range of {seeds} seeds" if seeds > 1 else "one seed, so no band"
    images = rows.loc[rows["images"] > 0, "images"].tolist()
    counted = f"n = {span_text(images)} test images"
    return f"{spread}; {counted}; masks of k = {occluded:,} of A = {area:,} pixels"


def _legend(
    figure: Figure, of_methods: dict[str, dict[str, Any]], extra: Sequence[Artist], said: str
) -> None:
    """Methods and references below the panels, and what the lines are; the figure grows by what is written."""
    handles: list[Artist] = [
        Line2D([], [], markersize=5, label=readable(method), **style) for method, style in of_methods.items()
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
        title=said,
        title_fontsize=9,
    )

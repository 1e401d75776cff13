"""Figures of necessity and sufficiency: all four scores as boxes, and the areas behind TPN and TPS for one image."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy import ndarray as Array

from saliency_assay.plotting.metric_results import MetricResults
from saliency_assay.plotting.palette import BLUE, GRAY, VERMILION
from saliency_assay.plotting.text import NO_SCORE, significant
from saliency_assay.studies.fidelity.figures import BOX, box_panel, mark

CRITERIA = ("n_ord", "s_ord", "tpn", "tps")
SIDES = {"tpn": "necessity", "tps": "sufficiency"}
MOST_COLUMNS = 5
FIRST: dict[str, Any] = {"color": BLUE, "linestyle": "-"}
LAST: dict[str, Any] = {"color": VERMILION, "linestyle": "--"}


def necessity_sufficiency_boxes(results: MetricResults) -> Figure:
    """Plot N-Ord, S-Ord, TPN and TPS of images by method, each in its direction (Wang et al., 2020, Fig. 5)."""
    height = 0.36 * len(results.methods) + 2.1
    figure = Figure(figsize=(14, height))
    for axes, score in zip(figure.subplots(1, 4), CRITERIA, strict=True):
        rows, label, direction = results.rows(score, ""), results.axis(score), results.directions[score]
        box_panel(axes, rows, results.methods, label=label, direction=direction, names=results.names)
    mark(figure, Patch(**BOX), several_seeds=results.seeds > 1)
    return figure


def necessity_sufficiency_areas(results: MetricResults) -> Figure:
    """Plot the curve pairs of TPN and TPS with the area between them, for one image: Wang et al. (2020), Fig. 4.

    The image is the first for which most methods are defined. The printed area is not yet divided by r·y₀ (TPN) or
    r'·y₀ (TPS).
    """
    image_row = _first_defined(results)
    columns = min(len(results.methods), MOST_COLUMNS)
    blocks = -(-len(results.methods) // columns)
    figure = Figure(figsize=(max(2.5 * columns, 5.5) + 1.2, 4.3 * blocks + 1.0))
    grid = figure.subplots(2 * blocks, columns, squeeze=False, sharex=True, sharey=True)
    for axes in grid.flat[:]:
        axes.set_visible(False)
    for place, method in enumerate(results.methods):
        block, column = divmod(place, columns)
        for line, (score, side) in enumerate(SIDES.items()):
            axes = grid[2 * block + line, column]
            axes.set_visible(True)
            area = _plot_area(axes, results, method, score, image_row)
            area_text = NO_SCORE if area is None else f"area {significant(area, 3)}"
            name = results.names.method(method)
            axes.set_title(f"{name}\n{area_text}" if line == 0 else area_text, fontsize=9)
            if column == 0:
                axes.set_ylabel(f"{side}\noutput ({results.parameters['output']})")
                axes.tick_params(labelleft=True)
            if line == 1:
                axes.set_xlabel("positive attribution (%)", fontsize=8)
                axes.tick_params(labelbottom=True)
    handles = [
        Line2D([], [], label="strongest first", **FIRST),
        Line2D([], [], label="weakest first", **LAST),
        Patch(color=GRAY, alpha=0.35, label="area: TPN × r·y₀, TPS × r'·y₀"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, title=_image_text(results, image_row))
    return figure


def _curve_pair(results: MetricResults, method: str, score: str) -> tuple[Array, Array] | None:
    curves = results.curves.get(method, {})
    names = (f"{score}_first", f"{score}_last")
    return (curves[names[0]], curves[names[1]]) if all(name in curves for name in names) else None


def _first_defined(results: MetricResults) -> int:
    """Return the first row in which the most methods have all curves; 0 if none has."""
    counts: Array = np.zeros(1, dtype=np.int64)
    for method in results.methods:
        pairs = [pair for score in SIDES if (pair := _curve_pair(results, method, score)) is not None]
        if len(pairs) == len(SIDES):
            rows = np.concatenate([curve for pair in pairs for curve in pair], axis=1)
            counts = counts + np.isfinite(rows).all(axis=1)
    return int(np.argmax(counts))


def _plot_area(axes: Axes, results: MetricResults, method: str, score: str, row: int) -> float | None:
    """Plot two curves of one image and return the area between them, None if they are undefined."""
    curves = _curve_pair(results, method, score)
    if curves is None or not all(np.isfinite(curve[row]).all() for curve in curves):
        axes.text(0.5, 0.5, "×", transform=axes.transAxes, ha="center", va="center", fontsize=18)
        return None
    first, last = (curve[row] for curve in curves)
    share = np.linspace(0, 100, len(first))
    axes.fill_between(share, first, last, color=GRAY, alpha=0.35, linewidth=0)
    axes.plot(share, first, linewidth=1.5, **FIRST)
    axes.plot(share, last, linewidth=1.5, **LAST)
    return float(np.trapezoid(np.abs(first - last), share / 100))


def _image_text(results: MetricResults, row: int) -> str:
    """Return index, data set and seed of an image as text."""
    table = results.rows("tpn", "")
    method_rows = table[table["method"] == results.methods[0]]
    image_row = method_rows.iloc[row]
    seed = f", seed {image_row['seed']}" if results.seeds > 1 else ""
    return f"image {image_row['image']} of {results.names.data_set(str(image_row['data']))}{seed}"

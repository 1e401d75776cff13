"""Two metrics against each other: methods as points."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray as Array

from saliency_assay.plotting.statistics import mean_and_band
from saliency_assay.plotting.style import GREY, look, spread_out
from saliency_assay.plotting.text import NO_SCORE, readable, seeds_text, span_text

PANEL = 4.4  # inches
LOG_SPAN = 10.0  # points apart, not boxes that reach far
LEADER: dict[str, Any] = {
    **{"arrowstyle": "-", "color": GREY, "linewidth": 0.7},
    **{"relpos": (0, 0.5), "shrinkA": 14, "shrinkB": 4},
}
MARK: dict[str, Any] = {"markersize": 7, "markeredgecolor": "black", "markeredgewidth": 0.6}


def infidelity_sensitivity(scores: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> Figure:
    """INFD against SENS_MAX: a point for each method, with 95 % intervals of both means over images.

    Args:
        scores: score table rows with the scores ``infidelity`` and ``sensitivity_max``.
        pairs: the variants of both, such as ``("infidelity_square", "sensitivity_max")``; each pair is a panel.
    """
    methods = list(scores["method"].unique())
    seeds = scores["seed"].nunique()
    figure = Figure(figsize=(7.2 * len(pairs), max(PANEL, 0.3 * len(methods) + 1.4)))
    for axes, (infidelity, sensitivity) in zip(
        figure.subplots(1, len(pairs), squeeze=False).flat, pairs, strict=True
    ):
        up = _by_image(scores, "infidelity", infidelity)
        along = _by_image(scores, "sensitivity_max", sensitivity)
        _points(axes, methods, along, up)
        counts = [np.isfinite(values).sum() for found in (along, up) for values in found.values()]
        counted = span_text(int(count) for count in counts if count) if any(counts) else "0"
        axes.set_title(f"{readable(infidelity)} against {readable(sensitivity)}", fontsize=10)
        axes.set_xlabel(
            f"SENS_MAX\n← lower is better\nmeans with 95 % intervals, n = {counted} images{seeds_text(seeds)}"
        )
        axes.set_ylabel("INFD (squared logits)\n← lower is better")
        axes.grid(visible=True, axis="both")
    return figure


def _by_image(scores: pd.DataFrame, metric: str, variant: str) -> dict[str, Array]:
    """A method's scores of images, averaged over seeds."""
    rows = scores[(scores["metric"] == metric) & (scores["variant"] == variant)]
    means = rows.groupby(["method", "image"], sort=False)["score"].mean()
    return {str(method): of.to_numpy() for method, of in means.groupby(level="method", sort=False)}


def _points(axes: Axes, methods: Sequence[str], along: dict[str, Array], up: dict[str, Array]) -> None:
    """One marker a method, and its name in the margin at the end of a thin line."""
    nothing = np.full(1, np.nan)
    found = {
        method: (mean_and_band(along.get(method, nothing)), mean_and_band(up.get(method, nothing)))
        for method in methods
    }
    shown = {method: (x, y) for method, (x, y) in found.items() if np.isfinite(x[0]) and np.isfinite(y[0])}
    for method, (x, y) in shown.items():
        axes.errorbar(
            x[0],
            y[0],
            xerr=np.nan_to_num(x[1]),
            yerr=np.nan_to_num(y[1]),
            capsize=2,
            elinewidth=1,
            **{**MARK, **look(methods.index(method)), "linestyle": "none"},
        )
    for axis, which in (("x", 0), ("y", 1)):
        means = np.array([pair[which][0] for pair in shown.values()], dtype=np.float64)
        spread_out(axes, axis, means, least=0, span=LOG_SPAN)  # neither can be negative
    _names(axes, methods, {method: (float(x[0]), float(y[0])) for method, (x, y) in shown.items()})


def _names(axes: Axes, methods: Sequence[str], points: dict[str, tuple[float, float]]) -> None:
    """Names in a column right of the axes, in the order of their points' height, so that none covers another."""
    axes.set_xlim(axes.get_xlim())  # the lines to the names must not move the axes
    axes.set_ylim(axes.get_ylim())
    order = sorted(points, key=lambda method: points[method][1], reverse=True)
    lacking = [method for method in methods if method not in points]
    places = 1 - (np.arange(len(methods)) + 0.5) / len(methods)
    for place, method in zip(places, [*order, *lacking], strict=True):
        if method in lacking:
            axes.text(1.09, place, f"{readable(method)}: {NO_SCORE}", transform=axes.transAxes, va="center")
            continue
        style = {**MARK, **look(methods.index(method)), "linestyle": "none"}
        axes.plot([1.06], [place], transform=axes.transAxes, clip_on=False, **style)
        axes.annotate(
            readable(method),
            xy=points[method],
            xytext=(1.09, place),
            textcoords="axes fraction",
            va="center",
            annotation_clip=False,
            arrowprops=LEADER,
        )

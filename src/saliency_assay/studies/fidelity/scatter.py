"""Two metrics against each other: methods as points."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray as Array

from saliency_assay.plotting.palette import GRAY, looks
from saliency_assay.plotting.style import spread_out
from saliency_assay.plotting.text import NO_SCORE, groups_text, seeds_text, span_text
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.reliability.clusters import factors_of
from saliency_assay.reliability.variance import GROUPS
from saliency_assay.studies.fidelity.curves import band

PANEL = 4.4  # inches
LOG_SPAN = 10.0  # for points; smaller than for boxes with long whiskers
LEADER: dict[str, Any] = {
    **{"arrowstyle": "-", "color": GRAY, "linewidth": 0.7},
    **{"relpos": (0, 0.5), "shrinkA": 14, "shrinkB": 4},
}
MARK: dict[str, Any] = {"markersize": 7, "markeredgecolor": "black", "markeredgewidth": 0.6}


def infidelity_sensitivity(
    scores: pd.DataFrame, pairs: Sequence[tuple[str, str]], labels: Labels = UNLABELED
) -> Figure:
    """Plot INFD against SENS_MAX: one point per method, with 95 % intervals of both means over images.

    Args:
        scores: rows with the scores ``infidelity`` and ``sensitivity_max`` of a score table ``with_clusters``.
        pairs: the variants of both, such as ``("infidelity_square", "sensitivity_max")``; each pair is a panel.
        labels: labels of methods and metrics.
    """
    methods = list(scores["method"].unique())
    seeds = scores["seed"].nunique()
    figure = Figure(figsize=(7.2 * len(pairs), max(PANEL, 0.3 * len(methods) + 1.4)))
    for axes, (infidelity, sensitivity) in zip(
        figure.subplots(1, len(pairs), squeeze=False).flat, pairs, strict=True
    ):
        y_values = _image_means(scores, "infidelity", infidelity)
        x_values = _image_means(scores, "sensitivity_max", sensitivity)
        _plot_points(axes, methods, x_values, y_values, labels)
        plotted = [
            (int(defined.sum()), len(np.unique(factors[GROUPS][defined])) if GROUPS in factors else None)
            for axis_values in (x_values, y_values)
            for values, factors in axis_values.values()
            if (defined := np.isfinite(values)).any()
        ]
        counts, of_groups = zip(*plotted, strict=True) if plotted else ((0,), ())
        images_text = f"{span_text(counts)} images{groups_text(count for count in of_groups if count)}"
        axes.set_title(
            " against ".join(labels.metrics.get(name, name) for name in (infidelity, sensitivity)),
            fontsize=10,
        )
        axes.set_xlabel(
            f"SENS_MAX\n← lower is better\nmeans with 95 % intervals, n = {images_text}{seeds_text(seeds)}"
        )
        axes.set_ylabel("INFD (squared logits)\n← lower is better")
        axes.grid(visible=True, axis="both")
    return figure


def _whisker(mean: float, half: float) -> Array:
    """Return the lengths ``[2, 1]`` of whiskers below and above a mean of scores that are not negative."""
    lengths: Array = np.nan_to_num([[np.fmin(half, mean)], [half]])
    return lengths


def _image_means(
    scores: pd.DataFrame, metric: str, variant: str
) -> dict[str, tuple[Array, dict[str, Array]]]:
    """Return for each method the score of each image, averaged over seeds, and the clusters of the images."""
    rows = scores[(scores["metric"] == metric) & (scores["variant"] == variant)]
    means = {}
    for method, of_method in rows.groupby("method", sort=False):
        by_image = of_method.groupby("image", sort=False)
        values = by_image["score"].mean().to_numpy()
        means[str(method)] = values, factors_of(by_image.first())
    return means


def _plot_points(
    axes: Axes,
    methods: Sequence[str],
    x_values: dict[str, tuple[Array, dict[str, Array]]],
    y_values: dict[str, tuple[Array, dict[str, Array]]],
    labels: Labels,
) -> None:
    """Plot one marker per method, connected to its name in the margin by a thin line."""
    missing: tuple[Array, dict[str, Array]] = np.full(1, np.nan), {}
    points = {
        method: tuple(_point(*values.get(method, missing)) for values in (x_values, y_values))
        for method in methods
    }
    defined = {method: (x, y) for method, (x, y) in points.items() if np.isfinite(x[0]) and np.isfinite(y[0])}
    method_looks = looks(methods, labels)
    for method, (x, y) in defined.items():
        axes.errorbar(
            x[0],
            y[0],
            xerr=_whisker(*x),
            yerr=_whisker(*y),
            capsize=2,
            elinewidth=1,
            **{**MARK, **method_looks[method].line(), "linestyle": "none"},
        )
    for axis, position in (("x", 0), ("y", 1)):
        means = np.array([pair[position][0] for pair in defined.values()], dtype=np.float64)
        spread_out(axes, axis, means, least=0, span=LOG_SPAN)  # neither can be negative
    places = {method: (float(x[0]), float(y[0])) for method, (x, y) in defined.items()}
    _plot_names(axes, methods, places, labels)


def _point(values: Array, factors: dict[str, Array]) -> tuple[float, float]:
    mean, half = band(values[:, None], factors)
    return mean.item(), half.item()


def _plot_names(
    axes: Axes, methods: Sequence[str], points: dict[str, tuple[float, float]], labels: Labels
) -> None:
    """Plot names in a column right of the axes, ordered by the height of their points so that they do not overlap."""
    axes.set_xlim(axes.get_xlim())  # the lines to the names must not move the axes
    axes.set_ylim(axes.get_ylim())
    order = sorted(points, key=lambda method: points[method][1], reverse=True)
    missing = [method for method in methods if method not in points]
    heights = 1 - (np.arange(len(methods)) + 0.5) / len(methods)
    for height, method in zip(heights, [*order, *missing], strict=True):
        if method in missing:
            axes.text(
                1.09, height, f"{labels.method(method)}: {NO_SCORE}", transform=axes.transAxes, va="center"
            )
            continue
        style = {**MARK, **looks(methods, labels)[method].line(), "linestyle": "none"}
        axes.plot([1.06], [height], transform=axes.transAxes, clip_on=False, **style)
        axes.annotate(
            labels.method(method),
            xy=points[method],
            xytext=(1.09, height),
            textcoords="axes fraction",
            va="center",
            annotation_clip=False,
            arrowprops=LEADER,
        )

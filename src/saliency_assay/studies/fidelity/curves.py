"""Curves behind the scores: means over images with their 95 % bands, one line per method."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy import ndarray as Array

from saliency_assay.plotting.metric_results import MetricResults
from saliency_assay.plotting.statistics import mean_and_band, mean_of, over_seeds, sparse
from saliency_assay.plotting.style import GRAY, look
from saliency_assay.plotting.text import NO_SCORE, better, seeds_text, span_text

MARKERS_A_LINE = 5
LETTERS_AN_INCH = 13
LINE = 0.2  # inches
LAYER_LETTERS = 22
COUNT_LETTERS = 30
BAND = "mean and its 95 % band"
SPARSE = "faint or interrupted: under half of a method's images"
FAINT: dict[str, Any] = {"linewidth": 1.2, "alpha": 0.5}
ORDERS = ("morf", "lerf")
LIKENESS = ("spearman", "spearman_absolute", "ssim")
RANDOMIZED = {
    "cascading": "cascading: all layers from the output to this one",
    "independent": "independent: this layer only",
}


def aopc_curves(results: MetricResults) -> Figure:
    """Plot AOPC_L minus the mean AOPC_L of random orders, against L: Tomsett et al. (2020), Fig. 2a.

    AOPC_L = 1/(L + 1) Σ_{k=1..L} (f(x⁰) − f(xᵏ)); the difference is taken per image. The gray band is the middle
    95 % of the means of random orders.
    """
    figure = Figure(figsize=(10, 4))
    panels = figure.subplots(1, 2)  # no shared axis: LeRF changes the output far less
    random = aopc_of(results.responses["random_curve"])
    for axes, name in zip(panels, ORDERS, strict=True):
        band = _plot_random_band(axes, results)
        axes.axhline(0, color="black", linewidth=0.8, linestyle=":")
        values = _method_curves(results, name, change=lambda curve: aopc_of(curve) - random)
        _plot_lines(axes, results, values, np.arange(random.shape[1]))
        axes.set_title(results.labels[f"aopc_{name}"], fontsize=11)
        axes.set_xlabel(f"perturbed pixels L\n{_counts_text(results, values, name)}")
        axes.set_ylabel(
            f"AOPC minus mean AOPC of random orders\n({results.parameters['output']})\n"
            f"{better(results.directions[f'aopc_{name}'])}"
        )
    _add_legend(figure, results, ORDERS, extra=[band])
    return figure


def aopc_of(curve: Array) -> Array:
    """Return AOPC_L for L = 0 … S − 1 of outputs ``[n, S]`` after L pixels are perturbed."""
    drops = curve[:, :1] - curve
    aopc: Array = drops.cumsum(axis=1) / np.arange(1, curve.shape[1] + 1)
    return aopc


def _plot_random_band(axes: Axes, results: MetricResults) -> Patch:
    """Plot the middle 95 % of the mean scores of random orders, relative to their mean at each prefix."""
    means = mean_of(results.responses["random_aopc"])  # [orders, prefixes]
    prefixes = [0, *_sub_variant_numbers(results, "aopc_morf", "L=")]
    low, high = np.percentile(means - means.mean(axis=0), (2.5, 97.5), axis=0)
    axes.fill_between(prefixes, [0, *low], [0, *high], color=GRAY, alpha=0.35, linewidth=0)
    return Patch(color=GRAY, alpha=0.35, label=f"random orders: central 95 % of {len(means)}")


def removal_curves(results: MetricResults) -> Figure:
    """Plot the output against the share of removed or inserted pixels: deletion, insertion and ROAD."""
    names = [name for name in ("curve", *ORDERS) if any(name in curves for curves in results.curves.values())]
    figure = Figure(figsize=(5.6 * len(names) + 0.4, 4))
    for axes, name in zip(
        figure.subplots(1, len(names), squeeze=False, sharey=True).flat, names, strict=True
    ):
        points = next(curves[name] for curves in results.curves.values() if name in curves).shape[1]
        # ROAD has no point for 100 %, an image without original pixels.
        share = np.linspace(0, 100, points) if name == "curve" else 100 * np.arange(points) / points
        _plot_lines(axes, results, values := _method_curves(results, name), share)
        score = _score_of_curve(results, name)
        inserted = score == "insertion"
        axes.set_title(results.labels[score], fontsize=11)
        axes.set_xlabel(
            f"pixels {'inserted' if inserted else 'removed'} (%)\n{_counts_text(results, values, name)}"
        )
        axes.set_ylabel(f"output ({results.parameters['output']})\n{better(results.directions[score])}")
        axes.tick_params(labelleft=True)
    _add_legend(figure, results, names)
    return figure


def subset_curves(results: MetricResults) -> Figure:
    """Plot the correlation of a subset's attribution with the drop of the output, against the subset's size."""
    figure = Figure(figsize=(7.5, 4))
    axes = figure.add_subplot()
    values = _method_curves(results, "correlation")
    _plot_lines(axes, results, values, np.array(_sub_variant_numbers(results, "sensitivity_n", "n=")))
    axes.axhline(0, color="black", linewidth=0.8, linestyle=":")
    axes.set_xscale("log")
    axes.set_xlabel(f"pixels in a subset\n{_counts_text(results, values, 'correlation')}")
    label = results.axis("sensitivity_n")
    axes.set_ylabel(f"{label}\n{better(results.directions['sensitivity_n'])}")
    _add_legend(figure, results, ["correlation"])
    return figure


def randomization_curves(results: MetricResults) -> Figure:
    """Plot the similarity of maps to those of the model with randomized layers, cascading and independent."""
    figure = Figure(figsize=(13, 8.6))
    grid = figure.subplots(2, 3, sharey="col")
    for panels, (kind, meaning) in zip(grid, RANDOMIZED.items(), strict=True):
        ticks = ["model", *_layer_names(results, kind)]
        for axes, name in zip(panels, LIKENESS, strict=True):
            values = _method_curves(results, curve := f"{kind}_{name}")
            _plot_lines(axes, results, values, np.arange(len(ticks)))
            axes.axhline(0, color="black", linewidth=0.8, linestyle=":")
            axes.set_xticks(range(len(ticks)), ticks, rotation=45, ha="right", fontsize=8)
            axes.set_title(meaning, fontsize=10)
            axes.set_xlabel(f"randomized layer\n{_counts_text(results, values, curve)}", fontsize=9)
            score = f"randomization_{name}"
            axes.set_ylabel(f"{results.axis(score)}\n{better(results.directions[score])}", fontsize=9)
    names = [f"{kind}_{name}" for kind in RANDOMIZED for name in LIKENESS]
    _add_legend(figure, results, names, rows=len(RANDOMIZED))
    return figure


def _layer_names(results: MetricResults, kind: str) -> list[str]:
    """Return the layer names of the stages, shortened from the left: "cascading 2 layer3.conv" is of layer3.conv."""
    stages = [sub.split(" ", 2) for sub in results.sub_variants("randomization_spearman")]
    names = ["".join(stage[2:]) or "network" for stage in stages if stage[0] == kind]
    return [name if len(name) <= LAYER_LETTERS else f"…{name[1 - LAYER_LETTERS :]}" for name in names]


def _sub_variant_numbers(results: MetricResults, score: str, prefix: str) -> list[int]:
    return [int(sub.removeprefix(prefix)) for sub in results.sub_variants(score) if sub.startswith(prefix)]


def _score_of_curve(results: MetricResults, curve: str) -> str:
    """Return the score of a curve: the one whose name ends with the curve's name, or the only one."""
    return next((name for name in results.labels if name.endswith(f"_{curve}")), next(iter(results.labels)))


def _method_curves(
    results: MetricResults, name: str, change: Callable[[Array], Array] = lambda curve: curve
) -> dict[str, Array]:
    """Return the curves of this name ``[seeds · images, S]`` of each method that has them, after ``change``."""
    method_curves = ((method, results.curve(method, name)) for method in results.methods)
    return {method: change(curve) for method, curve in method_curves if curve is not None}


def _plot_lines(axes: Axes, results: MetricResults, values: Mapping[str, Array], x: Array) -> None:
    """Plot a line and a band per method; faint and without a band where its images are ``sparse``."""
    for index, method in enumerate(results.methods):
        if method not in values:
            continue
        mean, half = mean_and_band(by_image := over_seeds(values[method], results.seeds))
        dense_mean = np.where(sparse(by_image), np.nan, mean)
        step = max(1, len(x) // MARKERS_A_LINE)
        first = index * step // len(results.methods)  # offsets markers of coinciding lines
        color = look(index)["color"]
        if np.isnan(dense_mean[~np.isnan(mean)]).any():
            axes.plot(x, mean, color=color, **FAINT)
        axes.plot(x, dense_mean, markevery=(first, step), markersize=5, linewidth=1.5, **look(index))
        axes.fill_between(x, dense_mean - half, dense_mean + half, color=color, alpha=0.18, linewidth=0)


def _counts_text(results: MetricResults, values: Mapping[str, Array], name: str) -> str:
    """Return a text with the meaning of lines and bands, the images per point, and the number of undefined values."""
    if not values:
        return NO_SCORE
    by_image = [over_seeds(method_values, results.seeds) for method_values in values.values()]
    counts = [(~np.isnan(method_values)).sum(axis=0) for method_values in by_image]
    a_point = " per point" if any(np.ptp(method_values) for method_values in counts) else ""
    images = f"n = {span_text(np.concatenate(counts).tolist())} images{a_point}{seeds_text(results.seeds)}"
    lines = [f"{BAND}, {images}"] if len(images) <= COUNT_LETTERS else [BAND, images]
    missing = [
        curves[name] for method, curves in results.curves.items() if method not in values and name in curves
    ]
    is_undefined = np.concatenate([np.isnan(array).ravel() for array in (*values.values(), *missing)])
    if is_undefined.any():
        lines.append(f"{is_undefined.sum()} of {is_undefined.size} values undefined")
    if any(sparse(method_values).any() for method_values in by_image):
        lines.append(SPARSE)
    return "\n".join(lines)


def _add_legend(
    figure: Figure,
    results: MetricResults,
    names: Sequence[str],
    *,
    rows: int = 1,
    extra: Sequence[Patch] = (),
) -> None:
    """Add a legend of all methods below the panels, with a note for methods without a curve.

    The figure grows by the height of the legend, and by axis labels of more than three lines for each of its ``rows``.
    """
    handles: list[Artist] = []
    for index, method in enumerate(results.methods):
        has_no_curve = all(results.curve(method, name) is None for name in names)
        name = results.names.method(method)
        label = f"{name}: {NO_SCORE}" if has_no_curve else name
        handles.append(Line2D([], [], markersize=5, label=label, **look(index)))
    handles += extra
    longest = max(len(str(handle.get_label())) for handle in handles) + 8
    columns = max(1, min(len(handles), int(LETTERS_AN_INCH * figure.get_figwidth()) // longest))
    label_breaks = max(axes.get_xlabel().count("\n") for axes in figure.axes)
    lines = -(-len(handles) // columns) + rows * max(0, label_breaks - 2)
    figure.set_figheight(figure.get_figheight() + LINE * lines)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=9)

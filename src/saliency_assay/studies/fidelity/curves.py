"""Curves behind the scores: means over images with their 95 % bands, one line per method."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.plotting.charts import LineChart, Panel, line_rows
from saliency_assay.plotting.metric_results import MetricResults
from saliency_assay.plotting.palette import GRAY, Look, looks
from saliency_assay.plotting.statistics import mean_and_band, mean_of, over_seeds, sparse
from saliency_assay.plotting.text import NO_SCORE, better, groups_text, seeds_text, span_text
from saliency_assay.reliability import variance
from saliency_assay.reliability.clusters import factors_of
from saliency_assay.reliability.variance import GROUPS

LAYER_LETTERS = 22
COUNT_LETTERS = 30
BAND = "mean and its 95 % band"
SPARSE = "faint or interrupted: under half of a method's images"
ORDERS = ("morf", "lerf")
LIKENESS = ("spearman", "spearman_absolute", "ssim")
RANDOMIZED = {
    "cascading": "cascading: all layers from the output to this one",
    "independent": "independent: this layer only",
}


def aopc_curves(results: MetricResults) -> LineChart:
    """Plot AOPC_L minus the mean AOPC_L of random orders, against L: Tomsett et al. (2020), Fig. 2a.

    AOPC_L = 1/(L + 1) Σ_{k=1..L} (f(x⁰) − f(xᵏ)); the difference is taken per image. The gray band is the middle
    95 % of the means of random orders.
    """
    random = aopc_of(results.responses["random_curve"])
    orders = results.responses["random_aopc"].shape[1]
    random_label = f"random orders: central 95 % of {orders}"
    panels = []
    for name in ORDERS:
        values = _method_curves(results, name, change=lambda curve: aopc_of(curve) - random)
        rows = [
            _random_rows(results, random_label),
            _rows(results, values, ORDERS, np.arange(random.shape[1])),
        ]
        score = f"aopc_{name}"
        y_title = (
            f"AOPC minus mean AOPC of random orders\n({results.parameters['output']})\n"
            f"{better(results.directions[score])}"
        )
        x_title = f"perturbed pixels L\n{_counts_text(results, values, name)}"
        title = f"{results.labels[score]} minus random orders"
        panels.append(Panel(title, x_title, y_title, pd.concat(rows)))
    # LeRF changes the output far less, so the panels share no axis.
    return _chart(results, panels, ORDERS, extra={random_label: Look(GRAY)})


def aopc_of(curve: Array) -> Array:
    """Return AOPC_L for L = 0 … S − 1 of outputs ``[n, S]`` after L pixels are perturbed."""
    drops = curve[:, :1] - curve
    aopc: Array = drops.cumsum(axis=1) / np.arange(1, curve.shape[1] + 1)
    return aopc


def _random_rows(results: MetricResults, label: str) -> pd.DataFrame:
    """Return a line at 0 with the middle 95 % of the mean scores of random orders, relative to their mean."""
    means = mean_of(results.responses["random_aopc"])  # [orders, prefixes]
    prefixes = np.array([0, *_sub_variant_numbers(results, "aopc_morf", "L=")])
    low, high = np.percentile(means - means.mean(axis=0), (2.5, 97.5), axis=0)
    zero = np.zeros(len(prefixes))
    images = len(results.responses["random_aopc"])
    return line_rows(label, prefixes, zero, np.array([0, *low]), np.array([0, *high]), images=images)


def removal_curves(results: MetricResults) -> LineChart:
    """Plot the output against the share of removed or inserted pixels: deletion, insertion and ROAD."""
    names = [name for name in ("curve", *ORDERS) if any(name in curves for curves in results.curves.values())]
    panels = []
    for name in names:
        points = next(curves[name] for curves in results.curves.values() if name in curves).shape[1]
        share = perturbed_shares(name, points)
        values = _method_curves(results, name)
        score = _score_of_curve(results, name)
        verb = "inserted" if score == "insertion" else "removed"
        x_title = f"pixels {verb} (%)\n{_counts_text(results, values, name)}"
        y_title = f"output ({results.parameters['output']})\n{better(results.directions[score])}"
        rows = _rows(results, values, names, share)
        panels.append(Panel(results.labels[score], x_title, y_title, rows))
    return _chart(results, panels, names, shared=True)


def perturbed_shares(name: str, points: int) -> Array:
    """Return the percentage of perturbed pixels at each of ``points`` points of a curve of this name, ``[S]``.

    The curves ``morf`` and ``lerf`` of ROAD have no point for 100 %, an image without original pixels.
    """
    return np.linspace(0, 100, points) if name == "curve" else 100 * np.arange(points) / points


def subset_curves(results: MetricResults) -> LineChart:
    """Plot the correlation of a subset's attribution with the drop of the output, against the subset's size."""
    name, score = "correlation", "sensitivity_n"
    values = _method_curves(results, name)
    rows = _rows(results, values, [name], np.array(_sub_variant_numbers(results, score, "n=")))
    x_title = f"pixels in a subset\n{_counts_text(results, values, name)}"
    y_title = f"{results.axis(score)}\n{better(results.directions[score])}"
    panel = Panel(results.labels[score], x_title, y_title, rows, logarithmic=True)
    return _chart(results, [panel], [name])


def randomization_curves(results: MetricResults) -> LineChart:
    """Plot the similarity of maps to those of the model with randomized layers, cascading and independent."""
    names = [f"{kind}_{name}" for kind in RANDOMIZED for name in LIKENESS]
    panels = []
    for kind, meaning in RANDOMIZED.items():
        ticks = ["model", *_layer_names(results, kind)]
        for name in LIKENESS:
            curve, score = f"{kind}_{name}", f"randomization_{name}"
            values = _method_curves(results, curve)
            x_title = f"randomized layer\n{_counts_text(results, values, curve)}"
            y_title = f"{results.axis(score)}\n{better(results.directions[score])}"
            rows = _rows(results, values, names, np.arange(len(ticks)))
            panels.append(Panel(meaning, x_title, y_title, rows, ticks=ticks))
    return _chart(results, panels, names)


def band(values: Array, factors: variance.Factors) -> tuple[Array, Array]:
    """Return the mean along the first axis and the half width of its 95 % interval, see ``mean_and_band``.

    Args:
        values: ``[images, S]``, NaN where missing.
        factors: clusters of the images, see ``variance.mean_of``, whose interval it is if there are any.
    """
    mean, half = mean_and_band(values)
    if not factors:
        return mean, half
    of_points = [variance.mean_of(column, factors) for column in values.T]
    ends = [replace(each, skewness=0.0).interval() if each.variance else (0.0, 0.0) for each in of_points]
    return mean, np.array([(high - low) / 2 for low, high in ends])


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


def _series(results: MetricResults, names: Sequence[str]) -> dict[str, str]:
    """Return the text of each method in the legend, with a note if it has none of the curves."""
    series = {}
    for method in results.methods:
        has_no_curve = all(results.curve(method, name) is None for name in names)
        label = results.names.method(method)
        series[method] = f"{label}: {NO_SCORE}" if has_no_curve else label
    return series


def _rows(
    results: MetricResults, values: Mapping[str, Array], names: Sequence[str], x: Array
) -> pd.DataFrame:
    """Return a line and a band per method; faint and without a band where its images are ``sparse``."""
    series, factors = _series(results, names), factors_of(results.images)
    tables = []
    for index, method in enumerate(results.methods):
        if method not in values:
            continue
        by_image = over_seeds(values[method], results.seeds)
        mean, half = band(by_image, factors)
        half = np.where(sparse(by_image), np.nan, half)
        tables.append(
            line_rows(
                series[method],
                x,
                mean,
                mean - half,
                mean + half,
                images=(~np.isnan(by_image)).sum(axis=0),
                faint=sparse(by_image) & ~np.isnan(mean),
                offset=index / len(results.methods),
            )
        )
    return pd.concat(tables) if tables else line_rows(NO_SCORE, x[:0], x[:0])


def _counts_text(results: MetricResults, values: Mapping[str, Array], name: str) -> str:
    """Return a text with the meaning of lines and bands, the images per point, and the number of undefined values."""
    if not values:
        return NO_SCORE
    by_image = [over_seeds(method_values, results.seeds) for method_values in values.values()]
    counts = [(~np.isnan(method_values)).sum(axis=0) for method_values in by_image]
    a_point = " per point" if any(np.ptp(method_values) for method_values in counts) else ""
    group = factors_of(results.images).get(GROUPS)
    groups = (
        [] if group is None else [len(np.unique(group[~np.isnan(rows).all(axis=1)])) for rows in by_image]
    )
    images = f"n = {span_text(np.concatenate(counts).tolist())} images{groups_text(groups)}{a_point}"
    images += seeds_text(results.seeds)
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


def _chart(
    results: MetricResults,
    panels: Sequence[Panel],
    names: Sequence[str],
    *,
    extra: Mapping[str, Look] | None = None,
    shared: bool = False,
) -> LineChart:
    """Return the chart of these panels with a legend of all methods and ``extra`` lines."""
    series = _series(results, names)
    method_looks = {series[method]: look for method, look in looks(results.methods, results.names).items()}
    description = (
        f"Curves of {', '.join(dict.fromkeys(panel.title for panel in panels))}, one line per method."
    )
    return LineChart(panels, {**method_looks, **(extra or {})}, description, shared=shared)

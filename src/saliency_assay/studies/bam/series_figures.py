"""Figures of the commonality series: curves against k, and one image under every f_k (Yang & Kim, 2019, Figs. 5, 6)."""

from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy import ndarray as Array

from saliency_assay.plotting.gallery import bare, show_image, show_map
from saliency_assay.plotting.palette import BLACK, looks
from saliency_assay.plotting.style import WIDTH, name_columns
from saliency_assay.plotting.text import seeds_text, span_text
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.studies.bam.bam_tables import TCAV
from saliency_assay.studies.bam.series_tables import SeriesModel

ABOVE, BELOW = 4.4, 3.2
LEGEND_WIDTH, LEGEND_LINE = 2.2, 0.21
LEGEND_LETTERS = 18
DROP: dict[str, Any] = {"color": "black", "linestyle": "--", "linewidth": 2}
DOTTED: dict[str, Any] = {"color": BLACK, "linestyle": ":", "linewidth": 2.4, "marker": "."}
DROP_LABEL = "accuracy drop\n(right axis)"
MCS_AXIS = r"MCS: $G_c(f_k) - G_c(f_{1.0})$" + "\n(saliency and TCAV on a 0–1 scale)"
DROP_AXIS = "accuracy drop without the object\n(percentage points)"
RHO_AXIS = "Pearson's ρ of MCS\nand accuracy drop over k"
MARGIN = 0.06

# Figure of maps: sizes in inches, ROW_LETTERS in letters.
CELL = 0.9
COMPOSITE = 1.7
NAMES = 1.4
ROW_LETTERS = 14


def series_figure(
    series: pd.DataFrame, commonality: pd.DataFrame, correlation: pd.DataFrame, labels: Labels = UNLABELED
) -> Figure:
    """Plot MCS of every method against k, and below its correlation with the accuracy drop, best method first.

    Lines and bars are means over seeds. Bands are the range of seeds or, for a single seed, one standard error over
    images to each side; dots on the bars are seeds. The zeros of both vertical axes are aligned. A correlation that is
    undefined for all seeds is a cross, not a bar of height 0.

    Args:
        series: from ``series_tables.series_table``.
        commonality: from ``commonality_table``.
        correlation: from ``correlation_table``.
        labels: labels of methods.
    """
    styles = _method_styles(list(series["method"].unique()), labels)
    names = _wrapped_names(styles, labels)
    lines = sum(1 + name.count("\n") for name in names.values()) + 4
    above = max(ABOVE, LEGEND_LINE * lines)
    figure = Figure(figsize=(WIDTH, above + BELOW))
    grid = figure.add_gridspec(
        2, 2, height_ratios=(above, BELOW), width_ratios=(WIDTH - LEGEND_WIDTH, LEGEND_WIDTH)
    )
    axes = figure.add_subplot(grid[0, 0])
    _plot_curves(axes, series, styles)
    _align_zeros(axes, _plot_drop(axes, commonality))
    ks = sorted(set(commonality["k"]))
    axes.set_xticks(ks, [f"{k:.3g}" for k in ks])
    axes.set_xlabel(
        f"commonality k: share of scene classes with the object in training\n{_counts_text(series)}"
    )
    axes.set_ylabel(MCS_AXIS, parse_math=True)
    _plot_legend(figure.add_subplot(grid[0, 1]), series, styles, labels)
    _plot_bars(figure.add_subplot(grid[1, :]), correlation, styles, labels)
    return figure


def _method_styles(methods: Sequence[str], labels: Labels) -> dict[str, dict[str, Any]]:
    """Return the line of each method, and of TCAV."""
    method_looks = looks([method for method in methods if method != TCAV], labels)
    lines = {method: {**look.line(), "linewidth": 1.5} for method, look in method_looks.items()}
    return {method: DOTTED if method == TCAV else lines[method] for method in methods}


def _plot_curves(axes: Axes, series: pd.DataFrame, styles: dict[str, dict[str, Any]]) -> None:
    has_seeds = series["seed"].nunique() > 1
    for method, style in styles.items():
        method_rows = series[series["method"] == method]
        by_k = method_rows.groupby("k")["mcs"].agg(["mean", "min", "max"])
        if has_seeds:
            low, high = by_k["min"], by_k["max"]
        else:
            error = method_rows.set_index("k")["standard_error"]
            low, high = by_k["mean"] - error, by_k["mean"] + error
        axes.plot(by_k.index, by_k["mean"], markersize=5, **style)
        axes.fill_between(by_k.index, low, high, color=style["color"], alpha=0.15, linewidth=0)
    axes.axhline(0, color="black", linewidth=0.8)


def _plot_drop(axes: Axes, commonality: pd.DataFrame) -> Axes:
    right = axes.twinx()
    by_k = commonality.groupby("k")["drop"].agg(["mean", "min", "max"])
    right.plot(by_k.index, by_k["mean"], **DROP)
    if commonality["seed"].nunique() > 1:
        right.fill_between(by_k.index, by_k["min"], by_k["max"], color="black", alpha=0.08, linewidth=0)
    right.set_ylabel(DROP_AXIS)
    right.grid(visible=False)
    right.spines["right"].set_visible(True)
    return right


def _align_zeros(left: Axes, right: Axes) -> None:
    """Align both zeros so that signs can be compared, at the share of the height that enlarges the axes least."""
    ends = []
    for axes in (left, right):
        low, high = axes.dataLim.intervaly
        ends.append((max(-low, 0.0), max(high, 0.0)) if np.isfinite([low, high]).all() else (0.0, 0.0))
    reaches = np.array([(under, over) if under + over > 0 else (0.0, 1.0) for under, over in ends])
    shares = np.linspace(0.01, 0.99, 99)  # of the axes, below zero
    spans = np.maximum(reaches[:, :1] / shares, reaches[:, 1:] / (1 - shares))
    best = int((spans / reaches.sum(1, keepdims=True)).max(0).argmin())
    for axes, span in zip((left, right), spans[:, best], strict=True):
        axes.set_ylim(-(shares[best] + MARGIN) * span, (1 - shares[best] + MARGIN) * span)


def _counts_text(series: pd.DataFrame) -> str:
    counts = series.loc[series["method"] != TCAV, "images"]
    counts = counts if len(counts) else series["images"]
    return f"n = {span_text(counts.tolist())} images per point{seeds_text(series['seed'].nunique())}"


def _wrapped_names(methods: Iterable[object], labels: Labels) -> dict[str, str]:
    """Return the displayed name of each method, wrapped to short lines."""
    return {
        str(method): "TCAV"
        if method == TCAV
        else fill(labels.method(str(method)), LEGEND_LETTERS, break_long_words=False)
        for method in methods
    }


def _plot_legend(axes: Axes, series: pd.DataFrame, styles: dict[str, dict[str, Any]], labels: Labels) -> None:
    """Fill ``axes`` with the legend of the lines, ordered by their value at the smallest k."""
    smallest_k = series[series["k"] == series["k"].min()].groupby("method", sort=False)["mcs"].mean()
    order = smallest_k.sort_values(ascending=False, kind="stable").index
    handles: list[Artist] = [Line2D([], [], label=DROP_LABEL, **DROP)]
    for method, name in _wrapped_names(order, labels).items():
        handles.append(Line2D([], [], markersize=5, label=name, **styles[method]))
    axes.set_axis_off()
    axes.legend(
        handles=handles,
        loc="upper left",
        borderaxespad=0,
        fontsize=9,
        handlelength=3.4,
        title="ordered by MCS\nat the smallest k",
        title_fontsize=9,
        alignment="left",
    ).set_in_layout(False)


def _plot_bars(
    axes: Axes, correlation: pd.DataFrame, styles: dict[str, dict[str, Any]], labels: Labels
) -> None:
    means = correlation.groupby("method", sort=False)["correlation"].mean()
    means = means.sort_values(ascending=False, kind="stable")
    places = np.arange(len(means))
    colors = [styles[str(method)]["color"] for method in means.index]
    axes.bar(places, means, 0.7, color=colors)
    has_seeds = correlation["seed"].nunique() > 1
    for place, (method, mean) in enumerate(means.items()):
        values = correlation.loc[correlation["method"] == method, "correlation"].dropna()
        if values.empty:
            axes.text(place, 0, "×", ha="center", va="bottom")
            continue
        if has_seeds:
            axes.plot(np.full(len(values), place), values, "o", color="black", markersize=3)
        end = values.max() if mean >= 0 else values.min()
        offset = (0, 4 if mean >= 0 else -4)
        axes.annotate(
            f"{mean:.2f}".replace("-", "−"),
            (place, end),
            offset,
            textcoords="offset points",
            ha="center",
            va="bottom" if mean >= 0 else "top",
            fontsize=9,
        )
    axes.axhline(0, color="black", linewidth=0.8)
    lowest = min(0.0, float(np.nan_to_num(correlation["correlation"].min())))
    axes.set_ylim(-1.18 if lowest < 0 else -0.05, 1.18)
    axes.set_xlim(-0.6, len(means) - 0.4)  # keeps room for undefined bars
    names = ["TCAV" if method == TCAV else labels.method(str(method)) for method in means.index]
    name_columns(axes, names, (WIDTH - 1) / max(len(names), 1))
    axes.set_ylabel(RHO_AXIS)


def select_image(
    predictions: pd.DataFrame, series: Sequence[SeriesModel], *, seed: int, images: Array
) -> tuple[int, list[bool]]:
    """Return the image that most f_k classify correctly, each on its own set, and which of them do; ties: lowest index.

    Args:
        predictions: rows model, seed, data, image, label and predicted.
        series: f_k in order of growing k.
        seed: seed of the models.
        images: indices ``[N]`` of the candidates.

    Raises:
        ValueError: there are no candidates, or a model has no prediction for one of them.
    """
    if not len(images):
        raise ValueError("images: found none, expected at least one")
    candidates = np.sort(images)
    right = np.empty((len(series), len(images)), dtype=bool)
    for row, member in enumerate(series):
        model_rows = predictions[
            (predictions["model"] == member.model)
            & (predictions["seed"] == seed)
            & (predictions["data"] == member.data)
        ]
        is_correct = (model_rows["label"] == model_rows["predicted"]).set_axis(model_rows["image"])
        if len(absent := candidates[~np.isin(candidates, is_correct.index)]):
            missing = f"no row of image {absent[0]} in {member.data}"
            raise ValueError(f"predictions: {member.model}, seed {seed}: found {missing}, expected one")
        right[row] = is_correct.loc[candidates]
    best = int(right.sum(0).argmax())
    return int(candidates[best]), right[:, best].tolist()


def series_maps(
    image: Array,
    mask: Array,
    maps: Mapping[str, Array],
    *,
    ks: Sequence[float],
    right: Sequence[bool],
    title: str,
    labels: Labels = UNLABELED,
) -> Figure:
    """Plot maps of one image, methods in rows and k growing from left to right, next to the image.

    Args:
        image: the composite, uint8 ``[C, H, W]``.
        mask: the object's pixels, bool ``[H, W]``, shown as an outline.
        maps: for each method ``[K, H, W]`` in ``[0, 1]`` (the ``visual`` reduction); a map that is not defined is NaN
            and shown as a cross. The number below each map is its g_c, the mean within the outline.
        ks: k of each map.
        right: for each f_k, whether it classifies the image correctly.
        title: title of the image.
        labels: labels of methods.
    """
    rows, columns = max(len(maps), 2), len(ks)
    figure = Figure(figsize=(COMPOSITE + NAMES + CELL * columns, (CELL + 0.17) * rows + 0.6))
    grid = figure.add_gridspec(rows, columns + 1, width_ratios=[COMPOSITE, *[CELL] * columns])
    image_axes = figure.add_subplot(grid[:2, 0])
    show_image(image_axes, image, mask)
    image_axes.set_title(title, fontsize=9)
    for row, (method, method_maps) in enumerate(maps.items()):
        for column, saliency in enumerate(method_maps):
            axes = figure.add_subplot(grid[row, column + 1])
            show_map(axes, saliency, mask)
            concept_score = saliency[mask].mean() if mask.any() else np.nan
            axes.set_xlabel(
                "–" if np.isnan(concept_score) else f"{concept_score:.2f}", fontsize=8, labelpad=2
            )
            if row == 0:
                verdict = "correct" if right[column] else "incorrect"
                axes.set_title(f"k = {ks[column]:.3g}\n{verdict}", fontsize=9)
            if column == 0:
                name = fill(labels.method(method), ROW_LETTERS, break_long_words=False)
                axes.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9)
    bare(figure)
    return figure

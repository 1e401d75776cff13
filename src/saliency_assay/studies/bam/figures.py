"""Figures of the BAM study: its metrics as bars, with robustness, baseline and spread."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray as Array

from saliency_assay.plotting.palette import BLUE, GRAY, ORANGE, VERMILION
from saliency_assay.plotting.style import name_columns, named_width
from saliency_assay.plotting.text import span_text
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.studies.bam.bam_tables import DIRECTIONS

AXIS = {
    "mcs": "MCS: difference of concept attribution\n(saliency on a 0–1 scale)",
    "idr": "IDR: share of images (%)",
    "iir": "IIR: share of images (%)",
    "iir_difference": "relative change of concept attribution\n(lower is better)",
}
SCALE = {"mcs": 1.0, "idr": 100.0, "iir": 100.0, "iir_difference": 1.0}
MARGIN = 1.5  # inches of a figure beside its bars
BASE = "object's mask"
VARIANTS = {"scale": "other object sizes", "location": "other object positions"}
VARIANT_BARS: tuple[dict[str, Any], ...] = (
    {"color": VERMILION},
    {"facecolor": "#F6CDB2", "edgecolor": VERMILION, "hatch": "///"},
    {"facecolor": "white", "edgecolor": VERMILION, "hatch": "..."},
)


def metric_bars(table: pd.DataFrame, metric: str, labels: Labels = UNLABELED) -> Figure:
    """Plot one BAM metric as bars, best method first, next to its robustness variants and its random-mask baseline.

    Args:
        table: from ``metric_tables.metrics_table``; its first data set determines the order of methods and has the
            baseline, all others are its variants (Yang & Kim 2019, Figs. 4 and 8).
        metric: ``mcs``, ``idr``, ``iir`` or ``iir_difference``.
        labels: labels of methods.

    Returns:
        Bars are means over seeds, whiskers the spread over samples of images, dots the seeds if there are several.
        A score without a valid image is a cross, not a bar of height 0.
    """
    scale = SCALE[metric]
    table = table[table["metric"] == metric]
    seeds = table["seed"].nunique()
    sets = list(dict.fromkeys(table["data"]))
    means = {data: _means(table[table["data"] == data]) * scale for data in sets}
    if not sets:
        sets, means = [""], {"": _means(table)}
    order = means[sets[0]].sort_values("score", ascending=DIRECTIONS[metric] == "lower", kind="stable")
    names = [labels.method(str(method)) for method in order.index]
    width = max(6.5, named_width(names, margin=MARGIN, least=0.95))
    figure = Figure(figsize=(width, 4.6))
    axes = figure.add_subplot()
    bar = 0.8 / (len(sets) + 1)
    places = np.arange(len(order)) - 0.4 + bar / 2
    for number, data in enumerate(sets):
        rows = means[data].reindex(order.index)
        style = {"color": BLUE} if not number else VARIANT_BARS[(number - 1) % len(VARIANT_BARS)]
        label = BASE if not number else _variant_label(data, sets[0])
        positions = places + number * bar
        _plot_bars(axes, positions, rows["score"], rows["spread"], width=bar, label=label, **style)
        if seeds > 1:
            _plot_seeds(axes, positions, table[table["data"] == data], order.index, scale)
    _plot_bars(
        axes,
        places + len(sets) * bar,
        order["baseline"],
        order["baseline_spread"],
        width=bar,
        label="baseline: the same number of random pixels",
        color=ORANGE,
    )
    if metric == "idr":
        axes.axhline(50, color=GRAY, linewidth=1, linestyle="--", label="50 %: no preference")
    if scale == 100:
        axes.set_ylim(0, 105)
    axes.axhline(0, color="black", linewidth=0.8)
    name_columns(axes, names, (width - MARGIN) / max(len(names), 1))
    axes.set_ylabel(AXIS[metric])
    counts_text = span_text(table["images"]) if len(table) else "0"
    axes.set_xlabel(
        f"method; {counts_text} images per method, {seeds} training seed{'' if seeds == 1 else 's'}"
    )
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def _means(table: pd.DataFrame) -> pd.DataFrame:
    columns = ["score", "spread", "baseline", "baseline_spread"]
    means: pd.DataFrame = table.groupby("method")[columns].mean()
    return means.where(np.isfinite(means))


def _variant_label(data: str, first: str) -> str:
    member = data.removeprefix(f"{first}_")
    return VARIANTS.get(member, member)


def _plot_bars(
    axes: Axes,
    places: Array,
    heights: "pd.Series[float]",
    whiskers: "pd.Series[float]",
    *,
    width: float,
    **style: Any,
) -> None:
    """Plot bars with whiskers; a missing height is a cross."""
    axes.bar(places, heights, width, yerr=whiskers, capsize=3, error_kw={"linewidth": 1}, **style)
    for place in places[heights.isna()]:
        axes.text(place, 0, "×", ha="center", va="bottom")


def _plot_seeds(axes: Axes, places: Array, table: pd.DataFrame, methods: Iterable[str], scale: float) -> None:
    for place, method in zip(places, methods, strict=True):
        method_scores = table.loc[table["method"] == method, "score"] * scale
        axes.plot(np.full(len(method_scores), place), method_scores, "o", color="black", markersize=3)

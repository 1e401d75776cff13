"""Figures that show numbers: metric bars with baseline and spread, and training curves."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from saliency_assay.report.style import BLUE, CYCLE, GREY, ORANGE, readable

Array = npt.NDArray[Any]

AXIS = {
    "mcs": "MCS: difference of concept attribution\n(saliency on a 0–1 scale)",
    "idr": "IDR: share of images (%)",
}
SCALE = {"mcs": 1.0, "idr": 100.0}


def metric_bars(table: pd.DataFrame, metric: str) -> Figure:
    """Bars of one BAM metric, best method first, each beside its random-mask baseline.

    Args:
        table: as ``report.bam.metrics_table`` gives it.
        metric: ``mcs`` or ``idr``.

    Returns:
        Bars are means over seeds, whiskers the spread over draws of images, dots the seeds where there are several.
        A score that no image has is a cross, not a bar of height 0.
    """
    scale = SCALE[metric]
    table = table[table["metric"] == metric]
    columns = ["score", "spread", "baseline", "baseline_spread"]
    means = table.groupby("method")[columns].mean().sort_values("score", ascending=False) * scale
    figure = Figure(figsize=(max(6.5, 0.95 * len(means) + 1.5), 4.6))
    axes = figure.add_subplot()
    places = np.arange(len(means))
    _bars(axes, places - 0.2, means["score"], means["spread"], color=BLUE, label="object's mask")
    _bars(
        axes,
        places + 0.2,
        means["baseline"],
        means["baseline_spread"],
        color=ORANGE,
        label="baseline: as many random pixels",
    )
    if table["seed"].nunique() > 1:
        for place, method in zip(places, means.index, strict=True):
            of_method = table.loc[table["method"] == method, "score"] * scale
            axes.plot(np.full(len(of_method), place - 0.2), of_method, "o", color="black", markersize=3)
    if metric == "idr":
        axes.axhline(50, color=GREY, linewidth=1, linestyle="--", label="50 %: no preference")
        axes.set_ylim(0, 105)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(places, [readable(str(method)) for method in means.index], rotation=30, ha="right")
    axes.set_ylabel(AXIS[metric])
    smallest, largest = table["images"].min(), table["images"].max()
    counted = f"{smallest}" if smallest == largest else f"{smallest}–{largest}"
    seeds = table["seed"].nunique()
    axes.set_xlabel(f"method; {counted} images a method, {seeds} training seed{'s' if seeds > 1 else ''}")
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def _bars(
    axes: Axes, places: Array, heights: "pd.Series[float]", whiskers: "pd.Series[float]", **style: Any
) -> None:
    axes.bar(places, heights, 0.4, yerr=whiskers, capsize=3, error_kw={"linewidth": 1}, **style)
    for place in places[heights.isna()]:
        axes.text(place, 0, "×", ha="center", va="bottom")


def training_curves(curves: Mapping[tuple[str, int], pd.DataFrame]) -> Figure:
    """Accuracy of every model over its epochs: test images solid, training dashed, validation, where taken, dotted.

    Args:
        curves: for each model and seed the table of ``training.csv``.
    """
    models = list(dict.fromkeys(model for model, _ in curves))
    figure = Figure(figsize=(7.5, 4.2))
    axes = figure.add_subplot()
    validated = [arm for arm, curve in curves.items() if curve["validation_accuracy"].notna().any()]
    for (model, seed), curve in curves.items():
        colour = CYCLE[models.index(model) % len(CYCLE)]
        first = seed == min(of_seed for of_model, of_seed in curves if of_model == model)
        label = model if first else None
        axes.plot(
            curve["epoch"], 100 * curve["test_accuracy"], color=colour, marker="o", markersize=3, label=label
        )
        axes.plot(curve["epoch"], 100 * curve["train_accuracy"], color=colour, linestyle="--", linewidth=1)
        if (model, seed) in validated:
            found = 100 * curve["validation_accuracy"]
            axes.plot(curve["epoch"], found, color=colour, linestyle=":", marker="s", markersize=2)
    axes.set_xlabel("epoch")
    axes.set_ylabel("accuracy (%)")
    axes.set_ylim(0, 102)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    title = "solid: test, dashed: training" + (", dotted: validation" if validated else "")
    axes.legend(title=title, loc="lower right")
    return figure

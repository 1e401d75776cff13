"""Figures that show numbers: metric bars with robustness, baseline and spread, and training curves."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from saliency_assay.plotting.metric_results import span_text
from saliency_assay.plotting.style import BLUE, CYCLE, GREY, ORANGE, VERMILION, readable

Array = npt.NDArray[Any]

AXIS = {
    "mcs": "MCS: difference of concept attribution\n(saliency on a 0–1 scale)",
    "idr": "IDR: share of images (%)",
    "iir": "IIR: share of images (%)",
    "iir_difference": "relative change of concept attribution\n(lower is better)",
}
SCALE = {"mcs": 1.0, "idr": 100.0, "iir": 100.0, "iir_difference": 1.0}
DIRECTIONS = {"mcs": "higher", "idr": "higher", "iir": "higher", "iir_difference": "lower"}
"""Whether higher or lower is better."""
BASE = "object's mask"
VARIANTS = {"scale": "robustness: other sizes", "location": "robustness: other places"}
VARIANT_BARS: tuple[dict[str, Any], ...] = (
    {"color": VERMILION},
    {"facecolor": "#F6CDB2", "edgecolor": VERMILION, "hatch": "///"},
    {"facecolor": "white", "edgecolor": VERMILION, "hatch": "..."},
)


def metric_bars(table: pd.DataFrame, metric: str) -> Figure:
    """Bars of one BAM metric, best method first, each beside its robustness variants and its random-mask baseline.

    Args:
        table: as ``metrics_table`` gives it; the data that it names first decides the order of methods and
            has the baseline, all others are its variants (Yang & Kim 2019, Figs. 4 and 8).
        metric: ``mcs``, ``idr``, ``iir`` or ``iir_difference``.

    Returns:
        Bars are means over seeds, whiskers the spread over draws of images, dots the seeds where there are several.
        A score that no image has is a cross, not a bar of height 0.
    """
    scale = SCALE[metric]
    table = table[table["metric"] == metric]
    seeds = table["seed"].nunique()
    sets = list(dict.fromkeys(table["data"]))
    means = {data: _means(table[table["data"] == data]) * scale for data in sets}
    if not sets:
        sets, means = [""], {"": _means(table)}
    first = means[sets[0]].sort_values("score", ascending=DIRECTIONS[metric] == "lower", kind="stable")
    figure = Figure(figsize=(max(6.5, 0.95 * len(first) + 1.5), 4.6))
    axes = figure.add_subplot()
    width = 0.8 / (len(sets) + 1)
    places = np.arange(len(first)) - 0.4 + width / 2
    for number, data in enumerate(sets):
        shown = means[data].reindex(first.index)
        style = {"color": BLUE} if not number else VARIANT_BARS[(number - 1) % len(VARIANT_BARS)]
        label = BASE if not number else _variant(data, sets[0])
        at = places + number * width
        _bars(axes, at, shown["score"], shown["spread"], width=width, label=label, **style)
        if seeds > 1:
            _dots(axes, at, table[table["data"] == data], first.index, scale)
    _bars(
        axes,
        places + len(sets) * width,
        first["baseline"],
        first["baseline_spread"],
        width=width,
        label="baseline: as many random pixels",
        color=ORANGE,
    )
    if metric == "idr":
        axes.axhline(50, color=GREY, linewidth=1, linestyle="--", label="50 %: no preference")
    if scale == 100:
        axes.set_ylim(0, 105)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(
        np.arange(len(first)), [readable(str(method)) for method in first.index], rotation=30, ha="right"
    )
    axes.set_ylabel(AXIS[metric])
    counted = span_text(table["images"]) if len(table) else "0"
    axes.set_xlabel(f"method; {counted} images a method, {seeds} training seed{'' if seeds == 1 else 's'}")
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def _means(table: pd.DataFrame) -> pd.DataFrame:
    columns = ["score", "spread", "baseline", "baseline_spread"]
    found: pd.DataFrame = table.groupby("method")[columns].mean()
    return found.where(np.isfinite(found))


def _variant(data: str, first: str) -> str:
    member = data.removeprefix(f"{first}_")
    return VARIANTS.get(member, readable(member))


def _bars(
    axes: Axes,
    places: Array,
    heights: "pd.Series[float]",
    whiskers: "pd.Series[float]",
    *,
    width: float,
    **style: Any,
) -> None:
    axes.bar(places, heights, width, yerr=whiskers, capsize=3, error_kw={"linewidth": 1}, **style)
    for place in places[heights.isna()]:
        axes.text(place, 0, "×", ha="center", va="bottom")


def _dots(axes: Axes, places: Array, table: pd.DataFrame, methods: Iterable[str], scale: float) -> None:
    """The score of every seed."""
    for place, method in zip(places, methods, strict=True):
        of_method = table.loc[table["method"] == method, "score"] * scale
        axes.plot(np.full(len(of_method), place), of_method, "o", color="black", markersize=3)


def training_curves(curves: Mapping[tuple[str, int], pd.DataFrame]) -> Figure:
    """Accuracy of every model over its epochs: test images solid, training dashed, validation, where taken, dotted.

    A model whose weights were taken as they are has no epochs; it is named as such.

    Args:
        curves: for each model and seed the table of ``training.csv``.
    """
    untrained = [model for model in dict.fromkeys(model for model, _ in curves) if _empty(curves, model)]
    curves = {arm: curve for arm, curve in curves.items() if not curve.empty}
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
    if untrained:
        axes.set_title(f"with weights as they were given, not trained here: {', '.join(untrained)}")
    if curves:
        title = "solid: test, dashed: training" + (", dotted: validation" if validated else "")
        axes.legend(title=title, loc="lower right")
    else:
        axes.set_xticks([])
    return figure


def _empty(curves: Mapping[tuple[str, int], pd.DataFrame], model: str) -> bool:
    return all(curve.empty for (of, _), curve in curves.items() if of == model)

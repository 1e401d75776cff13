"""Figures of caption studies: INFD of both models, and the share of attribution on the half that a model uses."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray as Array

from saliency_assay.plotting.palette import BLUE, GRAY, ORANGE
from saliency_assay.plotting.style import name_columns, named_width
from saliency_assay.plotting.text import groups_text, span_text
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.studies.caption.caption_tables import ZERO

HALVES = {"image": "picture", "caption": "caption", "": "neither"}
MARGIN = 2.0  # inches of a figure beside its bars


def infidelity_bars(table: pd.DataFrame, labels: Labels = UNLABELED) -> Figure:
    """Plot INFD of each method for both models; ``table`` is from ``caption_table``."""
    return _bar_figure(table, "infidelity", 1.0, "INFD: mean over images (squared logits)", labels)


def share_bars(table: pd.DataFrame, labels: Labels = UNLABELED) -> Figure:
    """Plot the share of absolute attribution on the half that each model uses, by method."""
    figure = _bar_figure(
        table, "share", 100.0, "absolute attribution on the half\nthat the model uses (%)", labels
    )
    axes = figure.axes[0]
    axes.set_ylim(0, 105)
    axes.axhline(50, color=GRAY, linewidth=1, linestyle="--")
    return figure


def _bar_figure(table: pd.DataFrame, column: str, scale: float, label: str, labels: Labels) -> Figure:
    """Plot means over seeds as bars, 95 % intervals of the mean over images as whiskers, and several seeds as dots."""
    methods, models = (list(dict.fromkeys(table[name])) for name in ("method", "model"))
    names = [labels.method(str(method)) for method in methods]
    width = max(6.5, named_width(names, margin=MARGIN, least=1.1))
    figure = Figure(figsize=(width, 4.4))
    axes = figure.add_subplot()
    for number, model in enumerate(models):
        places = np.arange(len(methods)) + 0.4 * (number - (len(models) - 1) / 2)
        rows = table[table["model"] == model].assign(scaled=lambda rows: rows[column] * scale)
        means = rows.groupby("method")["scaled"].mean().reindex(methods)
        half = 1.96 * scale * rows.groupby("method")[f"{column}_error"].mean().reindex(methods)
        # No score is negative, and shares are at most 1.
        most = np.inf if column == "infidelity" else scale
        whiskers = np.stack([np.fmin(half, means), np.fmin(half, most - means)])
        style: dict[str, Any] = {
            "capsize": 3,
            "error_kw": {"linewidth": 1},
            "color": (BLUE, ORANGE)[number % 2],
        }
        axes.bar(
            places, means, 0.4, yerr=whiskers, label=_model_label(labels.model(model), rows["used"]), **style
        )
        _mark_missing_and_zero(axes, places, means)
        if rows["seed"].nunique() > 1:
            positions = rows["method"].map(dict(zip(methods, places, strict=True)))
            axes.plot(positions, rows["scaled"], "o", color="black", markersize=3)
    axes.axhline(0, color="black", linewidth=0.8)
    name_columns(axes, names, (width - MARGIN) / max(len(names), 1))
    axes.set_ylabel(label)
    seeds = table["seed"].nunique()
    images_text = f"{span_text(table['images'])} images{groups_text(table.get('groups', ()))}"
    axes.set_xlabel(f"method; {images_text} per model, {seeds} training seed{'s' if seeds > 1 else ''}")
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def _model_label(model: str, used: "pd.Series[str]") -> str:
    halves = " or ".join(HALVES[half] for half in dict.fromkeys(used))
    return f"{model} (uses the {halves})" if any(used) else f"{model} (uses neither)"


def _mark_missing_and_zero(axes: Axes, places: Array, heights: "pd.Series[float]") -> None:
    """Mark a missing score by a cross, not a bar of height 0, and a bar of 0 by its value."""
    for place, height in zip(places, heights, strict=True):
        text = "×" if np.isnan(height) else "0" if abs(height) <= ZERO else ""
        axes.text(place, 0, text, ha="center", va="bottom")

"""Figures of a study of designed networks: methods × networks, and metrics × networks."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pandas as pd
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy import ndarray as Array

from saliency_assay.plotting.palette import cell_colors
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.reliability.figures import COLUMN, style_matrix
from saliency_assay.reliability.reliability_tables import rank_text
from saliency_assay.studies.designed.designed_tables import CLOSENESS

HEADS: Mapping[str, str] = MappingProxyType(
    {
        "first": "exact map ranked first",
        "rho": "ρ with the closeness",
        "rho_low": "ρ, lower CI limit",
        "rho_high": "ρ, upper CI limit",
    }
)
"""Names of columns of the study's tables on its page."""


def method_figure(table: pd.DataFrame, labels: Labels = UNLABELED) -> Figure:
    """Plot the mean correlation with the truth, and its rank set, of every method on every network.

    Args:
        table: see ``designed_tables.method_truth_table``.
        labels: labels of methods and models.
    """
    closeness = table[table["metric"] == CLOSENESS]
    order = closeness.groupby("method", sort=False)["mean"].mean().sort_values(ascending=False, kind="stable")
    ranked = closeness.groupby("model")["rank_low"].transform("count")
    cells = closeness.assign(key=closeness["method"], value=closeness["mean"], ranked=ranked)
    rows = {str(method): labels.method(str(method)) for method in order.index}
    return _matrix(cells, rows, labels, "mean correlation with the exact importance, and rank set")


def metric_figure(table: pd.DataFrame, labels: Labels = UNLABELED) -> Figure:
    """Plot the rank set of the truth under every metric, and the agreement with the closeness, on every network.

    Args:
        table: see ``designed_tables.metric_truth_table``.
        labels: labels of scores and models.
    """
    keys = table["metric"] + " " + table["variant"]
    cells = table.assign(key=keys, value=table["rho"], ranked=table["methods"] + 1)
    rows = {
        key: labels.score(metric, variant)
        for key, metric, variant in zip(keys, table["metric"], table["variant"], strict=True)
    }
    title = "Spearman's ρ between metric and closeness to the exact importance, and rank set of the exact map"
    return _matrix(cells, rows, labels, title)


def _matrix(cells: pd.DataFrame, rows: Mapping[str, str], labels: Labels, title: str) -> Figure:
    """Plot a value and a rank set for each of ``rows``, keys with their labels, and each network."""
    models = {model: place for place, model in enumerate(dict.fromkeys(cells["model"]))}
    places = {key: place for place, key in enumerate(rows)}
    figure = Figure(figsize=(COLUMN * len(models) + 3.4, 0.34 * len(rows) + 2.0))
    axes = figure.subplots()
    colors: Array = np.ones((len(rows), len(models), 3))
    for _, cell in cells.iterrows():
        row, column = places[cell["key"]], models[cell["model"]]
        low, high = cell["rank_low"], cell["rank_high"]
        background, color = cell_colors(low, high, int(cell["ranked"])) if low == low else ("white", "black")
        colors[row, column] = to_rgb(background)
        value = "–" if np.isnan(cell["value"]) else f"{cell['value']:.2f}".replace("-", "−")
        text = f"{value}  ({rank_text(low, high) or 'no rank'})"
        axes.text(column, row, text, ha="center", va="center", fontsize=8, color=color)
    axes.imshow(colors, aspect="auto")
    style_matrix(axes, [labels.model(str(model)) for model in models], list(rows.values()), COLUMN)
    axes.set_xlabel(f"{title} (in brackets)")
    return figure

"""TCAV as a figure: layers, their test against random CAVs, and the mean over those that pass it."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from saliency_assay.plotting.palette import BLUE, GRAY, ORANGE
from saliency_assay.plotting.style import WIDTH, name_columns
from saliency_assay.plotting.text import significant, span_text
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.studies.bam.tcav_tables import MEAN, Layers, measured

LEAST_PANEL, LAYER = 3.1, 0.72  # inches of a panel, and of a layer with its p
MARGIN = 1.0  # inches of the figure beside its panels


def concept_figure(
    scores: pd.DataFrame, table: pd.DataFrame, *, significance: float, labels: Labels = UNLABELED
) -> Figure:
    """Plot scores of concept and random CAVs by layer, one panel per model.

    ``table`` is the ``concepts_table`` of ``scores`` for this ``significance``.

    Dots are means over experiments and training seeds, whiskers their standard deviation over all of these; above
    each layer is its p or, for several seeds, the number that keep it. A layer that no seed keeps is hollow. The title
    has G_c, the mean over seeds that have one; the dashed line is 0.5, the expected score of a meaningless direction.
    """
    models = list(dict.fromkeys(table["model"]))
    model_layers = [(model, layers) for model, _, _, layers in measured(scores)]
    panel = max(LEAST_PANEL, LAYER * max((len(layers) for _, layers in model_layers), default=0))
    columns = max(1, min(int((WIDTH - MARGIN) / panel), len(models)))
    rows = -(-len(models) // columns)
    figure = Figure(figsize=(MARGIN + panel * columns, 0.9 + 3.2 * rows))
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for axes, model in zip(panels.flat, models, strict=False):
        seeds = [layers for name, layers in model_layers if name == model]
        _plot_panel(axes, table[table["model"] == model], seeds, labels.model(model), panel)
    for axes in panels.flat[len(models) :]:
        axes.set_axis_off()
    for axes in panels[:, 0]:
        axes.set_ylabel("TCAV: share of images")
    handles, texts = panels[0, 0].get_legend_handles_labels()
    title = f"hollow: not significant (p > {significance:g}), excluded from the mean"
    figure.legend(handles, texts, loc="outside upper center", ncols=3, title=title)
    return figure


def _plot_panel(axes: Axes, table: pd.DataFrame, seeds: list[Layers], model: str, inches: float) -> None:
    """Plot the layers of one model, with their p above the axes."""
    layers = list(seeds[0])
    layer_rows = table[table["layer"] != MEAN]
    kept = layer_rows.groupby("layer")["kept"].sum()
    places = np.arange(len(layers))
    styles = (("concept", "concept", BLUE, -0.12), ("random", "random CAVs", ORANGE, 0.12))
    axes.axhline(0.5, color=GRAY, linewidth=1, linestyle="--", label="0.5: no preferred direction")
    ends = [0.0, 1.0]
    for kind, label, color, shift in styles:
        scores = [np.concatenate([layers_of[layer][kind] for layers_of in seeds]) for layer in layers]
        centers = np.array([values.mean() for values in scores])
        spreads = np.array([values.std(ddof=1) if len(values) > 1 else 0 for values in scores])
        ends += [*(centers - spreads), *(centers + spreads)]
        axes.errorbar(places + shift, centers, spreads, fmt="none", ecolor=color, capsize=3, linewidth=1)
        faces = [color if kept[layer] else "white" for layer in layers]
        axes.scatter(places + shift, centers, c=faces, edgecolors=color, zorder=3, label=label)
    for place, layer in zip(places, layers, strict=True):
        test_text = _test_text(layer_rows.loc[layer_rows["layer"] == layer, "p_value"], int(kept[layer]))
        axes.text(
            float(place),
            1.02,
            test_text,
            transform=axes.get_xaxis_transform(),
            ha="center",
            va="bottom",
            fontsize=8,
        )
    name_columns(axes, layers, inches / len(layers), size=9)
    axes.set_xlim(-0.6, len(layers) - 0.4)
    axes.set_ylim(np.nanmin(ends) - 0.05, np.nanmax(ends) + 0.05)
    axes.set_yticks(np.linspace(0, 1, 6))
    means = table.loc[table["layer"] == MEAN, "score"]
    images_text = span_text(table["images"])
    mean_text = f"{means.mean():.2f}" if means.notna().any() else "×"
    axes.set_title(f"{model}: {mean_text} ({images_text} images)", fontsize=10, pad=20)


def _test_text(p_values: "pd.Series[float]", kept: int) -> str:
    """Return the p-value or, for several seeds, the number of seeds that keep the layer."""
    if len(p_values) > 1:
        return f"{kept} of {len(p_values)}"
    p = p_values.iloc[0]
    if np.isnan(p):
        return "×"
    return f"p={significant(p, 2)}" if p >= 0.001 else "p<0.001"

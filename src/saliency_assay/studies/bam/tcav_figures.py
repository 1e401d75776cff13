"""TCAV as a figure: layers, their test against random CAVs, and the mean over those that pass it."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from saliency_assay.plotting.palette import BLUE, GRAY, ORANGE
from saliency_assay.plotting.text import span_text
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.studies.bam.tcav_tables import MEAN, Layers, measured

PANELS = 4  # in a row of the figure


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
    columns = min(PANELS, len(models))
    rows = -(-len(models) // columns)
    figure = Figure(figsize=(1.2 + 3.1 * columns, 0.9 + 3.0 * rows))
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
    model_layers = [(model, layers) for model, _, _, layers in measured(scores)]
    for axes, model in zip(panels.flat, models, strict=False):
        seeds = [layers for name, layers in model_layers if name == model]
        _plot_panel(axes, table[table["model"] == model], seeds, labels.model(model))
    for axes in panels.flat[len(models) :]:
        axes.set_axis_off()
    for axes in panels[:, 0]:
        axes.set_ylabel("TCAV: share of images")
    handles, texts = panels[0, 0].get_legend_handles_labels()
    title = f"hollow: not significant (p > {significance:g}), excluded from the mean"
    figure.legend(handles, texts, loc="outside upper center", ncols=3, title=title)
    return figure


def _plot_panel(axes: Axes, table: pd.DataFrame, seeds: list[Layers], model: str) -> None:
    layers = list(seeds[0])
    layer_rows = table[table["layer"] != MEAN]
    kept = layer_rows.groupby("layer")["kept"].sum()
    places = np.arange(len(layers))
    styles = (("concept", "concept", BLUE, -0.12), ("random", "random CAVs", ORANGE, 0.12))
    axes.axhline(0.5, color=GRAY, linewidth=1, linestyle="--", label="0.5: no preferred direction")
    for kind, label, color, shift in styles:
        scores = [np.concatenate([layers_of[layer][kind] for layers_of in seeds]) for layer in layers]
        centers = np.array([values.mean() for values in scores])
        spreads = [values.std(ddof=1) if len(values) > 1 else 0 for values in scores]
        axes.errorbar(places + shift, centers, spreads, fmt="none", ecolor=color, capsize=3, linewidth=1)
        faces = [color if kept[layer] else "white" for layer in layers]
        axes.scatter(places + shift, centers, c=faces, edgecolors=color, zorder=3, label=label)
    for place, layer in zip(places, layers, strict=True):
        test_text = _test_text(layer_rows.loc[layer_rows["layer"] == layer, "p_value"], int(kept[layer]))
        axes.text(float(place), 1.06, test_text, ha="center", va="bottom", fontsize=8)
    axes.set_xticks(places, layers, rotation=30, ha="right")
    axes.set_xlim(-0.6, len(layers) - 0.4)
    axes.set_ylim(-0.05, 1.2)
    axes.set_yticks(np.linspace(0, 1, 6))
    means = table.loc[table["layer"] == MEAN, "score"]
    images_text = span_text(table["images"])
    mean_text = f"{means.mean():.2f}" if means.notna().any() else "×"
    axes.set_title(f"{model}: {mean_text} ({images_text} images)", fontsize=10)


def _test_text(p_values: "pd.Series[float]", kept: int) -> str:
    """Return the p-value or, for several seeds, the number of seeds that keep the layer."""
    if len(p_values) > 1:
        return f"{kept} of {len(p_values)}"
    p = p_values.iloc[0]
    if np.isnan(p):
        return "×"
    return f"p={p:.2g}" if p >= 0.001 else "p<0.001"

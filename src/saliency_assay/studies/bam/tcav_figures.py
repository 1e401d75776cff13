"""TCAV in tables and in a figure: layers, their test against random CAVs, and the mean over those that pass it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from saliency_assay.plotting.style import BLUE, GREY, ORANGE
from saliency_assay.studies.bam.tcav import KINDS, layer_test

COLUMNS = ["model", "seed", "layer", "score", "random", "p_value", "kept", "images", "experiments"]
MEAN = "mean"
"""The row of each model and seed that holds G_c."""
KEYS = dict(zip(KINDS, ("score", "random"), strict=True))
PANELS = 4  # in a row of the figure

Layers = dict[str, dict[str, npt.NDArray[np.float64]]]


def concepts_table(scores: pd.DataFrame, *, significance: float) -> pd.DataFrame:
    """TCAV of every model, seed and layer, and the mean over the layers that pass the test (BAM, appendix F).

    Args:
        scores: a score table with the metrics ``tcav`` and ``tcav_images`` as ``tcav.rows_of`` names them.
        significance: layers with a greater p are left out.

    Returns:
        One row per model, seed and layer, in the order of the table: ``score`` and ``random``, the means over
        ``experiments`` CAVs of the concept and random ones; ``p_value``, and ``kept``, by ``tcav.layer_test``;
        ``images`` under test. Then, with the layer ``mean``, G_c: ``score`` and ``random`` are means over the layers
        kept, NaN where none is, and ``kept`` is whether any is.
    """
    rows: list[dict[str, Any]] = []
    for model, seed, images, layers in _measured(scores):
        of_layers: list[dict[str, Any]] = []
        for layer, kinds in layers.items():
            p, kept = layer_test(kinds["concept"], kinds["random"], significance=significance)
            means = {key: float(kinds[kind].mean()) for kind, key in KEYS.items()}
            of_layers.append({"layer": layer, **means, "p_value": p, "kept": kept})
        counted = pd.DataFrame(of_layers).query("kept")
        means = {key: float(counted[key].mean()) for key in KEYS.values()}
        of_layers.append({"layer": MEAN, **means, "p_value": np.nan, "kept": len(counted) > 0})
        shared = {"model": model, "seed": seed, "images": images, "experiments": len(kinds["concept"])}
        rows += [{**shared, **row} for row in of_layers]
    return pd.DataFrame(rows, columns=COLUMNS)


def concept_figure(scores: pd.DataFrame, table: pd.DataFrame, *, significance: float) -> Figure:
    """Scores of concept and random CAVs by layer, a panel for each model.

    ``table`` is the ``concepts_table`` of ``scores`` under this ``significance``.

    Dots are means over experiments and training seeds, whiskers their standard deviation over all of these; above
    each layer stands its p or, for several seeds, how many keep it. A layer that no seed keeps is hollow. The title
    has G_c, the mean over seeds that have one; the dashed line is 0.5, what a direction without meaning has.
    """
    models = list(dict.fromkeys(table["model"]))
    columns = min(PANELS, len(models))
    rows = -(-len(models) // columns)
    figure = Figure(figsize=(1.2 + 3.1 * columns, 0.9 + 3.0 * rows))
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
    measured = [(model, layers) for model, _, _, layers in _measured(scores)]
    for axes, model in zip(panels.flat, models, strict=False):
        seeds = [layers for name, layers in measured if name == model]
        _panel(axes, table[table["model"] == model], seeds)
    for axes in panels.flat[len(models) :]:
        axes.set_axis_off()
    for axes in panels[:, 0]:
        axes.set_ylabel("TCAV: share of images")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    title = f"hollow: left out, p > {significance:g}"
    figure.legend(handles, labels, loc="outside upper center", ncols=3, title=title)
    return figure


def _panel(axes: Axes, table: pd.DataFrame, seeds: list[Layers]) -> None:
    """One model: ``table`` has its rows, ``seeds`` the scores of each of its seeds."""
    layers = list(seeds[0])
    of_layers = table[table["layer"] != MEAN]
    kept = of_layers.groupby("layer")["kept"].sum()
    places = np.arange(len(layers))
    styles = (("concept", "concept", BLUE, -0.12), ("random", "random CAVs", ORANGE, 0.12))
    axes.axhline(0.5, color=GREY, linewidth=1, linestyle="--", label="0.5: no direction")
    for kind, label, colour, shift in styles:
        found = [np.concatenate([layers_of[layer][kind] for layers_of in seeds]) for layer in layers]
        centres = np.array([values.mean() for values in found])
        spreads = [values.std(ddof=1) if len(values) > 1 else 0 for values in found]
        axes.errorbar(places + shift, centres, spreads, fmt="none", ecolor=colour, capsize=3, linewidth=1)
        faces = [colour if kept[layer] else "white" for layer in layers]
        axes.scatter(places + shift, centres, c=faces, edgecolors=colour, zorder=3, label=label)
    for place, layer in zip(places, layers, strict=True):
        said = _said(of_layers.loc[of_layers["layer"] == layer, "p_value"], int(kept[layer]))
        axes.text(float(place), 1.06, said, ha="center", va="bottom", fontsize=8)
    axes.set_xticks(places, layers, rotation=30, ha="right")
    axes.set_xlim(-0.6, len(layers) - 0.4)
    axes.set_ylim(-0.05, 1.2)
    axes.set_yticks(np.linspace(0, 1, 6))
    means = table.loc[table["layer"] == MEAN, "score"]
    images = table["images"]
    counted = f"{images.min()}" if images.nunique() == 1 else f"{images.min()}–{images.max()}"
    known = f"{means.mean():.2f}" if means.notna().any() else "×"
    axes.set_title(f"{table['model'].iloc[0]}: {known} ({counted} images)", fontsize=10)


def _said(p_values: "pd.Series[float]", kept: int) -> str:
    """The p of one seed, or how many of several keep the layer."""
    if len(p_values) > 1:
        return f"{kept} of {len(p_values)}"
    p = p_values.iloc[0]
    if np.isnan(p):
        return "×"
    return f"p={p:.2g}" if p >= 0.001 else "p<0.001"


def _measured(scores: pd.DataFrame) -> Iterator[tuple[str, int, int, Layers]]:
    """Model, seed, images under test, and the scores of each layer, in the order of the table."""
    for model, seed in dict.fromkeys(zip(scores["model"], scores["seed"], strict=True)):
        table = scores[(scores["model"] == model) & (scores["seed"] == seed)]
        counts = table.loc[table["metric"] == "tcav_images", "score"]
        of_tcav = table[table["metric"] == "tcav"]
        layers: dict[str, dict[str, list[float]]] = {}
        for variant, score in zip(of_tcav["variant"], of_tcav["score"], strict=True):
            layer, kind, _ = variant.rsplit(" ", 2)
            layers.setdefault(layer, {}).setdefault(kind, []).append(score)
        found = {
            layer: {kind: np.array(values) for kind, values in kinds.items()}
            for layer, kinds in layers.items()
        }
        yield model, seed, int(counts.iloc[0]), found

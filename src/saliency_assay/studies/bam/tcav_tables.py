"""TCAV as a table: layers, their test against random CAVs, and the mean over those that pass it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from saliency_assay.studies.bam.tcav import KINDS, layer_test

COLUMNS = ["model", "seed", "layer", "score", "random", "p_value", "kept", "images", "experiments"]
MEAN = "mean"  # the row of each model and seed with G_c
KEYS = dict(zip(KINDS, ("score", "random"), strict=True))

Layers = dict[str, dict[str, npt.NDArray[np.float64]]]


def concepts_table(scores: pd.DataFrame, *, significance: float) -> pd.DataFrame:
    """Return TCAV of every model, seed and layer, and the mean over the layers that pass the test (BAM, appendix F).

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
    for model, seed, images, layers in measured(scores):
        layer_rows: list[dict[str, Any]] = []
        for layer, kinds in layers.items():
            p, kept = layer_test(kinds["concept"], kinds["random"], significance=significance)
            means = {key: float(kinds[kind].mean()) for kind, key in KEYS.items()}
            layer_rows.append({"layer": layer, **means, "p_value": p, "kept": kept})
        kept_layers = pd.DataFrame(layer_rows).query("kept")
        means = {key: float(kept_layers[key].mean()) for key in KEYS.values()}
        layer_rows.append({"layer": MEAN, **means, "p_value": np.nan, "kept": len(kept_layers) > 0})
        shared = {"model": model, "seed": seed, "images": images, "experiments": len(kinds["concept"])}
        rows += [{**shared, **row} for row in layer_rows]
    return pd.DataFrame(rows, columns=COLUMNS)


def measured(scores: pd.DataFrame) -> Iterator[tuple[str, int, int, Layers]]:
    """Yield model, seed, number of images under test, and the scores of each layer, in the order of the table."""
    for model, seed in dict.fromkeys(zip(scores["model"], scores["seed"], strict=True)):
        table = scores[(scores["model"] == model) & (scores["seed"] == seed)]
        counts = table.loc[table["metric"] == "tcav_images", "score"]
        tcav_rows = table[table["metric"] == "tcav"]
        layers: dict[str, dict[str, list[float]]] = {}
        for variant, score in zip(tcav_rows["variant"], tcav_rows["score"], strict=True):
            layer, kind, _ = variant.rsplit(" ", 2)
            layers.setdefault(layer, {}).setdefault(kind, []).append(score)
        layer_scores = {
            layer: {kind: np.array(values) for kind, values in kinds.items()}
            for layer, kinds in layers.items()
        }
        yield model, seed, int(counts.iloc[0]), layer_scores

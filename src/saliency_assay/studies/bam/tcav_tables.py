"""Table of TCAV: scores by layer, their test against random CAVs, and the mean over the layers that pass it."""

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
    """Return the TCAV scores of every model, seed and layer, and the means over kept layers (BAM, appendix F).

    Args:
        scores: a score table with the metrics ``tcav`` and ``tcav_images`` of ``tcav.rows_of``.
        significance: largest p of a kept layer.

    Returns:
        One row per model, seed and layer, in the order of the table: ``score`` and ``random``, the means over
        ``experiments`` concept CAVs and random CAVs; ``p_value`` and ``kept`` of ``tcav.layer_test``; and ``images``,
        the number of images under test. The last row of each model and seed has the layer ``mean``, G_c: means over
        the kept layers, NaN if there are none, in which case ``kept`` is False.
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

"""Table of the optimized patches behind IIR: how little they change the output."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.storage.zarr_store import Store

SIMILAR = 0.05
"""Outputs are similar if their distance is at most this share of ‖f(x)‖; in the paper's example, it is 0.2 of 31.9."""
HEADS = {
    "similar": "outputs within 5 % (share of images)",
    "output_norm": "‖f(x)‖ (logits)",
    "output_change": "‖f(x + δ) − f(x)‖ (logits)",
    "relative_change": "‖f(x + δ) − f(x)‖ / ‖f(x)‖",
    "delta_norm": "‖δ‖ (gray levels)",
    "start_distance": "distance of δ from its start (gray levels)",
}
"""Names of the columns of a ``delta_table`` on pages."""
NORMS = ("output_norm", "output_change", "delta_norm", "start_distance")


def changes_of(delta_set: Store) -> dict[str, Array]:
    """Return the ``NORMS`` ``[n]`` and the convergence of the changed images of a ``delta_set``, by name."""
    # The second half of a delta set contains the changed images; see ``invariant_patch.paired``.
    return {name: delta_set[name][len(delta_set) // 2 :] for name in (*NORMS, "convergence")}


def delta_table(changes_by_seed: Mapping[int, Mapping[str, Array]]) -> pd.DataFrame:
    """Return the similarity of the outputs of original and changed images, one row per seed.

    Args:
        changes_by_seed: for each seed, arrays ``[n]`` of ``invariant_patch.Changed``, only of changed images.

    Returns:
        ``seed, images``; ``similar``, the share (0–1) of images with ‖f(x + δ) − f(x)‖ ≤ 5 % of ‖f(x)‖; and medians:
        ``output_norm`` and ``output_change`` in logits, ``relative_change`` their ratio, ``delta_norm`` and
        ``start_distance`` in levels of 0–255.
    """
    rows = []
    for seed, changes in changes_by_seed.items():
        relative = relative_change(changes["output_change"], changes["output_norm"])
        row = {"seed": seed, "images": len(relative), "similar": float((relative <= SIMILAR).mean())}
        for name in ("output_norm", "output_change"):
            row[name] = float(np.median(changes[name]))
        row["relative_change"] = float(np.median(relative))
        for name in ("delta_norm", "start_distance"):
            row[name] = float(np.median(changes[name]))
        rows.append(row)
    return pd.DataFrame(rows)


def relative_change(change: Array, norm: Array) -> Array:
    """Return ‖f(x + δ) − f(x)‖ / ‖f(x)‖ of ``change`` ``[n]`` or ``[n, S]`` and ``norm`` ``[n]``; NaN if f(x) is 0."""
    denominator = norm.reshape(-1, *(1 for _ in change.shape[1:])).astype(np.float64)
    ratio: Array = np.divide(change, denominator, out=np.full(change.shape, np.nan), where=denominator > 0)
    return ratio

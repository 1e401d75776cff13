"""Table of changes of images that leave the output as it is (BAM's IIR)."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.storage.zarr_store import Store

SIMILAR = 0.05
"""Share of ‖f(x)‖ up to which two outputs are called similar here; the paper's one example has 0.2 of 31.9."""
NORMS = ("output_norm", "output_change", "delta_norm", "start_distance")


def changes_of(delta_set: Store) -> dict[str, Array]:
    """Return how far the images of a ``delta_set`` were changed, and what came of it: arrays ``[n]`` by name."""
    return {name: delta_set[name][len(delta_set) // 2 :] for name in (*NORMS, "convergence")}


def delta_table(found: Mapping[int, Mapping[str, Array]]) -> pd.DataFrame:
    """Return the similarity of the outputs, a row for each seed.

    Args:
        found: for each seed the arrays ``[n]`` of ``invariant_patch.Changed``, of changed images alone.

    Returns:
        ``seed, images``; ``similar``, the share (0–1) of images with ‖f(x + δ) − f(x)‖ ≤ 5 % of ‖f(x)‖; and medians:
        ``output_norm`` and ``output_change`` in logits, ``relative_change`` their ratio, ``delta_norm`` and
        ``start_distance`` in levels of 0–255.
    """
    rows = []
    for seed, of_seed in found.items():
        relative = relative_change(of_seed["output_change"], of_seed["output_norm"])
        row = {"seed": seed, "images": len(relative), "similar": float((relative <= SIMILAR).mean())}
        for name in ("output_norm", "output_change"):
            row[name] = float(np.median(of_seed[name]))
        row["relative_change"] = float(np.median(relative))
        for name in ("delta_norm", "start_distance"):
            row[name] = float(np.median(of_seed[name]))
        rows.append(row)
    return pd.DataFrame(rows)


def relative_change(change: Array, norm: Array) -> Array:
    """‖f(x + δ) − f(x)‖ / ‖f(x)‖ of ``change`` ``[n]`` or ``[n, S]`` and ``norm`` ``[n]``; NaN where f(x) is 0."""
    below = norm.reshape(-1, *(1 for _ in change.shape[1:])).astype(np.float64)
    found: Array = np.divide(change, below, out=np.full(change.shape, np.nan), where=below > 0)
    return found

"""Small results folders with synthetic scores, maps and data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from saliency_assay.data.splits import TEST
from saliency_assay.reliability.order_tables import order_tables
from saliency_assay.storage import score_tables, zarr_store

IMAGES = 24
DIRECTION = {"infidelity": "lower", "faithfulness": "higher"}
CONFIGURATION = {
    "results": "results",
    "methods": {"gradient": {}, "gradcam": {"relu": True}},
    "metrics": {"infidelity": {"largest": 2}},
    "studies": {"study": {"kind": "fidelity", "model": "net"}},
}


def write_run(
    folder: Path,
    scores: Mapping[str, Mapping[str, np.ndarray]],
    *,
    pixels: np.ndarray | None = None,
    maps: Mapping[str, np.ndarray] | None = None,
    study: str = "study",
    configuration: Mapping[str, Any] | None = None,
    **arrays: np.ndarray,
) -> Path:
    """Write a results folder.

    Args:
        folder: the new folder.
        scores: for each metric and method the scores ``[n]``, or for several training seeds ``[seeds, n]``.
        pixels: images, uint8 ``[N, 1, H, W]``.
        maps: for each method its maps ``[N, 1, H, W]``.
        study: name of the study with the ranks.
        configuration: by default ``CONFIGURATION``.
        arrays: further arrays of the data set, such as ``group``.
    """
    names = {"study": "", "data": "set", "model": "net"}
    tables = []
    for metric, of_metric in scores.items():
        for method, of_method in of_metric.items():
            for seed, values in enumerate(np.atleast_2d(of_method)):
                keys = {**names, "seed": seed, "method": method, "metric": metric, "variant": metric}
                table = pd.DataFrame({**keys, "image": np.arange(len(values)), "score": values})
                score_tables.write(folder / f"scores/{metric}/net/seed{seed}/set/{method}.parquet", table)
                tables.append(table)
    order, _ = order_tables(pd.concat(tables), DIRECTION)
    file = folder / "tables" / study / "order.csv"
    file.parent.mkdir(parents=True)
    order.to_csv(file, index=False)
    images = (
        np.random.default_rng(0).integers(0, 256, (IMAGES, 1, 4, 4), np.uint8) if pixels is None else pixels
    )
    split = np.full(len(images), TEST, dtype=np.uint8)
    zarr_store.write(
        folder / "data/set.zarr.zip",
        [{"image": images, "label_class": np.zeros(len(images), np.int64), "split": split, **arrays}],
        kind="data",
        attributes={"classes": {"class": ["one"]}},
    )
    for method, of_method in (maps or {}).items():
        rows = {"image": np.arange(len(of_method)), "map": of_method.astype(np.float32)}
        path = folder / f"maps/net/seed0/set/{method}.zarr.zip"
        attributes = {"model": "weights", "device": "cpu", "provenance": {"code": "digest"}}
        zarr_store.write(path, [rows], kind="maps", attributes=attributes)
    text = yaml.safe_dump(dict(configuration or CONFIGURATION), sort_keys=False)
    (folder / "configuration.yaml").write_text(text)
    return folder


def random_scores(
    seed: int = 0, methods: tuple[str, ...] = ("gradient", "gradcam")
) -> dict[str, dict[str, np.ndarray]]:
    """Return scores of two metrics without skewness."""
    rng = np.random.default_rng(seed)
    return {metric: {method: rng.uniform(0, 1, IMAGES) for method in methods} for metric in DIRECTION}

"""Table of the localization scores of a grid study."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}
"""Columns of quantiles."""
BINS = (0.0, 0.02, 0.05, 0.5, 0.95, 0.98, 1.0)
"""Shares of the maps, from the highest localization score to the lowest, between which AggAtt averages maps."""
COLUMNS = ["metric", "method", "layer", "images", "mean", "low", "high", "rank_low", "rank_high"]
COLUMNS += [*QUANTILES, "zero"]
HEADS = {
    "q05": "5th percentile",
    "q25": "lower quartile",
    "q75": "upper quartile",
    "q95": "95th percentile",
    "zero": "maps with score 0 (share)",
}
"""Names of columns on pages."""


def localization_table(scores: pd.DataFrame, order: pd.DataFrame, layers: Mapping[str, str]) -> pd.DataFrame:
    """Return a row for each setting and method, in the order of ``scores``, the columns ``COLUMNS``.

    Args:
        scores: score table with a row for each cell of each grid.
        order: from ``reliability.order_tables``: means with intervals that take into account that the scores of a grid
            are not independent, and rank sets.
        layers: for methods that combine feature maps of a layer, its name; ``layer`` is empty for the others.
    """
    by_method = scores.groupby(["metric", "method"], sort=False)["score"]
    table = by_method.quantile(np.array(list(QUANTILES.values()))).unstack().set_axis(list(QUANTILES), axis=1)
    table["zero"] = by_method.apply(lambda values: (values == 0).sum() / max(values.count(), 1))
    table = table.reset_index().merge(order, on=["metric", "method"], how="left")
    return table.assign(layer=[layers.get(method, "") for method in table["method"]])[COLUMNS]

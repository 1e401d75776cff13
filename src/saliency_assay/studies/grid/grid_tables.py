"""Table of the localization scores of a grid study."""

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from saliency_assay.registry.directions import HIGHER
from saliency_assay.reliability.order_tables import Rule, order_tables
from saliency_assay.reliability.variance import Factors

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


def localization_table(
    scores: pd.DataFrame, layers: Mapping[str, str], baselines: Collection[str], clusters: Factors, rule: Rule
) -> pd.DataFrame:
    """Return a row for each setting and method, in the order of ``scores``, the columns ``COLUMNS``.

    Means, intervals and rank sets are those of ``order_tables``, but of all methods, also of those of a sweep, whose
    best layer is not selected.

    Args:
        scores: score table with a row for each cell of each grid.
        layers: for methods that combine feature maps of a layer, its name; ``layer`` is empty for the others.
        baselines: methods that do not use the model.
        clusters: for each name the cluster of each image; the scores of a grid are not independent.
        rule: how methods are ranked.
    """
    settings = list(dict.fromkeys(scores["metric"]))
    ranges = dict.fromkeys(settings, (0.0, 1.0))
    directions = dict.fromkeys(settings, HIGHER)
    order, _ = order_tables(scores, directions, baselines, clusters=clusters, ranges=ranges, rule=rule)
    by_method = scores.groupby(["metric", "method"], sort=False)["score"]
    table = by_method.quantile(np.array(list(QUANTILES.values()))).unstack().set_axis(list(QUANTILES), axis=1)
    table["zero"] = by_method.apply(lambda values: (values == 0).sum() / max(values.count(), 1))
    table = table.reset_index().merge(order, on=["metric", "method"], how="left")
    return table.assign(layer=[layers.get(method, "") for method in table["method"]])[COLUMNS]

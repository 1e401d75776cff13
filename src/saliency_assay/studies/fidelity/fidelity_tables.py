"""Table of a fidelity study: means of scores over images."""

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from saliency_assay.reliability.printed import printed_values
from saliency_assay.reliability.variance import GROUPS
from saliency_assay.storage import GROUP


def summary(
    scores: pd.DataFrame, printed: Mapping[str, Mapping[str, float]], failed: Collection[str] = ()
) -> pd.DataFrame:
    """Return mean and spread over images of every metric, variant, method and seed, with a paper's values.

    Args:
        scores: the score table of one model and set.
        printed: for each method, values by score, as in ``printed_values``.
        failed: see ``printed_values``.

    Returns:
        ``metric, variant, method, seed, mean, standard deviation, median, images, undefined, printed`` in the order in
        which metrics, variants, methods and seeds first appear in ``scores``. ``images`` and ``undefined`` are the
        numbers of images with and without a score, followed by ``groups``, the number of groups of the former, if
        ``scores`` has the column ``group``; the standard deviation has ``images − 1`` in its denominator.
        Missing numbers are NaN.

    Raises:
        ValueError: the table has several studies, sets or models, or as in ``printed_values``.
    """
    sources = scores[["study", "data", "model"]].drop_duplicates()
    if len(sources) > 1:
        raise ValueError(f"scores: found {len(sources)} of study, data and model, expected one")
    keys = ["metric", "variant", "method", "seed"]
    grouped = scores.groupby(keys, sort=False)["score"]
    table = grouped.agg(["mean", "std", "median", "count", "size"]).reset_index()
    table = table.rename(columns={"std": "standard deviation", "count": "images"})
    table["undefined"] = table.pop("size") - table["images"]
    if GROUP in scores:
        scored = scores[scores["score"].notna()].groupby(keys, sort=False)[GROUP].nunique()
        table = table.merge(scored.rename(GROUPS).reset_index(), how="left", on=keys)
        table[GROUPS] = table[GROUPS].fillna(0).astype("int64")
    values = printed_values(table[["metric", "variant"]].itertuples(index=False, name=None), printed, failed)
    row_keys = table[["method", "metric", "variant"]].itertuples(index=False, name=None)
    table["printed"] = [values.get(name, np.nan) for name in row_keys]
    positions = {
        key: {value: position for position, value in enumerate(scores[key].unique())} for key in keys
    }
    return table.sort_values(
        keys, key=lambda column: column.map(positions[str(column.name)]), ignore_index=True
    )

"""Table of a fidelity study: means of scores over images."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from saliency_assay.reliability.printed import printed_values


def summary(scores: pd.DataFrame, printed: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """Mean and spread over images of every metric, variant, method and seed, beside what a paper prints.

    Args:
        scores: the score table of one model and set.
        printed: for each method values by what they are of, as ``printed_values`` reads them.

    Returns:
        ``metric, variant, method, seed, mean, standard deviation, median, images, undefined, printed`` in the order in
        which metrics, variants, methods and seeds first stand in ``scores``. ``images`` have a score, ``undefined``
        have none; the standard deviation has ``images − 1`` in its denominator. Numbers there are none of are NaN.

    Raises:
        ValueError: the table holds several studies, sets or models, or see ``printed_values``.
    """
    sources = scores[["study", "data", "model"]].drop_duplicates()
    if len(sources) > 1:
        raise ValueError(f"scores: found {len(sources)} of study, data and model, expected one")
    keys = ["metric", "variant", "method", "seed"]
    grouped = scores.groupby(keys, sort=False)["score"]
    table = grouped.agg(["mean", "std", "median", "count", "size"]).reset_index()
    table = table.rename(columns={"std": "standard deviation", "count": "images"})
    table["undefined"] = table.pop("size") - table["images"]
    values = printed_values(table[["metric", "variant"]].itertuples(index=False, name=None), printed)
    named = table[["method", "metric", "variant"]].itertuples(index=False, name=None)
    table["printed"] = [values.get(name, np.nan) for name in named]
    places = {key: {value: place for place, value in enumerate(scores[key].unique())} for key in keys}
    return table.sort_values(keys, key=lambda column: column.map(places[str(column.name)]), ignore_index=True)

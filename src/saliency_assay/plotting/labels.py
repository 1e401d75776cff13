"""Tables for display: keys of the configuration replaced by their labels."""

import pandas as pd

from saliency_assay.registry.labels import Labels


def with_labels(table: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Return a table whose columns of methods, models, sets and scores have labels instead of keys.

    A score and its variant become one column, ``metric``.
    """
    readers = {
        "study": labels.study,
        "data": labels.data_set,
        "set": labels.data_set,
        "model": labels.model,
        "method": labels.method,
        "lead_over": labels.method,
    }
    columns = {
        name: table[name].astype(str).map(read).where(table[name].notna())
        for name, read in readers.items()
        if name in table and not pd.api.types.is_numeric_dtype(table[name])  # a statistic of this name
    }
    if "metric" not in table:
        return table.assign(**columns)
    variants = table["variant"].fillna("") if "variant" in table else [""] * len(table)
    scores = [
        labels.score(metric, variant) for metric, variant in zip(table["metric"], variants, strict=True)
    ]
    return table.assign(**columns, metric=scores).drop(columns="variant", errors="ignore")

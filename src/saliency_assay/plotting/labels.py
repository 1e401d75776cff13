"""Labels of the keys of the configuration in tables: in place of the keys for display, beside them in files."""

from typing import Any

import pandas as pd

from saliency_assay.registry.labels import Labels


def with_labels(table: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Return a table whose columns of methods, models, sets and scores have labels instead of keys.

    A score and its variant become one column, ``metric``.
    """
    labeled = table.assign(**_label_columns(table, labels))
    return labeled.drop(columns="variant", errors="ignore") if "metric" in table else labeled


def with_keys_and_labels(table: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Return a table with the labels of ``with_labels`` in additional last columns, such as ``method_label``."""
    columns = _label_columns(table, labels)
    return table.assign(**{f"{name}_label": column for name, column in columns.items()})


def _label_columns(table: pd.DataFrame, labels: Labels) -> dict[str, "pd.Series[Any] | list[str]"]:
    """Return the labels of each column of keys, by name of the column; that of scores includes the variant."""
    readers = {
        "study": labels.study,
        "data": labels.data_set,
        "set": labels.data_set,
        "model": labels.model,
        "method": labels.method,
        "lead_over": labels.method,
        "other": labels.method,
        "selected": labels.method,
        "other_selected": labels.method,
        "lower": labels.method,
        "upper": labels.method,
    }
    columns: dict[str, pd.Series[Any] | list[str]] = {
        name: table[name].astype(str).map(read).where(table[name].notna())
        for name, read in readers.items()
        if name in table and not pd.api.types.is_numeric_dtype(table[name])  # a statistic of this name
    }
    if "metric" in table:
        variants = table["variant"].fillna("") if "variant" in table else [""] * len(table)
        pairs = zip(table["metric"], variants, strict=True)
        columns["metric"] = [labels.score(metric, variant) for metric, variant in pairs]
    return columns

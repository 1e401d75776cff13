"""LaTeX tables specific to a kind of study, in addition to those of single-map scores; each kind defines its specs."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from saliency_assay.plotting import latex
from saliency_assay.plotting.labels import with_labels
from saliency_assay.registry.labels import UNLABELED, Labels

MOST_ROWS = 40
METHOD_LETTERS = 20
DECIMALS = 3
LARGE = 1e5
PERCENT = ("percent", "printed", "with_object", "without", "drop", "printed_with", "printed_without")
DECIMALS_OF = {**dict.fromkeys(PERCENT, 1), "rank": 1, "k": 2}


@dataclass(frozen=True)
class StudyTableSpec:
    """Caption and columns of a study's table."""

    caption: str  # in LaTeX, after the study's name
    heads: Mapping[str, str]  # headings in LaTeX, by column


PREMISE = {"set": "set", "percent": r"accuracy (\%)", "printed": "published", "images": "images"}


def floats_of(
    study: str,
    specs: Mapping[str, StudyTableSpec],
    tables: Mapping[str, pd.DataFrame],
    labels: Labels = UNLABELED,
) -> list[str]:
    """Return the LaTeX tables specific to a study, in the order of ``specs``.

    Args:
        study: name of the study.
        specs: specs by table name.
        tables: the study's tables under ``tables/`` by name; those without a spec are ignored.
        labels: labels of the keys in the tables.
    """
    return [
        text
        for name, spec in specs.items()
        if name in tables
        for text in _floats(study, name, spec, with_labels(tables[name], labels), labels)
    ]


def _floats(study: str, name: str, spec: StudyTableSpec, table: pd.DataFrame, labels: Labels) -> list[str]:
    cells = [_column_cells(table[column], column) for column in spec.heads]
    rows = [latex.row(row) for row in zip(*cells, strict=True)]
    row_groups = [rows[start : start + MOST_ROWS] for start in range(0, len(rows), MOST_ROWS)]
    header, caption = (
        list(spec.heads.values()),
        f"Study {latex.escaped(labels.study(study))}: {spec.caption}.",
    )
    return [
        latex.floating(caption, reference_of(study, name, number, len(row_groups)), header, [group])
        for number, group in enumerate(row_groups)
    ]


def reference_of(study: str, name: str, place: int, floats: int) -> str:
    """Return the reference of a float, numbered if the table has several floats."""
    return latex.label(study, name, *([str(place + 1)] if floats > 1 else []))


def _column_cells(values: pd.Series, column: str) -> list[str]:
    """Return a column of a table as LaTeX: equal decimals in all rows, but powers of ten for very small numbers."""
    if values.notna().any() and all(isinstance(value, bool | np.bool_) for value in values.dropna()):
        return [latex.NONE if pd.isna(value) else "yes" if value else "no" for value in values]
    if not pd.api.types.is_numeric_dtype(values):
        return [latex.NONE if pd.isna(value) else latex.escaped(str(value)) for value in values]
    integers = column not in PERCENT and bool((values.dropna() % 1 == 0).all())
    return [
        _fixed(value, 0 if integers else DECIMALS_OF.get(column, DECIMALS)) for value in values.astype(float)
    ]


def _fixed(value: float, decimals: int) -> str:
    """Return a number with fixed decimals or, if it would round to 0 or is very large, by ``latex.number``."""
    if np.isfinite(value) and (value == 0 or 10.0**-decimals <= abs(value) < LARGE):
        return latex.signed(f"{value:.{decimals}f}")
    return latex.number(value)

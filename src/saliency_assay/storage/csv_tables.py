"""Reading of CSV tables of results, with names as text."""

from collections.abc import Collection
from pathlib import Path
from typing import TextIO

import pandas as pd

from saliency_assay.runtime import failure

# Columns of names, which pandas would otherwise convert: NA to a missing value, True to a boolean.
NAMES = (
    *("study", "data", "model", "method", "metric", "variant"),
    *("other_metric", "other_variant", "set", "concept"),
)


def read_table(file: Path | TextIO, *texts: str, numbers: Collection[str] = ()) -> pd.DataFrame:
    """Read a table of results; an empty name is "", an empty number NaN.

    ``texts`` are text columns in addition to ``NAMES``, and ``numbers`` those of ``NAMES`` that are numbers here.
    """
    if isinstance(file, Path):
        failure.check(file)
    text_columns = [name for name in (*NAMES, *texts) if name not in numbers]
    table = pd.read_csv(file, keep_default_na=False, na_values=[""], dtype=dict.fromkeys(text_columns, str))
    return table.fillna({name: "" for name in text_columns if name in table})

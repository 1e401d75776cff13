"""Reading of CSV tables of results; names are always read as text."""

from pathlib import Path
from typing import TextIO

import pandas as pd

NAMES = (
    *("study", "data", "model", "method", "metric", "variant"),
    *("other_metric", "other_variant", "set", "concept"),
)


def read_table(file: Path | TextIO, *texts: str) -> pd.DataFrame:
    """Read a table of results; names such as NA or True stay text, an empty name is "", an empty number NaN.

    ``texts`` are further text columns besides ``NAMES``.
    """
    text_columns = (*NAMES, *texts)
    table = pd.read_csv(file, keep_default_na=False, na_values=[""], dtype=dict.fromkeys(text_columns, str))
    return table.fillna({name: "" for name in text_columns if name in table})

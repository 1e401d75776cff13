"""CSV tables of results: names stay text, whatever they look like."""

from pathlib import Path
from typing import TextIO

import pandas as pd

NAMES = (
    *("study", "data", "model", "method", "metric", "variant"),
    *("other_metric", "other_variant", "set", "concept"),
)


def read_table(file: Path | TextIO, *texts: str) -> pd.DataFrame:
    """Read a table of results: a method may be called NA, or True; an empty name is "", an empty number NaN.

    ``texts`` are columns that hold text besides those of ``NAMES``.
    """
    names = (*NAMES, *texts)
    table = pd.read_csv(file, keep_default_na=False, na_values=[""], dtype=dict.fromkeys(names, str))
    return table.fillna({name: "" for name in names if name in table})

"""CSV tables of results: names stay text, whatever they look like."""

from pathlib import Path

import pandas as pd

NAMES = (
    "study",
    "data",
    "model",
    "method",
    "metric",
    "variant",
    "other_metric",
    "other_variant",
    "set",
    "concept",
)


def read_table(path: Path) -> pd.DataFrame:
    """A table of results: a method may be called NA, or True; an empty name is "", an empty number NaN."""
    named = dict.fromkeys(NAMES, str)
    found = pd.read_csv(path, keep_default_na=False, na_values=[""], dtype=named)
    return found.fillna({name: "" for name in NAMES if name in found})

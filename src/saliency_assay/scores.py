"""The one place that knows the score table: its columns, and how it is written and read.

The table (parquet, long form) is the only hand-over from scoring to reliability and report. One row per image;
scores of a whole set have image = -1. Replicates stay raw: means and intervals are computed by whoever shows them.
"""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

COLUMNS = {
    "study": "str",
    "data": "str",
    "model": "str",
    "seed": "int64",
    "method": "str",
    "metric": "str",
    "variant": "str",
    "image": "int64",
    "score": "float64",
}
WHOLE_SET = -1


class ScoreError(ValueError):
    """A table that is not a score table. The message is one line."""


def check(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """``table`` with the columns in order and of the right types.

    Raises:
        ScoreError: columns are missing or unknown, a value has another type, or two rows score the same thing.
    """
    if set(table.columns) != set(COLUMNS):
        raise ScoreError(f"{source}: columns {sorted(table.columns)}, expected {sorted(COLUMNS)}")
    try:
        table = table[list(COLUMNS)].astype(COLUMNS)
    except (TypeError, ValueError) as error:
        raise ScoreError(f"{source}: {error}") from error
    keys = [name for name in COLUMNS if name != "score"]
    repeated = table.duplicated(keys)
    if repeated.any():
        row = table.loc[repeated, keys].iloc[0].to_dict()
        raise ScoreError(f"{source}: scored twice: {row}")
    return table


def write(path: Path, table: pd.DataFrame) -> None:
    """Write a score table as one parquet file, whole or not at all.

    Raises:
        ScoreError: see ``check``.
    """
    table = check(table, str(path))
    temporary = path.with_name(f".{path.name}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        table.to_parquet(temporary, index=False)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read(paths: Iterable[Path]) -> pd.DataFrame:
    """The score tables at ``paths`` as one, ordered as given.

    Raises:
        ScoreError: no path, a file that is no parquet, or see ``check``.
    """
    tables = []
    for path in paths:
        try:
            tables.append(pd.read_parquet(path))
        except (OSError, ValueError) as error:
            raise ScoreError(f"{path}: not a parquet file ({str(error).splitlines()[0]})") from error
    if not tables:
        raise ScoreError("no score tables; expected at least one path")
    return check(pd.concat(tables, ignore_index=True), "score tables")

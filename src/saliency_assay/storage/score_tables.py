"""The one place that knows the score table: its columns, and how it is written and read.

The table (parquet, long form) is the only hand-over from scoring to reliability and report. One row per image;
scores of a whole set have image = -1. Replicates stay raw: means and intervals are computed by whoever shows them.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as pads  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.environment import loaded_versions
from saliency_assay.storage.zarr_format import FORMAT, unreadable

FORMAT_KEY = b"saliency_assay_format"
"""In the file's metadata: the version of what the table looks like (``store_format``)."""
LIBRARIES_KEY = b"saliency_assay_libraries"
"""In the file's metadata: JSON of the versions of the packages that made what the table holds."""
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
Conditions = Sequence[tuple[str, str, object]]
"""Filter of rows in pyarrow's form: ``("metric", "==", "accuracy")``, all of them."""
WHOLE_SET = -1
ROW_GROUP = 1_000_000


class ScoreError(ValueError):
    """A table that is not a score table. The message is one line."""


def check(table: pd.DataFrame, source: str, *, compact: bool = False) -> pd.DataFrame:
    """``table`` with the columns in order and of the right types; text as categories where ``compact``.

    Raises:
        ScoreError: columns are missing or unknown, a value has another type, or two rows score the same thing.
    """
    if set(table.columns) != set(COLUMNS):
        raise ScoreError(f"{source}: columns {sorted(table.columns)}, expected {sorted(COLUMNS)}")
    types = {name: "category" if compact and kind == "str" else kind for name, kind in COLUMNS.items()}
    try:
        table = table[list(COLUMNS)].astype(types)
    except (TypeError, ValueError) as error:
        raise ScoreError(f"{source}: {error}") from error
    keys = [name for name in COLUMNS if name != "score"]
    repeated = table.duplicated(keys)
    if repeated.any():
        row = table.loc[repeated, keys].iloc[0].to_dict()
        raise ScoreError(f"{source}: scored twice: {row}")
    return table


def write(path: Path, table: pd.DataFrame) -> None:
    """Write a score table as one parquet file, whole or not at all."""
    table = check(table, str(path))
    with replacing(path) as temporary:
        pq.write_table(_with_format(pa.Table.from_pandas(table, preserve_index=False)), temporary)


@contextmanager
def writer(path: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Write a score table part by part, as the file that ``write`` makes of all parts together, whole or not at all.

    Each part is checked on its own: the caller sees to it that two parts do not score the same thing.
    """
    nothing = pd.DataFrame(columns=list(COLUMNS)).astype(COLUMNS)
    schema = _with_format(pa.Table.from_pandas(nothing, preserve_index=False)).schema
    with replacing(path) as temporary, pq.ParquetWriter(temporary, schema) as file:

        def append(part: pd.DataFrame) -> None:
            part = check(part, str(path), compact=True)
            # Text takes far more memory than categories, so there is little of it at a time.
            for start in range(0, len(part), ROW_GROUP):
                rows = pa.Table.from_pandas(part.iloc[start : start + ROW_GROUP], preserve_index=False)
                file.write_table(rows.cast(schema))

        yield append


def read(paths: Iterable[Path], *, compact: bool = False, only: Conditions | None = None) -> pd.DataFrame:
    """Return the score tables at ``paths`` as one, ordered as given; text as categories where ``compact``, to save
    memory.

    Rows of one score of one method stand together even where parts of a set were scored in files of their own, which
    are given in their order: the table is that of the whole set.

    With ``only`` no other row is read.

    Raises:
        ScoreError: no path, a file that is no parquet or of another format, or see ``check``.
    """
    text = [name for name, kind in COLUMNS.items() if kind == "str"] if compact else None
    tables, files = [], list(paths)
    for path in files:
        try:
            table = pq.read_table(path, read_dictionary=text, partitioning=None, filters=only)
            table.validate(full=True)  # of a damaged file, text may be no text
        except Exception as error:  # Arrow has a class for each of its statuses, and not all are ValueError
            raise _unreadable(path, error) from error
        found = (table.schema.metadata or {}).get(FORMAT_KEY)
        if unfit := unreadable(found.decode(errors="replace") if found else None):
            raise ScoreError(f"{path}: {unfit}")
        # What pandas notes for itself says nothing that is not checked below, and may be damaged, too.
        tables.append(table.replace_schema_metadata(None))
    if not tables:
        raise ScoreError("no score tables; expected at least one path")
    source = str(files[0]) if len(files) == 1 else "score tables"
    try:
        joined = _joined(tables, compact)
    except Exception as error:  # columns of other types in one of them, text that is none
        raise _unreadable(source, error) from error
    return check(_together(joined), source, compact=compact)


def write_predictions(path: Path, table: pd.DataFrame, libraries: Mapping[str, str]) -> None:
    """Write the predictions of a model, with the versions of the packages that made its weights."""
    rows = pa.Table.from_pandas(table, preserve_index=False)
    with replacing(path) as temporary:
        pq.write_table(_with_metadata(rows, {LIBRARIES_KEY: json.dumps(libraries).encode()}), temporary)


def libraries_in(path: Path) -> dict[str, str]:
    """Return the versions of the packages that made a score table, or the weights behind a table of predictions."""
    found = (pq.read_schema(path).metadata or {}).get(LIBRARIES_KEY, b"{}")
    return {str(name): str(version) for name, version in json.loads(found).items()}


def _with_format(table: pa.Table) -> pa.Table:
    libraries = json.dumps(loaded_versions()).encode()
    return _with_metadata(table, {FORMAT_KEY: FORMAT.encode(), LIBRARIES_KEY: libraries})


def _with_metadata(table: pa.Table, added: Mapping[bytes, bytes]) -> pa.Table:
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **added})


def _together(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of each score at the place of the first of them, in the order that they have."""
    keys = [name for name in COLUMNS if name not in ("image", "score")]
    if not set(keys) <= set(table.columns):
        return table  # ``check`` says what is missing
    # Only the first row of each run of equal keys is looked at: a table may have millions of others.
    first = np.arange(len(table)) == 0
    for name in keys:
        values = table[name].cat.codes if table[name].dtype == "category" else table[name]
        first[1:] |= values.to_numpy()[1:] != values.to_numpy()[:-1]
    places = table.loc[first, keys].groupby(keys, sort=False, observed=True).ngroup().to_numpy()
    if (np.diff(places) >= 0).all():
        return table
    lengths = np.diff(np.flatnonzero(np.append(first, True)))
    return table.iloc[np.argsort(np.repeat(places, lengths), kind="stable")].reset_index(drop=True)


def combinations(path: Path, columns: Sequence[str], *, only: Conditions) -> list[dict[str, object]]:
    """Return the combinations of ``columns`` in the rows ``only`` of a score table, in order, a batch at a time.

    Raises:
        ScoreError: a file that is no parquet.
    """
    found: dict[tuple[object, ...], None] = {}
    try:
        rows = pads.dataset(path, format="parquet")
        for batch in rows.to_batches(columns=list(columns), filter=pq.filters_to_expression(only)):
            distinct = pa.Table.from_batches([batch]).group_by(list(columns), use_threads=False).aggregate([])
            found |= dict.fromkeys(zip(*(distinct[name].to_pylist() for name in columns), strict=True))
    except Exception as error:
        raise _unreadable(path, error) from error
    return [dict(zip(columns, values, strict=True)) for values in found]


def _unreadable(path: Path | str, error: Exception) -> ScoreError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return ScoreError(f"{path}: not a parquet file ({reason[:200]})")


def _joined(tables: list[pa.Table], compact: bool) -> pd.DataFrame:
    """Return the rows of all; categories of one column are one set of them, else pandas would make text of them."""
    if compact:
        found: pd.DataFrame = pa.concat_tables(tables).to_pandas(ignore_metadata=True)
    else:
        found = pd.concat([table.to_pandas() for table in tables], ignore_index=True)
    return found

"""Score tables: columns, writing and reading.

The score table (Parquet, long form) is the only interface between scoring on one side and reliability and report on
the other. It has one row per image; scores of a whole set have image -1. Replicates are stored individually; means and
intervals are computed where they are displayed.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from saliency_assay.runtime import failure
from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.environment import loaded_versions, optional
from saliency_assay.storage import GROUP
from saliency_assay.storage.zarr_format import FORMAT, unreadable

with optional("pyarrow"):
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.dataset as pads  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

FORMAT_KEY = b"saliency_assay_format"
"""Key of the format version (``zarr_format.FORMAT``), in the file's metadata."""
LIBRARIES_KEY = b"saliency_assay_libraries"
"""Key of the versions (JSON) of the packages that computed the content, in the file's metadata."""
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
FILE = "file"
"""Column after ``COLUMNS`` in tables of single maps of image files: the file's relative path, as in the data set."""
OF_IMAGE = (FILE, GROUP)
"""Optional columns after ``COLUMNS``, equal in all rows of an image; data sets have arrays of these names."""
Conditions = Sequence[tuple[str, str, object]]
"""Row filter in pyarrow's form: conditions such as ``("metric", "==", "accuracy")``, all of which must be true."""
ROW_GROUP = 1_000_000  # rows


class ScoreError(ValueError):
    """Error for a table that is not a score table. The message is one line."""


def check(table: pd.DataFrame, source: str, *, compact: bool = False) -> pd.DataFrame:
    """Return ``table`` with its columns in order and of the right types; with ``compact``, text is categorical.

    Raises:
        ScoreError: columns are missing or unknown, an optional one is empty in some rows, a value has another type, or
            two rows have the same key.
    """
    if set(table.columns).difference(OF_IMAGE) != set(COLUMNS):
        raise ScoreError(f"{source}: columns {sorted(table.columns)}, expected {sorted(COLUMNS)}")
    optional = [name for name in OF_IMAGE if name in table.columns]
    for name in optional:
        if table[name].isna().any():
            raise ScoreError(
                f"{source}: found rows with and without {name}, expected all with or all without"
            )
    columns = COLUMNS | dict.fromkeys(optional, "str")
    types = {name: "category" if compact and kind == "str" else kind for name, kind in columns.items()}
    try:
        table = table[list(columns)].astype(types)
    except (TypeError, ValueError) as error:
        raise ScoreError(f"{source}: {error}") from error
    keys = [name for name in COLUMNS if name != "score"]
    repeated = table.duplicated(keys)
    if repeated.any():
        row = table.loc[repeated, keys].iloc[0].to_dict()
        raise ScoreError(f"{source}: found two scores of {row}, expected one")
    return table


def write(path: Path, table: pd.DataFrame) -> None:
    """Write a score table as one Parquet file, atomically."""
    table = check(table, str(path))
    with replacing(path) as temporary:
        pq.write_table(_with_format(pa.Table.from_pandas(table, preserve_index=False)), temporary)


@contextmanager
def writer(path: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Yield a function that appends tables to one score table; the file is written atomically.

    Each table is checked separately: the caller must ensure that no two of them contain rows with the same key.
    """
    empty = pd.DataFrame(columns=list(COLUMNS)).astype(COLUMNS)
    schema = _with_format(pa.Table.from_pandas(empty, preserve_index=False)).schema
    with replacing(path) as temporary, pq.ParquetWriter(temporary, schema) as file:

        def append(table: pd.DataFrame) -> None:
            table = check(table, str(path), compact=True)
            # Text needs far more memory than categories, so that only some of the rows are converted at a time.
            for start in range(0, len(table), ROW_GROUP):
                rows = pa.Table.from_pandas(table.iloc[start : start + ROW_GROUP], preserve_index=False)
                file.write_table(rows.cast(schema))

        yield append


def read(
    paths: Iterable[Path],
    *,
    compact: bool = False,
    only: Conditions | None = None,
    with_files: bool = False,
) -> pd.DataFrame:
    """Return the score tables at ``paths`` as one table, in that order.

    The rows of one score of one method are contiguous even if the shards of a set were scored in separate files. If
    these are in order, the table equals that of the unsharded set.

    Args:
        paths: the files.
        compact: True for text as categories, which saves memory.
        only: conditions on the rows to read; None or empty for all rows.
        with_files: True to keep the column ``FILE`` of tables that have it, which only people read.

    Raises:
        ScoreError: there is no path, a file is not Parquet or has another format, or an error of ``check``.
    """
    text = [name for name, kind in COLUMNS.items() if kind == "str"] if compact else None
    tables, files = [], list(paths)
    for path in files:
        failure.check(path, ScoreError)
        try:
            table = pq.read_table(path, read_dictionary=text, partitioning=None, filters=only or None)
            table.validate(full=True)  # text in a damaged file may be invalid
        except Exception as error:  # Arrow has several exception classes, and not all are ValueErrors
            raise _unreadable(path, error) from error
        file_format = (table.schema.metadata or {}).get(FORMAT_KEY)
        if reason := unreadable(file_format.decode(errors="replace") if file_format else None):
            raise ScoreError(f"{path}: {reason}")
        # Not needed, since ``check`` sets all types, and pandas' metadata may itself be damaged.
        table = table.replace_schema_metadata(None)
        tables.append(table if with_files or FILE not in table.column_names else table.drop_columns(FILE))
    if not tables:
        raise ScoreError("no score tables; expected at least one path")
    source = str(files[0]) if len(files) == 1 else "score tables"
    try:
        joined = _concatenate(tables, compact)
    except Exception as error:  # a table has columns of other types, or invalid text
        raise _unreadable(source, error) from error
    return check(_group_scores(joined), source, compact=compact)


def entries(table: pd.DataFrame) -> set[str]:
    """Return the first words of all variants, which are entries of metrics."""
    return {str(variant).partition(" ")[0] for variant in table["variant"].unique()}


def of_images(images: Collection[int] | None) -> Conditions:
    """Return the condition that rows are scores of ``images``; no condition if it is None."""
    return [] if images is None else [("image", "in", [int(image) for image in images])]


def write_predictions(path: Path, table: pd.DataFrame, libraries: Mapping[str, str]) -> None:
    """Write the predictions of a model, with the versions of the packages that computed its weights."""
    rows = pa.Table.from_pandas(table, preserve_index=False)
    with replacing(path) as temporary:
        pq.write_table(_with_metadata(rows, {LIBRARIES_KEY: json.dumps(libraries).encode()}), temporary)


def libraries_in(path: Path) -> dict[str, str]:
    """Return the package versions in a score table, or those of the weights in a table of predictions."""
    libraries = (pq.read_schema(path).metadata or {}).get(LIBRARIES_KEY, b"{}")
    return {str(name): str(version) for name, version in json.loads(libraries).items()}


def _with_format(table: pa.Table) -> pa.Table:
    libraries = json.dumps(loaded_versions()).encode()
    return _with_metadata(table, {FORMAT_KEY: FORMAT.encode(), LIBRARIES_KEY: libraries})


def _with_metadata(table: pa.Table, entries: Mapping[bytes, bytes]) -> pa.Table:
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **entries})


def _group_scores(table: pd.DataFrame) -> pd.DataFrame:
    """Move the rows of each score together, to the position of its first row, keeping their order."""
    keys = [name for name in COLUMNS if name not in ("image", "score")]
    if not set(keys) <= set(table.columns):
        return table  # ``check`` reports the missing columns
    # Only the first row of each run of equal keys is grouped, because a table may have millions of rows.
    first = np.arange(len(table)) == 0
    for name in keys:
        values = table[name].cat.codes if table[name].dtype == "category" else table[name]
        first[1:] |= values.to_numpy()[1:] != values.to_numpy()[:-1]
    groups = table.loc[first, keys].groupby(keys, sort=False, observed=True).ngroup().to_numpy()
    if (np.diff(groups) >= 0).all():
        return table
    lengths = np.diff(np.flatnonzero(np.append(first, True)))
    return table.iloc[np.argsort(np.repeat(groups, lengths), kind="stable")].reset_index(drop=True)


def combinations(path: Path, columns: Sequence[str], *, only: Conditions) -> list[dict[str, object]]:
    """Return the distinct combinations of ``columns`` in the rows that meet ``only``, in order of appearance.

    The score table at ``path`` is read in batches.

    Raises:
        ScoreError: the file is not Parquet.
    """
    distinct_rows: dict[tuple[object, ...], None] = {}
    try:
        rows = pads.dataset(path, format="parquet")
        for batch in rows.to_batches(columns=list(columns), filter=pq.filters_to_expression(only)):
            distinct = pa.Table.from_batches([batch]).group_by(list(columns), use_threads=False).aggregate([])
            distinct_rows |= dict.fromkeys(
                zip(*(distinct[name].to_pylist() for name in columns), strict=True)
            )
    except Exception as error:
        raise _unreadable(path, error) from error
    return [dict(zip(columns, values, strict=True)) for values in distinct_rows]


def _unreadable(path: Path | str, error: Exception) -> ScoreError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return ScoreError(f"{path}: not a parquet file ({reason[:200]})")


def _concatenate(tables: list[pa.Table], compact: bool) -> pd.DataFrame:
    """Concatenate ``tables``; with ``compact`` in Arrow, which unifies categories that pandas would convert to text."""
    if compact:
        joined: pd.DataFrame = pa.concat_tables(tables).to_pandas(ignore_metadata=True)
    else:
        joined = pd.concat([table.to_pandas() for table in tables], ignore_index=True)
    return joined

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from saliency_assay.storage import score_tables
from saliency_assay.storage.score_tables import ScoreError


def table(**changes: object) -> pd.DataFrame:
    columns = {"study": "bam", "data": "bam_os", "model": "f_o", "seed": 0, "method": "edge", "metric": "mcs"}
    rows = {**columns, "variant": "object", "image": [4, 7], "score": [0.25, float("nan")], **changes}
    return pd.DataFrame(rows)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    score_tables.write(paths[0], table())
    score_tables.write(paths[1], table(method="random"))
    scores = score_tables.read(paths)
    assert list(scores.columns) == list(score_tables.COLUMNS)
    assert scores["method"].tolist() == ["edge", "edge", "random", "random"]
    assert scores["score"].isna().tolist() == [False, True, False, True]
    assert sorted(tmp_path.iterdir()) == paths
    compact = score_tables.read(paths, compact=True)
    text = [name for name, kind in score_tables.COLUMNS.items() if kind == "str"]
    assert {str(compact[name].dtype) for name in text} == {"category"}
    pd.testing.assert_frame_equal(compact.astype(score_tables.COLUMNS), scores)


def test_tables_record_the_packages_that_made_them(tmp_path: Path) -> None:
    score_tables.write(tmp_path / "scores.parquet", table())
    with score_tables.writer(tmp_path / "parts.parquet") as append:
        append(table())
    for name in ("scores", "parts"):
        assert score_tables.libraries_in(tmp_path / f"{name}.parquet")["numpy"] == np.__version__


def test_predictions_record_the_packages_behind_the_weights(tmp_path: Path) -> None:
    predictions, path = pd.DataFrame({"image": [1, 2], "predicted": [0, 1]}), tmp_path / "predictions.parquet"
    score_tables.write_predictions(path, predictions, {"torch": "2.14.0"})
    assert score_tables.libraries_in(path) == {"torch": "2.14.0"}
    pd.testing.assert_frame_equal(pd.read_parquet(path), predictions)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (table().rename(columns={"score": "value"}), r"t\.parquet: columns .*'value'.*expected .*'variant'"),
        (table(image=[4, 4]), r"found two scores of .*'image': 4"),
        (table(score=["high", "low"]), "'high'"),
    ],
    ids=["columns", "repeated row", "no number"],
)
def test_wrong_tables_are_not_written(tmp_path: Path, scores: pd.DataFrame, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        score_tables.write(tmp_path / "t.parquet", scores)
    assert not list(tmp_path.iterdir())


def test_what_is_no_table_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_text("no table")
    with pytest.raises(ScoreError, match=r"t\.parquet: not a parquet file"):
        score_tables.read([tmp_path / "t.parquet"])
    with pytest.raises(ScoreError, match="expected at least one path"):
        score_tables.read([])


@pytest.mark.parametrize("compact", [False, True])
def test_tables_of_parts_are_read_as_that_of_the_whole(compact: bool, tmp_path: Path) -> None:
    """As a job writes them: all images under one score, then under the next."""

    def rows(images: range, **changes: object) -> pd.DataFrame:
        of = [table(image=list(images), score=[0.5 * image for image in images], metric=metric, variant=variant,
            **changes) for metric, variant in (("a", "L=2"), ("a", "L=4"), ("b", ""))]  # fmt: skip
        return pd.concat(of, ignore_index=True)

    paths: dict[str, list[Path]] = {"whole": [], "parts": []}
    for method in ("edge", "random"):
        for name, stretches in {"whole": [range(9)], "parts": [range(4), range(4, 8), range(8, 9)]}.items():
            for stretch in stretches:
                paths[name].append(tmp_path / f"{method}.{stretch.start}of{len(stretches)}.parquet")
                score_tables.write(paths[name][-1], rows(stretch, method=method))
    whole = score_tables.read(paths["whole"], compact=compact)
    assert whole["image"].tolist() == list(range(9)) * 6
    pd.testing.assert_frame_equal(score_tables.read(paths["parts"], compact=compact), whole)
    of_b = score_tables.read(paths["parts"], compact=compact, only=[("metric", "==", "b")])
    assert of_b["image"].tolist() == list(range(9)) * 2
    assert len(score_tables.read(paths["parts"], compact=compact, only=[("metric", "==", "c")])) == 0


@pytest.mark.parametrize("compact", [False, True])
def test_a_table_written_in_parts_is_the_whole(
    compact: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score_tables, "ROW_GROUP", 1)
    parts = [table(), table(method="random", seed=1)]
    for name, part in zip("ab", parts, strict=True):
        score_tables.write(tmp_path / f"{name}.parquet", part)
    with score_tables.writer(tmp_path / "parts.parquet") as append:
        for name in "ab":
            append(score_tables.read([tmp_path / f"{name}.parquet"], compact=compact))
    score_tables.write(tmp_path / "whole.parquet", pd.concat(parts))
    joined, whole = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("parts", "whole"))
    pd.testing.assert_frame_equal(joined, whole)
    schemas = [pq.read_schema(tmp_path / f"{name}.parquet") for name in ("parts", "whole")]
    assert schemas[0].equals(schemas[1])
    assert pq.ParquetFile(tmp_path / "parts.parquet").num_row_groups == 4
    assert not list(tmp_path.glob(".*"))


def test_parts_that_fail_leave_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"

    def write(*parts: pd.DataFrame) -> None:
        with score_tables.writer(path) as append:
            for part in parts:
                append(part)

    with pytest.raises(ScoreError, match="found two scores of"):
        write(table(), table(method="random", image=[4, 4]))
    assert not list(tmp_path.iterdir())


def test_combinations_come_in_the_order_of_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    parts = [
        table(method="b"),
        table(method="a", seed=1),
        table(method="b", variant="other"),
        table(metric="idr"),
    ]
    score_tables.write(path, pd.concat(parts))
    only = [("metric", "==", "mcs")]
    assert score_tables.combinations(path, ["seed", "method"], only=only) == [
        {"seed": 0, "method": "b"},
        {"seed": 1, "method": "a"},
    ]
    path.write_text("no table")
    with pytest.raises(ScoreError, match=r"t\.parquet: not a parquet file"):
        score_tables.combinations(path, ["seed"], only=only)


def with_format(path: Path, version: bytes | None) -> Path:
    """The table at ``path`` as if another version had written it."""
    rows = pq.read_table(path)
    metadata = {key: value for key, value in rows.schema.metadata.items() if key != score_tables.FORMAT_KEY}
    metadata |= {} if version is None else {score_tables.FORMAT_KEY: version}
    pq.write_table(rows.replace_schema_metadata(metadata), path)
    return path


def test_tables_carry_their_format_however_they_are_written(tmp_path: Path) -> None:
    score_tables.write(tmp_path / "whole.parquet", table())
    with score_tables.writer(tmp_path / "parts.parquet") as append:
        append(table())
    for name in ("whole", "parts"):
        metadata = pq.read_schema(tmp_path / f"{name}.parquet").metadata
        assert metadata[b"saliency_assay_format"] == b"1.0"
        assert b"pandas" in metadata
    newer = with_format(tmp_path / "whole.parquet", b"1.3")
    pd.testing.assert_frame_equal(score_tables.read([newer]), score_tables.read([tmp_path / "parts.parquet"]))


@pytest.mark.parametrize(("version", "text"), [(b"2.0", "'2.0'"), (b"0.1", "'0.1'"), (None, "missing")])
def test_tables_of_other_formats_are_refused(tmp_path: Path, version: bytes | None, text: str) -> None:
    score_tables.write(tmp_path / "t.parquet", table())
    other = with_format(tmp_path / "t.parquet", version)
    with pytest.raises(ScoreError, match=rf"/t\.parquet: format is {text}, expected 1\.x; "):
        score_tables.read([other])


def test_the_column_of_files_is_read_only_on_request(tmp_path: Path) -> None:
    path, named = tmp_path / "scores.parquet", table().assign(file="cat/a.png")
    score_tables.write(path, named)
    assert list(score_tables.read([path]).columns) == list(score_tables.COLUMNS)
    assert list(score_tables.read([path], compact=True).columns) == list(score_tables.COLUMNS)
    scores = score_tables.read([path], with_files=True)
    assert list(scores.columns) == [*score_tables.COLUMNS, "file"]
    assert set(scores["file"]) == {"cat/a.png"}


@pytest.mark.parametrize("compact", [False, True])
def test_the_column_of_groups_is_kept(tmp_path: Path, compact: bool) -> None:
    """Inference needs it."""
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path, group in zip(paths, ("p 1", "p 2"), strict=True):
        score_tables.write(path, table().assign(method=group, file="cat/a.png", group=group))
    scores = score_tables.read(paths, compact=compact)
    assert list(scores.columns) == [*score_tables.COLUMNS, "group"]
    assert (scores["group"].astype(str) == scores["method"].astype(str)).all()
    assert list(score_tables.read(paths, with_files=True).columns) == [*score_tables.COLUMNS, "file", "group"]
    some = table().assign(group=["p 1", *[None] * (len(table()) - 1)])
    with pytest.raises(
        ScoreError, match="found rows with and without group, expected all with or all without"
    ):
        score_tables.check(some, "t")

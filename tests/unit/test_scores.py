from pathlib import Path

import pandas as pd
import pytest

from saliency_assay import scores
from saliency_assay.scores import ScoreError


def table(**changes: object) -> pd.DataFrame:
    columns = {"study": "bam", "data": "bam_os", "model": "f_o", "seed": 0, "method": "edge", "metric": "mcs"}
    rows = {**columns, "variant": "object", "image": [4, 7], "score": [0.25, float("nan")], **changes}
    return pd.DataFrame(rows)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    scores.write(paths[0], table())
    scores.write(paths[1], table(method="random"))
    found = scores.read(paths)
    assert list(found.columns) == list(scores.COLUMNS)
    assert found["method"].tolist() == ["edge", "edge", "random", "random"]
    assert found["score"].isna().tolist() == [False, True, False, True]
    assert sorted(tmp_path.iterdir()) == paths


def test_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(ScoreError, match=r"t\.parquet: columns .*'value'.*expected .*'variant'"):
        scores.write(tmp_path / "t.parquet", table().rename(columns={"score": "value"}))
    assert not list(tmp_path.iterdir())


def test_a_repeated_row_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScoreError, match=r"scored twice: .*'image': 4"):
        scores.write(tmp_path / "t.parquet", table(image=[4, 4]))


def test_a_score_that_is_no_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScoreError, match="'high'"):
        scores.write(tmp_path / "t.parquet", table(score=["high", "low"]))


def test_a_file_that_is_no_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_text("no table")
    with pytest.raises(ScoreError, match=r"t\.parquet: not a parquet file"):
        scores.read([tmp_path / "t.parquet"])


def test_no_table_at_all_is_refused() -> None:
    with pytest.raises(ScoreError, match="expected at least one path"):
        scores.read([])

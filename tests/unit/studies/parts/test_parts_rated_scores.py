"""Scores that rate the methods of a parts study."""

from pathlib import Path

import pandas as pd

from saliency_assay.storage import score_tables
from saliency_assay.studies.parts.rated_scores import rated_scores


def test_values_of_a_whole_set_do_not_rate_methods(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"image": [-1, 3, 5], "metric": ["threshold", "csdc", "csdc"], "score": [0.1, 0.5, 1.0]}
    )
    names = {"study": "s", "data": "d", "model": "m", "seed": 0, "method": "a", "variant": ""}
    score_tables.write(tmp_path / "a.parquet", table.assign(**names))
    for images, scores in ((None, [0.5, 1.0]), ([5], [1.0])):
        (chunk,) = rated_scores([tmp_path / "a.parquet"], data="d", models=["m"], images=images).chunks()
        assert chunk["score"].tolist() == scores

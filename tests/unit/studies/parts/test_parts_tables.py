"""Tables of a parts study."""

import numpy as np
import pandas as pd
import pytest

from saliency_assay.studies.parts.parts_tables import accuracies_of, protocols_table, score_rows
from saliency_assay.studies.parts.thresholds import OF_THRESHOLDS, THRESHOLDS

IMAGES = np.array([4, 7, 9])


def rows(best: int = 10) -> pd.DataFrame:
    """Return the rows of three images, of which the last has no scores, with 1 at the threshold ``best``."""
    curve = np.zeros((3, len(THRESHOLDS)))
    curve[:, best] = [1, 0.5, np.nan]
    scores = {name: np.array([0.2, 0.4, np.nan]) for name in ("single_deletion", "target_sensitivity")}
    return score_rows(IMAGES, dict.fromkeys(OF_THRESHOLDS, curve), scores, np.array([1.0, 0.5, 0.75]))


def test_rows_are_those_at_the_best_threshold() -> None:
    table = rows().set_index(["metric", "image"])["score"]
    assert table["csdc"].tolist() == pytest.approx([1, 0.5, np.nan], nan_ok=True)
    assert table["part_completeness"].tolist() == pytest.approx([1, 0.5, np.nan], nan_ok=True)
    assert table["threshold", -1] == THRESHOLDS[10]
    assert table["background_independence", -1] == 0.75


def test_dimensions_are_means_over_images() -> None:
    scores = pd.concat([rows().assign(method="a", seed=0), rows(20).assign(method="b", seed=0)])
    table = protocols_table(scores, {0: 0.9}).set_index("method")
    assert table.index.tolist() == ["a", "b"]
    row = table.loc["b"]
    assert (row["accuracy"], row["background_independence"], row["threshold"]) == (
        0.9,
        0.75,
        THRESHOLDS[20],
    )
    assert row[["completeness", "correctness", "contrastivity"]].tolist() == pytest.approx([0.75, 0.3, 0.3])
    assert row["mean"] == pytest.approx(0.45)


def test_completeness_is_that_of_the_means_if_an_image_has_no_distractibility() -> None:
    curves = {name: np.tile([[1.0], [0.25]], len(THRESHOLDS)) for name in OF_THRESHOLDS}
    curves["distractibility"] = np.tile([[np.nan], [0.5]], len(THRESHOLDS))
    scores = dict.fromkeys(("single_deletion", "target_sensitivity"), np.array([0.2, 0.4]))
    table = score_rows(IMAGES[:2], curves, scores, np.ones(2)).assign(method="a", seed=0)
    # Means of 0.625 and 0.5; the only image with all four scores has (0.25 + 0.5) / 2.
    assert protocols_table(table, {0: 1.0})["completeness"].item() == pytest.approx((0.625 + 0.5) / 2)


def test_accuracies_are_of_the_test_images() -> None:
    evaluations = [{"test": {"accuracy": 0.5}, "train": {"accuracy": 1.0}}, {"test": {"accuracy": 0.7}}]
    assert accuracies_of(evaluations, [3, 5]) == {3: 0.5, 5: 0.7}

"""Scores of an arm, compared with plain counts, with blocks smaller than the number of images."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.studies.retrain import scores
from saliency_assay.studies.retrain.occluded import Layer, layers_of
from saliency_assay.studies.retrain.scores import accuracy_scores, leakage_scores, overlap_scores

COUNT, MASKS, SIZE = 13, 4, (3, 5)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "BLOCK", 4)


def rows(table: pd.DataFrame, metric: str, variant: str) -> dict[int, float]:
    """The score of each image."""
    chosen = table[(table["metric"] == metric) & (table["variant"] == variant)]
    assert chosen["image"].is_unique
    return dict(zip(chosen["image"].tolist(), chosen["score"].tolist(), strict=True))


def is_whole(table: pd.DataFrame) -> None:
    """With the arm's own columns beside it, it is a score table."""
    assert list(table.columns) == ["metric", "variant", "image", "score"]
    score_tables.check(table.assign(study="s", data="d", model="m", seed=1, method="random"), "test")


# ---------------------------------------------------------------------------------------------- accuracy


def predictions(splits: Sequence[str], iterations: int) -> list[pd.DataFrame]:
    """As ``evaluation.predict`` gives them; rows of another set came before, so the index does not begin at 0."""
    rng = np.random.default_rng(0)
    split = np.array(splits)[rng.integers(0, len(splits), 40)]
    return [
        pd.DataFrame(
            {
                "image": np.arange(40),
                "split": split,
                "label": rng.integers(0, 3, 40),
                "predicted": rng.integers(0, 3, 40),
                "probability": rng.random(40),
            },
            index=np.arange(100, 140),
        )
        for _ in range(iterations)
    ]


def test_accuracy_is_of_each_test_image_and_of_the_other_splits_together() -> None:
    tables = predictions(["train", "validation", "test"], 3)
    result = accuracy_scores(tables)
    is_whole(result)
    total = 0
    for step, table in enumerate(tables):
        right: dict[str, dict[int, float]] = {"train": {}, "validation": {}, "test": {}}
        for _, row in table.iterrows():
            right[row["split"]][row["image"]] = 1.0 if row["label"] == row["predicted"] else 0.0
        assert min(len(images) for images in right.values()) > 5
        assert rows(result, "accuracy", str(step)) == right["test"]
        for split in ("train", "validation"):
            share = sum(right[split].values()) / len(right[split])
            assert rows(result, f"accuracy_{split}", str(step)) == {-1: pytest.approx(share)}
        total += len(right["test"]) + 2
    assert len(result) == total
    assert len({tuple(rows(result, "accuracy", str(step)).values()) for step in range(3)}) == 3


def test_a_training_without_validation_images_has_no_row_for_them() -> None:
    result = accuracy_scores(predictions(["train", "test"], 2))
    assert set(result["metric"]) == {"accuracy", "accuracy_train"}
    is_whole(result)


def test_accuracy_without_retraining_is_that_of_the_original_on_test_images() -> None:
    original, retrained = predictions(["train", "test"], 2)
    retrained["predicted_by_original"] = np.where(retrained["split"] == "test", original["label"] % 2, -1)
    result = accuracy_scores([original, retrained])
    is_whole(result)
    of_test = retrained[retrained["split"] == "test"]
    expected = of_test["predicted_by_original"] == of_test["label"]
    assert 0 < expected.mean() < 1
    assert rows(result, "accuracy_without_retraining", "1") == dict(
        zip(of_test["image"], expected, strict=True)
    )
    assert set(result.loc[result["metric"] == "accuracy_without_retraining", "variant"]) == {"1"}


# ----------------------------------------------------------------------------------------------- overlap


def stored(folder: Path, masks: np.ndarray, split: Sequence[int]) -> list[zarr_store.Store]:
    opened = []
    for number, part in enumerate(np.split(masks, np.cumsum(split)[:-1], axis=1)):
        path = folder / f"{number}.zarr.zip"
        mean = np.zeros((len(part), part.shape[1], 1), dtype=np.uint8)
        zarr_store.write(path, [{"mask": part, "mean": mean}], kind="masks", attributes={})
        opened.append(zarr_store.open_store(path, kind="masks"))
    return opened


def some_masks() -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.random((COUNT, MASKS, *SIZE)) < rng.random((COUNT, MASKS, 1, 1))


@pytest.mark.parametrize("split", [(1, 1, 1, 1), (4,), (1, 3)])
def test_overlaps_are_those_of_sets_of_pixels(tmp_path: Path, split: tuple[int, ...]) -> None:
    masks, images = some_masks(), np.array([12, 0, 3, 4, 5, 7, 8, 9, 11])
    result = overlap_scores(layers_of(stored(tmp_path, masks, split), "mean", MASKS), images)
    is_whole(result)
    expected: dict[tuple[str, str], dict[int, float]] = {}
    for image in images.tolist():
        of = [set(np.flatnonzero(masks[image, step]).tolist()) for step in range(MASKS)]
        for i in range(MASKS):
            expected.setdefault(("cma", str(i)), {})[image] = len(set().union(*of[: i + 1]))
        for i in range(MASKS - 1):
            expected.setdefault(("mmo", str(i)), {})[image] = len(of[i] & of[i + 1])
            expected.setdefault(("mamo", str(i)), {})[image] = len(set().union(*of[: i + 1]) & of[i + 1])
        for i, n in combinations(range(MASKS), 2):
            expected.setdefault(("overlap", f"{i}-{n}"), {})[image] = len(of[i] & of[n])
    assert len(result) == sum(map(len, expected.values())) == len(images) * (4 + 3 + 3 + 6)
    for (metric, variant), values in expected.items():
        assert rows(result, metric, variant) == values
    assert result["score"].dtype == np.float64


def test_masks_that_are_not_used_do_not_count(tmp_path: Path) -> None:
    masks, images = some_masks(), np.arange(COUNT)
    stores = stored(tmp_path, masks, (4,))
    result = overlap_scores(layers_of(stores, "zero", 2), images)
    assert set(result["variant"]) == {"0", "1", "0-1"}
    of_layers = overlap_scores([Layer(stores[0]["mask"], None, 2)], images)
    pd.testing.assert_frame_equal(result, of_layers)
    union = rows(result, "cma", "1")
    assert union == {image: float(masks[image, :2].any(0).sum()) for image in range(COUNT)}


def test_a_single_mask_has_an_area_and_no_overlap(tmp_path: Path) -> None:
    masks = some_masks()[:, :1]
    result = overlap_scores(layers_of(stored(tmp_path, masks, (1,)), "zero", 1), np.arange(COUNT))
    assert set(result["metric"]) == {"cma"}
    assert rows(result, "cma", "0") == dict(enumerate(masks.sum((1, 2, 3)).astype(float).tolist()))


# ----------------------------------------------------------------------------------------------- leakage


def leaks(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    labels = [(repeat, name) for repeat in range(3) for name in ("own", "random")]
    cells: list[dict[str, Any]] = [
        {"repeat": repeat, "labels": name, "accuracy": rng.random(), "loss": 2 + rng.random()}
        for repeat, name in labels
    ]
    return pd.DataFrame(cells)


def test_leakage_is_a_row_a_classifier() -> None:
    tables = {10: leaks(0), 1: leaks(1)}
    result = leakage_scores(tables)
    is_whole(result)
    assert len(result) == 24
    for step, table in tables.items():
        for _, row in table.iterrows():
            metric = {"own": "leakage", "random": "leakage_random"}[row["labels"]]
            assert rows(result, metric, f"{step}/repeat{row['repeat']}") == {-1: row["accuracy"]}
            loss = {"own": "leakage_loss", "random": "leakage_loss_random"}[row["labels"]]
            assert rows(result, loss, f"{step}/repeat{row['repeat']}") == {-1: row["loss"]}

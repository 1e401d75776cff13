"""Class information in masks: masks that leak on purpose, masks that cannot, and a leak that a transform removes."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray

from saliency_assay.data.splits import TEST, TRAIN
from saliency_assay.storage import zarr_store
from saliency_assay.studies.retrain.leakage import leakage, shuffled
from saliency_assay.studies.retrain.leakage_tables import leakage_table
from saliency_assay.studies.retrain.mask_transforms import transform
from saliency_assay.studies.retrain.occluded import MaskImages, layers_of
from saliency_assay.studies.retrain.retrain_tables import means
from saliency_assay.studies.retrain.scores import leakage_scores
from saliency_assay.training.task import RuntimeOptions, TrainingTask

pytestmark = pytest.mark.usefixtures("one_thread")

CPU = torch.device("cpu")
CLASSES, COUNT, TESTED, SIDE = 4, 440, 120, 12
ALPHA = 0.01  # the report's
CHANCE = 1 / CLASSES
BAND = 4 * (CHANCE * (1 - CHANCE) / TESTED) ** 0.5
"""Distance from chance that the accuracy of guesses exceeds once in 16,000 times."""
MODEL: Mapping[str, Any] = {
    "architecture": "resnet8",
    "function": "saliency_assay.models.resnet:resnet8",
    "parameters": {"width": 4, "stem_stride": 2},
}
TRAINING: Mapping[str, Any] = {"epochs": 6, "batch_size": 32, "learning_rate": 0.2}
LABELS = (np.arange(COUNT) % CLASSES).astype(np.int64)
SPLIT = np.where(np.arange(COUNT) < TESTED, TEST, TRAIN).astype(np.uint8)
# Four shapes of 13 pixels that have the corners of their square, and so one hull.
LETTERS = (
    ("#...#", "#...#", "#####", "#...#", "#...#"),
    ("#####", "..#..", "..#..", "..#..", "#####"),
    ("#...#", "##..#", "#.#.#", "#..##", "#...#"),
    ("#.#.#", ".#.#.", "#.#.#", ".#.#.", "#.#.#"),
)
Masks = NDArray[np.bool_]


def corner_masks() -> Masks:
    """Three by three pixels in the corner that the class has."""
    masks = np.zeros((COUNT, SIDE, SIDE), dtype=bool)
    for mask, label in zip(masks, LABELS, strict=True):
        rows, columns = (slice(-3, None) if label & bit else slice(3) for bit in (1, 2))
        mask[rows, columns] = True
    return masks


def letter_masks() -> Masks:
    """The letter that the class has, anywhere."""
    rng, masks = np.random.default_rng(2), np.zeros((COUNT, SIDE, SIDE), dtype=bool)
    letters = np.array([[[pixel == "#" for pixel in row] for row in rows] for rows in LETTERS])
    for mask, label in zip(masks, LABELS, strict=True):
        top, left = rng.integers(0, SIDE - 4, 2)
        mask[top : top + 5, left : left + 5] = letters[label]
    return masks


def task(folder: Path, masks: Masks) -> TrainingTask:
    """Masks as the job has them: from a store, two of them, the second one empty."""
    both = np.stack([masks, np.zeros_like(masks)], 1)
    mean = np.zeros((COUNT, 2, 1), dtype=np.uint8)
    zarr_store.write(folder / "masks.zarr.zip", [{"mask": both, "mean": mean}], kind="masks", attributes={})
    images = MaskImages(
        layers_of([zarr_store.open_store(folder / "masks.zarr.zip", kind="masks")], "zero", 2), CPU
    )
    return TrainingTask(images, LABELS, SPLIT, CLASSES, "of these masks")


def runtime(folder: Path, *, save_seconds: float = 60) -> RuntimeOptions:
    return RuntimeOptions(CPU, folder / "state", save_seconds, 8_000_000)


def measured(folder: Path, masks: Masks, *, repeats: int, **changed: Any) -> pd.DataFrame:
    settings = {**TRAINING, **changed}
    return leakage(task(folder, masks), MODEL, settings, runtime(folder), repeats=repeats, seed=1)


def judged(table: pd.DataFrame) -> "pd.Series[Any]":
    """The row of the report's table."""
    scores = leakage_scores({1: table})
    tested = pd.DataFrame({"metric": "accuracy", "variant": "1", "image": np.arange(TESTED), "score": 0.5})
    scores = pd.concat([scores, tested], ignore_index=True)
    scores["variant"] = "iteroar/zero/" + scores["variant"]
    arm = {"study": "s", "data": "d", "model": "m", "seed": 1, "method": "gradient"}
    (row,) = (row for _, row in leakage_table(means(scores.assign(**arm)), CLASSES, ALPHA).iterrows())
    return row


def of(table: pd.DataFrame, labels: str) -> NDArray[np.float64]:
    return table.loc[table["labels"] == labels, "accuracy"].to_numpy()


def test_a_corner_for_each_class_leaks(tmp_path: Path) -> None:
    table = measured(tmp_path, corner_masks(), repeats=2)
    assert table["repeat"].tolist() == [0, 0, 1, 1]
    assert table["labels"].tolist() == ["own", "random"] * 2
    assert of(table, "own").min() > 0.98
    assert (abs(of(table, "random") - CHANCE) < BAND).all()
    assert (table.loc[table["labels"] == "own", "loss"] < 0.2).all()
    assert (table.loc[table["labels"] == "random", "loss"] > 1).all()
    verdict = judged(table)
    assert verdict["leaks"]
    assert verdict["p"] < ALPHA
    assert verdict["chance"] == CHANCE
    assert (table["images"] == TESTED).all()
    assert verdict["images"] == TESTED
    assert verdict["loss"] == pytest.approx(table.loc[table["labels"] == "own", "loss"].mean())
    assert len(set(of(table, "random"))) > 1  # other labels at random in each repeat
    guessed = table[table["labels"] == "random"]
    assert not judged(pd.concat([guessed.assign(labels="own"), guessed]))["leaks"]


def test_a_convex_hull_takes_a_leak_by_shape_away(tmp_path: Path) -> None:
    masks = letter_masks()
    assert (masks.sum((1, 2)) == 13).all()
    hulls = transform(masks, {"kind": "convex_hull"}, range(COUNT))
    assert (hulls.sum((1, 2)) == 25).all()
    before, after = (measured(tmp_path, each, repeats=1, epochs=10) for each in (masks, hulls))
    assert of(before, "own") > 0.85
    assert (abs(of(after, "own") - CHANCE) < BAND).all()


def test_labels_at_random_keep_to_their_split() -> None:
    rng = np.random.default_rng(3)
    split = np.where(rng.random(300) < 0.3, TEST, TRAIN).astype(np.uint8)
    labels = rng.integers(0, 3, 300) + 3 * (split == TEST)  # test labels are others than training labels
    before = labels.copy()
    permuted = shuffled(labels, split, 5)
    assert (labels == before).all()
    for part in (TRAIN, TEST):
        assert sorted(permuted[split == part].tolist()) == sorted(labels[split == part].tolist())
        assert 0.2 < (permuted == labels)[split == part].mean() < 0.5
    assert (shuffled(labels, split, 5) == permuted).all()
    assert (shuffled(labels, split, 6) != permuted).any()


def test_every_repeat_and_seed_trains_another_classifier_and_equal_ones_the_same(tmp_path: Path) -> None:
    short = {**TRAINING, "epochs": 1}
    base_task, at = task(tmp_path, corner_masks()), runtime(tmp_path)
    tables = [leakage(base_task, MODEL, short, at, repeats=2, seed=seed) for seed in (1, 1, 2)]
    pd.testing.assert_frame_equal(tables[0], tables[1], check_exact=True)
    assert len(set(pd.concat([tables[0], tables[2]])["loss"])) == 8


def test_both_kinds_of_labels_are_learnt_from_equal_weights_in_equal_order(tmp_path: Path) -> None:
    """If all labels are equal, permuted labels are the same, and so is all else."""
    base_task = replace(task(tmp_path, letter_masks()), labels=np.zeros(COUNT, dtype=np.int64))
    table = leakage(base_task, MODEL, {**TRAINING, "epochs": 1}, runtime(tmp_path), repeats=2, seed=1)
    own, permuted = (table.loc[table["labels"] == labels, "loss"].tolist() for labels in ("own", "random"))
    assert own == permuted
    assert own[0] != own[1]


def test_augmentation_is_left_out(tmp_path: Path) -> None:
    """Mirrored and moved, four corners would be one."""
    base_task, at = task(tmp_path, corner_masks()), runtime(tmp_path)
    moving = {**TRAINING, "epochs": 1, "augment_flip": True, "augment_shift": 5}
    table = leakage(base_task, MODEL, moving, at, repeats=1, seed=1)
    plain = leakage(base_task, MODEL, {**TRAINING, "epochs": 1}, at, repeats=1, seed=1)
    pd.testing.assert_frame_equal(table, plain, check_exact=True)


# -------------------------------------------------------------------------------------------- a kill


class Dying:
    """Images that can be read so many times."""

    def __init__(self, images: MaskImages, reads: int) -> None:
        self.images, self.reads, self.left = images, reads, reads
        self.shape, self.dtype = images.shape, images.dtype

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: Any) -> torch.Tensor:
        if not self.left:
            raise OSError("killed")
        self.left -= 1
        return self.images[index]


@pytest.mark.slow
def test_a_leakage_that_was_killed_goes_on(tmp_path: Path) -> None:
    """States of finished trainings and of the running one stay: the same table, and nothing is learnt twice."""
    base_task, short = task(tmp_path, corner_masks()), {**TRAINING, "epochs": 1, "evaluate": "end"}
    streamed = replace(runtime(tmp_path, save_seconds=0), resident_limit=0)

    def run(reads: int, folder: str, fingerprint: str = "of these masks") -> tuple[pd.DataFrame, int]:
        images = Dying(base_task.images, reads)
        at = replace(streamed, state=tmp_path / folder)
        read_task = replace(base_task, images=images, fingerprint=fingerprint)
        table = leakage(read_task, MODEL, short, at, repeats=2, seed=1)
        return table, reads - images.left

    whole, needed = run(10**6, "never")
    names = ["0_own.pt", "0_random.pt", "1_own.pt", "1_random.pt"]
    assert sorted(path.name for path in (tmp_path / "never").iterdir()) == names
    for reads in (needed // 10, needed // 2 + 3):
        with pytest.raises(OSError, match="killed"):
            run(reads, "killed")
    again, read = run(10**6, "killed")
    pd.testing.assert_frame_equal(again, whole, check_exact=True)
    assert read < needed * 0.7
    finished, least = run(10**6, "killed")
    pd.testing.assert_frame_equal(finished, whole, check_exact=True)
    assert least == 4 * -(-TESTED // 32)  # the test images of each classifier
    other, all_again = run(10**6, "killed", "of other masks")
    pd.testing.assert_frame_equal(other, whole, check_exact=True)
    assert all_again == needed

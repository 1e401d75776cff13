import logging
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from publishers import STL10, STL10_NAMES, read_blocks, refusal, stl10_images

from saliency_assay.data.readers.stl10 import stl10

IMAGE_BYTES = 3 * 96 * 96
TRAIN_LABELS = [10, 1, 1, 7, 1, 10, 2]
TEST_LABELS = [3, 3, 10, 3]


def pictures() -> np.ndarray:
    """``[11, 3, 96, 96]``, training images first."""
    return np.random.default_rng(0).integers(0, 256, (11, 3, 96, 96), dtype=np.uint8)


def original(folder: Path, changes: dict[str, bytes] | None = None) -> Path:
    """The five files; ``changes`` are bytes that stand for one, by its name."""
    files = {
        "train_X.bin": stl10_images(pictures()[:7]),
        "train_y.bin": bytes(TRAIN_LABELS),
        "test_X.bin": stl10_images(pictures()[7:]),
        "test_y.bin": bytes(TEST_LABELS),
        "class_names.txt": STL10_NAMES,
    }
    folder.mkdir(exist_ok=True)
    for name, written in {**files, **(changes or {})}.items():
        (folder / name).write_bytes(written)
    return folder


def built(path: Path, **options: int) -> dict[str, Any]:
    classes, arrays = read_blocks(stl10, path, **{"size": 96, **options})
    assert classes == STL10
    return arrays


fault = partial(refusal, built)


def test_images_without_labels_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    counts = f"{tmp_path}: 7 images to train on, 4 to test"
    with caplog.at_level(logging.INFO):
        built(original(tmp_path))
    assert caplog.messages == [counts]
    original(tmp_path, {"unlabeled_X.bin": b"\x00" * 10, "fold_indices.txt": b"1 2 3\n"})
    caplog.clear()
    with caplog.at_level(logging.INFO):
        assert len(built(tmp_path)["image"]) == 11
    assert caplog.messages == [f"{tmp_path}: left out fold_indices.txt, unlabeled_X.bin", counts]


@pytest.mark.parametrize(
    "name", ["train_X.bin", "train_y.bin", "test_X.bin", "test_y.bin", "class_names.txt"]
)
def test_a_file_that_is_missing(tmp_path: Path, name: str) -> None:
    (original(tmp_path) / name).unlink()
    assert fault(tmp_path, FileNotFoundError) == f"ROOT/{name}: no such file"


def test_a_folder_without_the_files(tmp_path: Path) -> None:
    (tmp_path / "class_names.txt").write_text("\n".join(STL10))
    assert fault(tmp_path, FileNotFoundError).startswith("ROOT: found none of train_X.bin, train_y.bin, ")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train_X.bin", stl10_images(pictures()[:7])[:-1], "found 193535 bytes, expected 193536 for 7 × 3 ×"),
        ("test_X.bin", bytes(5 * IMAGE_BYTES), "found 138240 bytes, expected 110592 for 4 × 3 × 96 × 96,"),
        ("test_X.bin", b"", "found 0 bytes, expected 110592 for 4 × 3 × 96 × 96"),
        ("train_y.bin", b"", "found no labels, expected one byte per image"),
        ("train_y.bin", bytes([1, 10, 0, 1, 1, 1, 1]), "label 2 (from 0) is 0, expected 1 to 10"),
        ("test_y.bin", bytes([1, 1, 1, 11]), "label 3 (from 0) is 11, expected 1 to 10"),
        ("class_names.txt", b"airplane\nbird\n", "found 2 class names, 2 different, expected 10 different"),
    ],
    ids=["cut", "long", "empty", "no labels", "label 0", "label 11", "names"],
)
def test_what_is_wrong_with_a_file(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    assert fault(original(tmp_path, {name: content})).startswith(f"ROOT/{name}: {message}")

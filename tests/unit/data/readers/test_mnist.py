import gzip
import logging
import struct
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from publishers import mnist_idx, read_blocks, refusal

from saliency_assay.data.readers.mnist import CLASSES, mnist
from saliency_assay.data.splits import TEST, TRAIN

NAMES = {
    "train images": "train-images-idx3-ubyte",
    "train labels": "train-labels-idx1-ubyte",
    "test images": "t10k-images-idx3-ubyte",
    "test labels": "t10k-labels-idx1-ubyte",
}


def arrays() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    return {
        "train images": generator.integers(0, 256, (7, 28, 28), dtype=np.uint8),
        "train labels": np.array([5, 0, 4, 1, 9, 2, 1], dtype=np.uint8),
        "test images": generator.integers(0, 256, (4, 28, 28), dtype=np.uint8),
        "test labels": np.array([7, 2, 1, 0], dtype=np.uint8),
    }


def original(folder: Path, suffix: str = "", **changes: Any) -> Path:
    """The four files; ``changes`` are arrays or bytes that stand for one, by its key with an underscore."""
    for key, array in arrays().items():
        content = changes.get(key.replace(" ", "_"), array)
        content = content if isinstance(content, bytes) else mnist_idx(content)
        path = folder / f"{NAMES[key]}{suffix}"
        path.write_bytes(gzip.compress(content) if suffix else content)
    return folder


def built(path: Path, **options: int) -> dict[str, Any]:
    classes, arrays = read_blocks(mnist, path, **{"size": 28, **options})
    assert classes == CLASSES
    return arrays


fault = partial(refusal, built)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_the_files_as_they_are(tmp_path: Path, suffix: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        result, source = built(original(tmp_path, suffix)), arrays()
    assert caplog.messages == [f"{tmp_path}: 7 images to train on, 4 to test"]
    images = np.concatenate([source["train images"], source["test images"]])
    np.testing.assert_array_equal(result["image"], images[:, None])
    assert result["label_class"].tolist() == [5, 0, 4, 1, 9, 2, 1, 7, 2, 1, 0]
    assert result["split"].tolist() == [TRAIN] * 7 + [TEST] * 4


@pytest.mark.parametrize("size", [8, 45])
def test_another_size(tmp_path: Path, size: int) -> None:
    result, source = built(original(tmp_path), size=size), arrays()
    images = np.concatenate([source["train images"], source["test images"]])
    assert (result["image"].shape, result["image"].dtype) == ((11, 1, size, size), np.uint8)
    for image, resized in zip(images, result["image"][:, 0], strict=True):
        expected = Image.fromarray(image).resize((size, size), Image.Resampling.BILINEAR)
        np.testing.assert_array_equal(resized, np.asarray(expected))


def test_the_number_of_images_can_be_limited(tmp_path: Path) -> None:
    labels = np.array([5, 0, 5, 5, 9, 0, 5], dtype=np.uint8)
    original(tmp_path, train_labels=labels, test_labels=np.array([7, 7, 7, 0], dtype=np.uint8))
    result, source = built(tmp_path, images_per_class=2), arrays()
    images = np.concatenate([source["train images"], source["test images"]])
    places = [int(np.flatnonzero((images == image).all(axis=(1, 2)))[0]) for image in result["image"][:, 0]]
    assert places == sorted(set(places))
    assert {1, 4, 5, 10} < set(places)  # all of the classes that have no more
    assert len({0, 2, 3, 6} & set(places)) == len({7, 8, 9} & set(places)) == 2
    all_labels = [*labels, 7, 7, 7, 0]
    assert result["label_class"].tolist() == [all_labels[place] for place in places]
    assert result["split"].tolist() == [TRAIN] * 5 + [TEST] * 3
    np.testing.assert_array_equal(built(tmp_path, images_per_class=2)["image"], result["image"])
    drawn = {built(tmp_path, images_per_class=1, seed=seed)["image"].tobytes() for seed in range(16)}
    assert len(drawn) > 4


def test_an_unpacked_file_is_read_rather_than_the_packed_one(tmp_path: Path) -> None:
    original(tmp_path, ".gz")
    labels = tmp_path / NAMES["test labels"]
    labels.write_bytes(mnist_idx(np.array([3, 3, 3, 3], dtype=np.uint8)))
    assert built(tmp_path)["label_class"].tolist()[7:] == [3, 3, 3, 3]


@pytest.mark.parametrize("name", NAMES.values())
def test_a_file_that_is_missing(tmp_path: Path, name: str) -> None:
    original(tmp_path, ".gz")
    (tmp_path / f"{name}.gz").unlink()
    assert fault(tmp_path, FileNotFoundError) == f"ROOT/{name}: no such file, with or without .gz"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train_images": b""}, "train-images-idx3-ubyte: found magic number none, expected 00000803"),
        ({"test_images": arrays()["test labels"]}, "t10k-images-idx3-ubyte: found magic number 00000801"),
        ({"train_labels": b"\x00\x00\x0d\x01" + bytes(4)}, "train-labels-idx1-ubyte: found magic number"),
        ({"train_images": mnist_idx(arrays()["train images"])[:12]}, "train-images-idx3-ubyte: truncated,"),
        ({"train_images": mnist_idx(arrays()["train images"])[:-1]}, "train-images-idx3-ubyte: found 5503"),
        ({"test_labels": mnist_idx(arrays()["test labels"]) + b"\x00"}, "t10k-labels-idx1-ubyte: found 13"),
        (
            {"test_images": struct.pack(">IIII", 0x803, 2**32 - 1, 2**32 - 1, 2**32 - 1)},
            "t10k-images-idx3-ubyte: found 16 bytes, expected 79228162458924105385300197391 for the shape",
        ),
        ({"train_images": np.zeros((7, 28, 27), np.uint8)}, "train-images-idx3-ubyte: found images 7 × 28 ×"),
        (
            {"test_images": np.zeros((0, 28, 28), np.uint8), "test_labels": np.zeros(0, np.uint8)},
            "t10k-images-idx3-ubyte: found images 0 × 28 × 28, expected N × 28 × 28",
        ),
        ({"train_labels": np.zeros(6, np.uint8)}, "train-labels-idx1-ubyte: found 6 labels"),
        ({"test_labels": np.array([0, 9, 10, 11], np.uint8)}, "t10k-labels-idx1-ubyte: label 2 (from 0) is"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    assert fault(original(tmp_path, **change)).startswith(f"ROOT/{message}")


@pytest.mark.parametrize("damage", ["cut", "plain", "flipped"])
def test_a_packed_file_that_is_damaged(tmp_path: Path, damage: str) -> None:
    file = original(tmp_path, ".gz") / f"{NAMES['train images']}.gz"
    content = file.read_bytes()
    flipped = content[:2000] + bytes(byte ^ 255 for byte in content[2000:2020]) + content[2020:]
    file.write_bytes({"cut": content[:-100], "plain": gzip.decompress(content), "flipped": flipped}[damage])
    assert fault(tmp_path).startswith(f"ROOT/{file.name}: truncated, or not written by gzip (")

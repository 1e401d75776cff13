import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from publishers import CIFAR10, CIFAR10_NAMES, cifar10_records, read_blocks, refusal

from saliency_assay.data.readers.cifar10 import cifar10
from saliency_assay.data.splits import TEST, TRAIN

BATCHES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
COUNT = 7


def content(batch: str, count: int = COUNT) -> tuple[np.ndarray, list[int]]:
    """Rows ``[count, 3072]`` and labels of a batch."""
    generator = np.random.default_rng(BATCHES.index(batch))
    rows = generator.integers(0, 256, (count, 3072), dtype=np.uint8)
    return rows, generator.choice([0, 4, 9], count).tolist()


def original(folder: Path, changes: dict[str, bytes] | None = None, count: int = COUNT) -> Path:
    """The files; ``changes`` are bytes that stand for one, by its name."""
    files = {batch: cifar10_records(*content(batch, count)) for batch in BATCHES}
    folder.mkdir(exist_ok=True, parents=True)
    for name, written in {**files, "batches.meta.txt": CIFAR10_NAMES, **(changes or {})}.items():
        (folder / name).write_bytes(written)
    return folder


def built(path: Path, **options: int) -> dict[str, Any]:
    classes, arrays = read_blocks(cifar10, path, **{"size": 32, **options})
    assert classes == CIFAR10
    return arrays


def pictures() -> tuple[np.ndarray, np.ndarray]:
    """All images, pixel by pixel as the data set's page describes a row, and their labels."""
    rows = np.concatenate([content(batch)[0] for batch in BATCHES])
    images = np.empty((len(rows), 3, 32, 32), dtype=np.uint8)
    for channel in range(3):
        for y in range(32):
            for x in range(32):
                images[:, channel, y, x] = rows[:, 1024 * channel + 32 * y + x]
    return images, np.concatenate([content(batch)[1] for batch in BATCHES])


fault = partial(refusal, built)


# --- what is read -------------------------------------------------------------------------------------------


def test_the_files_as_images(tmp_path: Path) -> None:
    program = Path(__file__).parents[4] / "benchmarks/cifar10_images.py"
    source, target = original(tmp_path / "binary"), tmp_path / "images"
    subprocess.run([sys.executable, program, source, target], check=True)
    images, labels = pictures()
    for number, (pixels, label) in enumerate(zip(images, labels, strict=True)):
        split = "train" if number < 5 * COUNT else "test"
        file = target / split / CIFAR10[label] / f"{number:05}.png"
        np.testing.assert_array_equal(np.asarray(Image.open(file)).transpose(2, 0, 1), pixels)


def test_the_number_of_images_can_be_limited(tmp_path: Path) -> None:
    images, labels = pictures()
    arrays = built(original(tmp_path), images_per_class=2)
    halves = {TRAIN: labels[: 5 * COUNT], TEST: labels[5 * COUNT :]}
    for half, there in halves.items():
        counts = np.bincount(arrays["label_class"][arrays["split"] == half], minlength=10)
        np.testing.assert_array_equal(counts, np.minimum(np.bincount(there, minlength=10), 2))
        assert np.bincount(there).max() > 2
    # Every image is one of the source's with its label, each at most once, and they keep the source's order.
    places = [
        int(np.flatnonzero((images == image).all(axis=(1, 2, 3)) & (labels == label))[0])
        for image, label in zip(arrays["image"], arrays["label_class"], strict=True)
    ]
    assert places == sorted(set(places))
    assert [place >= 5 * COUNT for place in places] == (arrays["split"] == TEST).tolist()
    np.testing.assert_array_equal(built(tmp_path, images_per_class=100)["image"], images)


# --- what is refused ----------------------------------------------------------------------------------------


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    original(tmp_path)
    for file in sorted(tmp_path.iterdir()):
        kept = file.read_bytes()
        file.unlink()
        assert fault(tmp_path, FileNotFoundError) == f"ROOT/{file.name}: no such file"
        file.write_bytes(kept)


def test_a_folder_without_the_files(tmp_path: Path) -> None:
    (tmp_path / "cifar-10-batches-py").mkdir()
    assert fault(tmp_path, FileNotFoundError).startswith("ROOT: found no data_batch_1.bin in it")


ROWS, LABELS = content("data_batch_3.bin")
RECORDS = cifar10_records(ROWS, LABELS)


@pytest.mark.parametrize(
    ("name", "damaged", "message"),
    [
        ("data_batch_1.bin", b"", "found 0 bytes, expected 3073 per image"),
        ("data_batch_3.bin", b"", "found 0 bytes, expected 3073 per image"),
        ("data_batch_3.bin", RECORDS[:-1], "found 21510 bytes, expected 3073 per image"),
        ("data_batch_3.bin", RECORDS + b"\x00", "found 21512 bytes, expected 3073 per image"),
        ("data_batch_3.bin", RECORDS[3073:], "found 6 images, expected 7, as in ROOT/data_batch_1.bin"),
        ("data_batch_3.bin", RECORDS + RECORDS[:3073], "found 8 images, expected 7"),
        ("data_batch_3.bin", cifar10_records(ROWS, [0, 9, 10, 11, 0, 0, 0]), "label 2 (from 0) is 10, "),
        ("batches.meta.txt", CIFAR10_NAMES + b"frigate\n", "found 11 class names"),
    ],
    ids=["first empty", "empty", "cut", "long", "too few", "too many", "label 10", "names"],
)
def test_what_is_wrong_with_a_file(tmp_path: Path, name: str, damaged: bytes, message: str) -> None:
    assert fault(original(tmp_path, {name: damaged})).startswith(f"ROOT/{name}: {message}")

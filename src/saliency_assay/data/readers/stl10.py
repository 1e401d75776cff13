"""Reader of STL-10's labeled images in the original binary files; checks file sizes and labels."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np

from saliency_assay.data.images import Block, Pixels, read_class_names, sample_blocks
from saliency_assay.data.splits import TEST, TRAIN, Ints
from saliency_assay.registry.limits import Limits, NonNegativeInt

logger = logging.getLogger(__name__)

SIDE = 96
CLASS_COUNT = 10
_IMAGE_BYTES = 3 * SIDE * SIDE
_FOLDER = "stl10_binary"
_PREFIXES = {TRAIN: "train", TEST: "test"}
_FILES = ("train_X.bin", "train_y.bin", "test_X.bin", "test_y.bin")
_LEFT_OUT = ("fold_indices.txt", "unlabeled_X.bin")


def stl10(
    *,
    path: str,
    size: Annotated[int, Limits(minimum=8, maximum=1024)] = 96,
    images_per_class: NonNegativeInt = 0,
    generator: np.random.Generator,
    block: int = 256,
) -> tuple[dict[str, tuple[str, ...]], Iterator[Block]]:
    """Read the labeled images in ``path`` or its ``stl10_binary``: ``train_X.bin``, ``train_y.bin`` and ``test_*``.

    Class names are those of ``class_names.txt``; the files' labels 1 to 10 become 0 to 9. The split is that of the
    files; training images come first, in the files' order. Unlabeled images and the ten folds of the training images
    are not read, which is logged. Images are memory-mapped and read block by block.

    Arguments, classes and blocks are those of ``mnist.mnist``, with three channels and 96 × 96 pixels.

    Raises:
        FileNotFoundError: one of the five files is missing.
        ValueError: a file of images is truncated or too long for its labels, a label is not 1 to 10, or there are not
            ten different class names.
    """
    root = _find_root(Path(path))
    classes = read_class_names(root / "class_names.txt", CLASS_COUNT)
    splits = {split: _read_split(root, prefix) for split, prefix in _PREFIXES.items()}
    if left_out := [name for name in _LEFT_OUT if (root / name).exists()]:
        logger.info("%s: left out %s", root, ", ".join(left_out))
    blocks = sample_blocks(
        root, splits, size=size, images_per_class=images_per_class, generator=generator, block=block
    )
    return {"class": classes}, blocks


def _find_root(path: Path) -> Path:
    for root in (path, path / _FOLDER):
        if any((root / name).is_file() for name in _FILES):
            return root
    raise FileNotFoundError(f"{path}: found none of {', '.join(_FILES)} in it or in its folder {_FOLDER}")


def _read_split(root: Path, prefix: str) -> tuple[Pixels, Ints]:
    images_file, labels_file = root / f"{prefix}_X.bin", root / f"{prefix}_y.bin"
    for file in (images_file, labels_file):
        if not file.is_file():
            raise FileNotFoundError(f"{file}: no such file")
    count = labels_file.stat().st_size
    if not count:
        raise ValueError(f"{labels_file}: found no labels, expected one byte per image")
    actual, expected = images_file.stat().st_size, count * _IMAGE_BYTES
    if actual != expected:
        raise ValueError(
            f"{images_file}: found {actual} bytes, expected {expected} for {count} × 3 × {SIDE} × {SIDE}, "
            f"the number of labels in {labels_file}"
        )
    labels = np.fromfile(labels_file, dtype=np.uint8)
    wrong = np.flatnonzero((labels < 1) | (labels > CLASS_COUNT))
    if len(wrong):
        raise ValueError(
            f"{labels_file}: label {wrong[0]} (from 0) is {labels[wrong[0]]}, expected 1 to {CLASS_COUNT}"
        )
    stored = np.memmap(images_file, dtype=np.uint8, mode="r", shape=(len(labels), 3, SIDE, SIDE))
    # Each channel is stored column by column.
    return stored.transpose(0, 1, 3, 2), labels.astype(np.int64) - 1

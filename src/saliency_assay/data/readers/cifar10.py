"""Reader of CIFAR-10's original files in the binary version; checks file sizes and labels."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np

from saliency_assay.data.images import Block, Pixels, blocks_of, read_class_names, sample_per_class
from saliency_assay.data.splits import TEST, TRAIN, Ints
from saliency_assay.registry.limits import Limits, NonNegativeInt

logger = logging.getLogger(__name__)

SIDE = 32
CLASS_COUNT = 10
PIXELS = 3 * SIDE * SIDE
FOLDER = "cifar-10-batches-bin"
BATCHES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")


def cifar10(
    *,
    path: str,
    size: Annotated[int, Limits(minimum=8, maximum=1024)] = 32,
    images_per_class: NonNegativeInt = 0,
    generator: np.random.Generator,
    block: int = 512,
) -> tuple[dict[str, tuple[str, ...]], Iterator[Block]]:
    """Read the images in ``path``: ``data_batch_1.bin`` to ``_5.bin``, ``test_batch.bin`` and ``batches.meta.txt``.

    The files may also be in ``path/cifar-10-batches-bin``, as in the archive. Classes are in the order of the data set.
    The split is that of the files; training images come first, in the files' order. At most one file is in memory.

    Arguments, classes and blocks are those of ``mnist.mnist``, with three channels and 32 × 32 pixels; the last block
    of each file may have fewer images.

    Raises:
        FileNotFoundError: one of the files is missing.
        ValueError: a file is truncated or too long, a label is above 9, the files have different numbers of images, or
            there are not ten different class names.
    """
    root = _find_root(Path(path))
    files = [root / name for name in BATCHES]
    for file in files:
        if not file.is_file():
            raise FileNotFoundError(f"{file}: no such file")
    classes = read_class_names(root / "batches.meta.txt", CLASS_COUNT)
    count = _count_images(files[0])
    for file in files:
        if (actual := _count_images(file)) != count:
            raise ValueError(f"{file}: found {actual} images, expected {count}, as in {files[0]}")
    labels = np.stack([_read_file(file)[1] for file in files])
    sampled = [
        sample_per_class(split_labels.reshape(-1), images_per_class, generator)
        for split_labels in (labels[:-1], labels[-1:])
    ]
    logger.info("%s: %d images to train on, %d to test", root, *map(len, sampled))
    # Row r of the data set is row r mod ``count`` of file r // ``count``.
    rows = np.concatenate([sampled[0], sampled[1] + labels[:-1].size])
    blocks = (
        file_block
        for number, (file, split) in enumerate(zip(files, [TRAIN] * (len(files) - 1) + [TEST], strict=True))
        for file_block in _file_blocks(file, rows[rows // count == number] % count, split, size, block)
    )
    return {"class": classes}, blocks


def _find_root(path: Path) -> Path:
    for root in (path, path / FOLDER):
        if any((root / name).is_file() for name in BATCHES):
            return root
    raise FileNotFoundError(
        f"{path}: found no {BATCHES[0]} in it or in its folder {FOLDER}; expected the binary version"
    )


def _file_blocks(file: Path, rows: Ints, split: int, size: int, block: int) -> Iterator[Block]:
    """Yield the ``rows`` of one file, which is in memory only during the iteration."""
    if len(rows):
        images, labels = _read_file(file)
        yield from blocks_of(images, labels, rows, split=split, size=size, block=block)


def _count_images(file: Path) -> int:
    count, rest = divmod(size := file.stat().st_size, 1 + PIXELS)
    if not size or rest:
        raise ValueError(
            f"{file}: found {size} bytes, expected {1 + PIXELS} per image: a label and {PIXELS} pixel values"
        )
    return count


def _read_file(file: Path) -> tuple[Pixels, Ints]:
    """Read the images ``[n, 3, 32, 32]`` and labels ``[n]`` of one file.

    A record consists of one byte for the label and the pixels, channel by channel, row by row.
    """
    records = np.fromfile(file, dtype=np.uint8, count=_count_images(file) * (1 + PIXELS)).reshape(
        -1, 1 + PIXELS
    )
    labels = records[:, 0].astype(np.int64)
    if (wrong := np.flatnonzero(labels >= CLASS_COUNT)).size:
        index = wrong[0]
        raise ValueError(
            f"{file}: label {index} (from 0) is {labels[index]}, expected 0 to {CLASS_COUNT - 1}"
        )
    return records[:, 1:].reshape(-1, 3, SIDE, SIDE), labels

"""Reader of MNIST's four original files in the idx format; checks headers, file sizes and labels."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from saliency_assay.data.images import Block, sample_blocks
from saliency_assay.data.splits import TEST, TRAIN, Ints
from saliency_assay.registry.limits import Limits, NonNegativeInt

Bytes = npt.NDArray[np.uint8]

CLASSES = tuple(str(digit) for digit in range(10))
SIDE = 28
_PREFIXES = {TRAIN: "train", TEST: "t10k"}

# Limit of the expansion of a gzip file, against files that would fill the memory: gzip can expand one byte to a
# thousand. The original files expand by factors of 2 (labels) and 5 (images).
MOST_INFLATED = 100
SMALL = 1 << 24  # bytes; any file may expand to this size


def mnist(
    *,
    path: str,
    size: Annotated[int, Limits(minimum=8, maximum=1024)] = 28,
    images_per_class: NonNegativeInt = 0,
    generator: np.random.Generator,
    block: int = 512,
) -> tuple[dict[str, tuple[str, ...]], Iterator[Block]]:
    """Read the four files in ``path``, ``train-images-idx3-ubyte`` and so on, each uncompressed or as ``.gz``.

    The split is that of the files; training images come first, in the files' order.

    Args:
        path: the folder.
        size: side of the images in pixels; they are resized if it is not 28 (``images.resize_squares``).
        images_per_class: largest number of images sampled per class and split; 0 for all.
        generator: random generator for this sample.
        block: number of images per block.

    Returns:
        The classes of label ``class``, and blocks of ``image`` uint8 ``[n, 1, size, size]``, ``split`` uint8 and
        ``label_class`` int64 ``[n]``.

    Raises:
        FileNotFoundError: one of the four files is missing.
        ValueError: a file is truncated or too long, or has another magic number, another image size or a label above
            9; the numbers of images and labels differ.
    """
    splits = {split: _read_split(Path(path), prefix) for split, prefix in _PREFIXES.items()}
    blocks = sample_blocks(
        path, splits, size=size, images_per_class=images_per_class, generator=generator, block=block
    )
    return {"class": CLASSES}, blocks


def _read_split(folder: Path, prefix: str) -> tuple[Bytes, Ints]:
    images_file = _find_file(folder, f"{prefix}-images-idx3-ubyte")
    labels_file = _find_file(folder, f"{prefix}-labels-idx1-ubyte")
    images, labels = _read_idx(images_file, 3), _read_idx(labels_file, 1)
    if images.shape[1:] != (SIDE, SIDE) or not len(images):
        shape = " × ".join(str(length) for length in images.shape)
        raise ValueError(f"{images_file}: found images {shape}, expected N × {SIDE} × {SIDE}")
    if len(labels) != len(images):
        raise ValueError(
            f"{labels_file}: found {len(labels)} labels, expected {len(images)}, the number of images in {images_file}"
        )
    wrong = np.flatnonzero(labels >= len(CLASSES))
    if len(wrong):
        raise ValueError(f"{labels_file}: label {wrong[0]} (from 0) is {labels[wrong[0]]}, expected 0 to 9")
    return images[:, None], labels.astype(np.int64)


def _find_file(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise FileNotFoundError(f"{folder / name}: no such file, with or without .gz")


def _read_idx(path: Path, dimensions: int) -> Bytes:
    """Read an idx file of bytes: two zero bytes, type 8, number of dimensions, their lengths (4 bytes each), data."""
    packed = path.suffix == ".gz"
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            return _read_array(path, cast(BinaryIO, file), dimensions, packed)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: truncated, or not written by gzip ({error})") from error


def _read_array(path: Path, file: BinaryIO, dimensions: int, packed: bool) -> Bytes:
    """Read the array in an open file; read no more than the sizes of the array and of the file allow."""
    start, magic = 4 + 4 * dimensions, bytes((0, 0, 8, dimensions))
    header = file.read(start)
    if header[:4] != magic:
        raise ValueError(f"{path}: found magic number {header[:4].hex() or 'none'}, expected {magic.hex()}")
    if len(header) < start:
        raise ValueError(f"{path}: truncated, found {len(header)} bytes, expected a header of {start}")
    shape = np.frombuffer(header, dtype=">u4", offset=4).tolist()
    # As Python integers, because a damaged header may state lengths whose product overflows int64.
    size, stored = start + int(np.prod(shape, dtype=object)), path.stat().st_size
    expected = f"{size} for the shape {' × '.join(str(length) for length in shape)} in its header"
    if packed and size > max(SMALL, MOST_INFLATED * stored):
        limit = f"at most {MOST_INFLATED} times the file's {stored}"
        raise ValueError(f"{path}: found {size} bytes according to the header, expected {limit}")
    # One byte more than expected detects excess data without unpacking all of it.
    actual = start + len(content := file.read(size - start + 1)) if packed or stored == size else stored
    if actual != size:
        prefix = "more than " if packed and actual > size else ""
        raise ValueError(f"{path}: found {prefix}{actual - bool(prefix)} bytes, expected {expected}")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)

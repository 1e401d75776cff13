"""MNIST's four original files, in the idx format, read with every byte accounted for."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt

from saliency_assay.data.images import Block, halves_in_blocks
from saliency_assay.data.splits import TEST, TRAIN, Ints

Bytes = npt.NDArray[np.uint8]

CLASSES = tuple(str(digit) for digit in range(10))
SIDE = 28
_PREFIXES = {TRAIN: "train", TEST: "t10k"}

# gzip can make a thousand bytes of one. The original files hold 2 (labels) and 5 (images) for each.
MOST_INFLATED = 100
SMALL = 1 << 24  # bytes; so much may come of any file


def mnist(
    *, path: str, size: int = 28, images_per_class: int = 0, generator: np.random.Generator, block: int = 512
) -> tuple[dict[str, tuple[str, ...]], Iterator[Block]]:
    """Return the images in ``path``: ``train-images-idx3-ubyte`` and its three companions, each plain or ``.gz``.

    Training images come first, in the files' order, and the split is the files'.

    Args:
        path: the folder.
        size: side of the images in pixels; other than 28, they are resized (``images.resize_squares``).
        images_per_class: at most so many of a class in each half are drawn; 0 for all.
        generator: draws them.
        block: images at a time.

    Returns:
        The classes of label ``class``, and blocks of ``image`` uint8 ``[n, 1, size, size]``, ``split`` uint8 and
        ``label_class`` int64 ``[n]``.

    Raises:
        FileNotFoundError: one of the four files is missing.
        ValueError: a file that is truncated or too long, has another magic number, another size of images or a
            label above 9; images and labels of different numbers.
    """
    parts = {part: _part(Path(path), prefix) for part, prefix in _PREFIXES.items()}
    blocks = halves_in_blocks(
        path, parts, size=size, images_per_class=images_per_class, generator=generator, block=block
    )
    return {"class": CLASSES}, blocks


def _part(folder: Path, prefix: str) -> tuple[Bytes, Ints]:
    images_file = _file(folder, f"{prefix}-images-idx3-ubyte")
    labels_file = _file(folder, f"{prefix}-labels-idx1-ubyte")
    images, labels = _idx(images_file, 3), _idx(labels_file, 1)
    if images.shape[1:] != (SIDE, SIDE) or not len(images):
        found = " × ".join(str(length) for length in images.shape)
        raise ValueError(f"{images_file}: found images {found}, expected N × {SIDE} × {SIDE}")
    if len(labels) != len(images):
        raise ValueError(
            f"{labels_file}: found {len(labels)} labels, expected {len(images)} as {images_file} has"
        )
    wrong = np.flatnonzero(labels >= len(CLASSES))
    if len(wrong):
        raise ValueError(f"{labels_file}: label {wrong[0]} (from 0) is {labels[wrong[0]]}, expected 0 to 9")
    return images[:, None], labels.astype(np.int64)


def _file(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise FileNotFoundError(f"{folder / name}: no such file, nor one that ends in .gz")


def _idx(path: Path, dimensions: int) -> Bytes:
    """Return an array of bytes: two zeros, the type 8, the number of dimensions, their lengths (4 bytes each), the
    data."""
    packed = path.suffix == ".gz"
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            return _array(path, cast(BinaryIO, file), dimensions, packed)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: truncated, or not written by gzip ({error})") from error


def _array(path: Path, file: BinaryIO, dimensions: int, packed: bool) -> Bytes:
    """Return the array in an open file. The header is believed only as far as the file's length confirms it."""
    start, magic = 4 + 4 * dimensions, bytes((0, 0, 8, dimensions))
    header = file.read(start)
    if header[:4] != magic:
        raise ValueError(f"{path}: found magic number {header[:4].hex() or 'none'}, expected {magic.hex()}")
    if len(header) < start:
        raise ValueError(f"{path}: truncated, found {len(header)} bytes, expected a header of {start}")
    shape = np.frombuffer(header, dtype=">u4", offset=4).tolist()
    size, stored = start + int(np.prod(shape, dtype=object)), path.stat().st_size
    named = f"{size} for {' × '.join(str(length) for length in shape)} as its header says"
    if packed and size > max(SMALL, MOST_INFLATED * stored):
        most = f"at most {MOST_INFLATED} times its own {stored}"
        raise ValueError(f"{path}: found a header of {size} bytes, expected {most}")
    # One byte more, so that what is too long shows; a packed file is not unpacked beyond it.
    found = start + len(content := file.read(size - start + 1)) if packed or stored == size else stored
    if found != size:
        more = "more than " if packed and found > size else ""
        raise ValueError(f"{path}: found {more}{found - bool(more)} bytes, expected {named}")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)

"""MNIST's four original files, in the idx format, read with every byte accounted for."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from saliency_assay.data.images import Block, halves_in_blocks
from saliency_assay.data.splits import TEST, TRAIN, Ints

Bytes = npt.NDArray[np.uint8]

CLASSES = tuple(str(digit) for digit in range(10))
SIDE = 28
_PREFIXES = {TRAIN: "train", TEST: "t10k"}


def mnist(
    *, path: str, size: int, images_per_class: int, generator: np.random.Generator, block: int = 512
) -> tuple[dict[str, tuple[str, ...]], Iterator[Block]]:
    """The images in ``path``: ``train-images-idx3-ubyte`` and its three companions, each plain or ``.gz``.

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
    """Images ``[n, 1, 28, 28]`` and labels ``[n]`` of one half."""
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
    """An array of bytes: two zeros, the type 8, the number of dimensions, their lengths (4 bytes each), the data."""
    content = _content(path)
    magic = bytes((0, 0, 8, dimensions))
    if content[:4] != magic:
        raise ValueError(f"{path}: found magic number {content[:4].hex() or 'none'}, expected {magic.hex()}")
    start = 4 + 4 * dimensions
    if len(content) < start:
        raise ValueError(f"{path}: truncated, found {len(content)} bytes, expected a header of {start}")
    shape = np.frombuffer(content, dtype=">u4", count=dimensions, offset=4).tolist()
    size = start + int(np.prod(shape, dtype=object))
    if len(content) != size:
        named = " × ".join(str(length) for length in shape)
        raise ValueError(
            f"{path}: found {len(content)} bytes, expected {size} for {named} as its header says"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def _content(path: Path) -> bytes:
    if path.suffix != ".gz":
        return path.read_bytes()
    try:
        with gzip.open(path) as file:
            return file.read()
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path}: truncated, or not written by gzip ({error})") from error

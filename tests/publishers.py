"""Files as the publishers of data sets write them, around pixels of a test's own (docs/formats.md has the sources)."""

import io
import struct
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
STL10 = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
CIFAR10_NAMES = ("\n".join(CIFAR10) + "\n\n").encode()
"""``batches.meta.txt`` of the binary version."""
STL10_NAMES = ("\n".join(STL10) + "\n").encode()
"""``class_names.txt``."""


def cifar10_records(rows: np.ndarray, labels: Sequence[int]) -> bytes:
    """Join labels and pixels as a file of the binary version has them."""
    return b"".join(bytes([label]) + row.tobytes() for row, label in zip(rows, labels, strict=True))


def stl10_images(images: np.ndarray) -> bytes:
    """Write ``[n, 3, 96, 96]`` channel by channel, the columns one after another."""
    columns = [image[channel, :, x] for image in images for channel in range(3) for x in range(96)]
    return b"".join(column.tobytes() for column in columns)


def mnist_idx(array: np.ndarray) -> bytes:
    """Write an array of bytes in the idx format."""
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_tar(path: Path, folder: str, files: dict[str, bytes]) -> None:
    """Write a gzip-compressed tar file with an entry for its folder, an owner and rights."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in {f"{folder}/": None, **files}.items():
            member = tarfile.TarInfo(name)
            member.uname, member.gname, member.mode = "kriz", "hintgrp", 0o644
            if content is None:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
            member.size = len(content or b"")
            archive.addfile(member, io.BytesIO(content or b""))


def write_zip(path: Path, folder: str, files: dict[str, bytes]) -> None:
    """Write a zip file with an entry for its folder, photographs stored without compression."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{folder}/", b"")
        for name, content in files.items():
            method = zipfile.ZIP_STORED if name.endswith(".jpg") else zipfile.ZIP_DEFLATED
            archive.writestr(name, content, method)


def read_blocks(
    reader: Callable[..., Any],
    path: Path,
    *,
    size: int,
    images_per_class: int = 0,
    seed: int = 0,
    block: int = 3,
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Read a data set; its classes, and the arrays of all blocks."""
    generator = np.random.default_rng(seed)
    classes, parts = reader(
        path=str(path), size=size, images_per_class=images_per_class, generator=generator, block=block
    )
    blocks = list(parts)
    assert max(len(part["image"]) for part in blocks) <= block
    assert all(part["image"].flags.c_contiguous for part in blocks)
    arrays = {key: np.concatenate([part[key] for part in blocks]) for key in blocks[0]}
    kinds = [arrays[key].dtype for key in ("image", "split", "label_class")]
    assert kinds == [np.uint8, np.uint8, np.int64]
    assert list(classes) == ["class"]
    return classes["class"], arrays


def refusal(read: Callable[[Path], object], path: Path, kind: type[Exception] = ValueError) -> str:
    """Return the one line that reading ``path`` is refused with, which calls it ROOT."""
    with pytest.raises(kind) as error:
        read(path)
    message = str(error.value)
    assert message.splitlines() == [message]
    return message.replace(str(path), "ROOT")

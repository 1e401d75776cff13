"""Files as the publishers of data sets write them, around pixels of a test's own (docs/formats.md has the sources)."""

import io
import struct
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

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

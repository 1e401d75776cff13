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


def python2_text(value: str) -> bytes:
    """Pickle a text as Python 2 does."""
    return b"U" + bytes([len(value)]) + value.encode()


def python2_list(entries: Sequence[bytes]) -> bytes:
    """Pickle the entries of a list as Python 2 does, a thousand at a time."""
    parts = [entries[start : start + 1000] for start in range(0, len(entries), 1000)]
    return b"".join(b"(" + b"".join(part) + b"e" for part in parts)


def cifar10_batch(rows: np.ndarray, labels: Sequence[int]) -> bytes:
    """Pickle a batch as Python 2's cPickle and its numpy do, opcode by opcode."""
    count = struct.pack("<H", len(rows))
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85U\x01b\x87Rq\x09(K\x01M"
        + count
        + b"M\x00\x0c\x86cnumpy\ndtype\nq\x0aU\x02u1K\x00K\x01\x87Rq\x0b"
        b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T"
        + struct.pack("<I", rows.size)
        + rows.tobytes()
        + b"tb"
    )
    numbers = python2_list([b"K" + bytes([label]) for label in labels])
    names = python2_list([python2_text(f"leptodactylus_s_{index:06}.png") for index in range(len(rows))])
    return (
        b"\x80\x02}q\x01("
        + (python2_text("batch_label") + b"q\x02" + python2_text("training batch 1 of 5") + b"q\x03")
        + (python2_text("labels") + b"q\x04]q\x05" + numbers)
        + (python2_text("data") + b"q\x06" + array)
        + (python2_text("filenames") + b"q\x0c]q\x0d" + names)
        + b"u."
    )


def cifar10_meta(count: int) -> bytes:
    """Pickle ``batches.meta`` for batches of ``count`` images; with 10,000 it is the publisher's file."""
    names = b"".join(python2_text(name) + b"q" + bytes([5 + label]) for label, name in enumerate(CIFAR10))
    return (
        b"\x80\x02}q\x01("
        + (python2_text("num_cases_per_batch") + b"q\x02M" + struct.pack("<H", count))
        + (python2_text("label_names") + b"q\x03]q\x04(" + names + b"e")
        + (python2_text("num_vis") + b"q\x0fM" + struct.pack("<H", 3072))
        + b"u."
    )


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

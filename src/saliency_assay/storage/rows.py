"""Random access to rows of an uncompressed array, read directly from the zip file.

Zarr reads complete chunks, so that a batch in random order would read megabytes for each image. Arrays that are neither
compressed nor divided into Zarr's shards are therefore read row by row. Files are not memory-mapped, because mapped
pages count as memory of the process. Any number of threads may read at once.
"""

import os
import struct
import zipfile
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from saliency_assay.runtime.environment import optional

with optional("zarr"):
    import zarr

# The local header of a zip member has 30 bytes, followed by its name and an extra field. The lengths of these two, of 2
# bytes each, are at offset 26.
HEADER_LENGTH = 30
NAME_LENGTHS = 26


class StoreError(ValueError):
    """Error for a store that cannot be read or is not the requested one. The message is one line."""


class Archive:
    """An open zip file with random access to its uncompressed members."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip = zipfile.ZipFile(path)
        self._starts: dict[str, int] = {}

    def close(self) -> None:
        """Close the file; later reads fail."""
        self._zip.close()

    def sizes(self) -> dict[str, int]:
        """Return the unpacked size of each member in bytes.

        Raises:
            StoreError: two members have the same name or overlap, and would unpack to more than the file contains.
        """
        members = self._zip.infolist()
        compressed, length = sum(member.compress_size for member in members), os.fstat(self._file()).st_size
        if len(self._zip.NameToInfo) != len(members) or compressed > length:
            description = f"{len(members)} members of {compressed} bytes in a file of {length}"
            raise StoreError(
                f"{self.path}: found {description}, expected distinct members that do not overlap"
            )
        return {member.filename: member.file_size for member in members}

    def beginning(self, name: str, count: int) -> bytes:
        """Return at most ``count`` bytes from the beginning of member ``name``, unpacked if it is compressed.

        Raises:
            StoreError: the member cannot be read.
        """
        try:
            with self._zip.open(name) as member:
                return member.read(count)
        except Exception as error:  # damaged files raise BadZipFile, zlib.error, RuntimeError, …
            raise StoreError(f"{self.path}: truncated, or not a Zarr store ({name}: {error})") from error

    def _file(self) -> int:
        if self._zip.fp is None:
            raise ValueError(f"{self.path}: closed")
        return self._zip.fp.fileno()

    @property
    def plain(self) -> bool:
        """True if no member is compressed; zip files written by other programs may have compressed members."""
        return all(member.compress_type == zipfile.ZIP_STORED for member in self._zip.infolist())

    def read(self, name: str, start: int, target: memoryview) -> None:
        """Fill ``target`` with bytes of member ``name``, from its byte ``start`` on.

        Raises:
            StoreError: the file is too short.
            ValueError: the archive is closed.
        """
        file = self._file()
        if name not in self._starts:
            header, lengths = self._zip.NameToInfo[name].header_offset, bytearray(4)
            self._fill(memoryview(lengths), file, header + NAME_LENGTHS, name)
            self._starts[name] = header + HEADER_LENGTH + sum(struct.unpack("<HH", lengths))
        self._fill(target, file, self._starts[name] + start, name)

    def _fill(self, target: memoryview, file: int, offset: int, name: str) -> None:
        done = 0
        while done < len(target):
            try:
                count = os.preadv(file, [target[done:]], offset + done)
            except OSError as error:  # an invalid offset, or a disk error
                raise StoreError(f"{self.path}: {name} cannot be read: {error.strerror}") from error
            if not count:
                raise StoreError(f"{self.path}: truncated, or not a Zarr store ({name} is incomplete)")
            done += count  # one call may read less than requested

    def check(self, name: str, content: memoryview, padding: bytes) -> None:
        """Check the CRC-32 of a complete member, which is ``content`` followed by ``padding``.

        Raises:
            StoreError: the checksums differ.
        """
        expected, actual = self._zip.NameToInfo[name].CRC, zlib.crc32(padding, zlib.crc32(content))
        if actual != expected:
            raise StoreError(f"{self.path}: {name} is damaged: CRC-32 {actual:08x}, expected {expected:08x}")


class Rows:
    """An uncompressed array ``[N, ...]``, uint8 or float32, in an archive, with chunks of complete rows."""

    def __init__(self, archive: Archive, array: zarr.Array[Any]) -> None:
        self._archive = archive
        self._array = array
        self._length = array.shape[0]
        self._chunk = array.chunks[0]
        self._dtype = array.dtype
        self._width = int(np.prod(array.shape[1:])) * array.dtype.itemsize  # bytes
        self._fill = np.full(int(np.prod(array.shape[1:])), array.fill_value, array.dtype).tobytes()

    @classmethod
    def of(cls, archive: Archive, array: zarr.Array[Any]) -> Self | None:
        """Return access to the rows of ``array``; None if only Zarr can read it, chunk by chunk."""
        unencoded = not array.compressors and not array.filters and array.shards is None
        whole_rows = array.chunks[1:] == array.shape[1:]
        fits = (
            array.dtype in (np.uint8, np.float32)
            and unencoded
            and whole_rows
            and array.metadata.zarr_format == 3
        )
        return cls(archive, array) if fits and archive.plain else None

    def at(self, index: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return the rows at ``index`` ``[n]``, in that order, ``[n, ...]``; negative indices count from the end.

        Consecutive rows are read in one call, directly into the result. The checksum of a chunk is verified only if
        the whole chunk is read.

        Raises:
            IndexError: an index is out of range.
            StoreError: the file is truncated or damaged.
        """
        outside = index[(index < -self._length) | (index >= self._length)]
        if len(outside):
            raise IndexError(f"{self._array.path}: row {outside[0]}, of {self._length}")
        index = np.where(index < 0, index + self._length, index)
        rows = np.empty((len(index), *self._array.shape[1:]), dtype=self._dtype)
        target, width = rows.reshape(-1).view(np.uint8).data, self._width
        # A new read starts where rows are not consecutive, and at each chunk, because chunks are separate zip members.
        starts = (np.diff(index, prepend=-2) != 1) | (index % self._chunk == 0)
        for first, end in pairwise([*np.flatnonzero(starts).tolist(), len(index)]):
            self._read(int(index[first]), target[first * width : end * width])
        return rows

    def _read(self, row: int, target: memoryview) -> None:
        """Read consecutive rows of one chunk, from ``row`` on, into ``target``."""
        chunk, start = divmod(row, self._chunk)
        coordinates = (chunk, *(0 for _ in self._array.shape[1:]))
        name = f"{self._array.path}/{self._array.metadata.encode_chunk_key(coordinates)}"
        self._archive.read(name, start * self._width, target)
        rows = min(self._chunk, self._length - chunk * self._chunk)
        if len(target) == rows * self._width:
            # Zarr pads the last chunk to its full size with the fill value.
            padding = self._fill * (self._chunk - rows)
            self._archive.check(name, target, padding)

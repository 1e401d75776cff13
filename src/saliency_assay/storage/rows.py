"""Rows of an uncompressed array, read where they lie in the zip file.

Zarr reads whole chunks. A batch in random order would read one of megabytes for each image, so arrays that are stored
as they are (no compression, no shards) are read by the row. Nothing is mapped: pages of a map count as the process's
memory. Any number of threads may read at once.
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
import zarr

# Place of the lengths of its name and of what follows that in a member's own header, which has 30 bytes.
NAME_LENGTHS = 26


class StoreError(ValueError):
    """A store that cannot be read, or is not the one that was asked for. The message is one line."""


class Archive:
    """An open zip file, of which parts of uncompressed members are read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip = zipfile.ZipFile(path)
        self._starts: dict[str, int] = {}

    def close(self) -> None:
        """Close the file; what reads from it then fails."""
        self._zip.close()

    def sizes(self) -> dict[str, int]:
        """Return the bytes of each member, unpacked.

        Raises:
            StoreError: two of one name, or members that lie over each other: both would unpack to more than there is.
        """
        members = self._zip.infolist()
        taken, length = sum(member.compress_size for member in members), os.fstat(self._file()).st_size
        if len(self._zip.NameToInfo) != len(members) or taken > length:
            found = f"{len(members)} members of {taken} bytes in a file of {length}"
            raise StoreError(f"{self.path}: found {found}, expected each once, one after another")
        return {member.filename: member.file_size for member in members}

    def beginning(self, name: str, count: int) -> bytes:
        """At most ``count`` bytes that member ``name`` begins with, compressed or not.

        Raises:
            StoreError: it cannot be read.
        """
        try:
            with self._zip.open(name) as member:
                return member.read(count)
        except Exception as error:  # damage shows as BadZipFile, zlib.error, RuntimeError, …
            raise StoreError(f"{self.path}: truncated, or not a Zarr store ({name}: {error})") from error

    def _file(self) -> int:
        if self._zip.fp is None:
            raise ValueError(f"{self.path}: closed")
        return self._zip.fp.fileno()

    @property
    def plain(self) -> bool:
        """Return whether all its members are stored as they are; a zip written by other programs may be compressed."""
        return all(member.compress_type == zipfile.ZIP_STORED for member in self._zip.infolist())

    def read(self, name: str, start: int, target: memoryview) -> None:
        """Fill ``target`` with the bytes of member ``name`` from its byte ``start`` on.

        Raises:
            StoreError: the file ends before the part does.
            ValueError: it is closed.
        """
        file = self._file()
        if name not in self._starts:
            header, lengths = self._zip.NameToInfo[name].header_offset, bytearray(4)
            self._fill(memoryview(lengths), file, header + NAME_LENGTHS, name)
            self._starts[name] = header + 30 + sum(struct.unpack("<HH", lengths))
        self._fill(target, file, self._starts[name] + start, name)

    def _fill(self, target: memoryview, file: int, place: int, name: str) -> None:
        done = 0
        while done < len(target):
            try:
                count = os.preadv(file, [target[done:]], place + done)
            except OSError as error:  # no file has such a place, or the disk cannot be read
                raise StoreError(f"{self.path}: {name} cannot be read: {error.strerror}") from error
            if not count:
                raise StoreError(f"{self.path}: truncated, or not a Zarr store ({name} is not whole)")
            done += count

    def check(self, name: str, content: memoryview, padding: bytes) -> None:
        """Compare a whole member, ``content`` and then ``padding``, with its checksum.

        Raises:
            StoreError: they differ.
        """
        expected, found = self._zip.NameToInfo[name].CRC, zlib.crc32(padding, zlib.crc32(content))
        if found != expected:
            raise StoreError(f"{self.path}: {name} is damaged: CRC-32 {found:08x}, expected {expected:08x}")


class Rows:
    """An array uint8 ``[N, ...]`` that lies uncompressed in an archive, chunks of whole rows one after another."""

    def __init__(self, archive: Archive, array: zarr.Array[Any]) -> None:
        self._archive = archive
        self._array = array
        self._length = array.shape[0]
        self._chunk = array.chunks[0]
        self._width = int(np.prod(array.shape[1:]))
        self._fill = int(array.fill_value)

    @classmethod
    def of(cls, archive: Archive, array: zarr.Array[Any]) -> Self | None:
        """Return the rows of ``array``, or None where they cannot be read by themselves: Zarr then has to."""
        plain = not array.compressors and not array.filters and array.shards is None
        whole = array.chunks[1:] == array.shape[1:]
        fits = array.dtype == np.uint8 and plain and whole and array.metadata.zarr_format == 3
        return cls(archive, array) if fits and archive.plain else None

    def at(self, index: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """Return the rows at ``index`` ``[n]``, in that order, negative ones from the end; uint8 ``[n, ...]``.

        Rows that follow each other are read at once, straight to where they are returned. A chunk that is read whole
        is compared with its checksum.

        Raises:
            IndexError: there is no such row.
            StoreError: the file is truncated or damaged.
        """
        outside = index[(index < -self._length) | (index >= self._length)]
        if len(outside):
            raise IndexError(f"{self._array.path}: row {outside[0]}, of {self._length}")
        index = np.where(index < 0, index + self._length, index)
        found = np.empty((len(index), *self._array.shape[1:]), dtype=np.uint8)
        target, width = found.reshape(-1).data, self._width
        begins = (np.diff(index, prepend=-2) != 1) | (index % self._chunk == 0)
        for first, end in pairwise([*np.flatnonzero(begins).tolist(), len(index)]):
            self._read(int(index[first]), target[first * width : end * width])
        return found

    def _read(self, row: int, target: memoryview) -> None:
        """Rows from ``row`` on, all of one chunk."""
        chunk, start = divmod(row, self._chunk)
        place = (chunk, *(0 for _ in self._array.shape[1:]))
        name = f"{self._array.path}/{self._array.metadata.encode_chunk_key(place)}"
        self._archive.read(name, start * self._width, target)
        rows = min(self._chunk, self._length - chunk * self._chunk)
        if len(target) == rows * self._width:
            padding = bytes([self._fill]) * ((self._chunk - rows) * self._width)
            self._archive.check(name, target, padding)

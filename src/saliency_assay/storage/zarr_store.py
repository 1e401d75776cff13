"""Zarr stores: writing and reading of arrays and their provenance in one file.

A store is a ``.zarr.zip`` file of equally long arrays (axis 0 counts items: images, cut-outs, …) and attributes. Only
this module writes Zarr. A store is written block by block into a hidden folder next to the target, zipped, and renamed
(``atomic``), so that a file with the target's name is always complete. Equal content gives equal bytes. Boolean arrays
are bit-packed along the trailing axes, 8 values per byte, and are read as booleans. Images and uint8 arrays (packed
booleans, text) are stored uncompressed, so that single rows can be read (``storage.rows``); others are compressed.
"""

import hashlib
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from saliency_assay import __version__
from saliency_assay.registry.records import short_repr
from saliency_assay.runtime import failure
from saliency_assay.runtime.atomic import remove_leftovers, replacing, temporary_path
from saliency_assay.runtime.environment import loaded_versions, optional
from saliency_assay.runtime.provenance import plain
from saliency_assay.storage.rows import Archive, Rows
from saliency_assay.storage.rows import StoreError as StoreError
from saliency_assay.storage.zarr_check import check as check_archive
from saliency_assay.storage.zarr_format import FORMAT, unreadable

with optional("zarr"):
    import zarr
    from zarr.storage import LocalStore, ZipStore

Array = npt.NDArray[Any]
Block = Mapping[str, Array]

CHUNK_BYTES = 4 << 20
BLOCK = 256  # items; arrays that are read in parallel need blocks of equal length
# The earliest date of the zip format: with real dates, equal stores would have different bytes.
ZIP_DATE = (1980, 1, 1, 0, 0, 0)


def write(path: Path, blocks: Iterable[Block], *, kind: str, attributes: Mapping[str, Any]) -> None:
    """Write ``blocks``, in order, as one store.

    Args:
        path: the target, ``*.zarr.zip``; replaced completely, or left unchanged if an error occurs.
        blocks: each maps array names to arrays of equal length; names, dtypes and trailing shapes are the same
            in all blocks. Boolean arrays are bit-packed.
        kind: kind of content (``data``, ``maps``, …), which ``open_store`` checks.
        attributes: plain provenance: parameters, digests, seeds. ``kind``, ``format``, ``version``, ``libraries``
            (versions of the packages that this process has loaded), ``length`` and ``digest`` (SHA-256 of names,
            dtypes, shapes and bytes of all arrays) are added.

    Raises:
        StoreError: there is no block, or a block does not fit the first one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    folder = temporary_path(path, "writing")
    try:
        writer = _Writer(folder, path)
        for block in blocks:
            writer.append(block)
        writer_attributes = {"format": FORMAT, "version": __version__, "libraries": loaded_versions()}
        writer.finish({**plain(attributes), "kind": kind, **writer_attributes})
        _write_zip(folder, path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def with_columns(blocks: Iterable[Block], **columns: Array) -> Iterator[dict[str, Array]]:
    """Yield ``blocks`` with the matching rows of ``columns``, which are as long as all blocks together along axis 0."""
    start = 0
    for block in blocks:
        end = start + len(next(iter(block.values())))
        yield {**{name: column[start:end] for name, column in columns.items()}, **block}
        start = end


class _Writer:
    """Writer that combines blocks into complete chunks of each array, and digests their bytes."""

    def __init__(self, folder: Path, path: Path) -> None:
        self.group = zarr.create_group(LocalStore(folder))
        self.path = path
        self.layout: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
        self.arrays: dict[str, zarr.Array[Any]] = {}
        self.pending: dict[str, list[Array]] = {}
        self.digests: dict[str, Any] = {}
        self.length = 0

    def append(self, block: Block) -> None:
        layout = {name: (array.dtype, array.shape[1:]) for name, array in block.items()}
        if not self.layout:
            self.layout = layout
            for name, (dtype, trailing) in layout.items():
                self.pending[name] = []
                self.digests[name] = hashlib.sha256(f"{name} {dtype} {trailing}".encode())
        lengths = {len(array) for array in block.values()}
        if layout != self.layout or len(lengths) != 1:
            description = {name: f"{array.dtype}{list(array.shape)}" for name, array in block.items()}
            raise StoreError(
                f"{self.path}: a block after {self.length} items does not match the first: {description}"
            )
        self.length += lengths.pop()
        for name, array in block.items():
            self.digests[name].update(np.ascontiguousarray(array).tobytes())
            self.pending[name].append(_pack_bits(array) if array.dtype == bool else array)
            self._flush(name, last=False)

    def _flush(self, name: str, *, last: bool) -> None:
        """Write the complete pending chunks, with ``last`` also the rest; a small array becomes one small chunk."""
        dtype, trailing = self._stored_layout(name)
        rows = max(1, CHUNK_BYTES // max(1, int(np.prod(trailing)) * dtype.itemsize))
        waiting = sum(len(block) for block in self.pending[name])
        ready = waiting if last else waiting - waiting % rows
        if name not in self.arrays and (ready or last):
            # Zarr pads each chunk to its full size, so a small array needs a small chunk.
            self.arrays[name] = self._create(name, min(rows, max(1, waiting)))
        if not ready:
            return
        array, gathered = self.arrays[name], np.concatenate(self.pending[name])
        start = array.shape[0]
        array.resize((start + ready, *array.shape[1:]))
        array[start:] = gathered[:ready]
        self.pending[name] = [gathered[ready:]]

    def _stored_layout(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Return dtype and trailing shape of an array as stored."""
        dtype, trailing = self.layout[name]
        if dtype.kind == "b":
            return np.dtype(np.uint8), (-(-int(np.prod(trailing)) // 8),)
        return dtype, trailing

    def _create(self, name: str, rows: int) -> zarr.Array[Any]:
        dtype, trailing = self._stored_layout(name)
        packed = self.layout[name][0].kind == "b"
        return self.group.create_array(
            name,
            shape=(0, *trailing),
            dtype=dtype,
            chunks=(rows, *trailing),
            compressors=None if dtype == np.uint8 or (dtype == np.float32 and name == "image") else "auto",
            fill_value=np.nan if dtype.kind == "f" else 0,
            # Otherwise a lost chunk could not be distinguished from an omitted empty one, and would be read as zeros.
            config={"write_empty_chunks": True},
            attributes={"packed": list(self.layout[name][1])} if packed else {},
        )

    def finish(self, attributes: dict[str, Any]) -> None:
        if not self.layout:
            raise StoreError(f"{self.path}: found no block to write, expected at least one")
        for name in self.layout:
            self._flush(name, last=True)
        digests = "".join(self.digests[name].hexdigest() for name in sorted(self.digests))
        digest = hashlib.sha256(digests.encode()).hexdigest()
        self.group.attrs.update({**attributes, "length": self.length, "digest": digest})


def _write_zip(folder: Path, path: Path) -> None:
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            member = zipfile.ZipInfo(file.relative_to(folder).as_posix(), ZIP_DATE)
            member.file_size = file.stat().st_size  # zipfile needs it for the 64-bit headers of large members
            with file.open("rb") as source, archive.open(member, "w") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            file.unlink()  # so that the disk never contains two complete copies


def _pack_bits(array: Array) -> Array:
    # An explicit width, because ``reshape`` cannot infer it for an array without items.
    return np.packbits(array.reshape(len(array), int(np.prod(array.shape[1:]))), axis=1)


class StoredArray:
    """One array of an open store, read on demand; bit-packed arrays are unpacked to booleans.

    Index it along axis 0 with a slice, an integer, or an array of integers. With ``rows``, only the requested items
    are read; otherwise Zarr reads the chunks that contain them.
    """

    def __init__(self, array: zarr.Array[Any], rows: Rows | None = None, source: Path | None = None) -> None:
        self._array = array
        self._source = source or Path(array.path)
        self._rows = rows
        packed = array.attrs.get("packed")
        self._packed = tuple(int(size) for size in packed) if isinstance(packed, list) else None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape after unpacking, items first."""
        return (self._array.shape[0], *(self._array.shape[1:] if self._packed is None else self._packed))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type after unpacking."""
        return np.dtype(bool) if self._packed is not None else self._array.dtype

    def __len__(self) -> int:
        return int(self._array.shape[0])

    def __getitem__(self, index: Any) -> Array:
        raw = self._read(index)
        if self._packed is None:
            return raw
        size = int(np.prod(self._packed))
        bits = np.unpackbits(raw, axis=-1, count=size).view(np.bool_)
        return bits.reshape(*raw.shape[:-1], *self._packed)

    def packed_rows(self, index: Any) -> Array:
        """Return booleans as stored: uint8 ``[n, ceil(A / 8)]`` for A values per row, the first one in the highest bit.

        Raises:
            StoreError: the array is not boolean.
        """
        if self._packed is None:
            raise StoreError(f"{self._array.path}: found {self.dtype}, expected bool")
        return self._read(index)

    def _read(self, index: Any) -> Array:
        scalar = isinstance(index, int | np.integer)
        if isinstance(index, slice):
            if self._rows is None:
                with self._naming_file():
                    return np.asarray(self._array[index])
            index = np.arange(*index.indices(len(self)))
        indices = np.asarray([index] if scalar else index)
        if self._rows is None or indices.dtype.kind not in "iu":
            with self._naming_file():
                items = np.asarray(self._array.oindex[indices])
        else:
            items = self._rows.at(indices.astype(np.int64, copy=False))
        return np.asarray(items[0]) if scalar else items

    @contextmanager
    def _naming_file(self) -> Iterator[None]:
        """Convert exceptions that Zarr raises for a damaged chunk into a StoreError that names the file."""
        try:
            yield
        except (IndexError, StoreError):
            raise
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise StoreError(f"{self._source}: {self._array.path} is damaged: {reason}") from error

    def at(self, indices: Array) -> "Selection":
        """Return a view of the items at ``indices``, read on demand; if they are ascending, each chunk is read once."""
        return Selection(self, indices)


class Selection:
    """Selected items of a stored array, in the order of selection; index it with slices."""

    def __init__(self, array: StoredArray, indices: Array) -> None:
        self._array = array
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, rows: slice) -> Array:
        return self._array[self._indices[rows]]

    def blocks(self, size: int = BLOCK) -> Iterator[Array]:
        """Yield all items in order, ``size`` at a time."""
        for start in range(0, len(self), size):
            yield self[start : start + size]


class Store:
    """An open store, for reading; use it in a ``with`` statement."""

    def __init__(self, archive: Archive, group: zarr.Group) -> None:
        self.path = archive.path
        self.attributes: dict[str, Any] = dict(group.attrs)
        self._archive = archive
        self._group = group

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._group.store.close()
        self._archive.close()

    def __len__(self) -> int:
        return int(self.attributes["length"])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __getitem__(self, name: str) -> StoredArray:
        if name not in self._group:
            raise StoreError(f"{self.path}: no array {name!r}; found: {', '.join(self.names)}")
        array = self._group[name]
        assert isinstance(array, zarr.Array)
        return StoredArray(array, Rows.of(self._archive, array), self.path)

    @property
    def names(self) -> list[str]:
        """Names of the arrays, sorted."""
        return sorted(self._group.array_keys())

    def blocks(self, *names: str, size: int = BLOCK) -> Iterator[dict[str, Array]]:
        """Yield all items of the arrays ``names`` in order, ``size`` at a time."""
        arrays = {name: self[name] for name in names}
        for start in range(0, len(self), size):
            yield {name: array[start : start + size] for name, array in arrays.items()}


def open_store(path: Path, *, kind: str, expect: Mapping[str, Any] | None = None) -> Store:
    """Open a store for reading.

    Args:
        path: the store's file.
        kind: required kind of content.
        expect: required attributes with their values.

    Raises:
        StoreError: the store is missing, truncated, or of another format or kind, or an attribute has another value.
    """
    if not path.is_file():
        raise StoreError(f"{path}: no such store")
    failure.check(path, StoreError)
    try:
        archive = Archive(path)
    except Exception as error:  # damaged zip files raise BadZipFile, struct.error, OSError, …
        raise StoreError(f"{path}: truncated, or not a Zarr store ({error})") from error
    with ExitStack() as stack:
        stack.callback(archive.close)
        check_archive(archive)
        store = _open_archive(archive)
        if reason := unreadable(store.attributes.get("format")):
            raise StoreError(f"{path}: {reason}")
        stack.pop_all()
    lengths, stated_length = {len(store[name]) for name in store.names}, store.attributes.get("length")
    if type(stated_length) is not int or lengths != {stated_length}:
        raise StoreError(
            f"{path}: found arrays of lengths {sorted(lengths)}, expected {short_repr(stated_length)}, "
            "as in its attributes"
        )
    for name, value in {"kind": kind, **plain(expect or {})}.items():
        actual = store.attributes.get(name)
        if actual != value:
            raise StoreError(f"{path}: {name} is {short_repr(actual)}, expected {short_repr(value)}")
    return store


def _open_archive(archive: Archive) -> Store:
    try:
        store = Store(archive, zarr.open_group(ZipStore(archive.path, mode="r"), mode="r"))
        for name in store.names:
            store[name]  # opens the array, which checks its metadata
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise StoreError(f"{archive.path}: truncated, or not a Zarr store ({reason})") from error
    return store


def same(name: str, *stores: Store) -> Array:
    """Return the one-dimensional array ``name``, which must be the same in all ``stores``.

    Raises:
        StoreError: the arrays differ; the message names both stores.
    """
    first = stores[0][name][:]
    for other in stores[1:]:
        if not np.array_equal(first, other[name][:]):
            raise StoreError(f"{other.path}: {name!r} differs from that in {stores[0].path}")
    return first


def rows_of(name: str, values: Array, store: Store) -> Array:
    """Return the position of each of ``values`` in the one-dimensional array ``name`` of ``store``.

    Raises:
        StoreError: the array lacks one of the values.
    """
    rows = {value: row for row, value in enumerate(store[name][:].tolist())}
    missing = [value for value in values.tolist() if value not in rows]
    if missing:
        raise StoreError(
            f"{store.path}: {name!r} does not contain {missing[0]} (and {len(missing) - 1} more)"
        )
    return np.array([rows[value] for value in values.tolist()], dtype=np.int64)

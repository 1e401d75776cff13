"""Stores of the shards of a set, read as one store of all its images.

Each shard is written by a separate job (``runtime.shards``). Opening them together checks that they are all shards of
one run, in order. Their arrays are then read on demand, through the interface of a single store.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from saliency_assay.runtime.provenance import fingerprint
from saliency_assay.runtime.shards import WHOLE, Shard
from saliency_assay.storage.zarr_store import Array, Store, StoredArray, StoreError, open_store

SHARD_ATTRIBUTES = {"shard", "offset", "length", "digest", "maps"}
"""Attributes that differ between shards of one run: those of their content, and of the maps behind it."""
PROCESS_ATTRIBUTES = {"format", "version", "libraries"}
"""Attributes of the process that wrote a store. They may differ, because Snakemake decides what must be rerun."""


def open_stores(paths: Sequence[Path], *, kind: str, expect: Mapping[str, Any] | None = None) -> Store:
    """Open the stores of all shards of a set, in order, as one store; a single path is that of an unsharded set.

    ``kind`` and ``expect`` apply to each store, as in ``open_store``. Attributes of individual shards, such as the
    offset, are omitted; ``length`` is the total length, and ``digest`` a digest of the shards' digests.

    Raises:
        StoreError: there is no path, or a shard is missing, truncated, out of order, or of another run or number of
            shards.
    """
    if not paths:
        raise StoreError(f"{kind}: found no store, expected at least one path")
    with ExitStack() as stack:
        stores = [stack.enter_context(open_store(path, kind=kind, expect=expect)) for path in paths]
        offset = 0
        for number, store in enumerate(stores, 1):
            _check_position(store, Shard(number, len(stores)), offset)
            if difference := _difference(_shared_properties(store), _shared_properties(stores[0])):
                raise StoreError(f"{store.path}: {difference} as in {stores[0].path}")
            offset += len(store)
        stack.pop_all()  # keep the stores open
    return ShardedStore(stores) if len(stores) > 1 else stores[0]


def grouped(paths: Sequence[str | Path], groups: int) -> list[list[Path]]:
    """Split ``paths`` into consecutive groups of equal length, such as the shards of each of several sets.

    Without paths there are no groups.

    Raises:
        ValueError: the number of paths is not a multiple of ``groups``.
    """
    if not paths:
        return []
    if groups < 1 or len(paths) % groups:
        raise ValueError(f"paths: found {len(paths)}, expected a multiple of {groups}, the number of groups")
    size = len(paths) // groups
    return [[Path(path) for path in paths[start : start + size]] for start in range(0, len(paths), size)]


def _check_position(store: Store, expected: Shard, offset: int) -> None:
    actual = Shard(*store.attributes.get("shard", WHOLE))
    if actual != expected:
        raise StoreError(
            f"{store.path}: found shard {actual.number} of {actual.of}, expected {expected.number} of {expected.of}"
        )
    actual_offset = store.attributes.get("offset", 0)
    if actual_offset != offset:
        raise StoreError(
            f"{store.path}: offset is {actual_offset}, expected {offset}, the number of images of the shards before"
        )


def _shared_attributes(store: Store) -> dict[str, Any]:
    """Return the attributes that all shards of a run have in common."""
    return {
        name: value
        for name, value in store.attributes.items()
        if name not in SHARD_ATTRIBUTES | PROCESS_ATTRIBUTES
    }


def _shared_properties(store: Store) -> dict[str, Any]:
    """Return the properties that all shards of a run have in common: attributes, and dtypes and shapes of arrays."""
    arrays = {name: f"{store[name].dtype}{list(store[name].shape[1:])}" for name in store.names}
    return {**_shared_attributes(store), "arrays": arrays}


def _difference(actual: Any, expected: Any, key: str = "") -> str:
    """Describe the first difference between two plain JSON values, with its key; return an empty string if equal."""
    if not (isinstance(actual, Mapping) and isinstance(expected, Mapping)):
        return "" if actual == expected else f"{key} is {actual!r}, expected {expected!r}"
    prefix = f"{key}." if key else ""
    for name in [*expected, *(name for name in actual if name not in expected)]:
        if difference := _difference(actual.get(name), expected.get(name), f"{prefix}{name}"):
            return difference
    return ""


class ShardedStore(Store):
    """The open stores of all shards of a set, in order, as one store; use it in a ``with`` statement."""

    def __init__(self, stores: Sequence[Store]) -> None:
        self.path = stores[0].path
        digests = [store.attributes["digest"] for store in stores]
        self.attributes = {
            **_shared_attributes(stores[0]),
            "length": sum(map(len, stores)),
            "digest": fingerprint(digests),
        }
        self._stores = tuple(stores)

    def __exit__(self, *exception: object) -> None:
        with ExitStack() as stack:
            for store in self._stores:
                stack.push(store)

    def __getitem__(self, name: str) -> "ShardedArray":
        return ShardedArray([store[name] for store in self._stores])

    @property
    def names(self) -> list[str]:
        """Names of the arrays, the same in every shard."""
        return self._stores[0].names


class ShardedArray(StoredArray):
    """One array of several stores, their items concatenated in order; indexed like ``StoredArray``."""

    def __init__(self, shards: Sequence[StoredArray]) -> None:
        super().__init__(shards[0]._array)
        self._shards = tuple(shards)
        self._ends = list(accumulate(map(len, shards)))  # total number of items up to the end of each shard

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape after unpacking, items of all shards first."""
        return (len(self), *super().shape[1:])

    def __len__(self) -> int:
        return self._ends[-1]

    def _read(self, index: Any) -> Array:
        if isinstance(index, slice) and index.step in (None, 1):
            return self._read_range(*index.indices(len(self))[:2])
        rows = np.asarray(index)
        if rows.dtype.kind not in "iu":  # steps, booleans, an empty list
            rows = np.arange(len(self))[index]
        outside = (rows < -len(self)) | (rows >= len(self))
        if outside.any():
            raise IndexError(f"{self._array.path}: row {rows[outside].flat[0]}, of {len(self)}")
        rows = np.where(rows < 0, rows + len(self), rows)
        items = self._read_rows(np.atleast_1d(rows))
        return items if np.ndim(rows) else np.asarray(items[0])

    def _read_range(self, start: int, stop: int) -> Array:
        blocks, begin = [], 0
        for shard, end in zip(self._shards, self._ends, strict=True):
            if max(start, begin) < min(stop, end):
                blocks.append(shard._read(slice(max(start - begin, 0), min(stop, end) - begin)))
            begin = end
        return np.concatenate(blocks) if blocks else self._shards[0]._read(slice(0, 0))

    def _read_rows(self, rows: Array) -> Array:
        items = np.empty((len(rows), *self._array.shape[1:]), dtype=self._array.dtype)
        shard_numbers, begin = np.searchsorted(self._ends, rows, side="right"), 0
        for number, (shard, end) in enumerate(zip(self._shards, self._ends, strict=True)):
            in_shard = shard_numbers == number
            if in_shard.any():
                items[in_shard] = shard._read(rows[in_shard] - begin)
            begin = end
        return items

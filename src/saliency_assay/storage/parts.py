"""A set's stores, each of one part of its images, read as one store of all of them.

Parts are made by jobs of their own (``shards``). Opened together they are checked to be all parts of one run, in order;
their arrays are then read on demand, as those of one store are. What reads stores need not know which it has.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from saliency_assay.runtime.provenance import fingerprint
from saliency_assay.runtime.shards import WHOLE, Part
from saliency_assay.storage.zarr_store import Array, Store, StoredArray, StoreError, open_store

OF_ONE_PART = {"part", "offset", "length", "digest", "maps"}
"""Attributes in which parts of one run differ: their own content, and that of the maps that they are made of."""
OF_PROCESS = {"format", "version", "libraries"}
"""How a process wrote, and what it had loaded; which results hang on it, Snakemake decides when it looks for what must
run again."""


def open_stores(paths: Sequence[Path], *, kind: str, expect: Mapping[str, Any] | None = None) -> Store:
    """Open the stores of all parts of a set, in their order, for reading as one; one that is whole by itself.

    ``kind`` and ``expect`` are as in ``open_store``, for each of them. Attributes of one part, such as its offset, are
    left out; ``length`` is that of all, and ``digest`` a digest of the digests of the parts.

    Raises:
        StoreError: none; a part that is missing, truncated, out of order, of another split or of another run.
    """
    if not paths:
        raise StoreError(f"{kind}: found no store, expected at least one path")
    with ExitStack() as stack:
        stores = [stack.enter_context(open_store(path, kind=kind, expect=expect)) for path in paths]
        offset = 0
        for number, store in enumerate(stores, 1):
            _check_place(store, Part(number, len(stores)), offset)
            if difference := _difference(_facts(store), _facts(stores[0])):
                raise StoreError(f"{store.path}: {difference} as in {stores[0].path}")
            offset += len(store)
        stack.pop_all()
    return Parts(stores) if len(stores) > 1 else stores[0]


def grouped(paths: Sequence[str | Path], groups: int) -> list[list[Path]]:
    """``paths`` in so many groups, one after another, all of one length: the parts of each of several stores.

    Where there are no paths there are no groups.

    Raises:
        ValueError: they cannot be shared out.
    """
    if not paths:
        return []
    if groups < 1 or len(paths) % groups:
        raise ValueError(f"paths: found {len(paths)}, expected as many in each of {groups} groups")
    size = len(paths) // groups
    return [[Path(path) for path in paths[start : start + size]] for start in range(0, len(paths), size)]


def _check_place(store: Store, part: Part, offset: int) -> None:
    found = Part(*store.attributes.get("part", WHOLE))
    if found != part:
        raise StoreError(
            f"{store.path}: part is {found.number} of {found.of}, expected {part.number} of {part.of}"
        )
    begins = store.attributes.get("offset", 0)
    if begins != offset:
        raise StoreError(
            f"{store.path}: offset is {begins}, expected {offset}, the images of the parts before"
        )


def _shared(store: Store) -> dict[str, Any]:
    """Attributes that all parts of a run have in common."""
    return {name: value for name, value in store.attributes.items() if name not in OF_ONE_PART | OF_PROCESS}


def _facts(store: Store) -> dict[str, Any]:
    """What all parts of a run have in common: attributes, and the layout of arrays."""
    arrays = {name: f"{store[name].dtype}{list(store[name].shape[1:])}" for name in store.names}
    return {**_shared(store), "arrays": arrays}


def _difference(found: Any, expected: Any, place: str = "") -> str:
    """The first place in which two values of plain JSON differ, with what is there; nothing if they are equal."""
    if not (isinstance(found, Mapping) and isinstance(expected, Mapping)):
        return "" if found == expected else f"{place} is {found!r}, expected {expected!r}"
    inside = f"{place}." if place else ""
    for name in [*expected, *(name for name in found if name not in expected)]:
        if difference := _difference(found.get(name), expected.get(name), f"{inside}{name}"):
            return difference
    return ""


class Parts(Store):
    """The open stores of all parts of a set, in their order, as one store; use it in a ``with`` statement."""

    def __init__(self, stores: Sequence[Store]) -> None:
        self.path = stores[0].path
        digests = [store.attributes["digest"] for store in stores]
        self.attributes = {
            **_shared(stores[0]),
            "length": sum(map(len, stores)),
            "digest": fingerprint(digests),
        }
        self._stores = tuple(stores)

    def __exit__(self, *exception: object) -> None:
        with ExitStack() as stack:
            for store in self._stores:
                stack.push(store)

    def __getitem__(self, name: str) -> "PartedArray":
        return PartedArray([store[name] for store in self._stores])

    @property
    def names(self) -> list[str]:
        """Names of the arrays, the same in every part."""
        return self._stores[0].names


class PartedArray(StoredArray):
    """One array of several stores, the items of each after those of the one before; indexed as ``StoredArray``."""

    def __init__(self, parts: Sequence[StoredArray]) -> None:
        super().__init__(parts[0]._array)
        self._parts = tuple(parts)
        self._ends = list(accumulate(map(len, parts)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape as readers see it, items of all parts first."""
        return (len(self), *super().shape[1:])

    def __len__(self) -> int:
        return self._ends[-1]

    def _read(self, index: Any) -> Array:
        if isinstance(index, slice) and index.step in (None, 1):
            return self._stretch(*index.indices(len(self))[:2])
        rows = np.asarray(index)
        if rows.dtype.kind not in "iu":  # steps, booleans, an empty list
            rows = np.arange(len(self))[index]
        outside = (rows < -len(self)) | (rows >= len(self))
        if outside.any():
            raise IndexError(f"{self._array.path}: row {rows[outside].flat[0]}, of {len(self)}")
        rows = np.where(rows < 0, rows + len(self), rows)
        found = self._rows_at(np.atleast_1d(rows))
        return found if np.ndim(rows) else np.asarray(found[0])

    def _stretch(self, start: int, stop: int) -> Array:
        """The items from ``start`` to before ``stop``; only the parts that have some of them are read."""
        read, begin = [], 0
        for part, end in zip(self._parts, self._ends, strict=True):
            if max(start, begin) < min(stop, end):
                read.append(part._read(slice(max(start - begin, 0), min(stop, end) - begin)))
            begin = end
        return np.concatenate(read) if read else self._parts[0]._read(slice(0, 0))

    def _rows_at(self, rows: Array) -> Array:
        found = np.empty((len(rows), *self._array.shape[1:]), dtype=self._array.dtype)
        places, begin = np.searchsorted(self._ends, rows, side="right"), 0
        for number, (part, end) in enumerate(zip(self._parts, self._ends, strict=True)):
            here = places == number
            if here.any():
                found[here] = part._read(rows[here] - begin)
            begin = end
        return found

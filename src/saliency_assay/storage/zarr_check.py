"""Check of a store's file before any of it is unpacked or given to Zarr.

Zarr reads more than ``zarr_store.write`` writes: other formats and codecs, one of which is a pickle, and arrays whose
chunks may be missing, which then are all one value. Only what ``zarr_store.write`` writes is read here, and every chunk
has to be there: a lost one is not taken for zeros. What compressed chunks unpack to is left to Zarr, and damage to the
zip file's checksums.
"""

import json
from dataclasses import dataclass
from math import prod
from typing import Any

from saliency_assay.storage.rows import Archive, StoreError

TYPES = {
    **{"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "float16": 2, "float32": 4, "float64": 8},
    **{"uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8},
}
GROUP_KEYS = {"attributes", "zarr_format", "node_type"}
ARRAY_KEYS = GROUP_KEYS | {
    *("shape", "data_type", "chunk_grid", "chunk_key_encoding"),
    *("fill_value", "codecs", "storage_transformers"),
}
CODECS = (["bytes"], ["bytes", "zstd"])
KEYS_OF_CHUNKS = {"name": "default", "configuration": {"separator": "/"}}
LARGEST_CHUNK = 1 << 31  # bytes; a chunk is 4 MiB, or one item where that is larger
LARGEST_TEXT = 1 << 26  # bytes of metadata


@dataclass(frozen=True)
class Layout:
    """Chunks of one array: their number, the end of their names, and the bytes of each, uncompressed."""

    chunks: int
    suffix: str
    size: int
    compressed: bool


def check(archive: Archive) -> None:
    """Check that the ``archive`` is a store as ``zarr_store.write`` makes them, with every chunk there.

    An uncompressed chunk must have its array's size.

    Raises:
        StoreError: it is not; the line says which member or key is at fault.
    """
    sizes = archive.sizes()
    _metadata(archive, sizes, "zarr.json", GROUP_KEYS, "group")
    arrays = [name.removesuffix("/zarr.json") for name in sizes if name.endswith("/zarr.json")]
    left = set(sizes) - {"zarr.json"}
    for array in arrays:
        layout = _layout(archive, sizes, f"{array}/zarr.json")
        # Counted before they are named: a trillion chunks are not worth a trillion names.
        if layout.chunks > len(sizes):
            raise _unfit(archive, f"{array} is of {layout.chunks} chunks, found {len(sizes)} members in all")
        left.remove(f"{array}/zarr.json")
        for number in range(layout.chunks):
            name = f"{array}/c/{number}{layout.suffix}"
            if name not in left:
                raise _unfit(archive, f"{name} is missing")
            left.remove(name)
            if not layout.compressed and sizes[name] != layout.size:
                raise _unfit(archive, f"{name} has {sizes[name]} bytes, expected {layout.size}")
    if left:
        raise _unfit(archive, f"{min(left)!r} belongs to none of its arrays")


def _layout(archive: Archive, sizes: dict[str, int], name: str) -> Layout:
    metadata = _metadata(archive, sizes, name, ARRAY_KEYS, "array")
    shape, kind, codecs = metadata["shape"], metadata["data_type"], metadata["codecs"]
    grid = metadata["chunk_grid"]
    inner = grid.get("configuration") if isinstance(grid, dict) and grid.get("name") == "regular" else None
    chunk: Any = inner.get("chunk_shape") if isinstance(inner, dict) else None
    if kind not in TYPES if isinstance(kind, str) else True:
        raise _unfit(archive, f"{name}: data_type is {_short(kind)}, expected one of {', '.join(TYPES)}")
    if not _lengths(shape) or not shape:
        raise _unfit(archive, f"{name}: shape is {_short(shape)}, expected lengths")
    if not _lengths(chunk) or len(chunk) != len(shape) or chunk[1:] != shape[1:] or not chunk[0]:
        raise _unfit(
            archive, f"{name}: chunk_shape is {_short(chunk)}, expected whole items of {_short(shape)}"
        )
    size = prod(chunk) * TYPES[kind]
    if size > LARGEST_CHUNK:
        raise _unfit(archive, f"{name}: chunks are of {_short(size)} bytes, expected at most {LARGEST_CHUNK}")
    names = (
        [codec.get("name") for codec in codecs if isinstance(codec, dict)] if isinstance(codecs, list) else []
    )
    if names not in CODECS:
        raise _unfit(archive, f"{name}: codecs are {_short(codecs)}, expected bytes, or bytes and zstd")
    if metadata["chunk_key_encoding"] != KEYS_OF_CHUNKS or metadata["storage_transformers"] != []:
        raise _unfit(archive, f"{name}: chunk_key_encoding or storage_transformers are not as it is written")
    packed = metadata["attributes"].get("packed")
    if packed is not None and not (
        _lengths(packed) and kind == "uint8" and len(shape) == 2 and -(-prod(packed) // 8) == shape[1]
    ):
        raise _unfit(
            archive, f"{name}: packed is {_short(packed)}, expected lengths that fill {_short(shape)}"
        )
    return Layout(-(-shape[0] // chunk[0]), "/0" * (len(shape) - 1), size, len(names) == 2)


def _metadata(
    archive: Archive, sizes: dict[str, int], name: str, keys: set[str], node: str
) -> dict[str, Any]:
    if sizes.get(name, LARGEST_TEXT + 1) > LARGEST_TEXT:
        found = f"has {sizes[name]} bytes, expected at most {LARGEST_TEXT}" if name in sizes else "is missing"
        raise _unfit(archive, f"{name} {found}")
    try:
        content: Any = json.loads(archive.beginning(name, sizes[name]))
    except (ValueError, RecursionError) as error:
        raise _unfit(archive, f"{name} is not JSON: {str(error)[:80]}") from error
    if not isinstance(content, dict) or set(content) != keys or not isinstance(content["attributes"], dict):
        raise _unfit(archive, f"{name}: found keys {_short(content)}, expected {', '.join(sorted(keys))}")
    if content["zarr_format"] != 3 or content["node_type"] != node:
        format_ = f"format {_short(content['zarr_format'])}, {_short(content['node_type'])}"
        raise _unfit(archive, f"{name}: found {format_}, expected format 3, {node}")
    return content


def _lengths(value: Any) -> bool:
    return isinstance(value, list) and all(type(length) is int and 0 <= length < 1 << 63 for length in value)


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, dict) else json.dumps(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _unfit(archive: Archive, reason: str) -> StoreError:
    return StoreError(f"{archive.path}: truncated, or not a Zarr store ({reason})")

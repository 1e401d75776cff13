"""Validation of a store's file before it is unpacked or passed to Zarr.

Zarr reads more than ``zarr_store.write`` writes: other formats and codecs, one of which is a pickle, and arrays with
missing chunks, which it replaces by a fill value. This check accepts only files in the form of ``zarr_store.write`` and
requires every chunk, so that a lost one is not read as zeros. It does not check the unpacked size of compressed chunks;
the checksums of the zip file detect damage.
"""

import json
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from saliency_assay.storage.rows import Archive, StoreError

TYPES = (
    *("bool", "float16", "float32", "float64"),
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
)
GROUP_KEYS = {"attributes", "zarr_format", "node_type"}
ARRAY_KEYS = GROUP_KEYS | {
    *("shape", "data_type", "chunk_grid", "chunk_key_encoding"),
    *("fill_value", "codecs", "storage_transformers"),
}
CODECS = (["bytes"], ["bytes", "zstd"])
CHUNK_KEY_ENCODING = {"name": "default", "configuration": {"separator": "/"}}
LARGEST_CHUNK = 1 << 31  # bytes; a chunk is 4 MiB, or one item where that is larger
LARGEST_TEXT = 1 << 26  # bytes of metadata


@dataclass(frozen=True)
class Layout:
    """Chunks of one array: number, suffix of their names, and uncompressed size of each in bytes."""

    chunks: int
    suffix: str
    size: int
    compressed: bool


def check(archive: Archive) -> None:
    """Check that ``archive`` is a store in the form of ``zarr_store.write``, with every chunk.

    Each uncompressed chunk must have the size that results from the metadata of its array.

    Raises:
        StoreError: the check fails; the message names the member or key.
    """
    sizes = archive.sizes()
    _read_metadata(archive, sizes, "zarr.json", GROUP_KEYS, "group")
    arrays = [name.removesuffix("/zarr.json") for name in sizes if name.endswith("/zarr.json")]
    remaining = set(sizes) - {"zarr.json"}
    for array in arrays:
        layout = _check_array(archive, sizes, f"{array}/zarr.json")
        # Before the names are generated, because the metadata of a damaged file may state a trillion chunks.
        if layout.chunks > len(sizes):
            raise _error(
                archive, f"{array}: found {len(sizes)} members in the file, expected {layout.chunks} chunks"
            )
        remaining.remove(f"{array}/zarr.json")
        for number in range(layout.chunks):
            name = f"{array}/c/{number}{layout.suffix}"
            if name not in remaining:
                raise _error(archive, f"{name} is missing")
            remaining.remove(name)
            if not layout.compressed and sizes[name] != layout.size:
                raise _error(archive, f"{name} has {sizes[name]} bytes, expected {layout.size}")
    if remaining:
        raise _error(archive, f"found {min(remaining)!r}, which belongs to no array")


def _check_array(archive: Archive, sizes: dict[str, int], name: str) -> Layout:
    metadata = _read_metadata(archive, sizes, name, ARRAY_KEYS, "array")
    shape, data_type, codecs = metadata["shape"], metadata["data_type"], metadata["codecs"]
    grid = metadata["chunk_grid"]
    grid_settings = (
        grid.get("configuration") if isinstance(grid, dict) and grid.get("name") == "regular" else None
    )
    chunk_shape: Any = grid_settings.get("chunk_shape") if isinstance(grid_settings, dict) else None
    if data_type not in TYPES if isinstance(data_type, str) else True:
        raise _error(
            archive, f"{name}: data_type is {_shorten(data_type)}, expected one of {', '.join(TYPES)}"
        )
    if not _are_lengths(shape) or not shape:
        raise _error(archive, f"{name}: shape is {_shorten(shape)}, expected lengths")
    if (
        not _are_lengths(chunk_shape)
        or len(chunk_shape) != len(shape)
        or chunk_shape[1:] != shape[1:]
        or not chunk_shape[0]
    ):
        raise _error(
            archive,
            f"{name}: chunk_shape is {_shorten(chunk_shape)}, expected complete items of {_shorten(shape)}",
        )
    size = prod(chunk_shape) * np.dtype(data_type).itemsize
    if size > LARGEST_CHUNK:
        raise _error(archive, f"{name}: chunks have {_shorten(size)} bytes, expected at most {LARGEST_CHUNK}")
    codec_names = (
        [codec.get("name") for codec in codecs if isinstance(codec, dict)] if isinstance(codecs, list) else []
    )
    if codec_names not in CODECS:
        raise _error(archive, f"{name}: codecs are {_shorten(codecs)}, expected bytes, or bytes and zstd")
    if metadata["chunk_key_encoding"] != CHUNK_KEY_ENCODING or metadata["storage_transformers"] != []:
        raise _error(archive, f"{name}: chunk_key_encoding or storage_transformers are not Zarr's defaults")
    # Bit-packed booleans: ``packed`` is the trailing shape, and 8 values are one byte.
    packed = metadata["attributes"].get("packed")
    if packed is not None and not (
        _are_lengths(packed)
        and data_type == "uint8"
        and len(shape) == 2
        and -(-prod(packed) // 8) == shape[1]
    ):
        raise _error(
            archive, f"{name}: packed is {_shorten(packed)}, expected lengths that match {_shorten(shape)}"
        )
    return Layout(-(-shape[0] // chunk_shape[0]), "/0" * (len(shape) - 1), size, len(codec_names) == 2)


def _read_metadata(
    archive: Archive, sizes: dict[str, int], name: str, keys: set[str], node: str
) -> dict[str, Any]:
    if sizes.get(name, LARGEST_TEXT + 1) > LARGEST_TEXT:
        problem = (
            f"has {sizes[name]} bytes, expected at most {LARGEST_TEXT}" if name in sizes else "is missing"
        )
        raise _error(archive, f"{name} {problem}")
    try:
        content: Any = json.loads(archive.beginning(name, sizes[name]))
    except (ValueError, RecursionError) as error:
        raise _error(archive, f"{name} is not JSON: {str(error)[:80]}") from error
    if not isinstance(content, dict) or set(content) != keys or not isinstance(content["attributes"], dict):
        raise _error(archive, f"{name}: found keys {_shorten(content)}, expected {', '.join(sorted(keys))}")
    if content["zarr_format"] != 3 or content["node_type"] != node:
        format_ = f"format {_shorten(content['zarr_format'])}, {_shorten(content['node_type'])}"
        raise _error(archive, f"{name}: found {format_}, expected format 3, {node}")
    return content


def _are_lengths(value: Any) -> bool:
    return isinstance(value, list) and all(type(length) is int and 0 <= length < 1 << 63 for length in value)


def _shorten(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, dict) else json.dumps(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _error(archive: Archive, reason: str) -> StoreError:
    return StoreError(f"{archive.path}: truncated, or not a Zarr store ({reason})")

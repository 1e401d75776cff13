"""Arrays that another program saved, in NumPy's formats or in Zarr."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.errors import NodeNotFoundError
from zarr.storage import LocalStore, ZipStore


def read_arrays(path: Path, single: str) -> Mapping[str, Any]:
    """Return the arrays of a file or folder by name; an array without a name is called ``single``.

    Those of a ``.npy`` file and of Zarr, in a folder or a ``.zip`` file, are read on demand, those of ``.npz`` here.

    Raises:
        ValueError: there are no arrays, the file is damaged, or its arrays contain Python objects.
        OSError: the file does not exist, or the system cannot read it.
    """
    try:
        if path.suffix == ".npy":
            return {single: np.load(path, mmap_mode="r", allow_pickle=False)}
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        store = ZipStore(path, mode="r") if path.suffix == ".zip" else LocalStore(path, read_only=True)
        content = zarr.open(store, mode="r")
        arrays = {single: content} if isinstance(content, zarr.Array) else dict(content.arrays())
        for name, array in arrays.items():
            _check(name, array)
        return arrays
    except Exception as error:  # damaged files raise BadZipFile, EOFError, KeyError, …
        if isinstance(error, OSError) and not isinstance(error, NodeNotFoundError):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path}: found no arrays of numbers and text ({reason})") from None


def _check(name: str, array: "zarr.Array[Any]") -> None:
    """Check a Zarr array of another program, as ``zarr_check`` checks those of this one."""
    if "pickle" in str(array.metadata.to_dict()).lower():  # decoding would run code
        raise ValueError(f"{name} is encoded by pickle")
    if array.nchunks_initialized < array.nchunks:  # Zarr reads a lost chunk as zeros
        chunks = f"{array.nchunks_initialized} of {array.nchunks} chunks"
        raise ValueError(f"{name} has {chunks}; Zarr writes all of them with write_empty_chunks=True")

"""Maps that another program computed: files in NumPy's formats or Zarr, checked against the explained images."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from torch import Tensor, nn

from saliency_assay.data.splits import TEST
from saliency_assay.registry.records import short_repr
from saliency_assay.runtime.shards import blocks
from saliency_assay.storage import text
from saliency_assay.storage.other_arrays import read_arrays

MAPS, FILES, IMAGES = "maps", "files", "images"
"""Names of arrays: the maps, and for each map the file name of its image or the index of the image in the set."""


def recompute(model: nn.Module, images: Tensor, targets: Tensor, *, generator: Any) -> NoReturn:
    """Raise the error of metrics that compute further maps with the method.

    Raises:
        ValueError: always.
    """
    raise ValueError("needs further maps by the method, whose maps are from another program (key maps)")


def read_maps(
    path: Path, data: Any, indices: np.ndarray, explained: np.ndarray
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the maps of a file in blocks ``{"map": float32 [n, C or 1, H, W]}``, in the order of ``indices``.

    The maps are the only array, or the one beside ``files`` or ``images``: floats ``[M, H, W]`` or ``[M, C or 1, H,
    W]``. With ``files`` or ``images``, they may be in any order, with those of other images among them. Otherwise, they
    are those of the explained images, of all test images, or of all images, in the order of the set.

    Args:
        path: file of a NumPy array (``.npy``) or several (``.npz``), or Zarr in a folder or a zip file.
        data: open store of the set.
        indices: the images of this job, as ascending indices into the set, int64 ``[N]``.
        explained: the same for all shards of the set.

    Raises:
        ValueError: the file cannot be read, or its maps differ in type, shape, number or order from what the images
            require, or a map of one of ``indices`` contains NaN or infinity.
        OSError: the file does not exist, or the system cannot read it.
    """
    try:
        arrays = read_arrays(path, MAPS)
    except ValueError as error:
        raise ValueError(
            str(error)
        ) from None  # a failure of the method, unlike errors in files of the workflow
    names = [name for name in arrays if name not in (FILES, IMAGES)]
    if len(names) != 1:  # one of another name could be the order of the maps
        raise ValueError(
            f"{path}: found arrays {', '.join(arrays) or 'none'}; expected {MAPS} and optionally {FILES} or {IMAGES}"
        )
    maps, shape = arrays[names[0]], data["image"].shape[1:]
    _check_layout(path, maps, shape)
    rows = _rows(path, arrays, maps.shape[0], data, indices, explained)
    for _, block in blocks(len(rows)):
        selected = rows[block]
        first, last = int(selected.min()), int(selected.max())
        # A range is read in whole chunks, each of them once.
        stored = np.asarray(maps[first : last + 1])[selected - first]
        with np.errstate(over="ignore"):  # to infinity, which is refused
            values = stored.reshape(len(stored), -1, *shape[1:]).astype(np.float32)
        wrong = np.flatnonzero(~np.isfinite(values).all(axis=(1, 2, 3)))
        if len(wrong):
            image = _name_of(data, int(indices[block][wrong[0]]))
            raise ValueError(
                f"{path}: found NaN or infinity in the map of image {image}, expected finite values"
            )
        yield {"map": values}


def _check_layout(path: Path, maps: Any, shape: Sequence[int]) -> None:
    """Check type and shape of maps for images of ``shape`` C, H, W."""
    channels, *size = shape
    expected = [(*size,), (1, *size), (channels, *size)]
    if maps.dtype.kind != "f" or tuple(maps.shape[1:]) not in expected:
        counts = f"1 or {channels}" if channels > 1 else "1"
        pixels = ", ".join(map(str, size))
        raise ValueError(
            f"{path}: found maps {maps.dtype} {list(maps.shape)}, expected floats [N, {pixels}] or "
            f"[N, {counts}, {pixels}], as the images"
        )


def _rows(
    path: Path,
    arrays: Mapping[str, Any],
    count: int,
    data: Any,
    indices: np.ndarray,
    explained: np.ndarray,
) -> np.ndarray:
    """Return the row of the map of each of ``indices`` among ``count`` maps."""
    orders = [name for name in (FILES, IMAGES) if name in arrays]
    if len(orders) > 1:
        raise ValueError(f"{path}: found arrays {FILES} and {IMAGES}, expected one of them")
    if not orders:
        split = data["split"][:]
        sets = {
            "explained images": explained,
            "test images": np.flatnonzero(split == TEST),
            "images": np.arange(len(split)),
        }
        # Sets of equal size are equal, since each contains the one before.
        for images in sets.values():
            if count == len(images):
                return np.searchsorted(images, indices)
        counts = ", ".join(f"{len(images)} ({name})" for name, images in sets.items())
        raise ValueError(f"{path}: found {count} maps, expected {counts}, or an array {FILES} or {IMAGES}")
    (order,) = orders
    keys = _keys(path, order, np.asarray(arrays[order]), count)
    if order == FILES and "file" not in data.names:
        raise ValueError(f"{path}: found {FILES}, but the set has no file names; expected {IMAGES}")
    own: list[Any] = text.decode(data["file"][indices]) if order == FILES else indices.tolist()
    if len({*own}) < len(own):
        raise ValueError(
            f"{path}: {FILES}: found an image that is explained for several labels, expected {IMAGES}, the indices"
        )
    rows = {key: row for row, key in enumerate(keys)}
    if len(rows) < len(keys):
        repeated = next(key for row, key in enumerate(keys) if rows[key] != row)
        raise ValueError(f"{path}: {order}: found {short_repr(repeated)} again, expected each image once")
    if missing := [image for image in own if image not in rows]:
        raise ValueError(
            f"{path}: {order}: found {short_repr(keys[0])}, …, expected all {len(own)} explained images; "
            f"{len(missing)} are missing, first {short_repr(missing[0])}"
        )
    return np.array([rows[image] for image in own], dtype=np.int64)


def _keys(path: Path, order: str, array: Any, count: int) -> list[Any]:
    """Return the file names or indices of ``count`` maps."""
    kind = "iu" if order == IMAGES else "USOT"
    if array.shape != (count,) or not count or array.dtype.kind not in kind:
        expected = "integers" if order == IMAGES else "text"
        raise ValueError(
            f"{path}: {order}: found {array.dtype} {list(array.shape)}, expected {expected} [{count}], one for each "
            "map"
        )
    keys: list[Any] = array.tolist()
    return [key.decode("utf-8", "replace") if isinstance(key, bytes) else key for key in keys]


def _name_of(data: Any, index: int) -> str:
    """Return the file name of an image or, if it has none, its index in the set."""
    if "file" not in data.names:
        return str(index)
    return short_repr(text.decode(data["file"][[index]])[0])

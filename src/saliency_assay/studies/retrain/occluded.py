"""D_i: images occluded by the masks of all iterations before i (IteROAR, section 3).

A mask is True where the pixel is occluded (m̄ in the paper). D_0 is the data set, and D_{i+1} is D_i with the pixels of
m̄_i filled. With the fill ``linear``, D_i is D_0 with the pixels of m̄_0 … m̄_{i−1} interpolated from all others. Only
mask bits and fill colors are stored; occluded images are composed when they are read.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saliency_assay.registry.records import resolve
from saliency_assay.runtime.shards import SUFFIX
from saliency_assay.storage.shards import open_stores
from saliency_assay.storage.zarr_store import Store
from saliency_assay.studies.retrain.parameters import FILLS, INTERPOLATE, INTERPOLATED


@dataclass(frozen=True)
class Layer:
    """The first ``used`` masks of a store and, for fill ``mean``, their fill colors.

    ``mask`` contains L masks per image, bool ``[N, L, H, W]``, and returns their bits by ``packed_rows``; ``mean`` is
    uint8 ``[N, L, C]``. ``interpolated`` is True for fill ``linear``.
    """

    mask: Any
    mean: Any | None
    used: int
    interpolated: bool = False


def open_masks(stack: ExitStack, paths: Iterable[Path], data: Store) -> list[Store]:
    """Open the stores of masks at ``paths``, in order, of the images in ``data``; ``stack`` closes them.

    Consecutive paths that differ only in their shard suffix (``runtime.shards``) are the shards of one store, in order.

    Raises:
        StoreError: a store is of other images or was not computed from the masks before it, or shards are of different
            runs or do not cover all images.
    """
    stores: list[Store] = []
    for _, shards in groupby(paths, lambda path: SUFFIX.sub("", str(path))):
        before = [earlier.attributes["digest"] for earlier in stores]
        expect = {"data": data.attributes["digest"], "before": before}
        stores.append(stack.enter_context(open_stores(list(shards), kind="masks", expect=expect)))
    return stores


def layers_of(stores: Sequence[Any], fill: str, iteration: int) -> list[Layer]:
    """Return the masks of D_i: the first ``iteration`` of all masks in ``stores``, with the colors of ``fill``.

    Raises:
        ValueError: the fill is unknown, or there are fewer or more stores than needed.
    """
    if iteration and fill not in FILLS:
        raise ValueError(f"fill: found {fill!r}, valid: {', '.join(FILLS)}")
    color_array = FILLS[fill] if iteration else ""
    layers: list[Layer] = []
    remaining = iteration
    for store in stores:
        used = min(remaining, store["mask"].shape[1])
        colors = store[color_array] if color_array else None
        layers.append(Layer(store["mask"], colors, used, interpolated=fill == INTERPOLATED))
        remaining -= used
    if remaining or any(not layer.used for layer in layers):
        mask_count = sum(store["mask"].shape[1] for store in stores)
        raise ValueError(
            f"masks: found {mask_count} in {len(stores)} stores, expected those of {iteration} iterations"
        )
    return layers


class Occluded:
    """D_i: ``images`` uint8 ``[N, C, H, W]`` with the pixels of the masks of ``layers`` filled.

    Indexing with a slice or integers reads those images and composes them on ``device``, uint8.
    """

    def __init__(self, images: Any, layers: Sequence[Layer], device: torch.device) -> None:
        self._images = images
        self._layers = layers
        self._device = device
        self.shape: tuple[int, ...] = tuple(images.shape)
        self.dtype = images.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Tensor:
        rows = _to_numpy_index(index)
        composed = _to_tensor(self._images[rows], self._device)
        if self._layers and self._layers[0].interpolated:
            masks = [unpacked(layer, rows, self.shape[2:], self._device) for layer in self._layers]
            return _interpolated(composed, torch.cat(masks, 1).any(1), np.arange(len(self))[rows])
        for mask, color in _masks_and_colors(self._layers, rows, composed):
            composed = occlude(composed, mask, color)
        return composed


class ImageRange:
    """View of the contiguous range ``where`` of ``images``, indexed from 0."""

    def __init__(self, images: Any, where: slice) -> None:
        self._images = images
        self._where = where
        self.shape: tuple[int, ...] = (where.stop - where.start, *images.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Any:
        start, stop, _ = rows.indices(len(self))
        return self._images[self._where.start + start : self._where.start + stop]


class ImagesAt:
    """View of ``images`` at ascending ``indices`` int64 ``[N]``, indexed from 0."""

    def __init__(self, images: Any, indices: np.ndarray) -> None:
        self._images = images
        self._indices = indices
        self.shape: tuple[int, ...] = (len(indices), *images.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Any:
        return self._images[self._indices[rows]]


class MaskImages:
    """Masks of D_i as images uint8 ``[N, 1, H, W]``: 255 where any mask of ``layers`` is True."""

    def __init__(self, layers: Sequence[Layer], device: torch.device) -> None:
        self._layers = layers
        self._device = device
        count, _, *size = layers[0].mask.shape
        self.shape: tuple[int, ...] = (count, 1, *size)
        self.dtype = np.dtype(np.uint8)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Tensor:
        rows = _to_numpy_index(index)
        masks = [unpacked(layer, rows, self.shape[2:], self._device) for layer in self._layers]
        return torch.cat(masks, 1).any(1, keepdim=True).to(torch.uint8) * 255


def states_of(images: Any, layers: Sequence[Layer], index: Any) -> tuple[Tensor, Tensor]:
    """Return images at ``index`` in D_0 … D_i, uint8 ``[i + 1, n, C, H, W]``, and masks bool ``[i, n, H, W]``."""
    cpu = torch.device("cpu")
    composed = [_to_tensor(images[index], cpu)]
    mask_steps: list[Tensor] = []
    for mask, color in _masks_and_colors(layers, index, composed[0]):
        mask_steps.append(mask)
        if layers[0].interpolated:
            rows = np.arange(len(images))[index]
            composed.append(_interpolated(composed[0], torch.stack(mask_steps).any(0), rows))
        else:
            composed.append(occlude(composed[-1], mask, color))
    return torch.stack(composed), torch.stack(mask_steps)


def occlude(images: Tensor, mask: Tensor, color: Tensor) -> Tensor:
    """Fill the pixels of ``mask`` bool ``[N, H, W]`` in images ``[N, C, H, W]`` with ``color`` ``[N, C]``."""
    return torch.where(mask[:, None], color[:, :, None, None], images)


def unpacked(layer: Layer, index: Any, size: Sequence[int], device: torch.device) -> Tensor:
    """Return the used masks of a layer for the images at ``index``, bool ``[n, used, H, W]`` on ``device``."""
    # Unpacked on the device, so that only an eighth of the bytes is copied to it.
    packed = _to_tensor(layer.mask.packed_rows(index), device)
    bits = packed[:, :, None].bitwise_right_shift(torch.arange(7, -1, -1, device=device, dtype=torch.uint8))
    pixels = size[0] * size[1]
    used_bits = bits.bitwise_and_(1).flatten(1)[:, : layer.used * pixels].to(torch.bool)
    return used_bits.reshape(len(packed), layer.used, *size)


def _masks_and_colors(layers: Sequence[Layer], index: Any, images: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield masks bool ``[n, H, W]`` and colors uint8 ``[n, C]`` for ``images`` ``[n, C, H, W]`` at ``index``."""
    count, channels, *size = images.shape
    for layer in layers:
        masks = unpacked(layer, index, size, images.device)
        black = images.new_zeros(count, layer.used, channels)
        colors = black if layer.mean is None else _to_tensor(layer.mean[index], images.device)
        for step in range(layer.used):
            yield masks[:, step], colors[:, step]


def _interpolated(images: Tensor, occluded: Tensor, rows: np.ndarray) -> Tensor:
    """Return images ``[N, C, H, W]`` at the indices ``rows`` with the pixels ``occluded`` interpolated."""
    filled: Tensor = resolve(INTERPOLATE)(images, occluded, rows.tolist())
    return filled


def _to_numpy_index(index: Any) -> Any:
    """Return a tensor index as a NumPy array, and any other index unchanged."""
    return index.cpu().numpy() if isinstance(index, Tensor) else index


def _to_tensor(rows: Any, device: torch.device) -> Tensor:
    return rows.to(device) if isinstance(rows, Tensor) else torch.tensor(rows, device=device)

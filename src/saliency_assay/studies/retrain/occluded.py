"""D_i: the base images seen through the masks of all iterations before i (IteROAR, section 3).

A mask is True where the pixel is occluded, the paper's m̄. D_0 is the data set, and D_{i+1} is D_i with the pixels of
m̄_i filled. Images are never rewritten: bits and colours are kept, and images composed where they are asked for.
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

from saliency_assay.runtime.shards import NAMED
from saliency_assay.storage.parts import open_stores
from saliency_assay.storage.zarr_store import Store
from saliency_assay.studies.retrain.parameters import FILLS


@dataclass(frozen=True)
class Layer:
    """The first ``used`` masks of a store, and under fill ``mean`` the colours that fill them.

    ``mask`` holds L masks bool ``[N, L, H, W]`` of which ``packed_rows`` gives the bits, ``mean`` uint8 ``[N, L, C]``.
    """

    mask: Any
    mean: Any | None
    used: int


def open_masks(stack: ExitStack, paths: Iterable[Path], data: Store) -> list[Store]:
    """Open the stores of masks at ``paths`` of the images in ``data``, in their order; ``stack`` closes them.

    Paths that differ only in the name of a part (``shards``) are the parts of one store, in their order.

    Raises:
        StoreError: one of other images, or one that was not made of what the masks before it leave; parts that do not
            belong together, or not of all images.
    """
    opened: list[Store] = []
    for _, parts in groupby(paths, lambda path: NAMED.sub("", str(path))):
        before = [earlier.attributes["digest"] for earlier in opened]
        expect = {"data": data.attributes["digest"], "before": before}
        opened.append(stack.enter_context(open_stores(list(parts), kind="masks", expect=expect)))
    return opened


def layers_of(stores: Sequence[Any], fill: str, iteration: int) -> list[Layer]:
    """Return the masks behind D_i: the first ``iteration`` of all masks in ``stores``, with the colours of ``fill``.

    Raises:
        ValueError: another fill, or fewer or more stores than it takes.
    """
    if iteration and fill not in FILLS:
        raise ValueError(f"fill: found {fill!r}, valid: {', '.join(FILLS)}")
    colours = FILLS[fill] if iteration else ""
    layers: list[Layer] = []
    left = iteration
    for opened in stores:
        used = min(left, opened["mask"].shape[1])
        layers.append(Layer(opened["mask"], opened[colours] if colours else None, used))
        left -= used
    if left or any(not layer.used for layer in layers):
        held = sum(opened["mask"].shape[1] for opened in stores)
        raise ValueError(
            f"masks: found {held} in {len(stores)} stores, expected those of {iteration} iterations"
        )
    return layers


class Occluded:
    """D_i, the base ``images`` uint8 ``[N, C, H, W]`` with the masks of ``layers`` filled one after another.

    Indexed with a slice or with integers it reads those images and composes them on ``device``, uint8.
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
        where = _plain(index)
        composed = _tensor(self._images[where], self._device)
        for mask, colour in _steps(self._layers, where, composed):
            composed = occlude(composed, mask, colour)
        return composed


class Stretch:
    """The images of ``images`` at ``where``, sliced as if they were all there are."""

    def __init__(self, images: Any, where: slice) -> None:
        self._images = images
        self._where = where
        self.shape: tuple[int, ...] = (where.stop - where.start, *images.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: slice) -> Any:
        start, stop, _ = part.indices(len(self))
        return self._images[self._where.start + start : self._where.start + stop]


class MaskImages:
    """Masks of D_i as images: uint8 ``[N, 1, H, W]``, 255 where any mask of ``layers`` occludes."""

    def __init__(self, layers: Sequence[Layer], device: torch.device) -> None:
        self._layers = layers
        self._device = device
        count, _, *size = layers[0].mask.shape
        self.shape: tuple[int, ...] = (count, 1, *size)
        self.dtype = np.dtype(np.uint8)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Tensor:
        where = _plain(index)
        masks = [unpacked(layer, where, self.shape[2:], self._device) for layer in self._layers]
        return torch.cat(masks, 1).any(1, keepdim=True).to(torch.uint8) * 255


def states_of(images: Any, layers: Sequence[Layer], index: Any) -> tuple[Tensor, Tensor]:
    """Images at ``index`` as D_0 … D_i hold them, uint8 ``[i + 1, n, C, H, W]``, and masks bool ``[i, n, H, W]``."""
    here = torch.device("cpu")
    composed = [_tensor(images[index], here)]
    shown: list[Tensor] = []
    for masks, colours in _steps(layers, index, composed[0]):
        composed.append(occlude(composed[-1], masks, colours))
        shown.append(masks)
    return torch.stack(composed), torch.stack(shown)


def occlude(images: Tensor, mask: Tensor, colour: Tensor) -> Tensor:
    """Images ``[N, C, H, W]`` with the pixels of ``mask`` bool ``[N, H, W]`` in ``colour`` ``[N, C]``."""
    return torch.where(mask[:, None], colour[:, :, None, None], images)


def unpacked(layer: Layer, index: Any, size: Sequence[int], device: torch.device) -> Tensor:
    """Return the used masks of a layer for the images at ``index``, bool ``[n, used, H, W]`` on ``device``."""
    packed = _tensor(layer.mask.packed_rows(index), device)
    bits = packed[:, :, None].bitwise_right_shift(torch.arange(7, -1, -1, device=device, dtype=torch.uint8))
    pixels = size[0] * size[1]
    chosen = bits.bitwise_and_(1).flatten(1)[:, : layer.used * pixels].to(torch.bool)
    return chosen.reshape(len(packed), layer.used, *size)


def _steps(layers: Sequence[Layer], index: Any, images: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Each mask bool ``[n, H, W]`` and its colour uint8 ``[n, C]`` for ``images`` ``[n, C, H, W]`` at ``index``."""
    count, channels, *size = images.shape
    for layer in layers:
        masks = unpacked(layer, index, size, images.device)
        black = images.new_zeros(count, layer.used, channels)
        colours = black if layer.mean is None else _tensor(layer.mean[index], images.device)
        for step in range(layer.used):
            yield masks[:, step], colours[:, step]


def _plain(index: Any) -> Any:
    return index.cpu().numpy() if isinstance(index, Tensor) else index


def _tensor(rows: Any, device: torch.device) -> Tensor:
    return rows.to(device) if isinstance(rows, Tensor) else torch.tensor(rows, device=device)

"""Batches of images: indexed directly if the images are on the device, otherwise prefetched by a thread."""

import math
from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from saliency_assay.runtime.transfer import pinned

BLOCK_BYTES = 32 << 20  # bytes copied to the device at a time by ``resident``
AHEAD = 2  # batches that are prefetched while one is processed


class Images(Protocol):
    """Images ``[N, C, H, W]``: a tensor, an array of a store, or a view that composes them on access.

    They are uint8, or float32 in [0, 1] with an attribute ``dtype``.

    Indexing with a slice or an int64 array returns those images, as an array or as a tensor on any device.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape ``(N, C, H, W)``."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any, /) -> Any: ...


def dtype_of(images: Images) -> torch.dtype:
    """Return the type of images: float32, or uint8; any other is an error of their first batch."""
    return torch.float32 if str(getattr(images, "dtype", "")).endswith("float32") else torch.uint8


def resident(images: Images, device: torch.device, limit: int) -> Images:
    """Return all images as one tensor on ``device`` if they need at most ``limit`` bytes, else unchanged.

    The images are copied block by block, so that memory never contains a second copy of all of them.
    """
    dtype = dtype_of(images)
    if math.prod(images.shape) * dtype.itemsize > limit or _is_on(images, device):
        return images
    resident_images = torch.empty(tuple(images.shape), dtype=dtype, device=device)
    block = max(1, BLOCK_BYTES // max(1, math.prod(images.shape[1:]) * dtype.itemsize))
    for start in range(0, len(images), block):
        resident_images[start : start + block] = _as_tensor(images[start : start + block])
    return resident_images


def batches(
    images: Images, order: Tensor | None, size: int, device: torch.device
) -> Generator[Tensor, None, None]:
    """Yield the images at the indices ``order`` int64 ``[n]``, or all in order, in batches on ``device``.

    A batch has ``size`` images; the last one may be smaller. A tensor on ``device`` is indexed there. Any other source
    is read by a thread, ``AHEAD`` batches in advance; the batches are the same. A caller that may not exhaust the
    generator must close it (``contextlib.closing``) to stop the thread.

    Raises:
        ValueError: the images are neither uint8 nor float32.
    """
    count = len(images) if order is None else len(order)
    slices = [slice(start, min(start + size, count)) for start in range(0, count, size)]
    if _is_on(images, device):
        device_order = None if order is None else order.to(device)
        for rows in slices:
            yield _as_tensor(images[rows if device_order is None else device_order[rows]])
    else:
        # Arrays of a store accept NumPy indices; a selection of them (``zarr_store.Selection``) accepts only slices.
        indices = None if order is None else order.cpu().numpy()
        yield from _prefetch(images, [rows if indices is None else indices[rows] for rows in slices], device)


def _prefetch(images: Images, indices: list[Any], device: torch.device) -> Generator[Tensor, None, None]:
    reader = ThreadPoolExecutor(1, thread_name_prefix="feed")
    try:
        pending: deque[Future[Tensor]] = deque()
        # Negative numbers only fill the queue; every other step yields one batch and requests another.
        for number in range(-AHEAD, len(indices)):
            if number + AHEAD < len(indices):
                pending.append(reader.submit(_load_batch, images, indices[number + AHEAD], device))
            if number >= 0:
                yield pending.popleft().result().to(device, non_blocking=True)
    finally:
        # Also reached by ``close``; without cancelling, it would wait for batches that nobody uses.
        reader.shutdown(cancel_futures=True)


def _load_batch(images: Images, index: Any, device: torch.device) -> Tensor:
    """Read one batch into memory; for a GPU into pinned memory, from which copies are asynchronous."""
    return pinned(_as_tensor(images[index]), device)


def _is_on(images: Images, device: torch.device) -> bool:
    return isinstance(images, Tensor) and images.device == device


def _as_tensor(batch: Any) -> Tensor:
    # PyTorch tensors cannot share the memory of a read-only array, so ``require`` copies such an array.
    tensor = batch if isinstance(batch, Tensor) else torch.from_numpy(np.require(batch, requirements="W"))
    if tensor.dtype not in (torch.uint8, torch.float32):
        raise ValueError(f"images of {tensor.dtype}: expected torch.uint8 or torch.float32")
    return tensor

"""Images in batches: from a tensor that lies on the device, or read ahead from wherever they are."""

import math
from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

BLOCK_BYTES = 32 << 20
AHEAD = 2  # batches that are read while one is worked on


class Images(Protocol):
    """Images uint8 ``[N, C, H, W]``: a tensor, an array of a store, or a view that composes them when asked.

    A slice or int64 array of indices gives those images, as an array or as a tensor on any device.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """N, C, H, W."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any, /) -> Any: ...


def resident(images: Images, device: torch.device, limit: int) -> Images:
    """All images as one tensor uint8 on ``device`` if that takes at most ``limit`` bytes, else as they are.

    They are gathered block by block, so that no second copy of all of them ever exists.
    """
    if math.prod(images.shape) > limit or _lies_on(images, device):
        return images
    held = torch.empty(tuple(images.shape), dtype=torch.uint8, device=device)
    block = max(1, BLOCK_BYTES // max(1, math.prod(images.shape[1:])))
    for start in range(0, len(images), block):
        held[start : start + block] = _tensor(images[start : start + block])
    return held


def batches(
    images: Images, order: Tensor | None, size: int, device: torch.device
) -> Generator[Tensor, None, None]:
    """Return the images at ``order`` int64 ``[n]``, or all as they lie, ``size`` at a time: uint8 on ``device``.

    A tensor on ``device`` is indexed there. Anything else is read by a thread, ``AHEAD`` batches before they are
    needed; the batches are the same. Close the generator (``contextlib.closing``): that ends the thread.

    Raises:
        ValueError: images that are not uint8.
    """
    count = len(images) if order is None else len(order)
    parts = [slice(start, min(start + size, count)) for start in range(0, count, size)]
    if _lies_on(images, device):
        where = None if order is None else order.to(device)
        for part in parts:
            yield _tensor(images[part if where is None else where[part]])
    else:
        # Arrays of a store take NumPy's indices, and selections of them only slices.
        indices = None if order is None else order.cpu().numpy()
        yield from _read_ahead(images, [part if indices is None else indices[part] for part in parts], device)


def _read_ahead(images: Images, parts: list[Any], device: torch.device) -> Generator[Tensor, None, None]:
    reader = ThreadPoolExecutor(1, thread_name_prefix="feed")
    try:
        waiting: deque[Future[Tensor]] = deque()
        for number in range(-AHEAD, len(parts)):
            if number + AHEAD < len(parts):
                waiting.append(reader.submit(_read, images, parts[number + AHEAD], device))
            if number >= 0:
                yield waiting.popleft().result().to(device, non_blocking=True)
    finally:
        reader.shutdown(cancel_futures=True)


def _read(images: Images, part: Any, device: torch.device) -> Tensor:
    """Return a batch in memory; for a GPU in pinned memory, from which copies do not hold the caller up."""
    batch = _tensor(images[part])
    return batch.pin_memory() if device.type == "cuda" and batch.device.type == "cpu" else batch


def _lies_on(images: Images, device: torch.device) -> bool:
    return isinstance(images, Tensor) and images.device == device


def _tensor(batch: Any) -> Tensor:
    # Tensors cannot share an array that is read-only.
    held = batch if isinstance(batch, Tensor) else torch.from_numpy(np.require(batch, requirements="W"))
    if held.dtype != torch.uint8:
        raise ValueError(f"images of {held.dtype}: expected torch.uint8")
    return held

"""Passes of a batch through the model, of which a method may need many."""

import logging
import time
from collections.abc import Iterator

from torch import Tensor

log = logging.getLogger(__name__)

SECONDS_BETWEEN_LINES = 10.0


def reported(total: int, step: int, unit: str) -> Iterator[int]:
    """Yield the multiples of ``step`` below ``total``; long loops log their progress."""
    last = time.monotonic()
    for first in range(0, total, step):
        if time.monotonic() - last > SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            log.info("%d of %d %s", first, total, unit)
        yield first


def passes_of(images: Tensor, passes: int) -> Iterator[int]:
    """Yield the numbers of ``passes`` passes of a batch ``[N, C, H, W]``; long loops log their progress.

    Each image is in every pass once, so that the activations of a pass are those of the batch, however many passes a
    method needs.
    """
    return reported(passes, 1, f"passes of {len(images)} images")


def per_row(values: Tensor) -> Tensor:
    """Reshape ``[rows]`` to ``[rows, 1, 1, 1]``, to weight images or maps."""
    return values[:, None, None, None]

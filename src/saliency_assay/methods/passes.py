"""Many passes for each image in bounded memory: (image, pass) pairs in chunks of as many pairs as images."""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

log = logging.getLogger(__name__)

SECONDS_BETWEEN_LINES = 10.0


class Run(NamedTuple):
    """The rows of one image within a chunk."""

    image: int
    first: int
    """Pass number of the first row, from 0: the number of the image's passes in earlier chunks."""
    rows: slice


@dataclass(frozen=True)
class Chunk:
    """Rows of one model batch: a range of the image-major list of (image, pass) pairs."""

    pairs: slice  # the rows' range in the list of all pairs
    images: Tensor  # the image of each row, int64 [rows]
    passes: Tensor  # the number of each row's pass, from 0, int64 [rows]
    runs: tuple[Run, ...]  # one for each image in the chunk, in order


def chunks(images: int, passes: int, device: torch.device) -> Iterator[Chunk]:
    """Yield all ``images * passes`` pairs in chunks of ``images`` rows, the passes of one image after another.

    Only as many rows as the caller's batch are in memory at once, however many passes a method needs. Long loops log
    their progress.
    """
    pairs = images * passes
    for start in reported(pairs, images, f"passes of {images} images"):
        stop = min(start + images, pairs)
        rows = torch.arange(start, stop, device=device)
        image_range = range(start // passes, (stop - 1) // passes + 1)
        runs = tuple(_run(image, start, stop, passes) for image in image_range)
        yield Chunk(slice(start, stop), rows // passes, rows % passes, runs)


def reported(total: int, step: int, unit: str) -> Iterator[int]:
    """Yield the multiples of ``step`` below ``total``; long loops log their progress."""
    last = time.monotonic()
    for first in range(0, total, step):
        if time.monotonic() - last > SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            log.info("%d of %d %s", first, total, unit)
        yield first


def _run(image: int, start: int, stop: int, passes: int) -> Run:
    """Return the rows of ``image`` in the chunk of pairs ``start`` to ``stop``."""
    first, last = max(image * passes, start), min((image + 1) * passes, stop)
    return Run(image, first - image * passes, slice(first - start, last - start))


def per_row(values: Tensor) -> Tensor:
    """Reshape ``[rows]`` to ``[rows, 1, 1, 1]``, to weight images or maps."""
    return values[:, None, None, None]

"""Many passes for each image in bounded memory: (image, pass) pairs, as many at a time as there are images."""

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
    """The number of the first row's pass, from 0: how many passes earlier chunks have made for the image."""
    rows: slice


@dataclass(frozen=True)
class Chunk:
    """Rows that go through the model together: a stretch of the image-major list of (image, pass) pairs."""

    pairs: slice  # where the rows lie in the list of all pairs
    images: Tensor  # the image of each row, int64 [rows]
    passes: Tensor  # the number of each row's pass, from 0, int64 [rows]
    runs: tuple[Run, ...]  # one for each image that the chunk touches, in order


def chunks(images: int, passes: int, device: torch.device) -> Iterator[Chunk]:
    """All ``images * passes`` pairs in chunks of ``images`` rows, each image's passes one after another.

    Only as many rows as the caller's batch are alive at once, however many passes a method makes. What takes long
    says how far it is, in the log.
    """
    pairs = images * passes
    for start in reported(pairs, images, f"passes of {images} images"):
        stop = min(start + images, pairs)
        rows = torch.arange(start, stop, device=device)
        touched = range(start // passes, (stop - 1) // passes + 1)
        runs = tuple(_run(image, start, stop, passes) for image in touched)
        yield Chunk(slice(start, stop), rows // passes, rows % passes, runs)


def reported(total: int, step: int, what: str) -> Iterator[int]:
    """Return the multiples of ``step`` below ``total``; what takes long says in the log how far it is."""
    last = time.monotonic()
    for first in range(0, total, step):
        if time.monotonic() - last > SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            log.info("%d of %d %s", first, total, what)
        yield first


def _run(image: int, start: int, stop: int, passes: int) -> Run:
    first, last = max(image * passes, start), min((image + 1) * passes, stop)
    return Run(image, first - image * passes, slice(first - start, last - start))


def per_row(values: Tensor) -> Tensor:
    """``[rows]`` as ``[rows, 1, 1, 1]``, to weigh images or maps."""
    return values[:, None, None, None]

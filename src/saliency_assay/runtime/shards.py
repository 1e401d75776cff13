"""Explained images in blocks and parts: what one job draws and scores.

The explained images of a set are counted in blocks of ``BLOCK``. Noise is seeded anew for every block
(``methods.sampling``) and no batch reaches from one block into the next, so that what is drawn of an image does not
depend on which blocks a job has. A set with ``shards: N`` is explained in N parts, each a stretch of whole blocks. Read
by the rules; imports nothing.
"""

import re
from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

BLOCK = 256  # images. Another number is other noise for all images but the first of a set.
NAMED = re.compile(r"\.part([0-9]+)of([0-9]+)")


class Part(NamedTuple):
    """One part of several, counted from 1."""

    number: int
    of: int

    def stretch(self, images: int) -> slice:
        """Return the range of this part among ``images`` images: whole blocks, as evenly as possible.

        Raises:
            ValueError: there are fewer blocks than parts.
        """
        if fault := too_many(self.of, images):
            raise ValueError(f"shards: {fault}")
        blocks = blocks_in(images)
        first, end = (blocks * number // self.of for number in (self.number - 1, self.number))
        return slice(first * BLOCK, min(end * BLOCK, images))


WHOLE = Part(1, 1)


def part_names(shards: int) -> list[str]:
    """Return the suffixes of the files of all parts, empty where there is only one."""
    return [f".part{number}of{shards}" for number in range(1, shards + 1)] if shards > 1 else [""]


def part_of(name: str) -> Part:
    """Return the part whose files' names end in ``name``, as ``part_names`` has it.

    Raises:
        ValueError: nothing ends in that.
    """
    found = NAMED.fullmatch(name)
    if name and not found:
        raise ValueError(f"part: found {name!r}, expected such as {part_names(4)[0]!r}, or nothing")
    return Part(int(found[1]), int(found[2])) if found else WHOLE


def blocks_in(images: int) -> int:
    """Return the number of blocks of ``images`` images, at least one; the last one may have fewer images."""
    return max(1, ceil(images / BLOCK))


def too_many(shards: int, images: int) -> str:
    """Return what is wrong with ``shards`` parts of ``images`` explained images; empty where each has a block."""
    blocks = blocks_in(images)
    if shards <= blocks:
        return ""
    counted = f"{images} explained images are {blocks} block{'s' if blocks > 1 else ''} of {BLOCK}"
    return f"found {shards}, expected at most {blocks}: {counted}"


def blocks(images: int, offset: int = 0) -> Iterator[tuple[int, slice]]:
    """Return the number of each block in its set, and where it lies among ``images`` images, in their order.

    ``offset`` images of the set come before these.

    Raises:
        ValueError: an offset within a block.
    """
    if offset % BLOCK:
        raise ValueError(f"offset: found {offset}, expected a multiple of {BLOCK}")
    for start in range(0, images, BLOCK):
        yield (offset + start) // BLOCK, slice(start, min(start + BLOCK, images))


def batches(
    images: int, batch_size: int, *, offset: int = 0, even: bool = False
) -> Iterator[tuple[int, slice]]:
    """As ``blocks``, batch by batch: of ``batch_size`` images, the last one of a block perhaps of fewer.

    Where ``even``, those of a block are of nearly one size.

    Raises:
        ValueError: a batch size below 1, or see ``blocks``.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size: found {batch_size}, expected at least 1")
    for block, part in blocks(images, offset):
        count = part.stop - part.start
        size = ceil(count / ceil(count / batch_size)) if even else batch_size
        for first in range(part.start, part.stop, size):
            yield block, slice(first, min(first + size, part.stop))

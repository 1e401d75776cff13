"""Blocks and shards of explained images, the units of attribution and scoring jobs.

The explained images of a set are divided into blocks of ``BLOCK`` images. Noise is reseeded for every block
(``methods.sampling``), and no batch spans two blocks, so that the map of an image does not depend on which other blocks
its job computes. A set with ``shards: N`` is explained in N shards, each a range of complete blocks. The rules import
this module, so it imports nothing of the project.
"""

import re
from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

BLOCK = 256  # images; another value would change the noise of all images after the first block
SUFFIX = re.compile(r"\.shard([0-9]+)of([0-9]+)")


class Shard(NamedTuple):
    """One shard of a set: its number, from 1, and the number of shards."""

    number: int
    of: int

    def slice_of(self, images: int) -> slice:
        """Return the range of this shard among ``images`` images: complete blocks, divided as evenly as possible.

        Raises:
            ValueError: there are fewer blocks than shards.
        """
        if problem := too_many(self.of, images):
            raise ValueError(f"shards: {problem}")
        blocks = blocks_in(images)
        first, end = (blocks * number // self.of for number in (self.number - 1, self.number))
        return slice(first * BLOCK, min(end * BLOCK, images))


WHOLE = Shard(1, 1)


def shard_suffixes(shards: int) -> list[str]:
    """Return the file name suffixes of all shards, a single empty one for one shard."""
    return [f".shard{number}of{shards}" for number in range(1, shards + 1)] if shards > 1 else [""]


def shard_of(name: str) -> Shard:
    """Return the shard with the file name suffix ``name``, as in ``shard_suffixes``.

    Raises:
        ValueError: the suffix is not one of ``shard_suffixes``.
    """
    match = SUFFIX.fullmatch(name)
    if name and not match:
        raise ValueError(
            f"shard: found {name!r}, expected a suffix such as {shard_suffixes(4)[0]!r}, or none"
        )
    return Shard(int(match[1]), int(match[2])) if match else WHOLE


def blocks_in(images: int) -> int:
    """Return the number of blocks of ``images`` images, at least one; the last block may have fewer images."""
    return max(1, ceil(images / BLOCK))


def too_many(shards: int, images: int) -> str:
    """Return an error text if ``images`` explained images have fewer blocks than ``shards``, else an empty string."""
    blocks = blocks_in(images)
    if shards <= blocks:
        return ""
    explanation = f"{images} explained images are {blocks} block{'s' if blocks > 1 else ''} of {BLOCK}"
    return f"found {shards}, expected at most {blocks}: {explanation}"


def blocks(images: int, offset: int = 0) -> Iterator[tuple[int, slice]]:
    """Yield the number of each block in its set and its slice of the ``images`` images, in order.

    ``offset`` is the number of images that precede these in the set.

    Raises:
        ValueError: the offset is not a multiple of ``BLOCK``.
    """
    if offset % BLOCK:
        raise ValueError(f"offset: found {offset}, expected a multiple of {BLOCK}")
    for start in range(0, images, BLOCK):
        yield (offset + start) // BLOCK, slice(start, min(start + BLOCK, images))


def batches(
    images: int, batch_size: int, *, offset: int = 0, even: bool = False
) -> Iterator[tuple[int, slice]]:
    """Yield block number and slice of each batch of ``batch_size`` images; the last batch of a block may be smaller.

    With ``even``, the batches of a block have nearly equal sizes. ``images`` and ``offset`` are as in ``blocks``.

    Raises:
        ValueError: a batch size below 1, or an error of ``blocks``.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size: found {batch_size}, expected at least 1")
    for block, block_slice in blocks(images, offset):
        count = block_slice.stop - block_slice.start
        size = ceil(count / ceil(count / batch_size)) if even else batch_size
        for first in range(block_slice.start, block_slice.stop, size):
            yield block, slice(first, min(first + size, block_slice.stop))

"""Noise that does not depend on how images are split into batches.

The random values of a tensor depend on its size: the sixth image of a batch of eight gets other numbers than the first
of a batch of three. Therefore, the caller's generator only provides a 63-bit seed for each sample, in the order of the
images, and each sample is generated with that seed by a child generator on the images' device.
"""

from typing import Self

import torch
from torch import Tensor

from saliency_assay.runtime.provenance import seed_of


def block_seed(seed: int, block: int) -> int:
    """Return the seed of the noise of block number ``block`` of a set; the first block has ``seed`` itself."""
    return seed_of(seed, "block", str(block)) if block else seed


class BlockGenerator(torch.Generator):
    """Generator for the images of a set, reseeded for every block (``shards``), with one initial seed for all blocks.

    Random numbers of single images are sampled from the generator itself, whose state does not depend on earlier
    blocks. Random numbers that all images share are seeded by ``initial_seed()``, which is the seed of the set in every
    block.
    """

    def __new__(cls, seed: int) -> Self:
        """Create a generator on the CPU, without ``seed``: the only argument of the base class is a device."""
        return super().__new__(cls)

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed
        self._block: int | None = None
        self.at(0)

    def initial_seed(self) -> int:
        """Return the seed of the set."""
        return self._seed

    def at(self, block: int) -> Self:
        """Return itself, reseeded if ``block`` differs from the block of the previous batch."""
        if block != self._block:
            self.manual_seed(block_seed(self._seed, block))
            self._block = block
        return self


def sample_seeds(images: int, samples: int, generator: torch.Generator) -> list[int]:
    """Sample one seed for each of ``samples`` samples of ``images`` images, image-major, ``images * samples`` in total.

    Consecutive calls with one generator return the same seeds as one call for all images.
    """
    shape = (images * samples,)
    # 63 bits, the most that fit into int64: with few bits, seeds would repeat among millions of samples.
    return torch.randint(2**63 - 1, shape, generator=generator, device=generator.device).tolist()


def standard_normal(seeds: list[int], like: Tensor) -> Tensor:
    """Sample independent N(0, 1) values ``[len(seeds), C, H, W]``, row by row, for images like ``like [N, C, H, W]``.

    A row depends on its seed, the shape and type of an image, and the type of device (CPU or GPU).
    """
    noise, child = _empty_rows(seeds, like)
    for row, seed in zip(noise, seeds, strict=True):
        row.normal_(generator=child.manual_seed(seed))
    return noise


def uniform(seeds: list[int], like: Tensor) -> Tensor:
    """Sample like ``standard_normal``, but uniformly in [−1, 1)."""
    noise, child = _empty_rows(seeds, like)
    for row, seed in zip(noise, seeds, strict=True):
        row.uniform_(-1, 1, generator=child.manual_seed(seed))
    return noise


def _empty_rows(seeds: list[int], like: Tensor) -> tuple[Tensor, torch.Generator]:
    rows = torch.empty((len(seeds), *like.shape[1:]), dtype=like.dtype, device=like.device)
    return rows, torch.Generator(like.device)

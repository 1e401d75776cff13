"""Noise that does not depend on how images are split into batches.

A tensor filled from one generator depends on its size: the sixth image of a batch of eight gets other numbers than
the first of a batch of three. So the caller's generator only yields a 63-bit seed for each draw, in the order of
the images, and each draw has a child generator of its own on the images' device.
"""

from typing import Self

import torch
from torch import Tensor

from saliency_assay.runtime.provenance import seed_of


def block_seed(seed: int, block: int) -> int:
    """Return the seed of the noise of a set's block, of the first one ``seed`` itself."""
    return seed_of(seed, "block", str(block)) if block else seed


class BlockGenerator(torch.Generator):
    """The generator of a set's images: seeded anew for every block of them (``shards``), all with one initial seed.

    What each image has of its own is drawn from the stream, which does not depend on the blocks before. What all images
    share is drawn from ``initial_seed()``, which is the set's in every block.
    """

    def __new__(cls, seed: int) -> Self:
        """Create a generator of the CPU: the only argument of the base class is a device."""
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
        """Itself, for the next batch, of ``block``: at the block's beginning if the batch before was of another one."""
        if block != self._block:
            self.manual_seed(block_seed(self._seed, block))
            self._block = block
        return self


def sample_seeds(images: int, draws: int, generator: torch.Generator) -> list[int]:
    """Seeds of ``draws`` draws for each of ``images`` images, image-major, ``images * draws`` long.

    Consecutive calls with one generator give the same seeds as one call for all images.
    """
    shape = (images * draws,)
    return torch.randint(2**63 - 1, shape, generator=generator, device=generator.device).tolist()


def standard_normal(seeds: list[int], like: Tensor) -> Tensor:
    """Independent N(0, 1) values ``[len(seeds), C, H, W]``, row by row, for images such as ``like [N, C, H, W]``.

    A row depends on its seed, the shape and type of an image, and the kind of device (CPU or GPU).
    """
    noise, child = _rows(seeds, like)
    for row, seed in zip(noise, seeds, strict=True):
        row.normal_(generator=child.manual_seed(seed))
    return noise


def uniform(seeds: list[int], like: Tensor) -> Tensor:
    """As ``standard_normal``, uniform in [−1, 1)."""
    noise, child = _rows(seeds, like)
    for row, seed in zip(noise, seeds, strict=True):
        row.uniform_(-1, 1, generator=child.manual_seed(seed))
    return noise


def _rows(seeds: list[int], like: Tensor) -> tuple[Tensor, torch.Generator]:
    rows = torch.empty((len(seeds), *like.shape[1:]), dtype=like.dtype, device=like.device)
    return rows, torch.Generator(like.device)

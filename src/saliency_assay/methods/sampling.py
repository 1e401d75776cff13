"""Noise that does not depend on how images are split into batches.

A tensor filled from one generator depends on its size: the sixth image of a batch of eight gets other numbers than
the first of a batch of three. So the caller's generator only yields a 63-bit seed for each draw, in the order of
the images, and each draw has a child generator of its own on the images' device.
"""

import torch
from torch import Tensor

from saliency_assay.shards import block_seed


class BlockNoise:
    """The generator of a set's images, seeded anew for every block of them (``shards``)."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.generator = torch.Generator()
        self._block: int | None = None

    def of(self, block: int) -> torch.Generator:
        """The generator for the next batch, which is of ``block``: at its beginning if the last batch was not."""
        if block != self._block:
            self.generator.manual_seed(block_seed(self.seed, block))
            self._block = block
        return self.generator


def draw_seeds(images: int, draws: int, generator: torch.Generator) -> list[int]:
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

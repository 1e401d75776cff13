"""Noise that does not depend on how images are split into batches.

The random values of a tensor depend on its size: the sixth image of a batch of eight gets other numbers than the first
of a batch of three. Therefore, the caller's generator only provides a 63-bit seed for each sample, in the order of the
images, and each sample is generated with that seed.
"""

from collections.abc import Callable, Iterator
from typing import Literal, Self, TypeAlias

import torch
from torch import Tensor

from saliency_assay.runtime.provenance import seed_of
from saliency_assay.runtime.transfer import to_device

Role: TypeAlias = Literal["method", "metric"]
ROW_BY_ROW = {"cpu"}
"""Types of devices on which PyTorch's generator samples each row; on others the values are ``hashed``."""
BELOW_ONE = 1 - 2.0**-24
"""The largest number below 1 in float32, to which values next to 1 would be rounded."""
LARGEST = 2**25
"""Hashed values that are computed at once, which takes 400 MB."""


class BlockGenerator(torch.Generator):
    """Generator for the images of a set, reseeded for every block (``shards``), with one initial seed for all blocks.

    Random numbers of single images are sampled from the generator itself, whose state does not depend on earlier
    blocks. Random numbers that all images share are seeded by ``initial_seed()``, which is the same in every block.

    All seeds depend on ``seed`` and on the ``role`` of the numbers. Otherwise a random map and the noise of the metric
    that scores it would be the same numbers if a user passes the same seed for both.
    """

    def __new__(cls, seed: int, role: Role) -> Self:
        """Create a generator on the CPU, without the arguments: the only one of the base class is a device."""
        return super().__new__(cls)

    def __init__(self, seed: int, role: Role) -> None:
        super().__init__()
        self._seed = seed_of(seed, role)
        self._block: int | None = None
        self.at(0)

    def initial_seed(self) -> int:
        """Return the seed of what all images share."""
        return self._seed

    def at(self, block: int) -> Self:
        """Return itself, reseeded if ``block`` differs from the block of the previous batch."""
        if block != self._block:
            self.manual_seed(seed_of(self._seed, "block", str(block)))
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
    if like.device.type in ROW_BY_ROW:
        noise, child = _empty_rows(seeds, like)
        for row, seed in zip(noise, seeds, strict=True):
            row.normal_(generator=child.manual_seed(seed))
        return noise
    # By the inverse of the distribution function, which is infinite at −1.
    return hashed(seeds, like).clamp_(min=-BELOW_ONE).erfinv_().mul_(2**0.5)


def uniform(seeds: list[int], like: Tensor) -> Tensor:
    """Sample like ``standard_normal``, but uniformly in [−1, 1)."""
    if like.device.type not in ROW_BY_ROW:
        return hashed(seeds, like)
    noise, child = _empty_rows(seeds, like)
    for row, seed in zip(noise, seeds, strict=True):
        row.uniform_(-1, 1, generator=child.manual_seed(seed))
    return noise


def each_sample(
    sample_noise: Callable[[list[int], Tensor], Tensor], seeds: list[int], samples: int, like: Tensor
) -> Iterator[Tensor]:
    """Yield the noise ``[N, C, H, W]`` of each of ``samples`` samples of N images, from their image-major ``seeds``.

    On a GPU, the noise of several samples is computed at once, in as many launches as that of one.
    """
    size = 1 if like.device.type in ROW_BY_ROW else max(1, LARGEST // like.numel())
    for first in range(0, samples, size):
        together = range(first, min(first + size, samples))
        rows = sample_noise([seed for sample in together for seed in seeds[sample::samples]], like)
        yield from torch.split(rows, len(like))


def hashed(seeds: list[int], like: Tensor) -> Tensor:
    """Return uniform values in [−1, 1) ``[len(seeds), C, H, W]`` of a generator that is a function of seed and counter.

    A generator with a state is started for each row, one launch on a GPU for each. These values take the same number of
    launches for any number of rows. They are the output of SplitMix64 (Steele, Lea & Flood, 2014) for a seed, two
    values for each number of 64 bits.
    """
    shape = like.shape[1:]
    count = shape.numel()
    numbers = torch.arange(1, count // 2 + 2, device=like.device) * _signed(0x9E3779B97F4A7C15)
    mixed = to_device(torch.tensor(seeds), like.device)[:, None] + numbers
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = mixed.bitwise_xor_(_shifted(mixed, shift)).mul_(_signed(factor))
    mixed ^= _shifted(mixed, 31)
    values = mixed.view(torch.int32)[:, :count] * torch.tensor(2.0**-31, dtype=like.dtype)
    return values.clamp_(max=BELOW_ONE).reshape(-1, *shape)


def _shifted(numbers: Tensor, bits: int) -> Tensor:
    """Return int64 ``numbers`` shifted to the right, with zeros on the left; PyTorch has no unsigned shift."""
    return (numbers >> bits).bitwise_and_((1 << (64 - bits)) - 1)


def _signed(number: int) -> int:
    """Return a number of 64 bits as int64."""
    return number - (1 << 64) if number >> 63 else number


def _empty_rows(seeds: list[int], like: Tensor) -> tuple[Tensor, torch.Generator]:
    rows = torch.empty((len(seeds), *like.shape[1:]), dtype=like.dtype, device=like.device)
    return rows, torch.Generator(like.device)

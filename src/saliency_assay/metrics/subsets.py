"""Random subsets of pixels, shared by all images and sampled again, block by block, wherever they are needed.

They are sampled on the CPU for images on any device: a metric and its model responses must use the same subsets even
if only one of them runs on a GPU, which samples other numbers from the same seed.
"""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from saliency_assay.metrics.perturbation import PerturbationBatch, evaluate_masks, original
from saliency_assay.runtime.transfer import to_device

BLOCK = 64  # subsets in memory at a time


def sample_subsets(
    sizes: Tensor, pixels: int, generator: torch.Generator, device: torch.device
) -> Iterator[Tensor]:
    """Yield one random subset for each of ``sizes``, int64 ``[S]``, in blocks, bool ``[≤ BLOCK, pixels]``.

    All subsets of one size are equally likely.
    """
    positions = torch.arange(pixels)
    for first in range(0, len(sizes), BLOCK):
        block = sizes[first : first + BLOCK]
        # float64: among float32 keys of many pixels, equal ones are likely, and ties would favor the first pixels.
        keys = torch.rand(len(block), pixels, generator=generator, dtype=torch.float64)
        inside = positions < block[:, None]
        # The first ``size`` pixels, moved to random places: the argsort of random keys is a random permutation.
        yield to_device(inside.scatter(1, keys.argsort(dim=1), inside), device)


def shared(generator: torch.Generator) -> torch.Generator:
    """Return a generator on the CPU with the initial seed of ``generator``, so that it is the same for every batch."""
    return torch.Generator().manual_seed(generator.initial_seed())


def drops(batch: PerturbationBatch, removed: Iterator[Tensor]) -> Tensor:
    """Return f(x) − f(x without the subset), float64 ``[N, S]``; blocks of ``removed`` are bool ``[B, H·W]``."""
    unperturbed = original(batch)[:, None]
    return torch.cat([unperturbed - _evaluate_without(batch, block) for block in removed], dim=1)


def sums(values: Tensor, removed: Iterator[Tensor]) -> Tensor:
    """Return the sums of ``values [N, H·W]`` over each subset, float64 ``[N, S]``."""
    values = values.double()
    return torch.cat([values @ block.double().T for block in removed], dim=1)


def _evaluate_without(batch: PerturbationBatch, removed: Tensor) -> Tensor:
    return evaluate_masks(batch, len(removed), lambda image, number: removed[number])


def drop_of(responses: Mapping[str, Tensor], maps: Tensor, *perturbations: int) -> Tensor:
    """Return ``drop``, the decrease of the output under each perturbation, float64 ``[N, …]``, on the maps' device.

    Raises:
        ValueError: ``responses`` has no ``drop``, or one of another shape: of other images or parameters.
    """
    drop, expected = responses.get("drop"), [len(maps), *perturbations]
    if drop is None or list(drop.shape) != expected:
        actual = "none" if drop is None else f"{list(drop.shape)}"
        raise ValueError(
            f"responses: found drop {actual}, expected {expected}, of the same images and parameters"
        )
    return drop.to(maps.device, torch.float64)

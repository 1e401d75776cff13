"""Random subsets of an image's pixels, the same for all images: drawn again, block by block, wherever they are needed.

They are drawn on the CPU whatever the images' device, so that a metric and its model responses use the same subsets
though one ran on a GPU and the other did not.
"""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from saliency_assay.metrics.perturbation import PerturbationBatch, evaluate_masks, original

BLOCK = 64  # subsets that are held at a time


def sample_subsets(
    sizes: Tensor, pixels: int, generator: torch.Generator, device: torch.device
) -> Iterator[Tensor]:
    """Return a subset of each of the ``sizes``, int64 ``[S]``, all of a size equally likely: bool ``[≤ BLOCK,
    pixels]``."""
    places = torch.arange(pixels)
    for first in range(0, len(sizes), BLOCK):
        block = sizes[first : first + BLOCK]
        keys = torch.rand(len(block), pixels, generator=generator, dtype=torch.float64)
        inside = places < block[:, None]
        yield inside.scatter(1, keys.argsort(dim=1), inside).to(device)


def shared(generator: torch.Generator) -> torch.Generator:
    """One that yields the same for every batch, whatever the caller's has yielded."""
    return torch.Generator().manual_seed(generator.initial_seed())


def drops(batch: PerturbationBatch, removed: Iterator[Tensor]) -> Tensor:
    """f(x) − f(x without the subset), float64 ``[N, S]``, for blocks of ``removed`` pixels, bool ``[B, H·W]``."""
    before = original(batch)[:, None]
    return torch.cat([before - _without(batch, block) for block in removed], dim=1)


def sums(values: Tensor, removed: Iterator[Tensor]) -> Tensor:
    """Return the sums of ``values [N, H·W]`` over each subset, float64 ``[N, S]``."""
    values = values.double()
    return torch.cat([values @ block.double().T for block in removed], dim=1)


def _without(batch: PerturbationBatch, removed: Tensor) -> Tensor:
    return evaluate_masks(batch, len(removed), lambda image, number: removed[number])


def drop_of(responses: Mapping[str, Tensor], maps: Tensor, *perturbations: int) -> Tensor:
    """``drop``, what the output of each image loses under each perturbation: float64 ``[N, …]``, on the maps' device.

    Raises:
        ValueError: there is none, or it is of another shape: of other images or parameters.
    """
    drop, expected = responses.get("drop"), [len(maps), *perturbations]
    if drop is None or list(drop.shape) != expected:
        found = "none" if drop is None else f"{list(drop.shape)}"
        raise ValueError(
            f"responses: found drop {found}, expected {expected}, of the same images and parameters"
        )
    return drop.to(maps.device, torch.float64)

"""Deletion and insertion: area under the output as salient pixels are removed or inserted (Petsiuk et al., 2018)."""

import torch
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.perturbation import (
    PerturbationBatch,
    Predict,
    Span,
    evaluate_order,
    perturbation_batch,
    ranks_of,
)
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, is_rankable, nan_unless
from saliency_assay.registry.limits import Fill, ScoredOutput, Steps

EXACT = "exact"


def deletion(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    steps: Steps = 100,
    fill: Fill = "black",
    output: ScoredOutput = "probability",
) -> Scored:
    """Compute the area under the output against the share of removed pixels, ``[N]``; lower is better.

    The most salient pixels are removed first. ``maps`` are raw, ``[N, C or 1, H, W]``, images ``[N, C, H, W]`` in
    [0, 1]. ``steps`` is a number of equal blocks, or ``exact``: pixel by pixel. The area is in [0, 1] for
    probabilities; the curve is the output after each block, ``[N, S + 1]``. NaN where a map is NaN or constant.

    Raises:
        ValueError: a fill without its ``mean``.
    """
    fill_pixels = fill_of(fill, images, mean=mean, seeds=sample_seeds(len(images), 1, generator))
    batch = perturbation_batch(predict, images, targets, fill_pixels, output=output)
    return _area_under("deletion", batch, reduce(maps, "sum"), steps, kept=False)


def insertion(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    steps: Steps = 100,
    fill: Fill = "blur",
    output: ScoredOutput = "probability",
) -> Scored:
    """Compute the same area as ``deletion``, with pixels inserted into the fill image instead; higher is better."""
    fill_pixels = fill_of(fill, images, mean=mean, seeds=sample_seeds(len(images), 1, generator))
    batch = perturbation_batch(predict, images, targets, fill_pixels, output=output)
    return _area_under("insertion", batch, reduce(maps, "sum"), steps, kept=True)


def block_ends(pixels: Tensor, blocks: int) -> Tensor:
    """Return round(i · pixels / blocks) for i = 0 … ``blocks``, halves up, int64 ``[N, blocks + 1]``, of int64 ``[N]``.

    With fewer pixels than blocks, every number up to ``pixels`` occurs, some of them repeatedly.
    """
    number = torch.arange(blocks + 1, device=pixels.device)
    # In integers, because floating-point division could round a half either way.
    return (2 * number * pixels[:, None] + blocks).div(2 * blocks, rounding_mode="floor")


def _area_under(
    name: str, batch: PerturbationBatch, saliency: Tensor, steps: int | str, *, kept: bool
) -> Scored:
    """Compute the area by the trapezoid rule over the exact shares of removed pixels, i/S rounded to whole pixels."""
    curve, removed = block_curve(batch, saliency, steps, kept=kept)
    size = batch.height * batch.width
    return Scored({(name, ""): torch.trapezoid(curve, removed.double() / size)}, {"curve": curve})


def block_curve(
    batch: PerturbationBatch, saliency: Tensor, steps: int | str, *, kept: bool
) -> tuple[Tensor, Tensor]:
    """Return the output after each block is removed, or inserted if ``kept``, and the number of pixels until then.

    Both are ``[N, S + 1]``, float64 and int64. The most salient pixels of maps ``[N, H, W]`` come first. The output is
    NaN where a map is NaN or constant.
    """
    size = batch.height * batch.width
    # With more blocks than pixels, points would repeat.
    blocks = size if isinstance(steps, str) else min(steps, size)
    removed = block_ends(torch.full((len(saliency),), size, device=saliency.device), blocks)
    curve = evaluate_order(batch, ranks_of(saliency), [Span(torch.zeros_like(removed), removed, kept)])[0]
    return nan_unless(is_rankable(saliency), curve), removed

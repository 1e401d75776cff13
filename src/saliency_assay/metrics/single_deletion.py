"""Correlation of the attribution of cells of a grid with the drop of the output without them (Hesse et al., 2024)."""

from collections.abc import Iterator, Mapping
from typing import Annotated

import torch
from torch import Tensor

from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.perturbation import Predict, differs, perturbation_batch
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, correlation, is_rankable, mean_ranks, nan_unless
from saliency_assay.metrics.subsets import BLOCK, drop_of, drops, sums
from saliency_assay.registry.limits import Limits, ScoredOutput
from saliency_assay.runtime.transfer import to_device
from saliency_assay.training.deletion import grid_cells


def deleted_cells(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    grid: Annotated[int, Limits(minimum=2)] = 4,
    fill: Annotated[str, Limits(choices=("mean", "black"))] = "mean",
    output: ScoredOutput = "logit",
) -> dict[str, Tensor]:
    """Compute ``drop``: f(x) − f(x without the cell), float64 ``[N, grid²]``; see ``single_deletion``.

    Raises:
        ValueError: more rows or columns of cells than of pixels, or a fill without its ``mean``.
    """
    batch = perturbation_batch(predict, images, targets, fill_of(fill, images, mean=mean), output=output)
    drop = drops(batch, _cells(images, grid))
    # Pixels equal to their fill change nothing; without this, rounding would differ between the rows of a batch.
    return {"drop": torch.where(sums(differs(batch), _cells(images, grid)) > 0, drop, 0)}


def single_deletion(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    responses: Mapping[str, Tensor],
    grid: Annotated[int, Limits(minimum=2)] = 4,
    absolute: bool = False,
) -> Scored:
    """Compute Spearman's ρ of Σ_{i ∈ c} R_i and f(x) − f(x without c) over the cells c of a grid; higher is better.

    The grid has ``grid`` × ``grid`` cells (``training.deletion.grid_cells``). R is the ``sum`` of a map
    ``[N, C or 1, H, W]`` or, if ``absolute``, the absolute value of this sum; equal values have their mean rank. NaN
    where the map is constant or not finite, or its sums or the drops are the same for all cells. Hesse et al. (2024):
    the in-domain single deletion score if f is trained on images without single cells.

    Raises:
        ValueError: ``responses`` does not fit the images and the grid.
    """
    relevance = reduce(maps, "sum").flatten(1)
    relevance = relevance.abs() if absolute else relevance
    drop, summed = drop_of(responses, maps, grid * grid), sums(relevance, _cells(maps, grid))
    defined = is_rankable(relevance) & is_rankable(summed) & is_rankable(drop)
    rho = correlation(mean_ranks(summed), mean_ranks(drop))
    return Scored({("single_deletion", ""): nan_unless(defined, rho)})


def _cells(images: Tensor, grid: int) -> Iterator[Tensor]:
    """Yield the pixels of each cell, in blocks, bool ``[≤ BLOCK, H·W]``."""
    cells = to_device(grid_cells(images.shape[2:], grid), images.device).flatten()
    for first in range(0, grid * grid, BLOCK):
        numbers = torch.arange(first, min(first + BLOCK, grid * grid), device=images.device)
        yield cells == numbers[:, None]

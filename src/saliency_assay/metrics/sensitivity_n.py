"""Correlation of the attribution of sets of pixels with the drop of the output without them.

Sensitivity-n (Ancona et al., 2018) averages over sizes of sets, faithfulness correlation (Bhatt et al., 2020) has one.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.perturbation import PerturbationBatch, Predict, differs, perturbation_batch
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, is_rankable, nan_unless, spearman
from saliency_assay.metrics.scored import correlation as pearson
from saliency_assay.metrics.subsets import drop_of, drops, sample_subsets, shared, sums
from saliency_assay.registry.limits import Fill, Limits, NonNegativeInt, PositiveInt, ScoredOutput, Share
from saliency_assay.runtime.transfer import to_device


def random_subsets(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    points: PositiveInt = 10,
    largest: Share = 0.8,
    subsets: Annotated[int, Limits(minimum=2)] = 100,
    fill: Fill = "black",
    output: ScoredOutput = "logit",
) -> dict[str, Tensor]:
    """Compute ``drop``: f(x) − f(x without the subset), float64 ``[N, sizes, subsets]``; see ``sensitivity_n``.

    Raises:
        ValueError: an error of ``perturbation``.
    """
    sizes = subset_sizes(images, points, largest)
    batch = _batch(predict, images, targets, generator=generator, mean=mean, fill=fill, output=output)
    drop = _drops(batch, lambda: _subsets(images, sizes, subsets, generator))
    return {"drop": drop.reshape(-1, len(sizes), subsets)}


def sensitivity_n(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    responses: Mapping[str, Tensor],
    points: PositiveInt = 10,
    largest: Share = 0.8,
    subsets: Annotated[int, Limits(minimum=2)] = 100,
) -> Scored:
    """Compute Pearson's ρ of Σ_{i ∈ S} R_i and f(x) − f(x without S) over random sets S of n pixels; higher is better.

    Each size n of ``subset_sizes`` has ``subsets`` sets S and a variant ``n=…``; the score without a variant is the
    mean over the sizes at which the output varies. Subsets are the same for all images. R is the map's ``sum``. NaN
    where the map is constant or not finite, or its sums are constant at a size at which the output varies. Ancona et
    al. (2018), sensitivity-n.

    Raises:
        ValueError: ``responses`` does not fit the images and subsets.
    """
    sizes = subset_sizes(images, points, largest)
    relevance = reduce(maps, "sum").flatten(1)
    drop = drop_of(responses, maps, len(sizes), subsets)
    summed = sums(relevance, _subsets(images, sizes, subsets, generator)).reshape(drop.shape)
    output_varies = _varies(drop)
    defined = output_varies & _varies(summed) & is_rankable(relevance)[:, None]
    rho = torch.where(defined, pearson(summed, drop), torch.nan)
    # NaN where the map's sums are constant at a size that counts, and 0 / 0 where the output never varies.
    average = torch.where(output_varies, rho, 0).sum(1) / output_varies.sum(1)
    by_size = {("sensitivity_n", f"n={size}"): rho[:, i] for i, size in enumerate(sizes)}
    return Scored({("sensitivity_n", ""): average, **by_size}, {"correlation": rho})


def random_sets(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    share: Share = 0.2,
    subsets: Annotated[int, Limits(minimum=2)] = 100,
    grid: NonNegativeInt = 0,
    fill: Fill = "black",
    output: ScoredOutput = "logit",
) -> dict[str, Tensor]:
    """Compute ``drop``: f(x) − f(x without S), float64 ``[N, 1, subsets]``; see ``faithfulness_correlation``.

    Raises:
        ValueError: more cells than pixels along a side, or an error of ``perturbation``.
    """
    batch = _batch(predict, images, targets, generator=generator, mean=mean, fill=fill, output=output)
    return {"drop": _drops(batch, lambda: _sets(images, share, subsets, grid, generator))[:, None]}


def faithfulness_correlation(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    responses: Mapping[str, Tensor],
    share: Share = 0.2,
    subsets: Annotated[int, Limits(minimum=2)] = 100,
    grid: NonNegativeInt = 0,
    correlation: Annotated[str, Limits(choices=("pearson", "spearman"))] = "pearson",
) -> Scored:
    """Compute ρ of Σ_{i ∈ S} R_i and f(x) − f(x without S) over random sets S of one size; higher is better.

    Each of ``subsets`` sets has a ``share`` of the pixels, rounded, and all images have the same sets. If ``grid`` is
    not 0, the sets are of cells of a grid of ``grid`` rows and columns. ρ is Pearson's or Spearman's ``correlation``; R
    is the map's ``sum``. NaN where the map is constant or not finite, or its sums or the output are constant. Bhatt et
    al. (2020); with a grid and Spearman's correlation, µFidelity (Fel et al., 2022).

    Raises:
        ValueError: more cells than pixels along a side, or ``responses`` does not fit the images and subsets.
    """
    relevance = reduce(maps, "sum").flatten(1)
    drop = drop_of(responses, maps, 1, subsets)[:, 0]
    summed = sums(relevance, _sets(images, share, subsets, grid, generator))
    defined = is_rankable(relevance) & is_rankable(summed) & is_rankable(drop)
    rho = pearson(summed, drop) if correlation == "pearson" else spearman(summed, drop)
    return Scored({("faithfulness_correlation", ""): nan_unless(defined, rho)})


def _sets(
    images: Tensor, share: float, count: int, grid: int, generator: torch.Generator
) -> Iterator[Tensor]:
    """Yield ``count`` random sets of a ``share`` of the pixels or cells, in blocks, bool ``[B, H·W]``."""
    units = grid**2 if grid else images[0, 0].numel()
    # At least one, and fewer than all, of which there is only one set.
    size = min(max(round(share * units), 1), units - 1)
    blocks = sample_subsets(torch.full((count,), size), units, shared(generator), images.device)
    if not grid:
        return blocks
    cells = _cells(images, grid)
    return (block[:, cells] for block in blocks)


def _cells(images: Tensor, grid: int) -> Tensor:
    """Return the number of the cell of each pixel's center, int64 ``[H·W]``, on the images' device."""
    height, width = images.shape[2:]
    if grid > min(height, width):
        raise ValueError(
            f"grid: found {grid}, expected at most {min(height, width)}, the shorter side of the image"
        )
    rows, columns = ((2 * torch.arange(side) + 1) * grid // (2 * side) for side in (height, width))
    return to_device((rows[:, None] * grid + columns).flatten(), images.device)


def _batch(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None,
    fill: str,
    output: str,
) -> PerturbationBatch:
    seeds = sample_seeds(len(images), 1, generator) if fill == "random" else None
    fill_pixels = fill_of(fill, images, mean=mean, seeds=seeds)
    return perturbation_batch(predict, images, targets, fill_pixels, output=output)


def _drops(batch: PerturbationBatch, removed: Callable[[], Iterator[Tensor]]) -> Tensor:
    """Return f(x) − f(x without the subset), float64 ``[N, S]``; ``removed`` yields the subsets anew at each call."""
    # Pixels equal to their fill change nothing; without this, rounding would differ between the rows of a batch.
    return torch.where(sums(differs(batch), removed()) > 0, drops(batch, removed()), 0)


def subset_sizes(images: Tensor, points: int, largest: float) -> list[int]:
    """Return at most ``points`` numbers of pixels, evenly spaced in log n from 1 to a share ``largest`` of all.

    They are rounded, and equal numbers occur once. The largest leaves at least one pixel, since there is only one
    subset of all pixels.
    """
    pixels = images[0, 0].numel()
    last = max(1, min(largest * pixels, pixels - 1))
    return sorted({round(size) for size in np.geomspace(1, last, points).tolist()})


def _subsets(images: Tensor, sizes: list[int], count: int, generator: torch.Generator) -> Iterator[Tensor]:
    repeated = torch.tensor(sizes).repeat_interleave(count)
    return sample_subsets(repeated, images[0, 0].numel(), shared(generator), images.device)


def _varies(sequences: Tensor) -> Tensor:
    """Return True where ``[N, sizes, subsets]`` is not constant over the subsets, bool ``[N, sizes]``."""
    return is_rankable(sequences.flatten(0, 1)).reshape(sequences.shape[:2])

"""Sensitivity-n: whether attributions of n pixels sum to what the output loses without them (Ancona et al., 2018)."""

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from saliency_assay.methods.sampling import draw_seeds
from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.perturbation import Predict, differs, subject
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, correlation, varies
from saliency_assay.metrics.subsets import draw_subsets, drop_of, drops, shared, sums


def random_subsets(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    points: int = 10,
    largest: float = 0.8,
    subsets: int = 100,
    fill: str = "black",
    output: str = "logit",
) -> dict[str, Tensor]:
    """``drop``: f(x) − f(x without the subset), float64 ``[N, sizes, subsets]``; see ``sensitivity_n``.

    Raises:
        ValueError: a parameter out of range, or what the engine raises.
    """
    seeds = draw_seeds(len(images), 1, generator) if fill == "random" else None
    shown = fill_of(fill, images, mean=mean, seeds=seeds)
    examined = subject(predict, images, targets, shown, output=output)
    sizes = subset_sizes(images, points, largest)
    found = drops(examined, _subsets(images, sizes, subsets, generator))
    # Removing what already shows the fill changes nothing, though rounding differs between the rows of a batch.
    changed = sums(differs(examined), _subsets(images, sizes, subsets, generator)) > 0
    return {"drop": torch.where(changed, found, 0).reshape(-1, len(sizes), subsets)}


def sensitivity_n(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    probed: Mapping[str, Tensor],
    points: int = 10,
    largest: float = 0.8,
    subsets: int = 100,
) -> Scored:
    """Pearson's ρ of Σ_{i ∈ S} R_i and f(x) − f(x without S) over random ``subsets`` S of n pixels; higher is better.

    Variant ``n=…`` for each size of ``subset_sizes``; the score without a variant is their mean, over the sizes at
    which the output varies. Subsets are the same for all images. R is the map's ``sum``. NaN where the map is constant
    or not finite, or its sums are where the output varies. Ancona et al. (2018), sensitivity-n.

    Raises:
        ValueError: a parameter out of range, or ``probed`` does not fit the images and subsets.
    """
    sizes = subset_sizes(images, points, largest)
    relevance = reduce(maps, "sum").flatten(1)
    drop = drop_of(probed, maps, len(sizes), subsets)
    summed = sums(relevance, _subsets(images, sizes, subsets, generator)).reshape(drop.shape)
    moves = _varies(drop)
    defined = moves & _varies(summed) & varies(relevance)[:, None]
    rho = torch.where(defined, correlation(summed, drop), torch.nan)
    average = torch.where(moves, rho, 0).sum(1) / moves.sum(1)
    each = {("sensitivity_n", f"n={size}"): rho[:, i] for i, size in enumerate(sizes)}
    return Scored({("sensitivity_n", ""): average, **each}, {"correlation": rho})


def subset_sizes(images: Tensor, points: int, largest: float) -> list[int]:
    """At most ``points`` numbers of pixels, evenly spaced in log n from 1 to a share ``largest`` of all, rounded.

    Those that round to the same are one; the greatest leaves a pixel, since there is only one subset of all.
    """
    if points < 1 or not 0 <= largest <= 1:
        raise ValueError(
            f"points, largest: found {points}, {largest}, expected at least 1 and a share in [0, 1]"
        )
    pixels = images[0, 0].numel()
    last = max(1, min(largest * pixels, pixels - 1))
    return sorted({round(size) for size in np.geomspace(1, last, points).tolist()})


def _subsets(images: Tensor, sizes: list[int], count: int, generator: torch.Generator) -> Iterator[Tensor]:
    if count < 2:
        raise ValueError(f"subsets: found {count}, expected at least 2")
    every = torch.tensor(sizes).repeat_interleave(count)
    return draw_subsets(every, images[0, 0].numel(), shared(generator), images.device)


def _varies(sequences: Tensor) -> Tensor:
    """Which of ``[N, sizes, subsets]`` are not constant, bool ``[N, sizes]``."""
    return varies(sequences.flatten(0, 1)).reshape(sequences.shape[:2])

"""SaCo: do groups of more salient pixels change the output more? (Wu et al., 2024)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

import torch
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.perturbation import (
    Predict,
    Span,
    differs,
    evaluate_order,
    perturbation_batch,
    ranks_of,
)
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, is_rankable, nan_unless
from saliency_assay.registry.limits import Fill, Limits, ScoredOutput
from saliency_assay.runtime.transfer import to_device


def saco(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    groups: Annotated[int, Limits(minimum=2)] = 10,
    fill: Fill = "image_mean",
    output: ScoredOutput = "probability",
) -> Scored:
    """Compute SaCo = Σ_{i<j} ±(s_i − s_j) / Σ_{i<j} (s_i − s_j), in [−1, 1]; higher is better.

    The pixels of images ``[N, C, H, W]`` are sorted by the ``sum`` of maps ``[N, C or 1, H, W]`` and divided into
    ``groups`` of equal size, the most salient first. s_i is the mean salience of group i, and the sign is + if the drop
    of the output without group i is at least that without group j. NaN where a map is NaN or constant. Wu et al.
    (2024), algorithm 1.

    Raises:
        ValueError: more ``groups`` than pixels, or a fill without its ``mean``.
    """
    saliency = reduce(maps, "sum")
    pixels = saliency[0].numel()
    if groups > pixels:
        raise ValueError(f"groups: found {groups}, expected at most {pixels}, the pixels of an image")
    fill_pixels = fill_of(fill, images, mean=mean, seeds=sample_seeds(len(images), 1, generator))
    batch = perturbation_batch(predict, images, targets, fill_pixels, output=output)
    ranks, ends = ranks_of(saliency), [number * pixels // groups for number in range(groups + 1)]
    spans = to_device(torch.tensor([[0, 0], *pairwise(ends)]), images.device).expand(len(images), -1, -1)
    output_without = evaluate_order(batch, ranks, [Span(spans[:, :, 0], spans[:, :, 1])])[0]
    impact = output_without[:, :1] - output_without[:, 1:]  # the first span is empty
    # Pixels equal to their fill change nothing; without this, rounding would differ between the rows of a batch.
    changed = _means(differs(batch), ranks, ends) > 0
    score = _coefficient(_means(saliency.flatten(1), ranks, ends), torch.where(changed, impact, 0))
    return Scored({("saco", ""): nan_unless(is_rankable(saliency), score)})


def _means(values: Tensor, ranks: Tensor, ends: Sequence[int]) -> Tensor:
    """Return the mean of ``values [N, P]`` over each group of pixels, float64 ``[N, groups]``."""
    ordered = torch.zeros_like(ranks, dtype=torch.float64).scatter(1, ranks, values.double())
    return torch.stack([ordered[:, start:end].mean(1) for start, end in pairwise(ends)], dim=1)


def _coefficient(salience: Tensor, impact: Tensor) -> Tensor:
    """Return SaCo ``[N]`` of the descending salience and the impact of groups, float64 ``[N, groups]`` both."""
    total, weights = torch.zeros_like(salience[:, 0]), torch.zeros_like(salience[:, 0])
    for i in range(salience.shape[1] - 1):  # not all pairs at once, since their number grows with the square
        difference = salience[:, i : i + 1] - salience[:, i + 1 :]
        agrees = impact[:, i : i + 1] >= impact[:, i + 1 :]
        total += torch.where(agrees, difference, -difference).sum(1)
        weights += difference.sum(1)
    return (total / weights).clamp(-1, 1)  # rounding can exceed ±1

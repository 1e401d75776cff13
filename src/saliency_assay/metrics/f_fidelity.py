"""F-Fidelity, fidelity of a fine-tuned model (Zheng et al., 2025)."""

from functools import partial
from typing import Annotated

import torch
from torch import Tensor, nn

from saliency_assay.methods.sampling import sample_seeds, uniform
from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.perturbation import (
    Predict,
    evaluate_masks,
    original,
    perturbation_batch,
    ranks_of,
)
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.road import shares
from saliency_assay.metrics.scored import Scored, is_rankable, nan_unless
from saliency_assay.registry.limits import Limits, PositiveInt, ScoredOutput, Share
from saliency_assay.runtime.transfer import to_device

FILLS = ("mean", "black")
"""Fills with which a model can be fine-tuned."""


def f_fidelity(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    finetuned_model: nn.Module,
    mean: Tensor | None = None,
    points: PositiveInt = 19,
    samples: PositiveInt = 10,
    alpha_plus: Share = 0.5,
    alpha_minus: Share = 0.5,
    beta: Share = 0.1,
    fill: Annotated[str, Limits(choices=("mean", "black"))] = "mean",
    output: ScoredOutput = "accuracy",
) -> Scored:
    """Compute f(x) − E f(x without random pixels of the explanation, or of the rest), f being ``finetuned_model``.

    The explanation is the s most relevant of d pixels, by the ``sum`` of maps ``[N, C or 1, H, W]``, and the scores are
    means over s of i / (points + 1) of all pixels, i = 1 … ``points``. ``f_fidelity_plus``, higher is better, removes
    min(``alpha_plus`` · s, ``beta`` · d) pixels of the explanation, and ``f_fidelity_minus``, lower is better,
    min(``alpha_minus`` · (d − s), ``beta`` · d) of the other pixels, all rounded. With ``output``
    accuracy, f(x) is 1 if the target is predicted, else 0. E is the mean over ``samples`` random orders of an image's
    pixels, which all sizes and methods share. The curves ``plus`` and ``minus``, ``[N, points]``, have the values for
    each s. The explained model ``predict`` is not evaluated. NaN where a map is NaN or constant. Zheng et al. (2025).

    Raises:
        ValueError: as many ``points`` as pixels, or a fill without its ``mean``.
    """
    saliency = reduce(maps, "sum")
    pixels = saliency[0].numel()
    if points >= pixels:
        expected = f"at most {pixels - 1}, fewer than the pixels of an image"
        raise ValueError(f"points: found {points}, expected {expected}")
    fill_pixels = fill_of(fill, images, mean=mean)
    batch = perturbation_batch(finetuned_model, images, targets, fill_pixels, output=output)
    sizes, most = shares(points, pixels), round(beta * pixels)
    counts = [min(round(alpha_plus * size), most) for size in sizes]
    counts += [min(round(alpha_minus * (pixels - size)), most) for size in sizes]
    passes = to_device(torch.tensor([sizes * 2, counts]), images.device)
    ranks, seeds = ranks_of(saliency), sample_seeds(len(images), samples, generator)
    total = torch.zeros(len(images), 2 * points, dtype=torch.float64, device=images.device)
    for sample in range(samples):
        order = uniform(seeds[sample::samples], images[:, :1]).flatten(1).argsort(dim=1)
        total += evaluate_masks(
            batch, 2 * points, partial(_random_subset, order, ranks.gather(1, order), *passes)
        )
    curves = nan_unless(is_rankable(saliency), original(batch)[:, None] - total / samples)
    plus, minus = curves[:, :points], curves[:, points:]
    scores = {("f_fidelity_plus", ""): plus.mean(1), ("f_fidelity_minus", ""): minus.mean(1)}
    return Scored(scores, {"plus": plus, "minus": minus})


def _random_subset(
    order: Tensor, ranks: Tensor, sizes: Tensor, counts: Tensor, image: Tensor, number: Tensor
) -> Tensor:
    """Return the pixels removed in pass ``number`` of each ``image``, bool ``[rows, d]``.

    Args:
        order: pixels of each image in random order, int64 ``[N, d]``.
        ranks: relevance ranks of the pixels in this order, ``[N, d]``.
        sizes: explanation size of each pass, ``[passes]``; the first half of the passes removes pixels of it, the other
            half other pixels.
        counts: number of pixels that each pass removes, ``[passes]``.
        image: index of the image of each row.
        number: pass of each row.
    """
    removes_explanation = number < len(sizes) // 2
    candidates = (ranks[image] < sizes[number, None]) == removes_explanation[:, None]
    removed = candidates & (candidates.cumsum(1) <= counts[number, None])  # the first ones in random order
    return torch.zeros_like(removed).scatter(1, order[image], removed)

"""Faithfulness F: correlation of relevance with the drop of the output per pixel (Alvarez-Melis & Jaakkola, 2018)."""

from collections.abc import Mapping
from typing import Annotated

import torch
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.perturbation import Predict, Span, differs, evaluate_order, perturbation_batch
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, correlation, is_rankable, nan_unless
from saliency_assay.registry.limits import Fill, Limits, ScoredOutput
from saliency_assay.runtime.transfer import to_device


def faithfulness(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    responses: Mapping[str, Tensor],
) -> Scored:
    """Compute F = ρ(R, Δ), Pearson's correlation of relevance and the drop of the output over some pixels, in [−1, 1].

    ``maps`` are raw, ``[N, C or 1, H, W]``; ``responses`` are those of ``single_pixels`` for the same images. NaN where
    a map is NaN, and where relevance or the drop is the same at all of these pixels.

    Raises:
        ValueError: ``responses`` is of another number of images.
    """
    pixel, drop, unperturbed = responses["pixel"], responses["drop"], responses["original"]
    if len(pixel) != len(maps):
        raise ValueError(f"responses: found {len(pixel)} images, expected {len(maps)}, as many as maps")
    relevance = reduce(maps, "sum").flatten(1).gather(1, pixel)
    # Of the outputs, not of their drops: a drop that is only rounding error would correlate with anything.
    defined = is_rankable(relevance) & is_rankable(unperturbed[:, None] - drop)
    return Scored({("faithfulness", ""): nan_unless(defined, correlation(relevance.double(), drop))})


def single_pixels(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    pixels: Annotated[int, Limits(minimum=2)] = 100,
    fill: Fill = "mean",
    output: ScoredOutput = "probability",
) -> dict[str, Tensor]:
    """Compute Δ_i = f(x) − f(x_i), the drop of the output when only pixel i is perturbed, for ``pixels`` random pixels.

    The pixels are sampled once, without replacement, from the generator's initial seed, and are the same for all images
    ``[N, C, H, W]``. ``pixel`` is int64 ``[N, pixels]``, indices in reading order; ``drop`` is Δ, float64
    ``[N, pixels]``; ``original`` is f(x), float64 ``[N]``.

    Raises:
        ValueError: more ``pixels`` than an image has, or a fill without its ``mean``.
    """
    available = images.shape[-2] * images.shape[-1]
    if pixels > available:
        raise ValueError(f"pixels: found {pixels}, expected at most {available}, the pixels of an image")
    shared = torch.Generator().manual_seed(generator.initial_seed())
    sampled = torch.randperm(available, generator=shared)[:pixels].sort().values
    pixel = to_device(sampled, images.device).repeat(len(images), 1)
    fill_pixels = fill_of(fill, images, mean=mean, seeds=sample_seeds(len(images), 1, generator))
    # With pixels ranked in reading order, a span of one rank is one pixel.
    ranks = torch.arange(available, device=images.device).expand(len(images), -1)
    zero = torch.zeros_like(pixel[:, :1])
    spans = [Span(zero, zero), Span(pixel, pixel + 1)]
    batch = perturbation_batch(predict, images, targets, fill_pixels, output=output)
    unperturbed, perturbed = evaluate_order(batch, ranks, spans)
    # Pixels equal to their fill change nothing; without this, rounding would differ between the rows of a batch.
    drop = torch.where(differs(batch).gather(1, pixel), unperturbed - perturbed, 0)
    return {"pixel": pixel, "drop": drop, "original": unperturbed[:, 0]}

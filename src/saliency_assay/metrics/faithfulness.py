"""Faithfulness F: does relevance follow the fall of the output when a pixel goes? (Alvarez-Melis & Jaakkola, 2018)."""

from collections.abc import Mapping

import torch
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.perturbation import Predict, Span, differs, evaluate_order, perturbation_batch
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, correlation, is_rankable, nan_unless


def faithfulness(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    responses: Mapping[str, Tensor],
) -> Scored:
    """F = ρ(R, Δ): Pearson's correlation of relevance and the fall of the output, in [−1, 1], over some pixels.

    ``maps`` are raw, ``[N, C or 1, H, W]``; ``responses`` is what ``single_pixels`` found for the same images. NaN
    where a map is NaN, and where relevance or the fall is the same at all of these pixels.

    Raises:
        ValueError: ``responses`` is of another number of images.
    """
    pixel, drop, unperturbed = responses["pixel"], responses["drop"], responses["original"]
    if len(pixel) != len(maps):
        raise ValueError(f"responses: found {len(pixel)} images, expected {len(maps)}, as many as maps")
    relevance = reduce(maps, "sum").flatten(1).gather(1, pixel)
    defined = is_rankable(relevance) & is_rankable(
        unperturbed[:, None] - drop
    )  # up to rounding of the outputs
    return Scored({("faithfulness", ""): nan_unless(defined, correlation(relevance.double(), drop))})


def single_pixels(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    pixels: int = 100,
    fill: str = "mean",
    output: str = "probability",
) -> dict[str, Tensor]:
    """Δ_i = f(x) − f(x_i): the fall of the output when pixel i alone is perturbed, for ``pixels`` random pixels.

    The pixels are drawn once, without replacement, from the generator's initial seed: the same for all images ``[N, C,
    H, W]``. ``pixel`` is int64 ``[N, pixels]``, indices in reading order; ``drop`` is float64 ``[N, pixels]``,
    ``original`` f(x), float64 ``[N]``.

    Raises:
        ValueError: more ``pixels`` than an image has, an unknown fill or output, a fill without its ``mean``.
    """
    available = images.shape[-2] * images.shape[-1]
    if pixels > available:
        raise ValueError(f"pixels: found {pixels}, expected at most {available}, the pixels of an image")
    shared = torch.Generator().manual_seed(generator.initial_seed())
    drawn = torch.randperm(available, generator=shared)[:pixels].sort().values
    pixel = drawn.to(images.device).repeat(len(images), 1)
    shown = fill_of(fill, images, mean=mean, seeds=sample_seeds(len(images), 1, generator))
    place = torch.arange(available, device=images.device).expand(len(images), -1)
    none = torch.zeros_like(pixel[:, :1])
    spans = [Span(none, none), Span(pixel, pixel + 1)]
    batch = perturbation_batch(predict, images, targets, shown, output=output)
    unperturbed, perturbed = evaluate_order(batch, place, spans)
    # What already shows the fill changes nothing, though rounding differs between the rows of a batch.
    drop = torch.where(differs(batch).gather(1, pixel), unperturbed - perturbed, 0)
    return {"pixel": pixel, "drop": drop, "original": unperturbed[:, 0]}

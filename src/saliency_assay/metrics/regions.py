"""Perturbation of whole regions: squares of a grid (Samek et al., 2017) or superpixels (Rieger & Hansen, 2020)."""

import torch
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.methods.segments import pixel_counts, segment
from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.perturbation import Predict, Span, evaluate_order, perturbation_batch
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, is_rankable, nan_unless
from saliency_assay.registry.limits import Fill, PositiveInt, ScoredOutput
from saliency_assay.runtime.transfer import to_device


def region_perturbation(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    side: PositiveInt = 9,
    regions: PositiveInt = 100,
    fill: Fill = "random",
    output: ScoredOutput = "probability",
) -> Scored:
    """Compute AOPC = 1/(L + 1) Σ_{k=0..L} (f(x⁰) − f(x^k)) as regions of ``side`` × ``side`` pixels are filled.

    ``region_perturbation_morf`` fills the regions with the greatest mean relevance (the ``sum`` of a map) first, higher
    is better; ``region_perturbation_lerf`` those with the least, lower is better; up to L = ``regions`` or all of them.
    Regions at the right and bottom border may be smaller. The curves ``morf`` and ``lerf``, ``[N, L + 1]``, begin with
    the original image. NaN where a map is NaN or constant. Samek et al. (2017).

    Raises:
        ValueError: a fill without its ``mean``.
    """
    fill_pixels = fill_of(fill, images, mean=mean, seeds=sample_seeds(len(images), 1, generator))
    batch = perturbation_batch(predict, images, targets, fill_pixels, output=output)
    saliency = reduce(maps, "sum")
    labels = to_device(squares(batch.height, batch.width, side), images.device).expand_as(saliency)
    # The mean, because regions cut off at the border have smaller sums.
    ranks, ends = in_order(labels, _sums(saliency, labels) / pixel_counts(labels))
    steps = min(regions, ends.shape[1] - 1)
    first, pixels = torch.zeros_like(ends), batch.pixels.shape[1]
    spans = [
        Span(first[:, : steps + 1], ends[:, : steps + 1]),
        Span(ends.flip(1)[:, : steps + 1], torch.full_like(ends, pixels)[:, : steps + 1]),
    ]
    curves = dict(zip(("morf", "lerf"), evaluate_order(batch, ranks, spans), strict=True))
    curves = {name: nan_unless(is_rankable(saliency), curve) for name, curve in curves.items()}
    scores = {
        (f"region_perturbation_{name}", ""): (curve[:, :1] - curve).mean(1) for name, curve in curves.items()
    }
    return Scored(scores, curves)


def irof(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    segments: PositiveInt = 100,
    fill: Fill = "mean",
) -> Scored:
    """Compute the area over f(x^l) / f(x⁰) as superpixels are filled, the most relevant first; higher is better.

    f is the probability of the target, x^l the image without its l superpixels of greatest mean relevance (the ``sum``
    of a map), and the area is that over the share l / L of the image's L superpixels, by the trapezoid rule: at most 1,
    and negative if the output increases. There are about ``segments`` superpixels (SLIC). NaN where a map is NaN or
    constant, or f(x⁰) is too small for the ratio to be finite. Rieger & Hansen (2020).

    Raises:
        ValueError: an invalid number of segments, images that are neither RGB nor gray, or a fill without
            its ``mean``.
    """
    fill_pixels = fill_of(fill, images, mean=mean, seeds=sample_seeds(len(images), 1, generator))
    batch = perturbation_batch(predict, images, targets, fill_pixels)
    saliency = reduce(maps, "sum")
    labels = segment(images, "superpixels", segments)
    sizes = pixel_counts(labels)
    # Numbers that an image does not use have no pixels and come last.
    means = torch.where(sizes > 0, _sums(saliency, labels) / sizes, -torch.inf)
    ranks, ends = in_order(labels, means)
    output = evaluate_order(batch, ranks, [Span(torch.zeros_like(ends), ends)])[0]
    count = (sizes > 0).sum(1, keepdim=True)
    share = torch.arange(ends.shape[1], device=ends.device).minimum(count).double() / count
    area = 1 - torch.trapezoid(output / output[:, :1], share)
    return Scored({("irof", ""): nan_unless(is_rankable(saliency) & area.isfinite(), area)})


def squares(height: int, width: int, side: int) -> Tensor:
    """Return the number of each pixel's square, in reading order from 0, int64 ``[H, W]``."""
    rows, columns = torch.arange(height) // side, torch.arange(width) // side
    return rows[:, None] * (int(columns[-1]) + 1) + columns


def in_order(labels: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Return pixel ranks in which whole regions follow each other, and the number of pixels up to each region's end.

    Args:
        labels: number of each pixel's region, int64 ``[N, H, W]``.
        values: value of each region, ``[N, M]``; the greatest comes first, equal ones in the order of their numbers.

    Returns:
        Ranks, int64 ``[N, H·W]``, in reading order within a region; and int64 ``[N, M + 1]``, which begins with 0.
    """
    order = values.argsort(dim=1, descending=True, stable=True)
    places = torch.empty_like(order).scatter_(
        1, order, torch.arange(order.shape[1], device=order.device).expand_as(order)
    )
    pixel_order = places.gather(1, labels.flatten(1)).argsort(dim=1, stable=True)
    numbers = torch.arange(pixel_order.shape[1], device=order.device).expand_as(pixel_order)
    ranks = torch.empty_like(pixel_order).scatter_(1, pixel_order, numbers)
    ends = pixel_counts(labels).gather(1, order).cumsum(1)
    return ranks, torch.nn.functional.pad(ends, (1, 0))


def _sums(saliency: Tensor, labels: Tensor) -> Tensor:
    """Return the sum of maps ``[N, H, W]`` over each region, float64 ``[N, M]``."""
    values = saliency.flatten(1).double()
    return values.new_zeros(len(values), int(labels.max()) + 1).scatter_add(1, labels.flatten(1), values)

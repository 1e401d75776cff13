"""Completeness error: difference between a map's sum and the change of the output (Sundararajan et al., 2017)."""

import torch
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.perturbation import Predict, perturbation_batch
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored
from saliency_assay.metrics.subsets import drops
from saliency_assay.registry.limits import Fill, ScoredOutput


def completeness(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    fill: Fill = "black",
    output: ScoredOutput = "logit",
) -> Scored:
    """Compute |Σ_i R_i − (f(x) − f(x′))|, x′ the image with all pixels filled; lower is better, 0 is complete.

    R is the ``sum`` of maps ``[N, C or 1, H, W]``. The unit is that of ``output``. NaN where a map is NaN. Completeness
    is an axiom of Sundararajan et al. (2017).

    Raises:
        ValueError: a fill without its ``mean``.
    """
    fill_pixels = fill_of(fill, images, mean=mean, seeds=sample_seeds(len(images), 1, generator))
    batch = perturbation_batch(predict, images, targets, fill_pixels, output=output)
    saliency = reduce(maps, "sum")
    all_pixels = torch.ones(1, batch.pixels.shape[1], dtype=torch.bool, device=images.device)
    change = drops(batch, iter([all_pixels]))[:, 0]
    return Scored({("completeness", ""): (saliency.flatten(1).double().sum(1) - change).abs()})

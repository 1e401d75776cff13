"""Local Lipschitz estimate: change of a map per change of the image (Alvarez-Melis & Jaakkola, 2018)."""

from collections.abc import Callable
from typing import Annotated

import torch
from torch import Tensor

from saliency_assay.metrics.perturbation import Predict
from saliency_assay.metrics.scored import Scored
from saliency_assay.metrics.sensitivity_max import changes, norms
from saliency_assay.registry.limits import Limits, PositiveInt


def local_lipschitz(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    explain: Callable[..., Tensor],
    radius: Annotated[float, Limits(minimum=1e-06)] = 0.1,
    samples: PositiveInt = 50,
) -> Scored:
    """Compute the local Lipschitz estimate, max over y of ‖Φ(y) − Φ(x)‖₂ / ‖y − x‖₂; at least 0, lower is better.

    ``samples`` neighbors y are sampled uniformly in the L∞ ball of ``radius`` around x, in units of pixels in [0, 1],
    and are not clipped. ``maps`` are Φ(x), ``explain(images, targets)`` returns Φ(y): raw maps ``[N, C or 1, H, W]``.
    The score has the unit of the map per pixel value, so methods with maps of different scales are comparable only if
    the maps are normalized. NaN where a map is not finite. Alvarez-Melis & Jaakkola (2018).

    Raises:
        ValueError: ``explain`` returns maps of another shape.
    """
    largest = maps.new_zeros(len(maps), dtype=torch.float64)
    for neighbors, change in changes(images, targets, maps, generator, explain, radius, samples):
        largest = largest.maximum(change / norms(neighbors.double() - images.double()))  # propagates NaN
    return Scored({("local_lipschitz", ""): torch.where(largest.isfinite(), largest, torch.nan)})

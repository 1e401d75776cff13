"""Max-sensitivity: how far a map moves under a small change of the image (Yeh et al., 2019, definition 3.1)."""

from collections.abc import Callable

import torch
from torch import Tensor

from saliency_assay.methods.passes import reported
from saliency_assay.methods.sampling import sample_seeds, uniform
from saliency_assay.metrics.perturbation import Predict
from saliency_assay.metrics.scored import Scored


def sensitivity_max(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    explain: Callable[..., Tensor],
    radius: float = 0.1,
    samples: int = 50,
    relative: bool = True,
) -> Scored:
    """SENS_MAX = max over y of ‖Φ(y) − Φ(x)‖₂, divided by ‖Φ(x)‖₂ if ``relative``; lower is better, 0 is least.

    ``samples`` draws y are uniform in the L∞ ball of ``radius`` around x, in units of pixels, and may leave [0, 1].
    ``maps`` are Φ(x), ``explain(images, targets)`` gives Φ(y): raw maps ``[N, C or 1, H, W]``, all channels. NaN where
    a map is not finite, or is 0 throughout and the score ``relative``. Yeh et al. (2019), definition 3.1; the division
    is the released code's.

    Raises:
        ValueError: a parameter out of range, or ``explain`` returns maps of another shape.
    """
    if radius < 0 or samples < 1:
        raise ValueError(f"radius, samples: found {radius}, {samples}, expected at least 0 and 1")
    seeds = sample_seeds(len(images), samples, generator)
    largest = maps.new_zeros(len(maps), dtype=torch.float64)
    for draw in reported(samples, 1, "neighbours explained"):
        neighbours = images + radius * uniform(seeds[draw::samples], images)
        explained = explain(neighbours, targets)
        if explained.shape != maps.shape:
            raise ValueError(
                f"explain: returned {list(explained.shape)}, expected {list(maps.shape)} like the maps"
            )
        largest = largest.maximum(length(explained.double() - maps.double()))  # of a NaN and a number: NaN
    scores = largest / length(maps.double()) if relative else largest
    return Scored({("sensitivity_max", ""): torch.where(scores.isfinite(), scores, torch.nan)})


def length(maps: Tensor) -> Tensor:
    """‖Φ‖₂ of each of ``[N, C, H, W]``, ``[N]``."""
    norms: Tensor = torch.linalg.vector_norm(maps.flatten(1), dim=1)
    return norms

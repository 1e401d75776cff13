"""Max-sensitivity: largest change of a map under a small change of the image (Yeh et al., 2019, definition 3.1)."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from saliency_assay.methods.passes import reported
from saliency_assay.methods.sampling import sample_seeds, uniform
from saliency_assay.metrics.perturbation import Predict
from saliency_assay.metrics.scored import Scored, check_explained
from saliency_assay.registry.limits import NonNegativeFloat, PositiveInt


def sensitivity_max(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    explain: Callable[..., Tensor],
    radius: NonNegativeFloat = 0.1,
    samples: PositiveInt = 50,
    relative: bool = True,
) -> Scored:
    """Compute SENS_MAX = max over y of ‖Φ(y) − Φ(x)‖₂, divided by ‖Φ(x)‖₂ if ``relative``; at least 0, lower is better.

    ``samples`` neighbors y are sampled uniformly in the L∞ ball of ``radius`` around x, in units of pixels in [0, 1],
    and are not clipped. ``maps`` are Φ(x), ``explain(images, targets)`` returns Φ(y): raw maps ``[N, C or 1, H, W]``.
    NaN where a map is not finite, and for the ``relative`` score also where it is 0 everywhere. Yeh et al. (2019),
    definition 3.1; the division is that of the released code.

    Raises:
        ValueError: ``explain`` returns maps of another shape.
    """
    largest = maps.new_zeros(len(maps), dtype=torch.float64)
    for _, change in changes(images, targets, maps, generator, explain, radius, samples):
        largest = largest.maximum(change)  # maximum propagates NaN
    scores = largest / norms(maps.double()) if relative else largest
    return Scored({("sensitivity_max", ""): torch.where(scores.isfinite(), scores, torch.nan)})


def changes(
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    generator: torch.Generator,
    explain: Callable[..., Tensor],
    radius: float,
    samples: int,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield ``samples`` times a neighbor y of every image x, uniform in the L∞ ball, and ‖Φ(y) − Φ(x)‖₂, ``[N]``.

    Raises:
        ValueError: ``explain`` returns maps of another shape.
    """
    seeds = sample_seeds(len(images), samples, generator)
    for sample in reported(samples, 1, "neighbors explained"):
        # Seeds are ordered by image, so this is one neighbor of every image.
        neighbors = images + radius * uniform(seeds[sample::samples], images)
        explained = check_explained(explain(neighbors, targets), maps)
        yield neighbors, norms(explained.double() - maps.double())


def norms(maps: Tensor) -> Tensor:
    """Return ‖Φ‖₂ of each of ``[N, C, H, W]``, ``[N]``."""
    by_image: Tensor = torch.linalg.vector_norm(maps.flatten(1), dim=1)
    return by_image

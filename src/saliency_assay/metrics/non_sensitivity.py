"""Non-sensitivity: is relevance zero at exactly the pixels without effect? (Nguyen & Martínez, 2020)."""

from collections.abc import Mapping

import torch
from torch import Tensor

from saliency_assay.metrics.perturbation import Predict
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, nan_unless
from saliency_assay.registry.limits import Share


def non_sensitivity(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    responses: Mapping[str, Tensor],
    threshold: Share = 1e-5,
) -> Scored:
    """Compute the share of pixels that have either no relevance or no effect, but not both; lower is better.

    ``responses`` are those of ``faithfulness.single_pixels``, whose pixels are scored. A pixel has no relevance if the
    ``abs_sum`` of maps ``[N, C or 1, H, W]`` is at most ``threshold`` times its maximum, and no effect if the output
    changes by at most ``threshold``. NaN where a map is NaN. Nguyen & Martínez (2020), |A₀ Δ X₀| as a share.

    Raises:
        ValueError: ``responses`` is of another number of images.
    """
    pixel, drop = responses["pixel"], responses["drop"]
    if len(pixel) != len(maps):
        raise ValueError(f"responses: found {len(pixel)} images, expected {len(maps)}, as many as maps")
    relevance = reduce(maps, "abs_sum").flatten(1).double()
    largest = relevance.amax(1, keepdim=True)
    no_relevance = relevance.gather(1, pixel) <= threshold * largest
    no_effect = drop.abs() <= threshold
    share = (no_relevance ^ no_effect).double().mean(1)
    return Scored({("non_sensitivity", ""): nan_unless(largest[:, 0].isfinite(), share)})

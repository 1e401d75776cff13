"""Concentration of a map on few pixels: its Gini index, its entropy, and the number of pixels above a threshold."""

import torch
from torch import Tensor

from saliency_assay.metrics.perturbation import Predict
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, nan_unless
from saliency_assay.registry.limits import Share


def sparseness(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
) -> Scored:
    """Compute the Gini index of the ``abs_sum`` of maps ``[N, C or 1, H, W]``, in [0, 1); higher is better.

    G = Σ_k (2k − P − 1) a_(k) / (P Σ_k a_(k)), with a_(k) the k-th smallest of P pixels: 0 if all pixels are equal,
    1 − 1/P if only one differs from 0. NaN where a map is NaN or 0 everywhere. Chalasani et al. (2020).
    """
    values = reduce(maps, "abs_sum").flatten(1).double().sort(dim=1).values
    pixels = values.shape[1]
    weights = 2 * torch.arange(1, pixels + 1, device=values.device) - pixels - 1
    return Scored({("sparseness", ""): (weights * values).sum(1) / (pixels * values.sum(1))})


def complexity(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
) -> Scored:
    """Compute the entropy of the ``abs_sum`` of maps ``[N, C or 1, H, W]`` in nats; lower is better.

    −Σ_i p_i ln p_i with p_i the share of pixel i in the map's sum: 0 if only one pixel differs from 0, ln P for P equal
    pixels. NaN where a map is NaN or 0 everywhere. Bhatt et al. (2020).
    """
    values = reduce(maps, "abs_sum").flatten(1).double()
    shares = values / values.sum(1, keepdim=True)
    return Scored({("complexity", ""): torch.special.entr(shares).sum(1)})


def effective_complexity(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    threshold: Share = 1e-5,
) -> Scored:
    """Count the pixels whose ``abs_sum`` of maps ``[N, C or 1, H, W]`` exceeds a share of its maximum; lower is better.

    The share is ``threshold``. NaN where a map is NaN or 0 everywhere. Nguyen & Martínez (2020), as approximated by
    Hedström et al. (2023).
    """
    values = reduce(maps, "abs_sum").flatten(1).double()
    largest = values.amax(1, keepdim=True)
    count = (values > threshold * largest).sum(1).double()
    return Scored({("effective_complexity", ""): nan_unless(largest[:, 0] > 0, count)})

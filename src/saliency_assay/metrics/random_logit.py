"""Random logit: similarity of the maps of two classes (Sixt et al., 2020)."""

from collections.abc import Callable

import torch
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.perturbation import Predict
from saliency_assay.metrics.randomization import MEASURES, likeness
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored
from saliency_assay.runtime.transfer import to_device


def random_logit(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    explain: Callable[..., Tensor],
) -> Scored:
    """Compute SSIM of maps ``[N, C or 1, H, W]`` and maps of another class, sampled uniformly; 0 is best.

    The ``sum`` of maps is compared as in ``randomization``. NaN where a map is NaN or constant, and for images with a
    side below 3 pixels. Sixt et al. (2020).

    Raises:
        ValueError: the model has a single class.
    """
    with torch.no_grad():
        classes = predict(images[:1]).shape[1]
    if classes < 2:
        raise ValueError(f"predict: found {classes} class, expected at least 2, to explain another one")
    seeds = to_device(torch.tensor(sample_seeds(len(images), 1, generator)), targets.device)
    other_targets = (targets + 1 + seeds % (classes - 1)) % classes
    other_maps = explain(images, other_targets).detach()
    similarity = likeness(reduce(maps, "sum"), reduce(other_maps, "sum"))
    return Scored({("random_logit", ""): similarity[:, MEASURES.index("ssim")]})

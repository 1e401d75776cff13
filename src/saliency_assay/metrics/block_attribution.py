"""Share of a map's absolute attribution in a block of the image (Yeh et al., 2019, section 5)."""

import torch
from torch import Tensor

from saliency_assay.metrics.perturbation import Predict
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, nan_unless


def block_attribution(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    mask: Tensor,
) -> Scored:
    """Return the share of absolute attribution on the block: Σ_mask s / Σ s of the ``abs_sum`` s of a map, in [0, 1].

    ``mask`` is bool ``[N, H, W]``, True on the block; in ``caption`` sets the block is the caption's half. NaN where
    the map is 0 everywhere or has a value that is not finite, or the mask is empty. A numerical version of the human
    evaluation of Yeh et al. (2019), in which people name the block that a map points at.

    Raises:
        ValueError: the mask does not fit the maps.
    """
    saliency = reduce(maps, "abs_sum").double()
    if mask.shape != saliency.shape or mask.dtype != torch.bool:
        actual = f"{mask.dtype} {list(mask.shape)}"
        raise ValueError(f"mask: found {actual}, expected torch.bool {list(saliency.shape)} like the maps")
    flat, inside = saliency.flatten(1), mask.flatten(1)
    share = (flat * inside).sum(1) / flat.sum(1)  # 0 / 0 is NaN
    return Scored({("block_attribution", ""): nan_unless(inside.any(1), share)})

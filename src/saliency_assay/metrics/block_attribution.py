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

    ``mask`` is bool ``[N, H, W]``, True on the block: of ``caption`` sets, the caption's half. The other half has the
    rest. NaN where the map is 0 throughout or has a value that is not finite, or the mask is empty. What the human
    evaluation of Yeh et al. (2019) asks of people, as a number: which block does the map point at?

    Raises:
        ValueError: a mask that does not fit the maps.
    """
    saliency = reduce(maps, "abs_sum").double()
    if mask.shape != saliency.shape or mask.dtype != torch.bool:
        found = f"{mask.dtype} {list(mask.shape)}"
        raise ValueError(f"mask: found {found}, expected torch.bool {list(saliency.shape)} like the maps")
    flat, inside = saliency.flatten(1), mask.flatten(1)
    share = (flat * inside).sum(1) / flat.sum(1)  # 0 / 0 is NaN
    return Scored({("block_attribution", ""): nan_unless(inside.any(1), share)})

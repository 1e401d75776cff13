"""The fill ``linear``: occluded pixels are interpolated as in ROAD (Rong et al., 2022)."""

import torch
from torch import Tensor

from saliency_assay.methods.sampling import standard_normal
from saliency_assay.metrics.interpolation import impute

NOISE = 0.01
"""Standard deviation of the noise on interpolated pixels, for pixels in [0, 1], as in ``metrics.road``."""
BLOCK_BYTES = 1 << 20
"""Bytes of images that are interpolated at a time, because float64 needs several times as many."""


def interpolate(images: Tensor, occluded: Tensor, rows: list[int]) -> Tensor:
    """Interpolate the pixels ``occluded``, bool ``[N, H, W]``, of uint8 images ``[N, C, H, W]``, as ROAD does.

    The noise of an image depends only on its index in the data set, its element of ``rows``, and not on its masks.

    Raises:
        ValueError: an image in which all pixels are occluded.
    """
    if covered := torch.nonzero(occluded.flatten(1).all(1)).flatten().tolist():
        raise ValueError(
            f"fills: 'linear' interpolates from pixels that no mask occludes, and image {rows[covered[0]]} has none; "
            "expected smaller masks (occluded, transform)"
        )
    filled = torch.empty_like(images)
    size = max(1, BLOCK_BYTES // max(1, images[:1].numel()))
    for start in range(0, len(images), size):
        block = slice(start, start + size)
        pixels = images[block].cpu().double() / 255
        imputed = impute(pixels, occluded[block].cpu()) + NOISE * standard_normal(rows[block], pixels)
        filled[block] = (imputed * 255).round().clamp(0, 255).to(torch.uint8)
    return torch.where(occluded[:, None], filled, images)

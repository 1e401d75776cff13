"""Blur integrated gradients: gradients on the path from a blurred image to the image."""

from typing import Annotated

import torch
from torch import Tensor, nn

from saliency_assay.methods.differentiate import check_inputs, input_gradient
from saliency_assay.methods.passes import reported
from saliency_assay.registry.limits import Limits
from saliency_assay.runtime.transfer import to_device

TRUNCATE = 4.0  # standard deviations after which the Gaussian is cut off


def blur_ig(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    steps: Annotated[int, Limits(minimum=2)] = 100,
    max_sigma: Annotated[float, Limits(minimum=0.01, maximum=1)] = 0.22,
) -> Tensor:
    """Compute ∫ ∂f_t(L_σ) / ∂L_σ ⊙ ∂L_σ / ∂σ dσ from the largest σ to 0, ``[N, C, H, W]``, signed.

    L_σ is the image blurred by a Gaussian of standard deviation σ, with black around the image. The largest σ is
    ``max_sigma`` of the image's longer side, by default about the 50 pixels of the released code for 224. The integral
    is approximated by the trapezoid rule, Σ_k ½ (g_k + g_{k+1}) ⊙ (L_k − L_{k+1}), with g_k the gradient at L_k and
    ``steps`` equidistant σ from 0, one pass each. A map sums to f_t(x) minus f_t of the most blurred image, up to the
    quadrature error. Xu et al. (2020).
    """
    check_inputs(images, targets)
    height, width = images.shape[2:]
    largest = max_sigma * max(height, width)
    pixels = images.detach().contiguous()
    total = torch.zeros_like(images)
    sharper, sharper_slopes = images.detach(), input_gradient(model, images, targets)
    for step in reported(steps - 1, 1, f"passes of {len(images)} images"):
        sigma = largest * (step + 1) / (steps - 1)
        down, across = (
            to_device(blur_matrix(side, sigma), images.device, images.dtype) for side in (height, width)
        )
        # Copied into the memory format of the images (channels_last or not), which the model is fast with.
        blurred = torch.empty_like(images).copy_(down @ pixels @ across)
        slopes = input_gradient(model, blurred, targets)
        total += (slopes + sharper_slopes) / 2 * (sharper - blurred)
        sharper, sharper_slopes = blurred, slopes
    return total


def blur_matrix(side: int, sigma: float) -> Tensor:
    """Return the symmetric matrix that blurs ``side`` pixels by ``sigma`` pixels, float64 ``[side, side]``.

    The Gaussian is sampled at whole pixels, cut off at 4 σ and normalized; pixels outside are 0.
    """
    radius = int(TRUNCATE * sigma + 0.5)
    kernel = _gaussian(torch.arange(-radius, radius + 1), sigma)
    pixels = torch.arange(side)
    distance = (pixels[:, None] - pixels).abs()
    return torch.where(distance <= radius, _gaussian(distance, sigma), 0) / kernel.sum()


def _gaussian(distance: Tensor, sigma: float) -> Tensor:
    return (-0.5 * (distance.double() / sigma).square()).exp()

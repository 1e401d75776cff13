"""Gradient of the target's logit, sensitivity, and gradient × input."""

import torch
from torch import Tensor, nn

from saliency_assay.methods.baselines import baseline as baseline_color
from saliency_assay.methods.differentiate import input_gradient
from saliency_assay.registry.limits import Baseline


def gradient(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
    """Compute ∂f_t(x) / ∂x, the gradient of the target's logit, ``[N, C, H, W]``, signed (Simonyan et al., 2013)."""
    return input_gradient(model, images, targets)


def sensitivity(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
    """Compute max_c |∂f_t(x) / ∂x_c|, the largest absolute gradient over the channels, ``[N, 1, H, W]``, ≥ 0.

    The class saliency map of Simonyan et al. (2013), section 3.1; "sensitivity" in Tomsett et al. (2020).
    """
    return input_gradient(model, images, targets).abs().amax(1, keepdim=True)


def gradient_x_input(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    baseline: Baseline = "black",
) -> Tensor:
    """Compute (x − x′) ⊙ ∂f_t(x) / ∂x, x′ the baseline, ``[N, C, H, W]``, signed (Shrikumar et al., 2016).

    With x′ black, a map of a ReLU network without biases and without input normalization sums to the logit.

    Raises:
        ValueError: as ``baselines.baseline``.
    """
    slopes = input_gradient(model, images, targets)
    return (images.detach() - baseline_color(model, images, baseline)) * slopes

"""The gradient of the target's logit, and what is read off it directly."""

import torch
from torch import Tensor, nn

from saliency_assay.methods.baselines import baseline as colour
from saliency_assay.methods.differentiate import input_gradient


def gradient(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
    """∂f_t(x) / ∂x: the gradient of the target's logit, ``[N, C, H, W]``, signed (Simonyan et al., 2013)."""
    return input_gradient(model, images, targets)


def sensitivity(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
    """max_c |∂f_t(x) / ∂x_c|: the largest slope over the channels, ``[N, 1, H, W]``, ≥ 0.

    The class saliency map of Simonyan et al. (2013), section 3.1; "sensitivity" in Tomsett et al. (2020).
    """
    return input_gradient(model, images, targets).abs().amax(1, keepdim=True)


def gradient_x_input(
    model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator, baseline: str = "black"
) -> Tensor:
    """(x − x′) ⊙ ∂f_t(x) / ∂x, x′ the baseline, ``[N, C, H, W]``, signed (Shrikumar et al., 2016).

    With x′ black, on a ReLU network without biases behind no normalisation, it sums to the logit.

    Raises:
        ValueError: as ``baselines.baseline``.
    """
    slopes = input_gradient(model, images, targets)
    return (images.detach() - colour(model, images, baseline)) * slopes

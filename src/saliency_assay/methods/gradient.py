"""Vanilla gradient, and gradient ⊙ input."""

import torch
from torch import Tensor, nn

from saliency_assay.methods.differentiate import input_gradient


def gradient(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
    """∂f_t(x) / ∂x: the gradient of the target's logit, ``[N, C, H, W]``, signed (Simonyan et al., 2013)."""
    return input_gradient(model, images, targets)


def gradient_x_input(
    model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator
) -> Tensor:
    """x ⊙ ∂f_t(x) / ∂x, ``[N, C, H, W]``, signed (Shrikumar et al., 2016; Ancona et al., 2018).

    On a ReLU network without biases it sums to the logit.
    """
    return images * input_gradient(model, images, targets)

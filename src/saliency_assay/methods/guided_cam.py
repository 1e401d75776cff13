"""Guided GradCAM."""

import torch
from torch import Tensor, nn

from saliency_assay.methods.backprop import guided_backprop
from saliency_assay.methods.cam import gradcam


def guided_gradcam(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    upsampling: str = "bilinear",
) -> Tensor:
    """Guided backpropagation ⊙ GradCAM (with its ReLU), ``[N, C, H, W]``, signed (Selvaraju et al., 2017)."""
    guided = guided_backprop(model, images, targets, generator=generator)
    return guided * gradcam(model, images, targets, generator=generator, upsampling=upsampling)

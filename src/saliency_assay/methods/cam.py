"""GradCAM: the last block's activations, weighted by their gradients."""

import torch
from captum.attr import LayerGradCam
from torch import Tensor, nn
from torch.nn.functional import interpolate

from saliency_assay.methods.differentiate import check_inputs
from saliency_assay.models.classifier import Classifier

UPSAMPLINGS = ("bilinear", "bicubic", "nearest")


def gradcam(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    relu: bool = True,
    upsampling: str = "bilinear",
) -> Tensor:
    """max(Σ_k ᾱ_k A_k, 0) with ᾱ_k the mean of ∂f_t / ∂A_k over space, upsampled to ``[N, 1, H, W]``.

    A is the output of the classifier's ``cam_layer``. Selvaraju et al. (2017), equations 1 and 2; without ``relu``
    the sum itself, signed.

    Raises:
        ValueError: a model that is no ``Classifier``, a layer that gives no feature maps, or a bad parameter.
    """
    check_inputs(images, targets)
    if upsampling not in UPSAMPLINGS:
        raise ValueError(f"upsampling: found {upsampling!r}, valid: {', '.join(UPSAMPLINGS)}")
    if not isinstance(model, Classifier):
        raise ValueError(
            f"model: found {type(model).__name__}, expected a Classifier, which names its cam_layer"
        )
    layer = model.layer(model.cam_layer)
    cam = LayerGradCam(model, layer).attribute(images, targets, relu_attributions=relu).detach()
    if cam.ndim != 4:
        raise ValueError(f"cam_layer: {model.cam_layer!r} gives no feature maps [N, K, h, w]")
    return interpolate(cam, size=images.shape[2:], mode=upsampling)

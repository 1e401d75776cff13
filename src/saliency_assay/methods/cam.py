"""CAM and Grad-CAM: the last block's activations, weighted by the head's weights or gradients."""

import torch
from captum.attr import LayerGradCam
from torch import Tensor, nn
from torch.nn.functional import interpolate, linear

from saliency_assay.methods.differentiate import check_inputs
from saliency_assay.models.classifier import Classifier

UPSAMPLINGS = ("bilinear", "bicubic", "nearest")


def cam(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    relu: bool = False,
    upsampling: str = "bilinear",
) -> Tensor:
    """Compute Σ_k w_tk A_k, upsampled to ``[N, 1, H, W]``; with ``relu`` its positive part.

    A is the output of the classifier's ``cam_layer``, w the weights of the linear layer from A's spatial mean to the
    logits. Zhou et al. (2016), equation 2. Before upsampling, the mean of a map is f_t minus the layer's bias.

    Raises:
        ValueError: as ``gradcam``, or logits that are not one linear layer over the spatial mean of A.
    """
    classifier = _classifier(model, images, targets, upsampling)
    activations, logits = _activations(classifier, images)
    # Found by its values rather than its name: equation 2 only applies if the logits are this layer of the mean of A.
    head = next(
        (head for head in _heads(classifier, activations) if _is_head(head, activations, logits)), None
    )
    if head is None:
        raise ValueError(
            f"cam: the head of {type(classifier.network).__name__} is not average pooling and one linear layer "
            f"over cam_layer {classifier.cam_layer!r}; expected that, or use gradcam"
        )
    maps = torch.einsum("nk,nkhw->nhw", head.weight.detach()[targets], activations)[:, None]
    return _upsampled(maps, images, upsampling, relu=relu)


def gradcam(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    relu: bool = True,
    upsampling: str = "bilinear",
) -> Tensor:
    """Compute max(Σ_k ᾱ_k A_k, 0) with ᾱ_k the spatial mean of ∂f_t / ∂A_k, upsampled to ``[N, 1, H, W]``.

    A is the output of the classifier's ``cam_layer``. Selvaraju et al. (2017), equations 1 and 2; without ``relu``
    the signed sum.

    Raises:
        ValueError: the model is not a ``Classifier``, the layer returns no feature maps, or a parameter is invalid.
    """
    classifier = _classifier(model, images, targets, upsampling)
    layer = classifier.layer(classifier.cam_layer)
    maps = LayerGradCam(classifier, layer).attribute(images, targets, relu_attributions=relu).detach()
    _check_feature_maps(classifier, maps)
    return _upsampled(maps, images, upsampling, relu=relu)


def _classifier(model: nn.Module, images: Tensor, targets: Tensor, upsampling: str) -> Classifier:
    """Check the arguments common to both methods, and return the model as a ``Classifier``, which has a CAM layer."""
    check_inputs(images, targets)
    if upsampling not in UPSAMPLINGS:
        raise ValueError(f"upsampling: found {upsampling!r}, valid: {', '.join(UPSAMPLINGS)}")
    if not isinstance(model, Classifier):
        raise ValueError(f"model: found {type(model).__name__}, expected a Classifier, which has a cam_layer")
    return model


def _check_feature_maps(classifier: Classifier, output: object) -> None:
    if not isinstance(output, Tensor) or output.ndim != 4:
        raise ValueError(f"cam_layer: {classifier.cam_layer!r} returns no feature maps [N, K, h, w]")


def _upsampled(maps: Tensor, images: Tensor, upsampling: str, *, relu: bool) -> Tensor:
    """Resize maps to the images; ``relu`` clamps at 0 before and also after, since cubic interpolation overshoots."""
    if not relu:
        return interpolate(maps, size=images.shape[2:], mode=upsampling)
    return interpolate(maps.clamp(min=0), size=images.shape[2:], mode=upsampling).clamp(min=0)


def _activations(classifier: Classifier, images: Tensor) -> tuple[Tensor, Tensor]:
    """Return the CAM layer's output ``[N, K, h, w]`` and the logits ``[N, classes]`` of one forward pass."""
    outputs: list[object] = []

    def keep(layer: nn.Module, inputs: object, output: object) -> None:
        # A copy, since an in-place ReLU after the layer would overwrite its output.
        outputs.append(output.detach().clone() if isinstance(output, Tensor) else output)

    handle = classifier.layer(classifier.cam_layer).register_forward_hook(keep)
    try:
        with torch.no_grad():
            logits: Tensor = classifier(images)
    finally:
        handle.remove()
    output = outputs[-1] if outputs else None  # the last call, if the layer is called several times
    _check_feature_maps(classifier, output)
    assert isinstance(output, Tensor)
    return output, logits


def _heads(classifier: Classifier, activations: Tensor) -> list[nn.Linear]:
    """Return the linear layers whose shape maps the activations' channels to the logits, the last layer first."""
    expected = (classifier.classes, activations.shape[1])
    layers = [module for module in classifier.network.modules() if isinstance(module, nn.Linear)]
    return [layer for layer in reversed(layers) if layer.weight.shape == expected]


def _is_head(head: nn.Linear, activations: Tensor, logits: Tensor) -> bool:
    """Return True if the logits are ``head`` of the activations' spatial mean, up to rounding."""
    pooled = activations.mean((2, 3))
    weight, bias = head.weight.detach(), None if head.bias is None else head.bias.detach()
    difference = (linear(pooled, weight, bias) - logits).abs()
    # Rounding error grows with the terms, which may be far larger than their sum.
    scale = linear(pooled.abs(), weight.abs(), None if bias is None else bias.abs())
    tolerance = torch.finfo(logits.dtype).eps ** 0.5
    # Written so that NaN counts as equal: the runner reports NaN in the map, which is clearer than "no such head".
    return not bool((difference > tolerance * scale).any())

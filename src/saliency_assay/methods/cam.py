"""Class activation maps: sums of a layer's channels, weighted by the head, gradients, logits or an SVD."""

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, linear

from saliency_assay.methods.baselines import baseline as baseline_color
from saliency_assay.methods.differentiate import target_logits
from saliency_assay.methods.feature_maps import (
    activations_and_gradients,
    activations_and_logits,
    classifier_of,
    rescaled,
    upsampled,
)
from saliency_assay.methods.passes import passes_of
from saliency_assay.models.classifier import Classifier, kind_of
from saliency_assay.registry.limits import Baseline, Upsampling


def cam(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    relu: bool = False,
    upsampling: Upsampling = "bilinear",
    layer: str = "",
) -> Tensor:
    """Compute Σ_k w_tk A_k, upsampled to ``[N, 1, H, W]``; with ``relu`` its positive part.

    A is the output of ``layer``, by default the classifier's ``cam_layer``, w the weights of the linear layer from A's
    spatial mean to the logits. Zhou et al. (2016), equation 2. Before upsampling, the mean of a map is f_t minus the
    linear layer's bias.

    Raises:
        ValueError: as ``gradcam``, or logits that are not one linear layer over the spatial mean of A.
    """
    classifier = classifier_of(model, images, targets, layer)
    activations, logits = activations_and_logits(classifier, images)
    # Found by its values rather than its name: equation 2 only applies if the logits are this layer of the mean of A.
    heads = [head for head in _heads(classifier, activations) if _is_head(*head, activations, logits)]
    if not heads:
        raise ValueError(
            f"cam: the head of {kind_of(classifier.network)} is not average pooling and one linear layer "
            f"over cam_layer {classifier.cam_layer!r}; expected that, or use gradcam"
        )
    weight, _ = heads[0]
    maps = torch.einsum("nk,nkhw->nhw", weight[targets], activations)[:, None]
    return upsampled(maps, images, upsampling, relu=relu)


def gradcam(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    relu: bool = True,
    upsampling: Upsampling = "bilinear",
    layer: str = "",
) -> Tensor:
    """Compute max(Σ_k ᾱ_k A_k, 0) with ᾱ_k the spatial mean of ∂f_t / ∂A_k, upsampled to ``[N, 1, H, W]``.

    A is the output of ``layer``, by default the classifier's ``cam_layer``: feature maps, or tokens as in
    ``feature_maps``. Selvaraju et al. (2017), equations 1 and 2; without ``relu`` the signed sum.

    Raises:
        ValueError: the model is not a ``Classifier``, the layer returns neither feature maps nor tokens on a grid, the
            logits do not depend on its output or only on its class token, or a parameter is invalid.
    """
    classifier = classifier_of(model, images, targets, layer)
    activations, gradients = activations_and_gradients(classifier, images, targets)
    maps = (gradients.mean((2, 3), keepdim=True) * activations).sum(1, keepdim=True)
    return upsampled(maps, images, upsampling, relu=relu)


def gradcam_plus_plus(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    relu: bool = True,
    upsampling: Upsampling = "bilinear",
    layer: str = "",
) -> Tensor:
    """Compute max(Σ_k w_k A_k, 0) with w_k = Σ_ij α_kij max(g_kij, 0) and g = ∂f_t / ∂A, as ``[N, 1, H, W]``.

    α_kij = g_kij² / (2 g_kij² + g_kij³ Σ_ab A_kab), and 0 where the denominator is 0; A as in ``gradcam``. Chattopadhay
    et al. (2018); without ``relu`` the signed sum. The class score of the paper is exp f_t, ours f_t. Where f_t is a
    piecewise linear function of A, the n-th derivative of exp f_t is gⁿ exp f_t, so that α is the same, and the paper's
    map is ours times exp f_t(x), one positive number for each image: only comparisons between images differ.

    Raises:
        ValueError: as ``gradcam``.
    """
    classifier = classifier_of(model, images, targets, layer)
    activations, gradients = activations_and_gradients(classifier, images, targets)
    # Only positive gradients count, and g² cancels: α g = g / (2 + g ΣA). An ε beside 2 g² + g³ ΣA would make α depend
    # on the scale of A, which g ΣA does not: with gradients of about 1e-4, as those of a large layer, it would be
    # 1e-8 / ε rather than about 1/2.
    positive = gradients.clamp(min=0)
    denominators = 2 + positive * activations.sum((2, 3), keepdim=True)
    weights = torch.where(denominators == 0, 0, positive / denominators).sum((2, 3), keepdim=True)
    return upsampled((weights * activations).sum(1, keepdim=True), images, upsampling, relu=relu)


def layercam(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    relu: bool = True,
    upsampling: Upsampling = "bilinear",
    layer: str = "",
) -> Tensor:
    """Compute max(Σ_k max(∂f_t / ∂A_k, 0) ⊙ A_k, 0), upsampled to ``[N, 1, H, W]``; A as in ``gradcam``.

    Each position has its own weight, so that maps of early layers are fine-grained, too. Jiang et al. (2021); without
    ``relu`` the signed sum, which differs only where A has negative values.

    Raises:
        ValueError: as ``gradcam``.
    """
    classifier = classifier_of(model, images, targets, layer)
    activations, gradients = activations_and_gradients(classifier, images, targets)
    maps = (gradients.clamp(min=0) * activations).sum(1, keepdim=True)
    return upsampled(maps, images, upsampling, relu=relu)


def hirescam(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    relu: bool = True,
    upsampling: Upsampling = "bilinear",
    layer: str = "",
) -> Tensor:
    """Compute max(Σ_k ∂f_t / ∂A_k ⊙ A_k, 0), upsampled to ``[N, 1, H, W]``; A as in ``gradcam``.

    Draelos & Carin (2020). The positive part is that of the sum, as in Grad-CAM and the authors' code; its terms have
    both signs. Without ``relu`` the signed sum, whose values before upsampling add up to f_t minus the bias if the
    network after the layer is one linear layer; of an earlier ``layer``, it is Gradient × Input of that layer.

    Raises:
        ValueError: as ``gradcam``.
    """
    classifier = classifier_of(model, images, targets, layer)
    activations, gradients = activations_and_gradients(classifier, images, targets)
    return upsampled((gradients * activations).sum(1, keepdim=True), images, upsampling, relu=relu)


def xgradcam(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    relu: bool = True,
    upsampling: Upsampling = "bilinear",
    layer: str = "",
) -> Tensor:
    """Compute max(Σ_k w_k A_k, 0) with w_k = Σ_ij A_kij g_kij / Σ_ij A_kij and g = ∂f_t / ∂A, as ``[N, 1, H, W]``.

    A as in ``gradcam``; a channel of zeros contributes 0. If another channel sums to 0, which takes values of both
    signs, its weight is undefined, and the map is not finite. Fu et al. (2020); without ``relu`` the signed sum, whose
    values before upsampling add up to the same total as those of ``hirescam``.

    Raises:
        ValueError: as ``gradcam``.
    """
    classifier = classifier_of(model, images, targets, layer)
    activations, gradients = activations_and_gradients(classifier, images, targets)
    weights = (activations * gradients).sum((2, 3), keepdim=True) / activations.sum((2, 3), keepdim=True)
    weights = torch.where(activations.any((2, 3), keepdim=True), weights, 0)
    return upsampled((weights * activations).sum(1, keepdim=True), images, upsampling, relu=relu)


def eigencam(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    relu: bool = True,
    upsampling: Upsampling = "bilinear",
    layer: str = "",
) -> Tensor:
    """Compute max(A v, 0) with v the first right singular vector of A ``[h w, K]``, upsampled to ``[N, 1, H, W]``.

    A as in ``gradcam``, with one row for each position, not centered. The map does not depend on the target. A singular
    value decomposition determines v up to its sign, which is chosen so that A v has a sum of at least 0. If A has no
    negative values, as after a ReLU, neither has A v. Muhammad & Yeasin (2020); without ``relu`` the signed A v, as in
    the paper. No gradients.

    Raises:
        ValueError: as ``scorecam``.
    """
    classifier = classifier_of(model, images, targets, layer)
    activations, _ = activations_and_logits(classifier, images)
    matrices = activations.flatten(2).mT
    # The decomposition raises an error for the whole batch if one value is not finite.
    is_finite = matrices.isfinite().all((1, 2), keepdim=True)
    left, values, _ = torch.linalg.svd(torch.where(is_finite, matrices, 0), full_matrices=False)
    projections = left[:, :, 0] * values[:, :1]
    signs = torch.where(projections.sum(1, keepdim=True) < 0, -1, 1)
    maps = torch.where(is_finite[:, 0], signs * projections, torch.nan)
    return upsampled(maps.reshape_as(activations[:, :1]), images, upsampling, relu=relu)


def scorecam(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    baseline: Baseline = "mean",
    relu: bool = True,
    upsampling: Upsampling = "bilinear",
    layer: str = "",
) -> Tensor:
    """Compute max(Σ_k w_k A_k, 0) with w the softmax over k of f_t(x ⊙ H_k + x′ ⊙ (1 − H_k)), as ``[N, 1, H, W]``.

    H_k is A_k, upsampled and then rescaled to [0, 1], 0 if A_k is constant; x′ is the baseline, A as in ``gradcam``.
    Wang et al. (2020), equations 7 to 9 and algorithm 1, where f_t(x′) is subtracted from each score, which the softmax
    cancels; without ``relu`` the signed sum. No gradients; one pass for A and one for each channel.

    Raises:
        ValueError: the model is not a ``Classifier``, the layer returns neither feature maps nor tokens on a grid, or a
            parameter is invalid.
    """
    classifier = classifier_of(model, images, targets, layer)
    color, images = baseline_color(classifier, images, baseline), images.detach()
    activations, _ = activations_and_logits(classifier, images)
    count, channels = activations.shape[:2]
    scores, span = images.new_empty(count, channels), images - color
    # The batch as the channels of one image, which PyTorch resizes up to four times as fast.
    batches = activations.transpose(0, 1).contiguous()
    for channel in passes_of(images, channels):
        maps = interpolate(batches[channel : channel + 1], size=images.shape[2:], mode=upsampling)
        masks = rescaled(maps.transpose(0, 1), (2, 3))
        scores[:, channel] = target_logits(classifier, torch.addcmul(color, span, masks), targets)
    weights = scores.softmax(1)
    maps = torch.einsum("nk,nkhw->nhw", weights, activations)[:, None]
    return upsampled(maps, images, upsampling, relu=relu)


def _heads(classifier: Classifier, activations: Tensor) -> list[tuple[Tensor, Tensor | None]]:
    """Return weight and bias of the linear layers from the activations' channels to the logits, the last layer first.

    For a network with one output (``models.outputs.ToLogits``) they are those of its two logits.
    """
    pair = classifier.network.get_buffer("pair") if getattr(classifier.network, "is_binary", False) else None
    expected = (classifier.classes if pair is None else 1, activations.shape[1])
    layers = [module for module in classifier.network.modules() if isinstance(module, nn.Linear)]
    heads: list[tuple[Tensor, Tensor | None]] = [
        (layer.weight.detach(), None if layer.bias is None else layer.bias.detach())
        for layer in reversed(layers)
        if layer.weight.shape == expected
    ]
    if pair is None:
        return heads
    return [(pair @ weight, None if bias is None else pair[:, 0] * bias) for weight, bias in heads]


def _is_head(weight: Tensor, bias: Tensor | None, activations: Tensor, logits: Tensor) -> bool:
    """Return True if the logits are a linear layer of the activations' spatial mean, up to rounding."""
    if not weight.any():  # with any activations, such a head returns its bias
        return False
    pooled = activations.mean((2, 3))
    difference = (linear(pooled, weight, bias) - logits).abs()
    # Rounding error grows with the terms, which may be far larger than their sum.
    scale = linear(pooled.abs(), weight.abs(), None if bias is None else bias.abs())
    tolerance = torch.finfo(logits.dtype).eps ** 0.5
    # Written so that NaN counts as equal: the runner reports NaN in the map, which is clearer than "no such head".
    return not bool((difference > tolerance * scale).any())

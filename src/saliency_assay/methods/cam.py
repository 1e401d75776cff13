"""CAM and Grad-CAM: the last block's activations, weighted by the head's weights or gradients."""

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import torch
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

    A is the output of the classifier's ``cam_layer``: feature maps, or tokens as in ``_feature_maps``. Selvaraju et al.
    (2017), equations 1 and 2; without ``relu`` the signed sum.

    Raises:
        ValueError: the model is not a ``Classifier``, the layer returns neither feature maps nor tokens on a grid, the
            logits do not depend on its output or only on its class token, or a parameter is invalid.
    """
    classifier = _classifier(model, images, targets, upsampling)
    # With respect to the images, since the parameters are frozen.
    with torch.enable_grad(), _kept(classifier) as outputs:
        logits = classifier(images.detach().requires_grad_())
    output = _last(classifier, outputs)
    gradient = torch.autograd.grad(logits.gather(1, targets[:, None]).sum(), output, allow_unused=True)[0]
    if gradient is None:
        raise ValueError(f"cam_layer: the logits do not depend on the output of {classifier.cam_layer!r}")
    activations, gradients = (
        _feature_maps(classifier, values, images) for values in (output.detach(), gradient)
    )
    if output.ndim == 3 and not output.is_meta and gradient.any() and not gradients.any():
        raise ValueError(
            f"cam_layer: of the output of {classifier.cam_layer!r}, the logits depend only on tokens that are not in "
            f"the grid, such as the class token; expected a layer before the last attention"
        )
    maps = (gradients.mean((2, 3), keepdim=True) * activations).sum(1, keepdim=True)
    return _upsampled(maps, images, upsampling, relu=relu)


def cam_layers(classifier: Classifier, images: Tensor) -> list[str]:
    """Return the layers with feature maps or tokens on which the logits depend, in the order of a forward pass.

    These are the valid values of ``cam_layer``. Layers are left out if the logits depend only on tokens that are not in
    the grid, or if their output has another aspect ratio than the images.
    """
    outputs: dict[str, Tensor] = {}

    def keep(name: str, layer: nn.Module, inputs: object, output: object) -> None:
        if isinstance(output, Tensor) and output.requires_grad and _may_be_maps(output, images):
            outputs[name] = output

    layers = [(name, layer) for name, layer in classifier.network.named_modules() if name]
    handles = [layer.register_forward_hook(partial(keep, name)) for name, layer in layers]
    try:
        with torch.enable_grad():
            logits = classifier(images.detach().requires_grad_())
    finally:
        for handle in handles:
            handle.remove()
    gradients = torch.autograd.grad(logits[:, 0].sum(), list(outputs.values()), allow_unused=True)
    names = []
    for name, gradient in zip(outputs, gradients, strict=True):
        with suppress(ValueError):  # the output does not fit ``token_grid``
            if gradient is not None and _feature_maps(classifier, gradient, images).any():
                names.append(name)
    return names


def _may_be_maps(output: Tensor, images: Tensor) -> bool:
    """Return True for tokens ``[N, T, K]``, and for feature maps that have the images' aspect ratio."""
    height, width = images.shape[2:]
    sizes = (output.shape[2:], output.shape[1:3])  # with channels first or last
    return output.ndim == 3 or (
        output.ndim == 4 and any(rows * width == columns * height for rows, columns in sizes)
    )


def _classifier(model: nn.Module, images: Tensor, targets: Tensor, upsampling: str) -> Classifier:
    """Check the arguments common to both methods, and return the model as a ``Classifier``, which has a CAM layer."""
    check_inputs(images, targets)
    if upsampling not in UPSAMPLINGS:
        raise ValueError(f"upsampling: found {upsampling!r}, valid: {', '.join(UPSAMPLINGS)}")
    if not isinstance(model, Classifier):
        raise ValueError(f"model: found {type(model).__name__}, expected a Classifier, which has a cam_layer")
    return model


def _feature_maps(classifier: Classifier, output: Tensor, images: Tensor) -> Tensor:
    """Return the CAM layer's output as feature maps ``[N, K, h, w]``.

    Feature maps of the images' aspect ratio may have their channels last, ``[N, h, w, K]``. Of tokens ``[N, T, K]``,
    the last h · w are the grid, row by row: that of ``token_grid``, or the largest of the images' aspect ratio. The
    tokens before it, such as class and register tokens, are dropped.

    Raises:
        ValueError: the output has another shape, or fewer tokens than the grid.
    """
    name, shape, (height, width) = classifier.cam_layer, list(output.shape), images.shape[2:]
    if output.ndim == 4:
        rows, columns = output.shape[1:3]
        if classifier.token_grid and classifier.token_grid not in ((rows, columns), tuple(shape[2:])):
            found = " × ".join(map(str, classifier.token_grid))
            raise ValueError(
                f"token_grid: found {found} for {shape} of {name!r}, expected its height and width"
            )
        is_last = (
            classifier.token_grid == (rows, columns)
            if classifier.token_grid
            else rows * width == columns * height and shape[2] * width != shape[3] * height
        )
        return output.permute(0, 3, 1, 2) if is_last else output
    if output.ndim != 3:
        raise ValueError(
            f"cam_layer: {name!r} returns {shape}, expected feature maps [N, K, h, w] or tokens [N, T, K]"
        )
    tokens = shape[1]
    rows, columns = classifier.token_grid or _grid(tokens, height, width)
    if not 0 < rows * columns <= tokens:
        raise ValueError(
            f"token_grid: found {rows} × {columns} for {tokens} tokens of {name!r}, expected a grid that fits"
        )
    grid = output[:, tokens - rows * columns :].transpose(1, 2)
    return grid.reshape(*grid.shape[:2], rows, columns)


def _grid(tokens: int, height: int, width: int) -> tuple[int, int]:
    """Return rows and columns of the largest grid of at most ``tokens`` cells with the aspect ratio of the images."""
    divisor = math.gcd(height, width)
    rows, columns = height // divisor, width // divisor
    scale = math.isqrt(tokens // (rows * columns))
    return scale * rows, scale * columns


def _upsampled(maps: Tensor, images: Tensor, upsampling: str, *, relu: bool) -> Tensor:
    """Resize maps to the images; ``relu`` clamps at 0 before and also after, since cubic interpolation overshoots."""
    if not relu:
        return interpolate(maps, size=images.shape[2:], mode=upsampling)
    return interpolate(maps.clamp(min=0), size=images.shape[2:], mode=upsampling).clamp(min=0)


def _activations(classifier: Classifier, images: Tensor) -> tuple[Tensor, Tensor]:
    """Return the CAM layer's feature maps ``[N, K, h, w]`` and the logits ``[N, classes]`` of one forward pass."""
    with torch.no_grad(), _kept(classifier) as outputs:
        logits: Tensor = classifier(images)
    return _feature_maps(classifier, _last(classifier, outputs), images), logits


@contextmanager
def _kept(classifier: Classifier) -> Iterator[list[object]]:
    """Collect the outputs of the CAM layer."""
    outputs: list[object] = []

    def keep(layer: nn.Module, inputs: object, output: object) -> object:
        outputs.append(output)
        # The next layer gets a copy, since an in-place ReLU would overwrite the output.
        return output.clone() if isinstance(output, Tensor) else None

    handle = classifier.layer(classifier.cam_layer).register_forward_hook(keep)
    try:
        yield outputs
    finally:
        handle.remove()


def _last(classifier: Classifier, outputs: list[object]) -> Tensor:
    """Return the output of the CAM layer's last call."""
    output = outputs[-1] if outputs else None
    if isinstance(output, tuple) and output:
        output = output[0]  # the tokens of a Hugging Face layer
    if not isinstance(output, Tensor):
        raise ValueError(
            f"cam_layer: {classifier.cam_layer!r} returns no feature maps [N, K, h, w] and no tokens [N, T, K]"
        )
    return output


def _heads(classifier: Classifier, activations: Tensor) -> list[nn.Linear]:
    """Return the linear layers whose shape maps the activations' channels to the logits, the last layer first."""
    expected = (classifier.classes, activations.shape[1])
    layers = [module for module in classifier.network.modules() if isinstance(module, nn.Linear)]
    return [layer for layer in reversed(layers) if layer.weight.shape == expected]


def _is_head(head: nn.Linear, activations: Tensor, logits: Tensor) -> bool:
    """Return True if the logits are ``head`` of the activations' spatial mean, up to rounding."""
    if not head.weight.any():  # with any activations, such a head returns its bias
        return False
    pooled = activations.mean((2, 3))
    weight, bias = head.weight.detach(), None if head.bias is None else head.bias.detach()
    difference = (linear(pooled, weight, bias) - logits).abs()
    # Rounding error grows with the terms, which may be far larger than their sum.
    scale = linear(pooled.abs(), weight.abs(), None if bias is None else bias.abs())
    tolerance = torch.finfo(logits.dtype).eps ** 0.5
    # Written so that NaN counts as equal: the runner reports NaN in the map, which is clearer than "no such head".
    return not bool((difference > tolerance * scale).any())

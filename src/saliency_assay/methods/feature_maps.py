"""Feature maps of a layer, or tokens on their grid: what class activation maps are computed from."""

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from saliency_assay.methods.differentiate import check_inputs, gradient_of
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.grid_settings import of_grid
from saliency_assay.models.inference import uncompiled


def classifier_of(model: nn.Module, images: Tensor, targets: Tensor, layer: str = "") -> Classifier:
    """Check the arguments common to all CAM methods, and return the model with ``layer``, if any, as its CAM layer.

    Raises:
        ValueError: invalid images or targets, no ``Classifier``, or no such layer.
    """
    check_inputs(images, targets)
    if not isinstance(model, Classifier):
        raise ValueError(f"model: found {type(model).__name__}, expected a Classifier, which has a cam_layer")
    if not layer:
        return model
    model.layer(layer)  # raises if there is none
    other = copy(model)  # which shares its layers
    other.cam_layer = layer
    return other


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
            if gradient is not None and feature_maps(classifier, gradient, images).any():
                names.append(name)
    return names


def _may_be_maps(output: Tensor, images: Tensor) -> bool:
    """Return True for tokens ``[N, T, K]``, and for feature maps that have the images' aspect ratio."""
    height, width = images.shape[2:]
    sizes = (output.shape[2:], output.shape[1:3])  # with channels first or last
    return output.ndim == 3 or (
        output.ndim == 4 and any(rows * width == columns * height for rows, columns in sizes)
    )


def activations_and_logits(classifier: Classifier, images: Tensor) -> tuple[Tensor, Tensor]:
    """Return the CAM layer's feature maps ``[N, K, h, w]`` and the logits ``[N, classes]`` of one forward pass."""
    with torch.no_grad(), kept_outputs(classifier) as outputs:
        logits: Tensor = classifier(images)
    return feature_maps(classifier, last_output(classifier, outputs), images), logits


def activations_and_gradients(
    classifier: Classifier, images: Tensor, targets: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the CAM layer's feature maps and the target logit's gradients for them, both ``[N, K, h, w]``.

    Raises:
        ValueError: as ``feature_maps``, or the logits do not depend on the layer's output or only on its class token.
    """
    # With respect to the images, since the parameters are frozen.
    with torch.enable_grad(), kept_outputs(classifier) as outputs:
        logits = classifier(images.detach().requires_grad_())
        score = logits.gather(1, targets[:, None]).sum()
    output = last_output(classifier, outputs)
    try:
        gradient = gradient_of(score, output)
    except ValueError as error:
        raise ValueError(
            f"cam_layer: found no gradient of the logits at the output of {classifier.cam_layer!r}; expected logits "
            "that depend on it by operations that autograd can follow, without torch.no_grad() or detach()"
        ) from error
    activations, gradients = (
        feature_maps(classifier, values, images) for values in (output.detach(), gradient)
    )
    if output.ndim == 3 and not output.is_meta and gradient.any() and not gradients.any():
        raise ValueError(
            f"cam_layer: of the output of {classifier.cam_layer!r}, the logits depend only on tokens that are not in "
            f"the grid, such as the class token; expected a layer before the last attention"
        )
    return activations, gradients


@contextmanager
def kept_outputs(classifier: Classifier) -> Iterator[list[object]]:
    """Collect the outputs of the CAM layer."""
    outputs: list[object] = []

    def kept(output: object) -> object:
        if not isinstance(output, Tensor) or not output.is_floating_point():
            return output
        if torch.is_grad_enabled() and not output.requires_grad:  # behind layers without gradients
            output.requires_grad_()
        outputs.append(output)
        # The next layer gets a copy, since an in-place ReLU would overwrite the output.
        return output.clone()

    def keep(layer: nn.Module, inputs: object, output: object) -> object:
        if not isinstance(output, tuple) or not output:
            return kept(output)
        entries = kept(output[0]), *output[1:]  # the tokens of a Hugging Face layer, and more
        return type(output)(*entries) if hasattr(output, "_fields") else entries

    layer = classifier.layer(classifier.cam_layer)
    if isinstance(layer, torch.jit.ScriptModule):
        raise ValueError(
            f"cam_layer: found {classifier.cam_layer!r} of TorchScript, whose output cannot be read; expected a module"
        )
    handle = layer.register_forward_hook(keep)
    try:
        with uncompiled():
            yield outputs
    finally:
        handle.remove()


def last_output(classifier: Classifier, outputs: list[object]) -> Tensor:
    """Return the output of the CAM layer's last call."""
    output = outputs[-1] if outputs else None
    if not isinstance(output, Tensor):
        raise ValueError(
            f"cam_layer: {classifier.cam_layer!r} is not called, or returns no feature maps [N, K, h, w] and no tokens "
            "[N, T, K]"
        )
    return output


def feature_maps(classifier: Classifier, output: Tensor, images: Tensor) -> Tensor:
    """Return the CAM layer's output as feature maps ``[N, K, h, w]``.

    Feature maps of the images' aspect ratio may have their channels last, ``[N, h, w, K]``. Of tokens ``[N, T, K]``,
    the last h · w are the grid, row by row: that of ``token_grid``, or the largest of the images' aspect ratio. The
    tokens before it, such as class and register tokens, are dropped. The feature maps of all cells of a grid
    (``grid_settings``) are joined.

    Raises:
        ValueError: the output has another shape, or fewer tokens than the grid.
    """
    return of_grid(classifier.network, _feature_maps(classifier, output, images))


def _feature_maps(classifier: Classifier, output: Tensor, images: Tensor) -> Tensor:
    name, shape, (height, width) = classifier.cam_layer, list(output.shape), images.shape[2:]
    if output.ndim == 4:
        rows, columns = output.shape[1:3]
        if classifier.token_grid and classifier.token_grid not in ((rows, columns), tuple(shape[2:])):
            configured = " × ".join(map(str, classifier.token_grid))
            raise ValueError(
                f"token_grid: found {configured} for {shape} of {name!r}, expected its height and width"
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
    rows, columns = token_grid(classifier, shape[1], images)
    grid = output[:, shape[1] - rows * columns :].transpose(1, 2)
    return grid.reshape(*grid.shape[:2], rows, columns)


def token_grid(model: nn.Module, tokens: int, images: Tensor) -> tuple[int, int]:
    """Return rows and columns of the grid of the last of ``tokens`` tokens.

    These are ``token_grid`` of a classifier, or the largest grid of the images' aspect ratio.

    Raises:
        ValueError: there are fewer tokens than the grid has cells.
    """
    height, width = images.shape[2:]
    grid = model.token_grid if isinstance(model, Classifier) else ()
    rows, columns = grid or _largest_grid(tokens, height, width)
    if not 0 < rows * columns <= tokens:
        raise ValueError(
            f"token_grid: found {rows} × {columns} for {tokens} tokens of images of {height} × {width} pixels, "
            f"expected a grid that fits"
        )
    return rows, columns


def _largest_grid(tokens: int, height: int, width: int) -> tuple[int, int]:
    """Return rows and columns of the largest grid of at most ``tokens`` cells with the aspect ratio of the images."""
    divisor = math.gcd(height, width)
    rows, columns = height // divisor, width // divisor
    scale = math.isqrt(tokens // (rows * columns))
    return scale * rows, scale * columns


def upsampled(maps: Tensor, images: Tensor, upsampling: str, *, relu: bool) -> Tensor:
    """Resize maps to the images; ``relu`` clamps at 0 before and also after, since cubic interpolation overshoots."""
    if not relu:
        return interpolate(maps, size=images.shape[2:], mode=upsampling)
    return interpolate(maps.clamp(min=0), size=images.shape[2:], mode=upsampling).clamp(min=0)


def rescaled(values: Tensor, dimensions: tuple[int, ...]) -> Tensor:
    """Return values ``[N, K, h, w]`` rescaled to [0, 1] over ``dimensions``, and 0 where they are constant there."""
    low, span = minimum_and_span(values, dimensions)
    return (values - low) / span


def minimum_and_span(values: Tensor, dimensions: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return the minimum of values and their span over ``dimensions``, or infinity where they are constant there."""
    low, high = values.amin(dimensions, keepdim=True), values.amax(dimensions, keepdim=True)
    span, largest = high - low, torch.maximum(low.abs(), high.abs())
    # Constant up to rounding error, which would otherwise be rescaled to [0, 1]. The threshold is relative, since an ε
    # in the denominator would make the result depend on the scale of the values. NaN and infinity become NaN.
    is_constant = (span == 0) | (span < 64 * torch.finfo(values.dtype).eps * largest)
    return low, torch.where(is_constant, torch.inf, span)

"""Saliency maps of images in memory by a registered or custom method."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saliency_assay.api.choices import Explaining, bind
from saliency_assay.api.inputs import Arrays, images_of, integer_of, mask_of, targets_of
from saliency_assay.api.networks import Model, classifier_of, normalizes
from saliency_assay.methods import METHODS, engine


def attribute(
    method: str | Callable[..., Tensor],
    model: Model,
    images: Arrays,
    targets: Any,
    *,
    seed: int = 0,
    batch_size: int = 64,
    base: Explaining | None = None,
    background: Arrays | None = None,
    mask: Arrays | None = None,
    **parameters: Any,
) -> Arrays:
    """Compute saliency maps float32 ``[N, C or 1, H, W]``, signed as the method defines them.

    The result is an array if ``images`` is an array, else a tensor on the device of ``images``.

    Args:
        method: a registered name (``docs/methods.md``) or an alias such as ``ig``, ``package.module:name``, a function
            ``(model, images, targets, *, generator, **parameters) -> maps``, or a class or object of ``captum.attr``.
            A function may lack the argument ``generator``, and return arrays or ``[B, H, W]``.
        model: a network that takes images in [0, 1] (``wrap`` turns a network for normalized images into one); or, for
            methods that use only predictions, any function ``[B, C, H, W] -> [B, K]``.
        images: ``[N, C, H, W]``, uint8 or floating point in [0, 1].
        targets: the explained class of each image, ``[N]``, or of all images.
        seed: seed of the noise, which is the same for any ``batch_size``.
        batch_size: number of images that the model processes together.
        base: for smoothing methods, the method to smooth, by default the gradient: a name, a function, or a mapping
            with its ``method`` and parameters.
        background: for Deep SHAP, Expected Gradients and GradientSHAP, images that represent the absence of features.
        mask: for the control ``object_mask``, the object's pixels, bool ``[N, H, W]``.
        parameters: parameters of the method; the others have their registered defaults.

    Raises:
        ValueError: the method or a parameter is unknown, a value is not valid, images or targets have another shape,
            type or range, or the model lacks something that the method needs.

    >>> import torch
    >>> import saliency_assay
    >>> network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(2 * 2, 3, bias=False))
    >>> network[1].weight.data = torch.arange(12.0).reshape(3, 4)
    >>> images = torch.full((1, 1, 2, 2), 0.5)
    >>> saliency_assay.attribute("gradient", network, images, targets=[2])
    tensor([[[[ 8.,  9.],
              [10., 11.]]]])
    >>> saliency_assay.attribute("smoothgrad", network, images, [2], samples=5, base="gradient_x_input").shape
    torch.Size([1, 1, 2, 2])
    >>> saliency_assay.attribute("gradeint", network, images, [2])
    Traceback (most recent call last):
        ...
    ValueError: unknown method 'gradeint'; did you mean 'gradient'? valid: attention_rollout, ...
    """
    pixels = images_of(images)
    classes = targets_of(targets, len(pixels))
    classifier = classifier_of(model, pixels)
    bound = bind(
        method, classifier, has_mean=normalizes(model), base=base, background=background, **parameters
    )
    if mask is not None and not bound.takes_mask:
        valid = ", ".join(record.name for record in METHODS if "mask" in record.takes)
        raise ValueError(f"mask: {bound.name} takes none; valid: {valid}")
    blocks = engine.attribute(
        bound.function,
        bound.arguments,
        classifier,
        pixels,
        classes,
        seed=integer_of(seed, "seed"),
        batch_size=integer_of(batch_size, "batch_size"),
        finite=not bound.registered,
        mask=None if mask is None else mask_of(mask, pixels),
    )
    maps = np.concatenate([block["map"] for block in blocks])
    return torch.from_numpy(maps).to(images.device) if isinstance(images, Tensor) else maps

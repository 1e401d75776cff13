"""Maps of one's own images by a registered method or by one's own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saliency_assay.api.choices import Explaining, bind
from saliency_assay.api.inputs import Arrays, images_of, targets_of
from saliency_assay.api.networks import Model, classifier_of, normalises
from saliency_assay.methods import engine


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
    **parameters: Any,
) -> Arrays:
    """Return maps ``[N, C or 1, H, W]``, float32, signed as the method gives them: an array for an array, else a
    tensor.

    Args:
        method: a registered name (``docs/methods.md``), ``package.module:name``, or a function ``(model, images,
            targets, *, generator, **parameters) -> maps``.
        model: a network that takes images in [0, 1], as ``wrap`` makes one of a network that takes normalised
            ones; or, for methods that only look at what it predicts, any function ``[B, C, H, W] -> [B, K]``.
        images: ``[N, C, H, W]``, uint8 or floating point in [0, 1].
        targets: the class of each that is explained, ``[N]``.
        seed: of the noise. The same for any ``batch_size``.
        batch_size: images that go through the model together.
        base: what smoothing methods smooth, the gradient by default: a name, a function, or a mapping with its
            ``method`` and parameters.
        background: images that stand for the absence of a feature, for DeepSHAP.
        parameters: of the method; the others have their registered defaults.

    Raises:
        ValueError: an unknown method or parameter, a value that is not valid, images or targets of another shape, type
            or range, a model that cannot serve the method.

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
    ValueError: unknown method 'gradeint'; did you mean 'gradient'? valid: cam, ...
    """
    pixels = images_of(images)
    classes = targets_of(targets, len(pixels))
    classifier = classifier_of(model, pixels)
    bound = bind(
        method, classifier, knows_mean=normalises(model), base=base, background=background, **parameters
    )
    blocks = engine.attribute(
        bound.function,
        bound.arguments,
        classifier,
        pixels,
        classes,
        seed=seed,
        batch_size=batch_size,
        finite=not bound.registered,
    )
    maps = np.concatenate([block["map"] for block in blocks])
    return torch.from_numpy(maps).to(images.device) if isinstance(images, Tensor) else maps

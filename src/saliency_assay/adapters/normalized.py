"""Models and inputs of other libraries, which are normalized, as models and images of this package."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from saliency_assay.api.networks import wrap
from saliency_assay.models.classifier import Classifier, main_output

ROUNDING = 1e-3
"""Distance from [0, 1] that is put down to the rounding of the normalization."""


class ForwardFunction(nn.Module):
    """A function ``(inputs, *arguments) -> outputs`` with constant arguments, as a module."""

    def __init__(self, forward_func: Callable[..., Any], arguments: Sequence[Any] = ()) -> None:
        super().__init__()
        self.forward_func, self.arguments = forward_func, tuple(arguments)

    def forward(self, inputs: Tensor) -> Any:
        """Return the outputs of ``inputs [N, C, H, W]``."""
        return self.forward_func(inputs, *self.arguments)


def as_images(
    model: nn.Module, inputs: Tensor, mean: Sequence[float] | None, std: Sequence[float] | None
) -> tuple[nn.Module, Tensor]:
    """Return a model of images in [0, 1], and the images.

    Args:
        model: a ``Classifier``, or a network of images in [0, 1] or, with ``mean`` and ``std``, of normalized inputs.
        inputs: what the model takes, ``[N, C, H, W]``.
        mean: mean of each channel by which inputs are normalized, or None if they are not.
        std: standard deviation of each channel, or None.

    Raises:
        ValueError: only one of ``mean`` and ``std`` is passed, or a ``Classifier`` with them, or inputs are no
            normalized pixels.
    """
    if mean is None and std is None:
        return model, inputs
    if mean is None or std is None or isinstance(model, Classifier):
        raise ValueError("mean and std: expected both, with a network of normalized inputs, or neither")
    with torch.no_grad():
        outputs: Any = main_output(model(inputs[:1]))
    wrapped = wrap(model, classes=outputs.shape[1], mean=mean, std=std)
    images = inputs.detach() * wrapped.std.to(inputs.device) + wrapped.mean.to(inputs.device)
    low, high = images.min().item(), images.max().item()
    if low < -ROUNDING or high > 1 + ROUNDING:
        raise ValueError(
            f"inputs: found pixels from {low:.3g} to {high:.3g} with this mean and std, expected 0 to 1"
        )
    return wrapped, images.clamp(0, 1)

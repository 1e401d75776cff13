"""Methods as explain functions of Quantus, and explain functions of Quantus as methods."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from saliency_assay.adapters.normalized import as_images
from saliency_assay.api.maps import attribute


def explain_func(
    name: str | Callable[..., Tensor],
    *,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    seed: int = 0,
    **parameters: Any,
) -> Callable[..., np.ndarray[Any, Any]]:
    """Return a method as ``explain_func`` of Quantus: ``(model, inputs, targets, **kwargs) -> maps [N, C or 1, H, W]``.

    Args:
        name: registered name of a method, or a function as for ``saliency_assay.attribute``.
        mean: mean of each channel, if the inputs of Quantus are normalized.
        std: standard deviation of each channel.
        seed: seed of random numbers.
        parameters: parameters of the method.
    """

    def explain(model: nn.Module, inputs: Any, targets: Any, **_: Any) -> np.ndarray[Any, Any]:
        device = next((each.device for each in model.parameters()), torch.device("cpu"))
        pixels = torch.as_tensor(inputs, dtype=torch.float32, device=device)
        explained, images = as_images(model, pixels, mean, std)
        classes = np.asarray(targets).astype(np.int64)
        maps = attribute(name, explained, images, classes, seed=seed, **parameters)
        return torch.as_tensor(maps).cpu().numpy()

    return explain


def method(explain_func: Callable[..., Any], **arguments: Any) -> Callable[..., Tensor]:
    """Return an explain function of Quantus as a method for ``saliency_assay.attribute`` and ``benchmark``.

    It is called with the model that is explained, images in [0, 1] and targets as arrays, and ``arguments``.
    """

    def explain(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
        maps = explain_func(
            model=model, inputs=images.cpu().numpy(), targets=targets.cpu().numpy(), **arguments
        )
        values = torch.as_tensor(np.asarray(maps), dtype=images.dtype, device=images.device)
        return values[:, None] if values.ndim == 3 else values

    explain.__name__ = explain.__qualname__ = getattr(explain_func, "__name__", "explain")
    return explain

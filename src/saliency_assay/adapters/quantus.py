"""Methods as explain functions of Quantus, and explain functions and metrics of Quantus as methods and metrics."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from saliency_assay.adapters.normalized import as_images
from saliency_assay.adapters.seeded import seeded
from saliency_assay.api.maps import attribute
from saliency_assay.methods.sampling import sample_seeds


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


def metric(metric: Callable[..., Any], **arguments: Any) -> Callable[..., Tensor]:
    """Return a metric of Quantus as a metric for ``saliency_assay.score`` and ``benchmark``.

    It is called with the model that is explained, images in [0, 1], targets and maps as arrays, masks if there are any
    (maps are then summed over channels), and the method of the maps as ``explain_func`` if it is known. Random numbers
    follow the seed of the call. Scores depend on the batch size if those of Quantus do.

    Args:
        metric: an object such as ``quantus.Sparseness()``, which returns one number for each image.
        arguments: further arguments of its call.

    Raises:
        ValueError: ``metric`` is a class.
    """
    if isinstance(metric, type):
        raise ValueError(
            f"metric: found the class {metric.__name__}, expected an object: {metric.__name__}()"
        )

    def score(
        predict: nn.Module,
        images: Tensor,
        targets: Tensor,
        maps: Tensor,
        *,
        generator: torch.Generator,
        mask: Tensor | None = None,
        explain: Callable[..., Tensor] | None = None,
    ) -> Tensor:
        def explain_func(model: Any, inputs: Any, targets: Any, **_: Any) -> np.ndarray[Any, Any]:
            assert explain is not None
            pixels, classes = torch.as_tensor(inputs).to(images), torch.as_tensor(targets).to(images.device)
            return explain(pixels, classes.long()).cpu().numpy()

        (seed,) = sample_seeds(1, 1, generator)
        with seeded(seed):
            values = metric(
                model=predict,
                x_batch=images.cpu().numpy(),
                y_batch=targets.cpu().numpy(),
                a_batch=(maps if mask is None else maps.sum(1, keepdim=True)).cpu().numpy(),
                s_batch=None if mask is None else mask[:, None].cpu().numpy(),
                explain_func=None if explain is None else explain_func,
                device=str(images.device),
                **arguments,
            )
        return torch.as_tensor(np.asarray(values, dtype=np.float64))

    score.__name__ = score.__qualname__ = type(metric).__name__
    return score

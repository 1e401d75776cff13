"""CAM classes of pytorch-grad-cam as methods, and its target objects as classes."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from saliency_assay.registry.records import unknown


def method(cam: Callable[..., Any], target_layers: Sequence[str], **arguments: Any) -> Callable[..., Tensor]:
    """Return a class of pytorch-grad-cam as a method for ``saliency_assay.attribute`` and ``benchmark``.

    The class is instantiated with the model that is explained, which takes images in [0, 1]. Its maps are scaled to
    [0, 1] by the library.

    Args:
        cam: a class such as ``pytorch_grad_cam.GradCAM``.
        target_layers: paths of the layers in the network.
        arguments: arguments of the class, such as ``reshape_transform``.
    """

    def explain(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
        output_target = _output_target()
        modules = dict(getattr(model, "network", model).named_modules())
        for path in target_layers:
            if path not in modules:
                raise ValueError(f"target_layers: {unknown('layer', path, filter(None, modules))}")
        outputs = [output_target(target) for target in targets.tolist()]
        with cam(
            model=model, target_layers=[modules[path] for path in target_layers], **arguments
        ) as explainer:
            maps = explainer(input_tensor=images.clone().requires_grad_(True), targets=outputs)
        return torch.as_tensor(np.asarray(maps), dtype=images.dtype, device=images.device)[:, None]

    explain.__name__ = explain.__qualname__ = getattr(cam, "__name__", "cam")
    return explain


def classes(targets: Iterable[Any]) -> npt.NDArray[np.int64]:
    """Return the classes ``[N]`` of target objects, for the argument ``targets`` of this package.

    Raises:
        ValueError: an object is not a ``ClassifierOutputTarget``.
    """
    objects, output_target = list(targets), _output_target()
    for each in objects:
        if type(each) is not output_target:
            raise ValueError(
                f"targets: found {type(each).__name__}, expected ClassifierOutputTarget; for another number, pass a "
                "function as output of saliency_assay.wrap"
            )
    return np.array([each.category for each in objects], dtype=np.int64)


def _output_target() -> Any:
    """Return the class of targets that are logits of a class.

    Raises:
        ModuleNotFoundError: pytorch-grad-cam is not installed.
    """
    try:
        from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "grad-cam is not installed: pip install grad-cam", name=error.name
        ) from None
    return ClassifierOutputTarget

"""CAM classes of pytorch-grad-cam as methods, and its target objects as classes."""

from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from saliency_assay.adapters.seeded import seeded
from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.registry.records import short_repr, unknown


def method(
    cam: type[Any], target_layers: Sequence[str | nn.Module], **arguments: Any
) -> Callable[..., Tensor]:
    """Return a class of pytorch-grad-cam as a method for ``saliency_assay.attribute`` and ``benchmark``.

    The class is instantiated with the model that is explained, which takes images in [0, 1]. Its maps are scaled to
    [0, 1] by the library. Random numbers follow the seed of the call, but also depend on the batch size.

    Args:
        cam: a class such as ``pytorch_grad_cam.GradCAM``.
        target_layers: layers of the network, or their paths.
        arguments: arguments of the class, such as ``reshape_transform``, and of its call, such as ``aug_smooth``.

    Raises:
        ValueError: ``target_layers`` is no list, or an argument is none of the class.
    """
    if isinstance(target_layers, str | nn.Module):
        raise ValueError(
            f"target_layers: found {short_repr(target_layers)}, expected a list: target_layers=[…]"
        )
    name = cam.__name__
    at_creation = {*signature(cam).parameters} - {"model", "target_layers"}
    at_call = {*signature(cam.__call__).parameters} - {"self", "input_tensor", "targets"}
    for argument in arguments:
        if argument not in at_creation | at_call:
            raise ValueError(f"{name}: {unknown('argument', argument, at_creation | at_call)}")
    created = {key: value for key, value in arguments.items() if key in at_creation}
    called = {key: value for key, value in arguments.items() if key not in at_creation}

    def explain(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
        output_target = _output_target()
        layers = [_layer(model, layer) for layer in target_layers]
        outputs = [output_target(target) for target in targets.tolist()]
        (seed,) = sample_seeds(1, 1, generator)
        with seeded(seed), cam(model=model, target_layers=layers, **created) as explainer:
            maps = explainer(input_tensor=images.clone().requires_grad_(True), targets=outputs, **called)
        return torch.as_tensor(np.asarray(maps), dtype=images.dtype, device=images.device)[:, None]

    explain.__name__ = explain.__qualname__ = name
    return explain


def output(target: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return a target object of pytorch-grad-cam as ``output`` of ``saliency_assay.wrap``.

    Its value, such as the probability of a class, is then explained for each image.

    Args:
        target: an object such as ``ClassifierOutputSoftmaxTarget(3)``, which takes the output of one image and returns
            one number.
    """

    def value(outputs: Tensor) -> Tensor:
        return torch.stack([target(of_image).reshape(()) for of_image in outputs])

    return value


def classes(targets: Iterable[Any]) -> npt.NDArray[np.int64]:
    """Return the classes ``[N]`` of target objects, for the argument ``targets`` of this package.

    Raises:
        ValueError: an object is not a ``ClassifierOutputTarget``.
    """
    objects, output_target = list(targets), _output_target()
    for each in objects:
        if type(each) is not output_target:
            raise ValueError(
                f"targets: found {type(each).__name__}, expected ClassifierOutputTarget; for another number, "
                "saliency_assay.wrap(…, output=saliency_assay.adapters.grad_cam.output(target))"
            )
    return np.array([each.category for each in objects], dtype=np.int64)


def _layer(model: nn.Module, layer: str | nn.Module) -> nn.Module:
    if isinstance(layer, nn.Module):
        return layer
    modules: dict[str, nn.Module] = dict(getattr(model, "network", model).named_modules())
    if layer not in modules:
        raise ValueError(f"target_layers: {unknown('layer', layer, filter(None, modules))}")
    return modules[layer]


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

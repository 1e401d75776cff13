"""Custom functions, and objects of other libraries, as methods and metrics."""

import inspect
from collections.abc import Callable, Mapping
from functools import update_wrapper
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from saliency_assay.registry.records import resolve
from saliency_assay.registry.signatures import GENERATOR

ADAPTERS = {
    ("captum", "method"): "captum.method({name}, …)",
    ("captum", "metric"): "captum.metric({name}, …)",
    ("pytorch_grad_cam", "method"): "grad_cam.method({name}, target_layers=[…])",
    ("quantus", "method"): "quantus.method({name}, …)",
    ("quantus", "metric"): "quantus.metric({name}(…))",
}
"""Calls of ``saliency_assay.adapters`` by library and kind."""

KEYS = ("method", "metric", "label", "base", "background", "direction", "measures")
"""Keys in settings of methods and metrics that are no parameters."""


class OwnFunction:
    """A custom function with the arguments and the output of a registered one.

    The function may lack the argument ``generator``. Arrays that it returns become tensors, lists of numbers that a
    metric returns, too, and maps ``[B, H, W]`` become ``[B, 1, H, W]``; all else is returned unchanged, and the engine
    checks it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function, updated=())
        self.__qualname__ = getattr(function, "__qualname__", type(function).__name__)
        self.function, self.takes_generator = function, takes_generator(function)
        self.check_model: Callable[[nn.Module], None] | None = getattr(function, "check_model", None)
        """Check that a model can be explained; for objects that have a model of their own."""

    def __call__(
        self, model: Any, images: Tensor, targets: Tensor, *maps: Tensor, generator: Any, **arguments: Any
    ) -> Any:
        """Return maps if there are none among the arguments, else scores."""
        if self.takes_generator:
            arguments[GENERATOR] = generator
        values = self.function(model, images, targets, *maps, **arguments)
        if isinstance(values, np.ndarray) or (maps and isinstance(values, list)):
            values = _tensor(values, torch.zeros((), dtype=torch.float64) if maps else images)
        is_gray = not maps and isinstance(values, Tensor) and values.ndim == 3
        return values[:, None] if is_gray else values


def takes_generator(function: Callable[..., Any]) -> bool:
    """Return True if the function has the argument ``generator`` or any keyword."""
    declared = inspect.signature(function).parameters
    return GENERATOR in declared or any(each.kind is each.VAR_KEYWORD for each in declared.values())


def adapted(kind: str, choice: Any, parameters: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    """Return a class or object of captum as a method without parameters; return anything else unchanged.

    Raises:
        ValueError: it is from a library whose classes and functions need an adapter, which the message names, or the
            class of captum cannot be a method.
    """
    named = choice if isinstance(choice, type) or inspect.isroutine(choice) else type(choice)
    modules = [getattr(each, "__module__", None) for each in getattr(named, "__mro__", (named,))]
    of_library = {str(module).partition(".")[0] for module in modules}  # None of a function defined by exec
    if kind == "method" and "captum" in of_library and isinstance(named, type):
        # By reference, since adapters import this package, and captum is optional.
        return resolve("saliency_assay.adapters.captum:method")(choice, **parameters), {}
    for (library, of_kind), call in ADAPTERS.items():
        if library in of_library and kind == of_kind:
            name = named.__name__
            raise ValueError(
                f"{kind}: found {name} of {library}, expected saliency_assay.adapters.{call.format(name=name)}"
            )
    return choice, parameters


def adapted_entry(kind: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a method or metric, such as those of a benchmark; see ``adapted``."""
    parameters = {key: value for key, value in entry.items() if key not in KEYS}
    choice, left = adapted(kind, entry[kind], parameters)
    return {**{key: value for key, value in entry.items() if key in KEYS}, **left, kind: choice}


def _tensor(values: Any, like: Tensor) -> Any:
    """Return numbers as a tensor of the type and on the device of ``like``; return anything else unchanged."""
    array = np.asarray(values)
    return torch.as_tensor(array.copy()).to(like) if array.dtype.kind in "fiu" else values

"""captum's attributions as methods, and methods behind captum's ``attribute``.

Any class of ``captum.attr`` that attributes an output to its inputs or to a layer is a method of this module: in a
configuration ``captum: GradientShap``, in Python ``captum.method("GradientShap", n_samples=20)``.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from saliency_assay.adapters.normalized import ForwardFunction, as_images
from saliency_assay.adapters.seeded import seeded
from saliency_assay.api.maps import attribute
from saliency_assay.api.networks import Prediction
from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.models.classifier import Classifier
from saliency_assay.registry.records import unknown
from saliency_assay.runtime.environment import optional

with optional("captum", "captum"):
    import captum.attr
    from captum.attr._utils.attribution import LayerAttribution, NeuronAttribution

DEPENDENT = ("FeaturePermutation",)
"""Classes whose map of an image depends on the other images of its batch."""
STOCHASTIC = ("GradientShap", "KernelShap", "LayerGradientShap", "Lime", "LimeBase", "ShapleyValueSampling")
"""Classes with random numbers; images are then explained one by one, so that maps do not depend on the batch size."""
FIRST_ARGUMENTS = ("forward_func", "model")
PASSED = ("forward_func", "explanation_func", "inputs", "attributions", "target", "additional_forward_args")
"""Arguments that metrics of captum receive from ``saliency_assay.score``."""


def method(attribution: Any, *, layer: str = "", **arguments: Any) -> Callable[..., Tensor]:
    """Return a class of captum as a method for ``saliency_assay.attribute`` and ``benchmark``.

    The class is instantiated with the model that is explained, which takes images in [0, 1]. Maps of layers are summed
    over channels and interpolated to the size of the images. Random numbers follow the seed of the call.

    Args:
        attribution: name of a class in ``captum.attr``, the class, or an instance, whose forward function must be the
            model that is explained: the network in ``wrap(…)`` is not, unless its mean is 0 and its ``std`` 1.
        layer: for classes that take a layer, its path in the network.
        arguments: arguments of the class and of its ``attribute``; lists become tuples.

    Raises:
        ValueError: the class does not exist or cannot be a method, an argument is none of its arguments, or a layer is
            missing or not taken.
    """
    kind = _class_of(attribution)
    at_creation, at_call = _parameters(kind.__init__)[1:], _parameters(kind.attribute)
    if isinstance(attribution, captum.attr.Attribution):
        at_creation = []
    valid = {*at_creation, *at_call} - {"inputs", "target", "additional_forward_args", "layer"}
    for name in arguments:
        if name not in valid:
            raise ValueError(f"{kind.__name__}: {unknown('argument', name, valid)}")
    takes_layer = "layer" in at_creation
    if takes_layer != bool(layer):
        expected = "expected the path of a layer" if takes_layer else "takes none"
        raise ValueError(f"{kind.__name__}: layer: found {layer!r}, {expected}")
    values = {name: tuple(each) if isinstance(each, list) else each for name, each in arguments.items()}
    created = {name: values[name] for name in at_creation if name in values}
    called = {name: values[name] for name in at_call if name in values and name not in created}

    def explain(
        model: nn.Module, images: Tensor, targets: Tensor, generator: torch.Generator, **inputs: Any
    ) -> Tensor:
        if isinstance(attribution, captum.attr.Attribution):
            _check_explains(attribution, model)
            explainer: Any = attribution
        else:
            modules = [_module(model, layer)] if takes_layer else []
            explainer = kind(model, *modules, **created)

        def maps_of(rows: slice) -> Tensor:
            target = {"target": targets[rows]} if "target" in at_call else {}
            pixels = images[rows].detach().requires_grad_(True)  # captum warns if it has to set this itself
            return _map(kind, explainer.attribute(pixels, **target, **called, **inputs), pixels)

        if not _is_stochastic(kind):
            return maps_of(slice(None))
        maps = []
        for place, seed in enumerate(sample_seeds(len(images), 1, generator)):
            with seeded(seed):
                maps.append(maps_of(slice(place, place + 1)))
        return torch.cat(maps)

    def with_background(
        model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator, background: Tensor
    ) -> Tensor:
        return explain(model, images, targets, generator, baselines=background)

    def without_background(
        model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator
    ) -> Tensor:
        return explain(model, images, targets, generator)

    baselines = inspect.signature(kind.attribute).parameters.get("baselines")
    needs_background = (
        baselines is not None and baselines.default is baselines.empty and "baselines" not in called
    )
    result = with_background if needs_background else without_background
    result.__name__ = result.__qualname__ = kind.__name__
    if isinstance(attribution, captum.attr.Attribution):
        # For ``api.choices.bind``, which checks it before any computation.
        setattr(result, "check_model", partial(_check_explains, attribution))  # noqa: B010  # mypy
    return result


def metric(function: Callable[..., Tensor], **arguments: Any) -> Callable[..., Tensor]:
    """Return a function of ``captum.metrics`` as a metric for ``saliency_assay.score`` and ``benchmark``.

    ``infidelity`` and other functions of ``attributions`` score the maps. Functions of ``explanation_func``, such as
    ``sensitivity_max``, compute maps by the argument ``method`` of ``score``. Images are scored one by one, so that
    random numbers, which follow the seed of the call, do not depend on the batch size.

    Args:
        function: a function such as ``captum.metrics.infidelity``.
        arguments: its further arguments, such as ``perturb_func`` and ``n_perturb_samples``.

    Raises:
        ValueError: the function is none of these, or an argument is missing or none of its arguments.
    """
    name, takes = function.__name__, inspect.signature(function).parameters
    if "inputs" not in takes or not {"forward_func", "explanation_func"} & takes.keys():
        raise ValueError(f"captum: found {name}, expected a function such as captum.metrics.infidelity")
    valid = {*_parameters(function)} - set(PASSED)
    for argument in arguments:
        if argument not in valid:
            raise ValueError(f"{name}: {unknown('argument', argument, valid)}")
    for argument in valid - arguments.keys():
        if takes[argument].default is inspect.Parameter.empty:
            raise ValueError(f"{name}: {argument}: missing, expected an argument of captum.metrics.{name}")

    def scores(images: Tensor, targets: Tensor, generator: torch.Generator, **inputs: Any) -> Tensor:
        values = []
        for place, seed in enumerate(sample_seeds(len(images), 1, generator)):
            row = slice(place, place + 1)
            of_image = {key: each[row] if isinstance(each, Tensor) else each for key, each in inputs.items()}
            with seeded(seed):
                values.append(function(inputs=images[row], target=targets[row], **of_image, **arguments))
        return torch.cat(values).detach()

    def of_maps(
        predict: Any, images: Tensor, targets: Tensor, maps: Tensor, *, generator: torch.Generator
    ) -> Tensor:
        return scores(images, targets, generator, forward_func=predict, attributions=maps.expand_as(images))

    def of_method(
        predict: Any,
        images: Tensor,
        targets: Tensor,
        maps: Tensor,
        *,
        generator: torch.Generator,
        explain: Any,
    ) -> Tensor:
        def explanation_func(inputs: Any, target: Tensor) -> Any:
            is_tuple = isinstance(inputs, tuple)
            pixels = inputs[0] if is_tuple else inputs
            # captum repeats images, but not the target of a single one, and takes no channels-last maps.
            computed = explain(pixels, target.expand(len(pixels))).contiguous()
            return (computed,) if is_tuple else computed

        return scores(images, targets, generator, explanation_func=explanation_func)

    result = of_method if "explanation_func" in takes else of_maps
    result.__name__ = result.__qualname__ = name
    return result


def __getattr__(name: str) -> Callable[..., Tensor]:
    """Return the class ``name`` of captum as a method with parameters, for configurations."""
    if name.startswith("_") or not hasattr(captum.attr, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def explain(
        model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator, **parameters: Any
    ) -> Tensor:
        inputs = {"background": parameters.pop("background")} if "background" in parameters else {}
        return method(name, **parameters)(model, images, targets, generator=generator, **inputs)

    explain.__name__ = explain.__qualname__ = name
    return explain


def model(forward_func: Callable[..., Any], additional_forward_args: Any = ()) -> nn.Module:
    """Return a function of captum's convention as a model.

    Args:
        forward_func: a network or a function ``(images, *additional_forward_args) -> logits [N, K]``.
        additional_forward_args: further arguments, the same for all images; one or a tuple.
    """
    arguments = (
        additional_forward_args if isinstance(additional_forward_args, tuple) else (additional_forward_args,)
    )
    return ForwardFunction(forward_func, arguments)


class Attribution(captum.attr.Attribution):  # type: ignore[misc]  # captum is not typed
    """A method of this package with captum's ``attribute``.

    Args:
        name: registered name of a method, or a function as for ``saliency_assay.attribute``.
        forward_func: a network of images in [0, 1] or, with ``mean`` and ``std``, of normalized inputs.
        mean: mean of each channel by which inputs are normalized.
        std: standard deviation of each channel.
        seed: seed of random numbers.
        parameters: parameters of the method.
    """

    def __init__(
        self,
        name: str | Callable[..., Tensor],
        forward_func: Callable[..., Any],
        *,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        seed: int = 0,
        **parameters: Any,
    ) -> None:
        super().__init__(forward_func)
        self.name, self.mean, self.std, self.seed, self.parameters = name, mean, std, seed, parameters

    def attribute(
        self, inputs: Tensor, target: Any = 0, additional_forward_args: Any = None, **parameters: Any
    ) -> Tensor:
        """Return maps ``[N, C or 1, H, W]`` of ``inputs [N, C, H, W]``.

        Args:
            inputs: a tensor.
            target: class to explain: one for all inputs, or one for each in a tensor or list.
            additional_forward_args: further arguments of the forward function, the same for all inputs.
            parameters: parameters of the method, in addition to those of the object.

        Raises:
            ValueError: inputs are several tensors, or see ``saliency_assay.attribute``.
        """
        if not isinstance(inputs, Tensor):
            raise ValueError(f"inputs: found {type(inputs).__name__}, expected one tensor [N, C, H, W]")
        explained = self.forward_func
        if additional_forward_args is not None:
            explained = model(explained, additional_forward_args)
        if not isinstance(explained, nn.Module):
            explained = ForwardFunction(explained)
        explained, images = as_images(explained, inputs, self.mean, self.std)
        targets = target.tolist() if isinstance(target, Tensor) else target
        maps = attribute(
            self.name, explained, images, targets, seed=self.seed, **{**self.parameters, **parameters}
        )
        return torch.as_tensor(maps, device=inputs.device)


def _class_of(attribution: Any) -> Any:
    if isinstance(attribution, str):
        names = [name for name in dir(captum.attr) if not _problem(getattr(captum.attr, name))]
        if attribution not in dir(captum.attr):
            raise ValueError(f"captum: {unknown('class', attribution, names)}")
        attribution = getattr(captum.attr, attribution)
    kind = attribution if isinstance(attribution, type) else type(attribution)
    if problem := _problem(kind):
        raise ValueError(f"captum: found {kind.__name__}, which {problem}")
    return kind


def _problem(kind: Any) -> str:
    """Return why a class cannot be a method; empty if it can."""
    if not isinstance(kind, type) or not issubclass(kind, captum.attr.Attribution):
        return "is no captum.attr.Attribution"
    if not hasattr(kind, "attribute"):
        return "is a base class"
    if kind.__name__ in DEPENDENT:
        return "depends on the other images of a batch"
    if issubclass(kind, NeuronAttribution):
        return "explains a neuron, expected a class that explains an output"
    creation: Callable[..., Any] = kind.__init__  # type: ignore[misc]  # of the class itself
    if _parameters(creation)[:1] not in ([name] for name in FIRST_ARGUMENTS):
        return "takes no forward function or model"
    return ""


def _check_explains(attribution: Any, model: nn.Module) -> None:
    """Check that the forward function of an object of captum is the model that is explained.

    Raises:
        ValueError: it is another function, such as a network without the normalization of its ``Classifier``.
    """
    if _same_function(attribution.forward_func) is not _same_function(model):
        name = type(attribution).__name__
        raise ValueError(
            f"{name}: found an object that explains another function than the model, expected the class "
            f"captum.attr.{name}, or an object of the model itself (of wrap(…), not of the network in it)"
        )


def _same_function(function: Any) -> Any:
    """Return the module of its bound ``forward``, and the network in a ``Classifier`` that does not normalize."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, nn.Module) and function in (owner.forward, owner.__call__):
        return _same_function(owner)
    if isinstance(function, Classifier) and not function.mean.any() and bool((function.std == 1).all()):
        return _same_function(function.network)
    return function.predict if isinstance(function, Prediction) else function


def _parameters(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in ("self", "kwargs", "args")]


def _is_stochastic(kind: type) -> bool:
    """Return True for classes with random numbers, and for those of other packages, which may have some."""
    return kind.__name__ in STOCHASTIC or not kind.__module__.startswith("captum.")


def _module(model: nn.Module, path: str) -> nn.Module:
    modules: dict[str, nn.Module] = dict(getattr(model, "network", model).named_modules())
    if path not in modules:
        raise ValueError(f"layer: {unknown('layer', path, filter(None, modules))}")
    return modules[path]


def _map(kind: type, values: Any, images: Tensor) -> Tensor:
    maps: Tensor = (values[0] if isinstance(values, tuple) else values).detach()
    if issubclass(kind, LayerAttribution):
        if maps.ndim != 4:
            raise ValueError(
                f"{kind.__name__}: found a map {list(maps.shape)} of the layer, expected [N, C, H, W]"
            )
        maps = LayerAttribution.interpolate(maps.sum(1, keepdim=True), tuple(images.shape[2:]))
    return maps.to(images.dtype)

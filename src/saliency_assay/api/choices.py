"""Selection of a method or metric by registered name, by reference ``package.module:name``, or as a function."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from torch import Tensor

from saliency_assay.api.inputs import Arrays, images_of, integer_of
from saliency_assay.api.networks import check_differentiable
from saliency_assay.api.own_functions import OwnFunction, adapted, takes_generator
from saliency_assay.methods import METHODS, Method
from saliency_assay.methods.engine import arguments
from saliency_assay.methods.inputs import map_seed
from saliency_assay.metrics import METRICS, Metric
from saliency_assay.metrics.engine import metric_seed
from saliency_assay.models.classifier import Classifier
from saliency_assay.registry.aliases import registered_name
from saliency_assay.registry.records import record_of, resolve, unknown, with_defaults
from saliency_assay.registry.signatures import GENERATOR

Explaining: TypeAlias = str | Callable[..., Tensor] | Mapping[str, Any]
"""A method: a registered name, a function, or a mapping with either under ``method`` and its parameters, as in a
configuration."""


R = TypeVar("R", Method, Metric)


@dataclass(frozen=True)
class Choice(Generic[R]):
    """A function with all of its parameters, and its record if it is registered."""

    name: str
    function: Callable[..., Any]
    parameters: Mapping[str, Any]
    record: R | None


def resolve_choice(
    kind: str,
    choice: object,
    records: Iterable[R],
    values: Mapping[str, Any],
    *,
    positional: tuple[str, ...],
    offered: Iterable[str],
) -> Choice[R]:
    """Return the chosen function with the parameter ``values``, and the defaults of all other parameters.

    Args:
        kind: ``method`` or ``metric``, for error messages.
        choice: a registered name or an alias of it (``registry.aliases``), a reference ``package.module:name``, a
            function, or a class or object of captum.
        records: all registered methods or metrics.
        values: parameters by name.
        positional: names of the positional arguments of a custom function.
        offered: keywords that a custom function receives if its signature has them, in addition to ``generator``.

    Raises:
        ValueError: the name is unknown, the function does not have a parameter, or a value is not valid.
    """
    values = {key: value.item() if isinstance(value, np.generic) else value for key, value in values.items()}
    if isinstance(choice, str) and ":" not in choice:
        record = record_called(records, choice, kind)
        try:
            parameters = with_defaults(record.parameters, values, record.check)
        except ValueError as error:
            raise ValueError(f"{record.name}: {error}") from None
        return Choice(record.name, resolve(record.function), parameters, record)
    choice, values = adapted(kind, choice, values)
    function = resolve(choice) if isinstance(choice, str) else choice
    if not callable(function):
        expected = f"the name of a {kind}, a function or package.module:name"
        raise ValueError(f"{kind}: found {type(choice).__name__}, expected {expected}")
    name = getattr(function, "__name__", type(function).__name__)
    signature = inspect.signature(function)
    optional = {key: None for key in offered if key in signature.parameters}
    optional |= {GENERATOR: None} if takes_generator(function) else {}
    try:
        signature.bind(*positional, **optional, **values)
    except TypeError as error:
        raise ValueError(
            f"{name}: {error}; expected ({', '.join([*positional, '*', GENERATOR])}, …)"
        ) from None
    return Choice(name, OwnFunction(function), values, None)


def record_called(records: Iterable[R], name: str, kind: str) -> R:
    """Return the record called ``name``, which may be an alias.

    Raises:
        ValueError: there is no such record.
    """
    by_name = {record.name: record for record in records}
    if found := registered_name(name, by_name):
        return by_name[found]
    if kind == "method" and registered_name(name, (record.name for record in METRICS)):
        raise ValueError(f"method: found the metric {name!r}, which saliency_assay.score computes")
    if kind == "metric" and registered_name(name, (record.name for record in METHODS)):
        raise ValueError(f"metric: found the method {name!r}, expected a metric, such as deletion")
    return record_of(by_name.values(), name, kind)


@dataclass(frozen=True)
class Bound:
    """A method with all of its arguments except model, images, targets and generator."""

    name: str
    function: Callable[..., Tensor]
    arguments: Mapping[str, Any]
    registered: bool
    takes_mask: bool = False


def bind(
    method: Explaining,
    classifier: Classifier,
    *,
    has_mean: bool,
    base: Explaining | None = None,
    background: Arrays | None = None,
    **parameters: Any,
) -> Bound:
    """Return the method with its arguments, checked against its signature and against the classifier.

    ``has_mean`` is True if the classifier's mean is that of its training images.

    Raises:
        ValueError: as ``resolve_choice``; the method does not take the base or background, or lacks a background; the
            model has no gradients, CAM layer or mean although the method needs them.
    """
    if isinstance(method, Mapping):
        entry = {**method, **parameters}
        if "method" not in entry:
            raise ValueError(f"method: found {sorted(method)}, expected the key method: a name or a function")
        entry_base, entry_background = entry.pop("base", None), entry.pop("background", None)
        return bind(
            entry.pop("method"),
            classifier,
            has_mean=has_mean,
            base=entry_base if base is None else base,
            background=entry_background if background is None else background,
            **entry,
        )
    choice = resolve_choice(
        "method",
        method,
        METHODS,
        parameters,
        positional=("model", "images", "targets"),
        offered=[key for key, value in (("base", base), ("background", background)) if value is not None],
    )
    record, takes = choice.record, takes_of(choice, ("base", "background"))
    for key, value in (("base", base), ("background", background)):
        if value is not None and key not in takes:
            valid = [registered.name for registered in METHODS if key in registered.takes]
            raise ValueError(f"{key}: {choice.name} takes none; valid: {', '.join(valid)}")
    if "background" in takes and background is None:
        expected = "images [B, C, H, W], such as 100 of those that the model was trained on"
        raise ValueError(f"{choice.name}: background: missing, expected {expected}")
    if record:
        _check_needs(record, classifier)
    if isinstance(choice.function, OwnFunction) and choice.function.check_model:
        choice.function.check_model(classifier)
    check_mean(choice, has_mean)
    check_outputs(choice, classifier)
    smoothed_method = None
    if base is not None:
        bound_base = bind(base, classifier, has_mean=has_mean)
        unsmoothable = {registered.name: registered.unsmoothable for registered in METHODS}
        if reason := unsmoothable.get(bound_base.name, "") if bound_base.registered else "":
            raise ValueError(f"base: found {bound_base.name}, which {reason}, expected one such as gradient")
        smoothed_method = partial(bound_base.function, **bound_base.arguments)
    background_images = () if background is None else images_of(background, "background")
    keywords = arguments(choice.parameters, smoothed_method, background_images, classifier.device)
    takes_mask = record is not None and "mask" in record.takes
    return Bound(choice.name, choice.function, keywords, record is not None, takes_mask)


def check_mean(choice: Choice[Any], has_mean: bool, remedy: str = "saliency_assay.wrap") -> None:
    """Check that no parameter has the value ``mean`` if the data set's mean is unknown.

    Raises:
        ValueError: a parameter has the value ``mean``, but ``has_mean`` is False.
    """
    for key, value in choice.parameters.items():
        parameter = choice.record.parameters[key] if choice.record else None
        if parameter and value == "mean" and not has_mean:
            valid = ", ".join(option for option in parameter.choices if option != "mean")
            raise ValueError(
                f"{choice.name}: {key}: found 'mean', but the model stores no mean of its images; pass it with "
                f"{remedy}, or choose: {valid}"
            )


def check_outputs(choice: Choice[Any], classifier: Classifier) -> None:
    """Check that a registered method or metric does not use probabilities of a model with one output.

    Raises:
        ValueError: it does, or explains other classes: both would be constant.
    """
    if choice.record is None or classifier.classes > 1:
        return
    output = choice.parameters.get("output")
    if output in ("probability", "accuracy"):
        raise ValueError(
            f"{choice.name}: output: found {output!r} of a single logit, which is always 1; expected "
            "output='logit', or saliency_assay.wrap(…, classes=2, output='sigmoid') for a network with one probability"
        )
    if getattr(choice.record, "several_classes", False):
        raise ValueError(f"{choice.name}: found a model with a single logit, expected several classes")


def takes_of(choice: Choice[Any], offered: Iterable[str]) -> tuple[str, ...]:
    """Return the optional inputs of the function; for a custom function those of ``offered`` in its signature."""
    if choice.record:
        return tuple(choice.record.takes)
    # Any of them may be absent: ``resolve_choice`` raises if the function requires an argument that is not passed.
    declared = inspect.signature(choice.function).parameters
    return tuple(key for key in offered if key in declared)


def _check_needs(record: Method, classifier: Classifier) -> None:
    """Check that the classifier has the gradients and the CAM layer that a registered method needs.

    Raises:
        ValueError: it lacks one of them.
    """
    if {"gradients", "cam_layer", "relu", "layers"} & set(record.needs):
        check_differentiable(record.name, classifier)
    if "cam_layer" in record.needs and not classifier.cam_layer:
        # Not with the module, since only this message needs it.
        from saliency_assay.models.cam_layers import likely_cam_layer

        children = [name for name, _ in classifier.network.named_children()]
        problem = unknown("layer", "", children).partition("; ")[2]
        likely = likely_cam_layer(classifier.network)
        such = f", such as {likely!r}" if likely else ""
        raise ValueError(
            f"{record.name}: needs saliency_assay.wrap(…, cam_layer=…), the path of a layer{such}; {problem}"
        )


def workflow_seed(
    seed: int, *, model: str, data: str, method: str | None = None, metric: str | None = None
) -> int:
    """Return the ``seed`` with which ``attribute`` or ``score`` reproduces a job of the workflow.

    Args:
        seed: the training seed, as in ``seed{seed}`` in paths of results.
        model: the name of the model in the configuration.
        data: the name of the data set.
        method: for maps, the registered name, or the ``function`` of a custom method.
        metric: for scores, the registered name, or the ``function`` of a custom metric.

    Raises:
        ValueError: the method or metric is unknown, or neither or both of them are passed.

    >>> import saliency_assay
    >>> saliency_assay.workflow_seed(0, model="f_o", data="bam_os", method="smoothgrad")
    4442187920788574784
    >>> saliency_assay.workflow_seed(0, model="f_o", data="bam_os", method="vargrad")  # the same samples
    4442187920788574784
    >>> saliency_assay.workflow_seed(0, model="f_o", data="bam_os", metric="road")
    6146936151058274299
    """
    if (method is None) == (metric is None):
        raise ValueError("workflow_seed: expected either method or metric")
    seed = integer_of(seed, "seed")
    if method is not None:
        record = None if ":" in method else record_called(METHODS, method, "method")
        return map_seed(seed, model, data, (record.noise_group or record.name) if record else method)
    assert metric is not None
    if ":" in metric:
        return metric_seed(seed, model, data, metric)
    metric_record = record_called(
        [candidate for candidate in METRICS if candidate.scores_single_maps], metric, "metric"
    )
    return metric_seed(seed, model, data, metric_record.noise_group or metric_record.name)

"""A method or a metric by its registered name, as a reference ``package.module:name``, or as a function."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from torch import Tensor

from saliency_assay.api.inputs import Arrays, images_of
from saliency_assay.api.networks import check_differentiable
from saliency_assay.methods import METHODS, Method
from saliency_assay.methods.engine import arguments
from saliency_assay.methods.inputs import map_seed
from saliency_assay.metrics import METRICS, Metric
from saliency_assay.metrics.engine import metric_seed
from saliency_assay.models.classifier import Classifier
from saliency_assay.registry.records import record_of, resolve, unknown, with_defaults
from saliency_assay.registry.signatures import GENERATOR

Explaining: TypeAlias = str | Callable[..., Tensor] | Mapping[str, Any]
"""A method: a registered name, a function, or either under ``method`` beside its parameters, as under ``methods``
in a configuration."""


R = TypeVar("R", Method, Metric)


@dataclass(frozen=True)
class Choice(Generic[R]):
    """A function with all of its parameters, and its record where it is registered."""

    name: str
    function: Callable[..., Any]
    parameters: Mapping[str, Any]
    record: R | None


def choose(
    kind: str,
    what: object,
    records: Iterable[R],
    given: Mapping[str, Any],
    *,
    positional: tuple[str, ...],
    offered: Iterable[str],
) -> Choice[R]:
    """What ``what`` names, with the parameters ``given`` and the defaults of the rest.

    A function of one's own is called with the ``positional`` arguments, ``generator``, the parameters and what it takes
    of ``offered``.

    Raises:
        ValueError: no such name, a parameter that it does not have, or a value that is not valid.
    """
    given = {key: value.item() if isinstance(value, np.generic) else value for key, value in given.items()}
    if isinstance(what, str) and ":" not in what:
        record = record_of(records, what, kind)
        try:
            parameters = with_defaults(record.parameters, given)
        except ValueError as error:
            raise ValueError(f"{what}: {error}") from None
        if misfit := resolve(record.check)(parameters) if record.check else "":
            raise ValueError(f"{what}: {misfit}")
        return Choice(what, resolve(record.function), parameters, record)
    function = resolve(what) if isinstance(what, str) else what
    if not callable(function):
        expected = f"the name of a {kind}, a function or package.module:name"
        raise ValueError(f"{kind}: found {type(what).__name__}, expected {expected}")
    name = getattr(function, "__name__", type(function).__name__)
    signature = inspect.signature(function)
    taken = {key: None for key in offered if key in signature.parameters}
    try:
        signature.bind(*positional, **{GENERATOR: None}, **taken, **given)
    except TypeError as error:
        raise ValueError(
            f"{name}: {error}; expected ({', '.join([*positional, '*', GENERATOR])}, …)"
        ) from None
    return Choice(name, function, given, None)


@dataclass(frozen=True)
class Bound:
    """A method with all that it takes beside model, images, targets and generator."""

    name: str
    function: Callable[..., Tensor]
    arguments: Mapping[str, Any]
    registered: bool


def bind(
    method: Explaining,
    classifier: Classifier,
    *,
    knows_mean: bool,
    base: Explaining | None = None,
    background: Arrays | None = None,
    **parameters: Any,
) -> Bound:
    """The method, checked against what it takes and what of it the classifier can serve.

    ``knows_mean`` says whether the classifier's mean is that of the images that it was trained on.

    Raises:
        ValueError: as ``choose``; a base or background that the method does not take, or lacks; a model without the
            gradients, the CAM layer or the mean that it needs.
    """
    if isinstance(method, Mapping):
        entry = {**method, **parameters}
        if "method" not in entry:
            raise ValueError(f"method: found {sorted(method)}, expected the key method: a name or a function")
        own_base, own_background = entry.pop("base", None), entry.pop("background", None)
        return bind(
            entry.pop("method"),
            classifier,
            knows_mean=knows_mean,
            base=own_base if base is None else base,
            background=own_background if background is None else background,
            **entry,
        )
    chosen = choose(
        "method",
        method,
        METHODS,
        parameters,
        positional=("model", "images", "targets"),
        offered=[key for key, value in (("base", base), ("background", background)) if value is not None],
    )
    record, takes = chosen.record, takes_of(chosen, ("base", "background"))
    for key, value in (("base", base), ("background", background)):
        if value is not None and key not in takes:
            takers = [known.name for known in METHODS if key in known.takes]
            raise ValueError(f"{key}: {chosen.name} takes none; valid: {', '.join(takers)}")
    if "background" in takes and background is None:
        expected = "images [B, C, H, W], such as 100 of those that the model was trained on"
        raise ValueError(f"{chosen.name}: background: missing, expected {expected}")
    if record:
        _check_needs(record, classifier)
    check_mean(chosen, knows_mean)
    smoothed = None
    if base is not None:
        inner = bind(base, classifier, knows_mean=knows_mean)
        plain = {known.name: known.unsmoothable for known in METHODS}
        if reason := plain.get(inner.name, "") if inner.registered else "":
            raise ValueError(f"base: found {inner.name}, which {reason}, expected one such as gradient")
        smoothed = partial(inner.function, **inner.arguments)
    sample = () if background is None else images_of(background, "background")
    given = arguments(chosen.parameters, smoothed, sample, classifier.device)
    return Bound(chosen.name, chosen.function, given, record is not None)


def check_mean(chosen: Choice[Any], known: bool, remedy: str = "saliency_assay.wrap") -> None:
    """Refuse a parameter that asks for the data set's mean where it is not known.

    Raises:
        ValueError: there is one.
    """
    for key, value in chosen.parameters.items():
        parameter = chosen.record.parameters[key] if chosen.record else None
        if parameter and value == "mean" and not known:
            others = ", ".join(choice for choice in parameter.choices if choice != "mean")
            raise ValueError(
                f"{chosen.name}: {key}: found 'mean', but the model knows no mean of its images; give it by "
                f"{remedy}, or choose: {others}"
            )


def takes_of(chosen: Choice[Any], offered: Iterable[str]) -> tuple[str, ...]:
    """Return the arguments of the function beside its parameters; of ``offered`` where it is not registered."""
    if chosen.record:
        return tuple(chosen.record.takes)
    # A function without a default for what it is not given would have been refused when it was bound.
    declared = inspect.signature(chosen.function).parameters
    return tuple(key for key in offered if key in declared)


def _check_needs(record: Method, classifier: Classifier) -> None:
    if {"gradients", "cam_layer", "relu", "layers"} & set(record.needs):
        check_differentiable(record.name, classifier)
    if "cam_layer" in record.needs and not classifier.cam_layer:
        children = [name for name, _ in classifier.network.named_children()]
        problem = unknown("layer", "", children).partition("; ")[2]
        raise ValueError(
            f"{record.name}: needs saliency_assay.wrap(…, cam_layer=…), the path of a layer; {problem}"
        )


def workflow_seed(
    seed: int, *, model: str, data: str, method: str | None = None, metric: str | None = None
) -> int:
    """Return the ``seed`` with which ``attribute`` or ``score`` repeats a job of the workflow.

    Args:
        seed: the training seed, as in ``seed{seed}`` of the results' paths.
        model: its name in the configuration.
        data: the data set.
        method: of maps: the registered name, or the ``function`` of a custom method.
        metric: of scores: the registered name, or the ``function`` of a custom metric.

    Raises:
        ValueError: an unknown method or metric, or not exactly one of both.

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
    if method is not None:
        record = None if ":" in method else record_of(METHODS, method, "method")
        return map_seed(seed, model, data, (record.stream or record.name) if record else method)
    assert metric is not None
    if ":" not in metric:
        record_of([each for each in METRICS if each.judges_single_maps], metric, "metric")
    return metric_seed(seed, model, data, metric)

"""Checks of the section ``methods``, and of the layers that methods need of the models of a study."""

from collections.abc import Iterable, Mapping
from typing import Any

from saliency_assay.config.checks import custom_parameters, files_of, look_up, parameters_of
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.records import Catalog, Method, Model, Study
from saliency_assay.config.settings import CustomMethod, RegisteredMethod
from saliency_assay.registry.labels import label_of
from saliency_assay.registry.records import resolve
from saliency_assay.registry.signatures import GENERATOR, check_call, describe_function

POSITIONAL = ("model", "images", "targets")
"""Positional arguments of a method."""
WITHOUT_RELU = "; or use lrp_epsilon or integrated_gradients, which need no ReLU"


def read_methods(
    entries: Mapping[str, RegisteredMethod | CustomMethod], catalog: Catalog
) -> dict[str, Method]:
    """Return the records of all entries, in their order.

    Smoothing methods are read after the others, whose records their ``base`` may name.
    """
    plain = {name: entry for name, entry in entries.items() if getattr(entry, "base", None) is None}
    records = {name: _method(name, entry, {}, catalog) for name, entry in plain.items()}
    records |= {
        name: _method(name, entry, records, catalog) for name, entry in entries.items() if name not in plain
    }
    return {name: records[name] for name in entries}


def _method(
    name: str,
    entry: RegisteredMethod | CustomMethod,
    others: Mapping[str, Method],
    catalog: Catalog,
) -> Method:
    """Return the checked record of the entry ``methods.name``, whose ``base`` may be one of ``others``."""
    place = f"methods.{name}"
    if isinstance(entry, CustomMethod):
        return _custom_method(name, entry)
    record = look_up(place, "method", name if entry.method is None else entry.method, catalog.methods)
    keys = ("method", "label", *record.takes)
    # Optional keys that this method does not take are passed on as parameters, to be reported as unknown keys.
    misplaced = dict.fromkeys(entry.model_fields_set - {"parameters", *keys})
    parameters = parameters_of(place, record.parameters, {**misplaced, **entry.parameters}, keys)
    misfit = resolve(record.check)(parameters) if record.check else ""
    if misfit:
        raise ConfigError(f"{place}.{misfit}")
    base = None if entry.base is None else _base(place, entry.base, others, catalog)
    return Method(
        name=name,
        label=label_of(name, entry.label, record),
        method=record.name,
        function=record.function,
        parameters=parameters,
        needs=tuple(dict.fromkeys([*record.needs, *(base.needs if base else ())])),
        noise_group=record.noise_group or record.name,
        base=base,
        background=entry.background if "background" in record.takes else 0,
        uses_model=record.uses_model,
        files=base.files if base else (),
    )


def _base(place: str, base_name: str, others: Mapping[str, Method], catalog: Catalog) -> Method:
    """Return the method to smooth: an entry, or a registered method with its defaults."""
    if base_name not in others and base_name in catalog.methods:
        base = _method(base_name, RegisteredMethod(), {}, catalog)
    else:
        base = look_up(f"{place}.base", "method", base_name, others)
    record = catalog.methods.get(base.method)
    if reason := record.unsmoothable if record else "":
        problem = f"found {base.name}, which {reason}"
        raise ConfigError(f"{place}.base: {problem}; expected a method that does not, such as gradient")
    return base


def _custom_method(name: str, entry: CustomMethod) -> Method:
    """Return the record of a custom method, its parameters checked against the source code of the function."""
    place = f"methods.{name}"
    if "method" in entry.parameters:
        raise ConfigError(f"{place}: found both function and method, expected one of them")
    try:
        check_call(entry.function, entry.parameters, positional=POSITIONAL)
    except ValueError as error:
        raise ConfigError(f"{place}.{error}") from None
    description = describe_function(entry.function, passed=(*POSITIONAL, GENERATOR))
    return Method(
        name,
        label_of(name, entry.label),
        "",
        entry.function,
        custom_parameters(place, {**description.defaults, **entry.parameters}),
        noise_group=entry.function,
        summary=description.summary,
        files=files_of(place, entry.function, entry.files),
    )


def check_needs(
    study: Study, models: Mapping[str, Model], methods: Mapping[str, Method], catalog: Catalog
) -> None:
    """Check that the models of a study have the layers that its methods need.

    Raises:
        ConfigError: a model lacks a layer that a method needs.
    """
    for name in study.methods:
        for model in study.all_models:
            problem = unsupported(methods[name].needs, models[model])
            if problem:
                valid_architectures = [
                    other
                    for other, record in catalog.architectures.items()
                    if not unsupported(methods[name].needs, record)
                ]
                is_custom = (
                    models[model].architecture not in catalog.architectures and not models[model].cam_layer
                )
                valid = (
                    f"models.{model}.cam_layer set to one"
                    if is_custom
                    else ", ".join(valid_architectures) or "none"
                )
                raise ConfigError(
                    f"studies.{study.name}.methods: {name} {problem}, which {models[model].architecture} "
                    f"(models.{model}) does not have; valid: {valid}{WITHOUT_RELU if 'ReLU' in problem else ''}"
                )


def unsupported(needs: Iterable[str], architecture: Any) -> str:
    """Return a phrase for the first of ``needs`` that an architecture or model does not meet; empty if it meets all."""
    if "cam_layer" in needs and not architecture.cam_layer:
        return "needs a layer for class activation maps"
    if "pool_linear_head" in needs and not architecture.head_is_pool_linear:
        return "needs a head of average pooling and one linear layer"
    if "attention" in needs and not architecture.has_attention:
        return "needs attention over all tokens of an image"
    if "relu" in needs and not architecture.has_relu:
        return "needs a ReLU"
    return ""

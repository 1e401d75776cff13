"""The registries, and checks that all sections of the configuration share: references, parameters, paths."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from saliency_assay.config.errors import ConfigError
from saliency_assay.registry.records import Parameter, module_of, unknown, with_defaults
from saliency_assay.registry.signatures import source_of
from saliency_assay.registry.study_kind import StudyKind
from saliency_assay.runtime.user_files import Source

Parameters = dict[str, Any]
V = TypeVar("V")


@dataclass(frozen=True)
class Catalog:
    """All registries, by name. ``catalog.CATALOG`` is the one of the package."""

    data_kinds: Mapping[str, Any]
    architectures: Mapping[str, Any]
    methods: Mapping[str, Any]
    metrics: Mapping[str, Any]
    training: Mapping[str, Parameter]
    study_kinds: Mapping[str, StudyKind]


def custom_parameters(place: str, parameters: Mapping[str, Any]) -> Parameters:
    """Return the parameters of a custom function, sorted by name: their order in the file must not rerun a job.

    Raises:
        ConfigError: a value is of a type that only YAML has, such as a date, or a number is not finite or too large.
    """
    return {key: _plain(f"{place}.{key}", parameters[key]) for key in sorted(parameters)}


def _plain(place: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(f"{place}.{key}", value[key]) for key in sorted(value, key=str)}
    if isinstance(value, list | tuple):
        return [_plain(f"{place}[{number}]", one) for number, one in enumerate(value)]
    is_finite = abs(value) < 2**63 if isinstance(value, int) else isinstance(value, float) and isfinite(value)
    if value is None or isinstance(value, str) or is_finite:
        return value
    expected = "text, true, false, null, a finite number of at most 64 bits, or lists or mappings of these"
    raise ConfigError(f"{place}: found {value!r} ({type(value).__name__}), expected {expected}")


def look_up(place: str, kind: str, name: object, records: Mapping[str, V]) -> V:
    """Return the record called ``name``.

    Args:
        place: location of the name in the configuration, for the error.
        kind: noun for the named object, for the error.
        name: the value in the configuration.
        records: the valid names and their records.

    Raises:
        ConfigError: ``name`` is not in ``records``.
    """
    if not isinstance(name, str) or name not in records:
        raise ConfigError(f"{place}: {unknown(kind, name, records)}")
    return records[name]


def parameters_of(
    place: str,
    parameters: Mapping[str, Parameter],
    values: Mapping[Any, Any],
    keys: Iterable[str] = (),
    *,
    check: str = "",
) -> Parameters:
    """Return the values of all ``parameters`` of a registered object: checked ``values``, and defaults of the rest.

    Args:
        place: where the values stand in the configuration.
        parameters: the parameters of the object's registry record.
        values: the values in the entry, without its other ``keys``.
        keys: the other valid keys of the entry, for the error.
        check: function of the record that checks combinations of parameters; empty if it has none.

    Raises:
        ConfigError: a parameter that does not exist, a value out of range, or values that contradict each other.
    """
    for key in values:
        if key not in parameters:
            raise ConfigError(f"{place}: {unknown('key', key, [*parameters, *keys])}")
    try:
        return with_defaults(parameters, values, check)
    except ValueError as error:
        raise ConfigError(f"{place}.{error}") from None


def folder(place: str, path: str) -> Source:
    """Return a folder of images, which are too many to be tracked."""
    return Source(place, path, is_folder=True, is_tracked=False)


def files_of(place: str, function: str, paths: Iterable[str]) -> tuple[Source, ...]:
    """Return the ``files`` of the entry of a custom function, which can be called.

    Paths are relative to the folder that the function's module is imported from, usually that of the configuration. The
    latter itself is unknown to the job that creates the report, because it reads a copy of the configuration. For a
    compiled module, they are relative to the working directory.
    """
    module, folder = module_of(function), Path()
    if source := source_of(module):
        folder = source.parents[module.count(".") + (source.name == "__init__.py")]
    return tuple(Source(f"{place}.files", str(folder / path)) for path in paths)

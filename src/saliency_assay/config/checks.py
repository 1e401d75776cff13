"""Checks that all sections of the configuration share: references, parameters of registered objects, paths."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from saliency_assay.config.errors import ConfigError
from saliency_assay.config.records import Parameters
from saliency_assay.registry.records import Parameter, unknown, with_defaults

V = TypeVar("V")


def look_up(place: str, kind: str, name: object, known: Mapping[str, V]) -> V:
    """Return what ``name`` at ``place`` refers to.

    Raises:
        ConfigError: it is not in ``known``.
    """
    if not isinstance(name, str) or name not in known:
        raise ConfigError(f"{place}: {unknown(kind, name, known)}")
    return known[name]


def parameters_of(
    place: str, known: Mapping[str, Parameter], given: Mapping[Any, Any], keys: Iterable[str] = ()
) -> Parameters:
    """Return all ``known`` parameters of a registered object, those that are ``given`` checked.

    Args:
        place: where they stand in the configuration.
        known: the parameters of its record.
        given: what an entry holds beside ``keys``.
        keys: keys that the entry may have as well.

    Raises:
        ConfigError: a parameter that does not exist, or a value out of range.
    """
    for key in given:
        if key not in known:
            raise ConfigError(f"{place}: {unknown('key', key, [*known, *keys])}")
    try:
        return with_defaults(known, given)
    except ValueError as error:
        raise ConfigError(f"{place}.{error}") from None


def folder(place: str, path: str) -> str:
    """Return ``path``, which must be a folder.

    Raises:
        ConfigError: it is not.
    """
    if not Path(path).is_dir():
        raise ConfigError(f"{place}: found {path!r}, expected a folder that exists")
    return path


def file(place: str, path: str) -> str:
    """Return ``path``, which must be a file.

    Raises:
        ConfigError: it is not.
    """
    if not Path(path).is_file():
        raise ConfigError(f"{place}: found {path!r}, expected a file that exists")
    return path

"""Parts of every registry record: parameters with their valid values, and references to callables.

A record names its callable as ``package.module:name`` and resolves it on use, because the Snakefile reads
the registries each time it is parsed and must not pay for importing torch (see docs/decisions.md).
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from math import isfinite
from typing import Any, Protocol, TypeVar

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

TYPES = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Valid values of a parameter, of those of its type.

    ``minimum`` and ``maximum`` are inclusive. ``words`` may stand in place of a number.
    """

    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parameter(Limits):
    """One named parameter: its default, which also tells its type, and its valid values.

    A float parameter accepts integers; no other type is converted.
    """

    default: bool | int | float | str

    def problem(self, value: object) -> str | None:
        """Return why ``value`` is not valid here (a phrase that ends an error line), or None if it is."""
        if isinstance(value, str) and value in self.words:
            return None
        expected = type(self.default)
        fits = type(value) is expected or (expected is float and type(value) is int)
        if not fits:
            # YAML 1.1 has no exponent without a point, and a learning rate is where one finds out.
            hint = " (YAML reads 1e-3 as text, 1.0e-3 as a number)" if type(value) is str else ""
            words = "".join(f" or {word!r}" for word in self.words)
            return f"expected {TYPES[expected]}{words}{hint if expected is float else ''}"
        if isinstance(value, int | float) and not representable(value):
            return "expected a finite number"
        if self.choices and value not in self.choices:
            return f"valid: {', '.join(self.choices)}"
        assert isinstance(value, int | float | str)
        if not isinstance(value, str):
            if self.minimum is not None and value < self.minimum:
                return f"expected at least {self.minimum}"
            if self.maximum is not None and value > self.maximum:
                return f"expected at most {self.maximum}"
        return None


def representable(value: float) -> bool:
    """Return True for a finite number and, of integers, for one that 64 bits hold, as arrays and files do."""
    return -(1 << 63) <= value < 1 << 63 if isinstance(value, int) else isfinite(value)


class Record(Protocol):
    """A record of any registry."""

    @property
    def name(self) -> str:
        """Name in the configuration."""
        ...


R = TypeVar("R", bound=Record)


def module_of(function: str) -> str:
    """Return the module part of a reference ``package.module:name``."""
    return function.partition(":")[0]


def resolve(function: str) -> Callable[..., Any]:
    """Import and return the callable that ``package.module:name`` refers to.

    Raises:
        ValueError: the reference has another form, the module does not import, or it holds no such callable.
    """
    module, _, name = function.partition(":")
    if not module or not name:
        raise ValueError(f"{function!r}: expected package.module:name")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{function!r}: {error}") from error
    except SystemExit as error:  # a program that was not meant to be imported
        raise ValueError(f"{function!r}: its module exits when it is imported") from error
    if not callable(found):
        raise ValueError(f"{function!r}: expected a function, found {type(found).__name__}")
    return found  # type: ignore[no-any-return]  # getattr is untyped


def record_of(records: Iterable[R], name: str, kind: str) -> R:
    """Return the record called ``name``; the error lists the names there are."""
    known = {record.name: record for record in records}
    if name not in known:
        raise ValueError(unknown(kind, name, known))
    return known[name]


RENAMED = {
    "embedded": "synthetic",
    "explain": "max_explained_images",
    "mask_mass": "relevance_mass_accuracy",
    "mask_rank": "relevance_rank_accuracy",
}
"""Names of version 0.1, and what they are called since."""


def unknown(kind: str, name: object, valid: Iterable[str]) -> str:
    """Return an error line for a name that does not exist, with its new name or the nearest valid one first.

    YAML's keys may be no strings.
    """
    names = sorted(valid)
    near = get_close_matches(str(name), names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    if (renamed := RENAMED.get(str(name))) in names:
        hint = f"it is called {renamed!r} since version 0.2; "
    return f"unknown {kind} {shown(name)}; {hint}valid: {', '.join(names) or 'none'}"


def shown(value: object, longest: int = 80) -> str:
    """Format ``value`` for an error line: as YAML writes it where Python differs, and cut off when long."""
    try:
        text = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, a list within itself
        text = f"a {type(value).__name__} too long to show"
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def with_defaults(parameters: Mapping[str, Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every parameter: those given, and the defaults of the rest.

    Raises:
        ValueError: a parameter that does not exist, or a value out of range.
    """
    for key, value in given.items():
        if key not in parameters:
            raise ValueError(unknown("parameter", key, parameters))
        problem = parameters[key].problem(value)
        if problem:
            raise ValueError(f"{key}: found {shown(value)}, {problem}")
    return {key: given.get(key, parameter.default) for key, parameter in parameters.items()}

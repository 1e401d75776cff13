"""Parts of every registry record: parameters with their valid values, and references to callables.

A record refers to its callable as ``package.module:name``, which is imported on use: the Snakefile reads the registries
each time it is parsed and must not import torch (see docs/decisions.md).
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from math import isfinite
from typing import Any, Protocol, TypeVar

from saliency_assay.registry.aliases import plain, registered_name, similar_names
from saliency_assay.registry.limits import Limits

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

TYPES = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}


@dataclass(frozen=True)
class Parameter(Limits):
    """A parameter: its default, which also defines its type, and its valid values.

    A float parameter accepts integers; no other type is converted.
    """

    default: bool | int | float | str

    def problem(self, value: object) -> str | None:
        """Return a phrase for an error message if ``value`` is not valid, else None."""
        if isinstance(value, str) and value in self.words:
            return None
        expected = type(self.default)
        fits = type(value) is expected or (expected is float and type(value) is int)
        if not fits:
            # YAML 1.1 reads exponents without a decimal point, common in learning rates, as text.
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
    """Return True for a finite float, or an integer that fits into 64 bits, as arrays and files require."""
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
    """Import and return the callable with the reference ``package.module:name``.

    Raises:
        ValueError: ``function`` has another form, the import of the module fails, or the module has no such callable.
    """
    module, _, name = function.partition(":")
    if not module or not name:
        raise ValueError(f"{function!r}: expected package.module:name")
    try:
        target = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{function!r}: {error}") from error
    except SystemExit as error:  # a script without a main guard
        raise ValueError(f"{function!r}: its module exits when it is imported") from error
    if not callable(target):
        raise ValueError(f"{function!r}: expected a function, found {type(target).__name__}")
    return target  # type: ignore[no-any-return]  # getattr is untyped


def record_of(records: Iterable[R], name: str, kind: str) -> R:
    """Return the record called ``name``.

    Raises:
        ValueError: there is no such record; the message lists the valid names.
    """
    by_name = {record.name: record for record in records}
    if name not in by_name:
        raise ValueError(unknown(kind, name, by_name))
    return by_name[name]


RENAMED = {
    "centre": "center",  # codespell:ignore
    "criteria": "necessity_sufficiency",
    "draw_size": "sample_size",
    "draws": "samples",
    "embedded": "synthetic",
    "explain": "max_explained_images",
    "explain_order": "explanation_order",
    "halves": "optimal_halves",
    "mask_mass": "relevance_mass_accuracy",
    "mask_rank": "relevance_rank_accuracy",
    "noisy_baseline": "optimal_noisy_baseline",
    "normalisation": "normalization",  # codespell:ignore
    "randomisation": "randomization",
    "randomisation_spearman": "randomization_spearman",
    "randomisation_spearman_absolute": "randomization_spearman_absolute",
    "randomisation_ssim": "randomization_ssim",
    "square": "optimal_square",
}
"""Names of version 0.1 and their replacements."""


def unknown(kind: str, name: object, valid: Iterable[str]) -> str:
    """Return an error message for an unknown name, with the name that it stands for, or similar ones, as a hint.

    ``name`` may have any type, because keys in YAML can.
    """
    names = sorted(valid)
    alias_of = registered_name(name, names)
    matches = [alias_of] if alias_of else similar_names(name, names)
    matches = matches or _with_score(name, valid) or _resembling(str(name), names)
    hint = f"did you mean {' or '.join(map(repr, matches))}? " if matches else ""
    if (renamed := RENAMED.get(str(name))) in names:
        hint = f"it is called {renamed!r} since version 0.2; "
    return f"unknown {kind} {short_repr(name)}; {hint}valid: {', '.join(names) or 'none'}"


def _with_score(name: object, valid: Iterable[str]) -> list[str]:
    """Return the metrics that have a score called ``name``, if ``valid`` maps names to records of metrics."""
    records = valid if isinstance(valid, Mapping) else {}
    return [
        metric
        for metric, record in records.items()
        if any(plain(score.name) == plain(name) for score in getattr(record, "scores", ()))
    ]


def _resembling(name: str, names: list[str]) -> list[str]:
    """Return at most three of ``names`` that contain ``name`` or are spelled similarly."""
    contained = [valid_name for valid_name in names if len(name) > 2 and name in valid_name]
    as_word = [valid_name for valid_name in contained if name in valid_name.split("_")]
    spelled = {plain(valid_name): valid_name for valid_name in names}
    similar = get_close_matches(name, names, n=1)
    similar = similar or [spelled[each] for each in get_close_matches(plain(name), spelled, n=1)]
    return as_word[:3] or similar or contained[:3]


def short_repr(value: object, longest: int = 80) -> str:
    """Format ``value`` for an error message: null, true and false as in YAML, at most ``longest`` characters."""
    try:
        text = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, a list within itself
        text = f"a {type(value).__name__} too long to show"
    text = " ".join(text.split()) if "\n" in text else text  # an array
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def with_defaults(
    parameters: Mapping[str, Parameter], values: Mapping[str, Any], check: str = ""
) -> dict[str, Any]:
    """Return the checked ``values`` of parameters, and the defaults of the other parameters.

    ``check`` refers to a function that returns why values contradict each other; empty for none.

    Raises:
        ValueError: a parameter does not exist, a value is not valid, or values contradict each other.
    """
    for key, value in values.items():
        if key not in parameters:
            raise ValueError(unknown("parameter", key, parameters))
        problem = parameters[key].problem(value)
        if problem:
            raise ValueError(f"{key}: found {short_repr(value)}, {problem}")
    complete = {key: values.get(key, parameter.default) for key, parameter in parameters.items()}
    if problem := resolve(check)(complete) if check else "":
        raise ValueError(problem)
    return complete

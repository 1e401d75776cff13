"""Sweeps: families of methods or metrics that differ only in the values of parameters.

An entry with the key ``sweep`` is a family. It becomes one entry for each combination of values: the members of the
family, which are ordinary methods or metrics with names and labels of their own.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from saliency_assay.registry.records import representable, short_repr

Value = bool | int | float | str
WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
"""Values that are text; they become part of file names."""
LEAST_VALUES = 2
LEAST_IMAGES = 4
"""Smallest number of images, or of groups of them, of a study with families of methods: each half then has two."""


@dataclass(frozen=True)
class Member:
    """Membership of a method or metric in a family."""

    family: str
    family_label: str
    values: Mapping[str, Value]
    """Values of the swept parameters, sorted by parameter, so that their order in a file does not change names."""

    @property
    def name(self) -> str:
        """Name of the entry, such as ``smoothgrad_noise_0.05``."""
        return "_".join([self.family, *(f"{key}_{value_text(value)}" for key, value in self.values.items())])

    @property
    def label(self) -> str:
        """Label of the entry, such as ``SmoothGrad (noise 0.05)``."""
        return f"{self.family_label} ({values_text(self.values)})".replace(") (", ", ")


@dataclass(frozen=True)
class Family:
    """Members of one family that a study or benchmark has; plain data, so that it can be a parameter of jobs."""

    name: str
    label: str
    members: Mapping[str, Mapping[str, Value]]
    """For each member the values of the swept parameters."""

    @property
    def parameters(self) -> list[str]:
        """Swept parameters, the one with the most values first."""
        values = {
            key: {value_text(each[key]) for each in self.members.values()}
            for key in next(iter(self.members.values()))
        }
        return sorted(values, key=lambda key: -len(values[key]))


def value_text(value: Value) -> str:
    """Return a value as in names and labels; 5.0 and 5 are equal."""
    if isinstance(value, bool):
        return str(value).lower()
    return float.__repr__(value).removesuffix(".0") if isinstance(value, float) else str(value)


def values_text(values: Mapping[str, Value]) -> str:
    """Return the values of parameters as in labels, such as ``noise 0.05, samples 10`` or ``layer1``."""
    texts = {key: value_text(value) for key, value in values.items()}
    return ", ".join(
        text if text.startswith(key) else f"{key.replace('_', ' ')} {text}" for key, text in texts.items()
    )


def members_of(place: str, name: str, label: str, sweep: object, fixed: Collection[str]) -> list[Member]:
    """Return the members of a family, one for each combination of values.

    Args:
        place: place of the family's entry, for errors.
        name: name of the family.
        label: label of the family.
        sweep: value of the key ``sweep``: lists of values by parameter.
        fixed: parameters that the entry sets.

    Raises:
        ValueError: ``sweep`` is no mapping of parameters to lists, a list has fewer than two values, equal values or
            values of another type, or a parameter is also set outside of it.
    """
    if not isinstance(sweep, Mapping) or not sweep:
        found = short_repr(sweep)
        raise ValueError(f"{place}.sweep: found {found}, expected parameters with lists of values")
    for key, values in sweep.items():
        of_key = f"{place}.sweep.{key}"
        if not isinstance(values, list | tuple):
            raise ValueError(f"{of_key}: found {short_repr(values)}, expected a list of values")
        if len(values) < LEAST_VALUES:
            found = f"{len(values)} value{'s' if len(values) != 1 else ''}"
            raise ValueError(f"{of_key}: found {found}, expected at least {LEAST_VALUES}")
        for value in values:
            if not _is_valid(value):
                expected = "numbers, true, false, or words of letters, digits and _ . + - (they name files)"
                raise ValueError(f"{of_key}: found {short_repr(value)}, expected {expected}")
        texts = [value_text(value) for value in values]
        if len(set(texts)) < len(texts):
            raise ValueError(f"{of_key}: found {short_repr(list(values))}, expected no equal values")
        if key in fixed:
            raise ValueError(f"{of_key}: found a value in {place}.{key}, too, expected one of the two")
    keys = sorted(sweep)
    combinations = product(*(sweep[key] for key in keys))
    return [Member(name, label, dict(zip(keys, values, strict=True))) for values in combinations]


def families_of(entries: Iterable[tuple[str, Member | None]]) -> list[Family]:
    """Return the families with at least two members among ``entries``: names with their membership."""
    members: dict[tuple[str, str], dict[str, Mapping[str, Value]]] = {}
    for name, member in entries:
        if member:
            members.setdefault((member.family, member.family_label), {})[name] = member.values
    return [
        Family(*names, of_family) for names, of_family in members.items() if len(of_family) >= LEAST_VALUES
    ]


def _is_valid(value: Any) -> bool:
    if isinstance(value, str):
        return WORD.fullmatch(value) is not None
    return isinstance(value, int | float) and representable(value)

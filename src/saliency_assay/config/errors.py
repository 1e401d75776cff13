"""Errors of the configuration as one line each: place, value found, valid values."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from saliency_assay.registry.records import short_repr, unknown

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

UNIONS = ("data", "models", "methods", "metrics", "studies")
"""Sections whose entries are unions: Pydantic's locations contain the tag of the member after the name of the entry."""
TAGS = [["folder"], ["pairs"], ["names"], ["text"], ["count"], ["file"], ["entries"]]
"""Tags of values of several forms, which follow the name of their key."""
NAME = "expected a name of letters, digits and underscores that starts with a letter"

TYPES = {
    "bool": "true or false",
    "dict": "a mapping",
    "float": "a number",
    "int": "an integer",
    "model": "a mapping",
    "model_attributes": "a mapping",
    "string": "a string",
}
RANGES = {
    "greater_than": "expected above {gt:.12g}",
    "greater_than_equal": "expected at least {ge:.12g}",
    "less_than": "expected below {lt:.12g}",
    "less_than_equal": "expected at most {le:.12g}",
    "string_too_short": "expected {min_length} or more characters",
    "too_long": "expected {max_length} or fewer entries",
    "too_short": "expected {min_length} or more entries",
}


class ConfigError(ValueError):
    """An invalid configuration; the message is one line with the place, the value found and the valid values."""


def line_of(errors: "Sequence[ErrorDetails]") -> str:
    """Return the message for the fault with the shortest place, that is, nearest to the top level."""
    lines = [_place_and_fault(error) for error in errors if not _is_consequence(error)]
    place, fault = min(lines, key=lambda line: len(line[0]))
    return f"{'.'.join(map(str, place)) or 'top level'}: {fault}"


def _is_consequence(error: "ErrorDetails") -> bool:
    """Return True if a list is too short only because some of its entries are invalid."""
    return error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]


def _place_and_fault(error: "ErrorDetails") -> tuple[list[int | str], str]:
    """Return the keys and indices that lead to the fault, and its message."""
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    place = list(error["loc"])
    # Tags of union members are not part of the configuration, so they are removed from the place.
    if len(place) > 2 and place[0] in UNIONS and place[2] != "[key]":
        del place[2]
        if place[2:3] in (["coco"], ["classes"], ["class_map"]) and place[3:4] in TAGS:
            del place[3:4]
    found_value = f"found {short_repr(list(value) if isinstance(value, tuple) else value)}"
    if kind == "fault":
        return place, context["message"]
    if place[-1:] == ["[key]"]:
        if kind == "literal_error":
            return place[:-2], unknown("key", value, _choices(context))
        return place[:-2], f"{found_value}, {NAME if len(place) == 3 else 'expected a string'}"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        if not isinstance(value, Mapping) or "kind" not in value:
            return place, "key 'kind' is missing; required: kind"
        return [*place, "kind"], f"found {short_repr(value['kind'])}; valid: {', '.join(_choices(context))}"
    if kind == "literal_error":
        return place, f"{found_value}; valid: {', '.join(_choices(context))}"
    if kind in RANGES:
        return place, f"{found_value}, {RANGES[kind].format(**context)}"
    expected = TYPES.get(kind.removesuffix("_type"))
    return place, f"{found_value}, expected {expected}" if expected else f"{found_value}, {error['msg']}"


def _choices(context: Mapping[str, Any]) -> list[str]:
    """Return the valid values, which Pydantic joins into one string."""
    return re.findall(r"'(\w+)'", context.get("expected") or context.get("expected_tags") or "")

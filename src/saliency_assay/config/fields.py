"""Base classes and field types of the Pydantic models of the configuration, whose objects are its records.

Values are not converted: 3.0 is not an integer and ``true`` is not a number. Numbers keep their type, because they
become parameters of jobs. Each fault is one phrase, to which ``config.errors`` adds the place.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from types import NoneType
from typing import Annotated, Any, ClassVar, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import any_schema

from saliency_assay.registry.records import representable, short_repr, unknown
from saliency_assay.runtime.user_files import Source

MARKUP = "${}"
"""Signs of matplotlib's formulas and of Snakemake's wildcards, which labels must not contain."""

LABEL = "[Display name](#display-names)."
"""Description of the key ``label``."""
FUNCTION = "as `package.module:name`, beside the configuration or on `PYTHONPATH`."
FILES = "Files that the function reads, relative to its module; tracked by content."
WITHOUT_FUNCTION = ConfigDict(
    json_schema_extra={"additionalProperties": True, "not": {"required": ["function"]}}
)
"""In the schema, an entry with a function is a custom one."""

T = TypeVar("T")


class _Unchecked:
    """Annotation of values that come from the project's code and not from a file."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return any_schema()


Derived = Annotated[T, _Unchecked(), SkipJsonSchema(), Field(exclude=True)]
"""A field that is no key of the configuration but follows from it."""


def fault(message: str) -> PydanticCustomError:
    """Return an error for a validator to raise; its ``message`` is printed unchanged."""
    return PydanticCustomError("fault", "{message}", {"message": message})


class Settings(BaseModel):
    """A mapping of the configuration: its keys, their types, defaults and ranges."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    replaced_keys: ClassVar[Mapping[str, str]] = {}
    """For required keys their names in version 0.1, if these have another meaning today."""

    @classmethod
    def own_keys(cls) -> list[str]:
        """Return the valid keys of the mapping, without the parameters of an ``Entry``."""
        return [name for name, field in cls.model_fields.items() if not field.exclude]

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, raw: Any) -> Any:
        """Refuse missing and unknown keys with a message that lists the required or valid keys."""
        if not isinstance(raw, Mapping):
            return raw
        unknown_keys = [key for key in raw if key not in cls.own_keys()]
        required = sorted(name for name, field in cls.model_fields.items() if field.is_required())
        for missing in (name for name in required if name not in raw):
            matches = get_close_matches(missing, map(str, unknown_keys), n=1)
            hint = f"is {matches[0]!r} a misspelling of it? " if matches else ""
            if (old := cls.replaced_keys.get(missing)) in raw:
                hint = f"{old!r} is called {missing!r} since version 0.2; "
            raise fault(f"key {missing!r} is missing; {hint}required: {', '.join(required)}")
        return cls._with_parameters(raw, unknown_keys)

    @classmethod
    def _with_parameters(cls, raw: Mapping[Any, Any], unknown_keys: list[Any]) -> Mapping[Any, Any]:
        """Refuse unknown keys; ``Entry`` overrides this."""
        if unknown_keys:
            raise fault(unknown("key", unknown_keys[0], cls.own_keys()))
        return raw


class Record(Settings):
    """A named mapping of the configuration, whose ``complete`` sets the ``Derived`` fields and the defaults."""

    model_config = ConfigDict(frozen=False)

    name: Derived[str] = ""


class Entry(Record):
    """A mapping with its own keys and with parameters of the registered object or function that it names."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": True})

    parameters: Derived[dict[Any, Any]] = Field({})
    """All other keys; once the entry is complete, the values of all parameters."""
    sources: Derived[tuple[Source, ...]] = ()
    """Files and folders of the user that jobs read; the content of those that are tracked is part of their settings."""

    @classmethod
    def _with_parameters(cls, raw: Mapping[Any, Any], unknown_keys: list[Any]) -> Mapping[Any, Any]:
        """Move all other keys into ``parameters``."""
        own_values = {key: value for key, value in raw.items() if key in cls.own_keys()}
        return {**own_values, "parameters": {key: raw[key] for key in unknown_keys}}


def entry_kind(entry: Any) -> str:
    """Return ``custom`` for an entry with a function, else ``registered``: the tag of its model."""
    return "custom" if isinstance(entry, dict) and "function" in entry else "registered"


def _keep_number(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Validate a number and return it unchanged; for a float field, Pydantic would convert 8 to 8.0."""
    if isinstance(value, int | float) and not representable(value):
        raise fault(f"found {short_repr(value)}, expected a finite number")
    validate(value)
    return value


def _check_64_bits(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Validate an integer, which must fit into 64 bits."""
    if type(value) is int and not representable(value):
        raise fault(f"found {short_repr(value)}, expected an integer of 64 bits")
    return validate(value)


def _to_tuple(value: Any) -> Any:
    """Return a list as a tuple; refuse all other types."""
    if not isinstance(value, list):
        raise fault(f"found {short_repr(value)}, expected a list")
    return tuple(value)


def _check_distinct(values: tuple[T, ...]) -> tuple[T, ...]:
    """Refuse duplicate entries; 1 and true are different in YAML, but equal in Python."""
    typed_values = [(isinstance(value, bool), value) for value in values]
    if any(value in typed_values[:index] for index, value in enumerate(typed_values)):
        raise fault(f"found {short_repr(list(values))}, expected no duplicate entries")
    return values


def _check_line(value: str) -> str:
    """Refuse a text that is blank or has line breaks, control characters or the signs ``MARKUP``."""
    if not value.strip() or len(value.splitlines()) > 1 or not "".join(value.split()).isprintable():
        raise fault(f"found {short_repr(value)}, expected one line of text")
    if signs := [sign for sign in MARKUP if sign in value]:
        raise fault(
            f"found {short_repr(value)}, expected a text without {signs[0]} (write symbols in Unicode)"
        )
    return value


class _NoNull:
    """Annotation that validates ``T | None`` as ``T``: a key may be absent, but its value cannot be null."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        kinds = [kind for kind in get_args(source) if kind is not NoneType]
        return handler(kinds[0])


INTEGER, NUMBER = WrapValidator(_check_64_bits), WrapValidator(_keep_number)
"""Validators, to be listed after the range in ``Annotated``."""

Integer = Annotated[int, INTEGER]
Natural = Annotated[int, Field(ge=0), INTEGER]
Positive = Annotated[int, Field(ge=1), INTEGER]
Number = Annotated[float, NUMBER]
Text = Annotated[str, Field(min_length=1)]
Line = Annotated[str, AfterValidator(_check_line), Field(json_schema_extra={"minLength": 1})]
Sequence = Annotated[tuple[T, ...], BeforeValidator(_to_tuple)]
Distinct = Annotated[
    tuple[T, ...],
    BeforeValidator(_to_tuple),
    AfterValidator(_check_distinct),
    Field(json_schema_extra={"uniqueItems": True}),
]
"""A list without duplicate entries."""
OrAbsent = Annotated[T | None, _NoNull()]  # an optional key, None if absent

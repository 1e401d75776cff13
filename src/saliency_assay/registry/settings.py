"""Base class and field types of the Pydantic models that the configuration is made of.

Nothing is converted: 3.0 is no integer, ``true`` no number, and a number is kept as it is written, because it
becomes a parameter of a job. Each fault is one phrase; ``config.errors`` adds the place.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args

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

from saliency_assay.registry.records import representable, shown, unknown

T = TypeVar("T")


def fault(message: str) -> PydanticCustomError:
    """Return the error of a validator, whose ``message`` is shown as it is."""
    return PydanticCustomError("fault", "{message}", {"message": message})


class Settings(BaseModel):
    """A mapping of the configuration: its keys, their types, defaults and ranges."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @classmethod
    def own_keys(cls) -> list[str]:
        """Return the keys that the mapping may have."""
        return list(cls.model_fields)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, raw: Any) -> Any:
        """Refuse a missing and an unknown key, each with the keys that are valid."""
        if not isinstance(raw, Mapping):
            return raw
        unknown_keys = [key for key in raw if key not in cls.own_keys()]
        required = sorted(name for name, field in cls.model_fields.items() if field.is_required())
        for missing in (name for name in required if name not in raw):
            near = get_close_matches(missing, map(str, unknown_keys), n=1)
            hint = f"did you mean it by {near[0]!r}? " if near else ""
            raise fault(f"key {missing!r} is missing; {hint}required: {', '.join(required)}")
        return cls._with_parameters(raw, unknown_keys)

    @classmethod
    def _with_parameters(cls, raw: Mapping[Any, Any], unknown_keys: list[Any]) -> Mapping[Any, Any]:
        if unknown_keys:
            raise fault(unknown("key", unknown_keys[0], cls.own_keys()))
        return raw


class Entry(Settings):
    """A mapping that holds, beside its own keys, parameters of the registered object or function that it names."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": True})

    parameters: SkipJsonSchema[dict[Any, Any]] = Field({})  # all other keys, which are not checked here

    @classmethod
    def own_keys(cls) -> list[str]:
        """Return the keys of its own."""
        return [name for name in cls.model_fields if name != "parameters"]

    @classmethod
    def _with_parameters(cls, raw: Mapping[Any, Any], unknown_keys: list[Any]) -> Mapping[Any, Any]:
        own = {key: value for key, value in raw.items() if key in cls.own_keys()}
        return {**own, "parameters": {key: raw[key] for key in unknown_keys}}


def _as_written(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Validate a number and return it unchanged: Pydantic would make 8 to 8.0 where a float is expected."""
    if isinstance(value, int | float) and not representable(value):
        raise fault(f"found {shown(value)}, expected a finite number")
    validate(value)
    return value


def _of_64_bits(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    if type(value) is int and not representable(value):
        raise fault(f"found {shown(value)}, expected an integer of 64 bits")
    return validate(value)


def _entries(value: Any) -> Any:
    if not isinstance(value, list):
        raise fault(f"found {shown(value)}, expected a list")
    return tuple(value)


def _once(values: tuple[T, ...]) -> tuple[T, ...]:
    """Refuse an entry that stands twice; to YAML, 1 and true differ."""
    marked = [(isinstance(value, bool), value) for value in values]
    if any(value in marked[:index] for index, value in enumerate(marked)):
        raise fault(f"found {shown(list(values))}, expected no entry twice")
    return values


class _NoNull:
    """Validates ``T | None`` as ``T``: a key may be absent, but null is no value."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        kinds = [kind for kind in get_args(source) if kind is not NoneType]
        return handler(kinds[0])


INTEGER, NUMBER = WrapValidator(_of_64_bits), WrapValidator(_as_written)
"""To be named after the range in ``Annotated``."""

Integer = Annotated[int, INTEGER]
Natural = Annotated[int, Field(ge=0), INTEGER]
Positive = Annotated[int, Field(ge=1), INTEGER]
Number = Annotated[float, NUMBER]
Text = Annotated[str, Field(min_length=1)]
Sequence = Annotated[tuple[T, ...], BeforeValidator(_entries)]
Distinct = Annotated[
    tuple[T, ...],
    BeforeValidator(_entries),
    AfterValidator(_once),
    Field(json_schema_extra={"uniqueItems": True}),
]
"""A list in which no entry stands twice."""
OrAbsent = Annotated[T | None, _NoNull()]  # a key that may be absent, and is None then

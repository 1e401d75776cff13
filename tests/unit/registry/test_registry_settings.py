"""Base class and field types of the configuration's models, without a configuration."""

from typing import Any

import pytest
from configurations import agrees
from pydantic import Field, ValidationError

from saliency_assay.config.fields import (
    Distinct,
    Entry,
    Integer,
    Number,
    OrAbsent,
    Sequence,
    Settings,
    Text,
)


class Inner(Settings):
    name: Text


class Some(Settings):
    count: Integer = 1
    share: Number = 0.5
    once: Distinct[Any] = ()
    inner: OrAbsent[Inner] = None
    words: OrAbsent[Sequence[str]] = Field(None, min_length=2)


class Named(Entry):
    kind: str
    size: Integer = 8


def faults(model: type[Settings], raw: Any) -> dict[tuple[Any, ...], str]:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(raw)
    return {error["loc"]: error["msg"] for error in caught.value.errors()}


def test_values_are_kept_as_they_are_written() -> None:
    settings = Some.model_validate({"count": 3, "share": 2, "once": [1, "a"], "words": ["a", "b"]})
    assert repr(settings) == "Some(count=3, share=2, once=(1, 'a'), inner=None, words=('a', 'b'))"
    assert Some.model_validate({"inner": {"name": "a"}}).inner == Inner(name="a")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("count", 1 << 63, "found 9223372036854775808, expected an integer"),
        ("share", 1 << 63, "found 9223372036854775808, expected a finite"),
        ("share", float("nan"), "found nan, expected a finite"),
        ("once", [1, 1.0], "found [1, 1.0], expected no duplicate"),
        ("once", [[1], [1]], "found [[1], [1]], expected no duplicate"),
        ("once", "a", "found 'a', expected a list"),
        ("count", 3.0, "integer"),
        ("count", True, "integer"),
        ("share", True, "number"),
        ("share", "1", "number"),
        ("inner", None, "Inner"),
        ("words", None, "list"),
        ("words", ["a"], "2"),
    ],
)
def test_values_that_are_refused(key: str, value: object, message: str) -> None:
    [(place, text)] = faults(Some, {key: value}).items()
    assert place == (key,)
    assert message in text


def test_the_largest_integers_are_taken() -> None:
    largest, smallest = (1 << 63) - 1, -(1 << 63)
    settings = Some.model_validate({"count": largest, "share": smallest, "once": [1, True, 0, False]})
    assert (settings.count, settings.share, settings.once) == (largest, smallest, (1, True, 0, False))


def test_unknown_and_missing_keys_are_named_with_the_valid_ones() -> None:
    (message,) = faults(Some, {"cuont": 1}).values()
    assert agrees(message, "unknown key 'cuont' … 'count' … valid: count, inner, once, share, words")
    (message,) = faults(Inner, {"nmae": "a"}).values()
    assert agrees(message, "key 'name' is missing … 'nmae' … required: name")


def test_an_entry_gathers_all_other_keys() -> None:
    assert Named.own_keys() == ["kind", "size"]
    entry = Named.model_validate({"kind": "a", 3: 4, "parameters": 5, "noise": None})
    assert (entry.kind, entry.size) == ("a", 8)
    assert entry.parameters == {3: 4, "parameters": 5, "noise": None}
    assert faults(Named, {"size": 1}) == {(): "key 'kind' is missing; required: kind"}

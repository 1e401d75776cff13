"""A configuration against ``config/schema.yaml``: defaults filled in, and errors of one line.

The shape of a configuration is checked here; what its names mean is checked in ``config``.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from saliency_assay.registry.records import representable, shown, unknown

Schema = Mapping[str, Any]

# JSON Schema takes 3.0 for an integer, registry.Parameter does not; a seed of 3.0 would name a folder seed3.0.
# And NaN is below no minimum.
Validator: type[Draft202012Validator] = extend(  # type: ignore[no-untyped-call]  # so in its stubs
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many(
        {
            "integer": lambda _, value: type(value) is int and representable(value),
            "number": lambda _, value: type(value) in (int, float) and representable(value),
        }
    ),
)

TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
}

EXPECTED = {
    "minimum": "expected at least {}",
    "exclusiveMinimum": "expected above {}",
    "exclusiveMaximum": "expected below {}",
    "maximum": "expected at most {}",
    "minLength": "expected {} or more characters",
    "minItems": "expected {} or more entries",
    "maxItems": "expected {} or fewer entries",
    "minProperties": "expected {} or more entries",
    "uniqueItems": "expected no entry twice",
    "pattern": "expected a name of letters, digits and underscores that starts with a letter",
}


class ConfigError(ValueError):
    """A configuration that is not valid. The message is one line: where, what was found, what is valid."""


def check_shape(raw: Any, schema: Schema, source: str) -> dict[str, Any]:
    """``raw`` with all defaults filled in.

    Args:
        raw: the configuration as YAML gives it.
        schema: the JSON Schema, which may use ``$ref`` to its own ``$defs`` and ``if/then/else``.
        source: the configuration's file, for messages.

    Raises:
        ConfigError: one of the faults that are nearest to the top.
    """
    error = min(Validator(schema).iter_errors(raw), key=lambda error: len(error.absolute_path), default=None)
    if error is not None:
        raise ConfigError(_line(error, source))
    filled: dict[str, Any] = _fill(raw, schema, schema)
    return filled


def _line(error: ValidationError, source: str) -> str:
    place = ".".join(map(str, error.absolute_path)) or "top level"
    keyword = "pattern" if "propertyNames" in error.absolute_schema_path else str(error.validator)
    wanted: Any = error.validator_value
    instance: Any = error.instance
    found = f"found {shown(instance)}"
    if keyword == "additionalProperties":
        valid = _properties(error)
        fault = unknown("key", next(key for key in instance if key not in valid), valid)
    elif keyword == "required":
        missing = next(key for key in wanted if key not in instance)
        strange = [str(key) for key in instance if key not in _properties(error)]
        near = get_close_matches(missing, strange, n=1)
        hint = f"did you mean it by {near[0]!r}? " if near else ""
        fault = f"key {missing!r} is missing; {hint}required: {', '.join(wanted)}"
    elif keyword == "type" and wanted == "number" and type(instance) in (int, float):
        fault = f"{found}, expected a finite number"
    elif keyword == "type" and wanted == "integer" and type(instance) is int:
        fault = f"{found}, expected an integer of 64 bits"
    elif keyword == "type":
        kinds = wanted if isinstance(wanted, list) else [wanted]
        fault = f"{found}, expected {' or '.join(TYPES[kind] for kind in kinds)}"
    elif keyword == "enum":
        fault = f"{found}; valid: {', '.join(map(str, wanted))}"
    elif keyword in EXPECTED:
        fault = f"{found}, {EXPECTED[keyword].format(wanted)}"
    else:
        fault = error.message
    return f"{source}: {place}: {fault}"


def _properties(error: ValidationError) -> Schema:
    """The keys that are named where ``error`` was found."""
    found: Schema = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
    return found


def _fill(value: Any, schema: Schema, root: Schema) -> Any:
    """``value``, checked before, with the defaults of ``schema`` for every key that is missing."""
    if "$ref" in schema:
        value = _fill(value, _resolve(schema["$ref"], root), root)
    if isinstance(value, Mapping):
        properties: Schema = schema.get("properties", {})
        filled = {key: _fill(entry, _schema_of(key, schema), root) for key, entry in value.items()}
        for key, entry_schema in properties.items():
            if key not in filled and "default" in entry_schema:
                filled[key] = _fill(entry_schema["default"], entry_schema, root)
        value = filled
    elif isinstance(value, list):
        value = [_fill(entry, schema.get("items", {}), root) for entry in value]
    for branch in schema.get("allOf", ()):
        holds = Draft202012Validator(branch["if"]).is_valid(value)
        value = _fill(value, branch.get("then" if holds else "else", {}), root)
    return value


def _schema_of(key: str, schema: Schema) -> Schema:
    further = schema.get("additionalProperties")
    found: Schema = schema.get("properties", {}).get(key, further if isinstance(further, Mapping) else {})
    return found


def _resolve(reference: str, root: Schema) -> Schema:
    node: Any = root
    for part in reference.removeprefix("#/").split("/"):
        node = node[part]
    resolved: Schema = node
    return resolved

"""A configuration against ``config/schema.yaml``: defaults filled in, and errors of one line.

The shape of a configuration is checked here; what its names mean is checked in ``config``.
"""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from saliency_assay.registry import unknown

Schema = Mapping[str, Any]

EXPECTED = {
    "minimum": "expected at least {}",
    "maximum": "expected at most {}",
    "minLength": "expected at least {} characters",
    "minItems": "expected at least {} entries",
    "minProperties": "expected at least {} entries",
    "pattern": "expected a name of letters, digits and underscores that starts with a letter",
    "const": "valid: {}",
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
        ConfigError: the most telling of the faults.
    """
    error = best_match(Draft202012Validator(schema).iter_errors(raw))
    if error is not None:
        raise ConfigError(_line(error, source))
    filled: dict[str, Any] = _fill(raw, schema, schema)
    return filled


def _line(error: ValidationError, source: str) -> str:
    place = ".".join(map(str, error.absolute_path)) or "top level"
    keyword = str(error.validator)
    wanted: Any = error.validator_value
    instance: Any = error.instance
    if keyword == "additionalProperties":
        valid = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
        key = next(key for key in instance if key not in valid)
        return f"{source}: {place}: {unknown('key', key, valid)}"
    if keyword == "required":
        missing = next(key for key in wanted if key not in instance)
        return f"{source}: {place}: key {missing!r} is missing; required: {', '.join(wanted)}"
    found = f"{source}: {place}: found {instance!r}"
    if keyword == "type":
        kinds = wanted if isinstance(wanted, list) else [wanted]
        return f"{found}, expected {' or '.join(kinds)}"
    if keyword == "enum":
        return f"{found}; valid: {', '.join(map(str, wanted))}"
    if keyword in EXPECTED:
        return f"{found}, {EXPECTED[keyword].format(wanted)}"
    return f"{source}: {place}: {error.message}"


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

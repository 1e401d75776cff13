"""Generate the configuration's JSON Schema, for editors, and its reference page from the models.

``python -m tools.configuration_reference`` writes ``config/schema.yaml`` and ``docs/configuration.md``.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import yaml

from saliency_assay.catalog import CATALOG
from saliency_assay.config import settings
from saliency_assay.registry.records import resolve
from saliency_assay.registry.settings import Settings
from tools.source_tree import ROOT

SCHEMA, PAGE = ROOT / "config/schema.yaml", ROOT / "docs/configuration.md"
COMMAND = "python -m tools.configuration_reference"

KINDS = tuple(CATALOG.study_kinds.values())


def _study_models() -> Iterator[tuple[type[Settings], str]]:
    """Yield the models of the kinds of study with their headings, each before the models of its keys."""
    for kind in KINDS:
        model: Any = resolve(kind.settings)
        yield model, f"Studies of kind {kind.name}"
        for key, field in model.model_fields.items():
            for argument in get_args(field.annotation):
                if isinstance(argument, type) and issubclass(argument, Settings):
                    yield argument, key.capitalize()


HEADINGS: Mapping[type[Settings], str] = {
    settings.Configuration: "Top level",
    settings.DataSettings: "Data",
    settings.PlainData: "Data without files",
    settings.FolderData: "Data in folders",
    settings.ComposedData: "Composed data",
    settings.SyntheticData: "Kind synthetic",
    settings.BamData: "Kind bam",
    settings.CocoSource: "Pairs of COCO",
    settings.CaptionData: "Kind caption",
    settings.ModelSettings: "Models",
    settings.RegisteredModel: "Registered architectures",
    settings.CustomModel: "Custom networks",
    settings.Normalization: "Normalization",
    settings.RegisteredMethod: "Methods",
    settings.CustomMethod: "Custom methods",
    settings.RegisteredMetric: "Metrics",
    settings.CustomMetric: "Custom metrics",
    settings.StudySettings: "Studies",
    **dict(_study_models()),
    settings.ReliabilitySettings: "Reliability",
    settings.ReportSettings: "Report",
}
"""All models with their headings, in the order of the page."""
TOP = (
    settings.Configuration, settings.DataSettings, settings.ModelSettings, settings.RegisteredMethod,
    settings.RegisteredMetric, settings.StudySettings, settings.ReliabilitySettings, settings.ReportSettings,
)  # fmt: skip
"""Models whose section is on the top level of headings."""

INTRODUCTION = """# Configuration reference

This page lists every key of a configuration, for everyone who writes one. A configuration is one YAML file. The demo's,
`config/config.yaml`, is a complete example, and the [tutorial](tutorial.md#a-first-study) has a short one.

The file is named by `CONFIG=path/to/configuration.yaml` in `make` commands, and by `--configfile` in Snakemake's. It is
checked before any job is planned. An error is one line with the file, the place in it, the value and the valid values;
[Troubleshooting](troubleshooting.md#configuration-errors) explains common ones.

- An unknown key is an error, and so is a key that occurs twice.
- Types are not converted: 3.0 is not an integer, and `true` is not a number. Integers have 64 bits. `.nan` and `.inf`
  are refused.
- Paths are absolute or relative to the folder in which the command runs.
- Parameters of [data sets](data.md), [architectures and training](models.md), [methods](methods.md) and
  [metrics](metrics.md) are on their own pages.

Editors that support JSON Schema complete and check keys against `config/schema.yaml` if the first line of a file in the
same folder is `# yaml-language-server: $schema=schema.yaml`.

## Display names

Every data set, model, method, metric and study of a configuration has a name, which is part of file paths, and a label,
which figures, tables and the report show. The optional key `label` sets the label. Without it, an entry with the name
of a registered object has the label of that object, such as *Grad-CAM* for `gradcam: {}`. Every other entry has its
name with spaces. Set labels where the same method or metric has several entries, for example:

- `smoothgrad_10: {method: smoothgrad, samples: 10, label: "SmoothGrad (10 samples)"}`
- `smoothgrad_50: {method: smoothgrad, samples: 50, label: "SmoothGrad (50 samples)"}`

A label is one line of text, and no two entries of a section may have the same one. The label of the images on which a
model is trained is another key, [`trained_on`](#models).
"""

LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")
RANGES = {"minimum": "≥ {}", "exclusiveMinimum": "> {}", "maximum": "≤ {}", "exclusiveMaximum": "< {}"}


def generated() -> Iterator[tuple[Path, str]]:
    """Yield the path and the text of the schema and of the reference page."""
    yield SCHEMA, schema_text()
    yield PAGE, page_text()


def schema_text() -> str:
    """Return the JSON Schema of a configuration as YAML."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_clean(_schema_of(settings.configuration_of(KINDS))),
    }
    text = yaml.safe_dump(schema, sort_keys=False, allow_unicode=True, width=110)
    return f"# Generated from the models of the configuration: {COMMAND}\n{text}"


def page_text() -> str:
    """Return the reference page in Markdown."""
    return "\n".join([INTRODUCTION, *(_section(model) for model in HEADINGS)])


def _schema_of(model: type[Settings]) -> Any:
    return _rename_limits(model.model_json_schema())


def _rename_limits(schema: Any) -> Any:
    """Rename size limits of lists and mappings to JSON Schema's: behind a validator, Pydantic uses those of strings."""
    if isinstance(schema, list):
        return [_rename_limits(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    counted = {"array": "Items", "object": "Properties"}.get(str(schema.get("type")), "Length")
    return {
        key.replace("Length", counted) if key in ("minLength", "maxLength") else key: _rename_limits(value)
        for key, value in schema.items()
    }


def _clean(schema: Any) -> Any:
    """Remove content without use in editors: titles that repeat keys, null defaults of absent keys, links."""
    if isinstance(schema, list):
        return [_clean(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    cleaned: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            cleaned[key] = {name: _clean(entry) for name, entry in value.items()}
        elif key == "description":
            cleaned[key] = LINK.sub(r"\1", value)
        elif key not in ("title", "discriminator") and not (key == "default" and value is None):
            cleaned[key] = _clean(value)
    if "patternProperties" in cleaned:
        cleaned["additionalProperties"] = False
    return cleaned


def _section(model: type[Settings]) -> str:
    schema = _schema_of(model)
    level = "##" if model in TOP else "###"
    base = model.__bases__[0]
    shared = f" The keys of [{HEADINGS[base]}]({_anchor(base)}) apply, too." if base in HEADINGS else ""
    rows = [
        _row(key, schema["properties"][key], schema.get("required", []), schema.get("$defs", {}))
        for key in model.__annotations__
        if key in schema["properties"]
    ]
    table = ["| key | value | default | meaning |", "|---|---|---|---|", *rows] if rows else []
    return "\n".join([f"{level} {HEADINGS[model]}", "", f"{model.__doc__}{shared}", "", *table, ""])


def _row(key: str, schema: Mapping[str, Any], required: list[str], definitions: Mapping[str, Any]) -> str:
    default = schema.get("default")
    if key in required:
        default_text = "required"
    elif default is None or default == {} or "$ref" in schema:
        default_text = "–"
    else:
        default_text = f"`{default if isinstance(default, str) else json.dumps(default)}`"
    description = schema.get("description") or _definition_of(schema, definitions).get("description", "")
    return f"| `{key}` | {_value(schema, definitions)} | {default_text} | {description} |"


def _definition_of(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    definition: Mapping[str, Any] = definitions.get(schema.get("$ref", "").rpartition("/")[2], {})
    return definition


def _value(schema: Mapping[str, Any], definitions: Mapping[str, Any], *, plural: bool = False) -> str:
    """Return a description of the type and range of a value, in the plural if ``plural``."""
    if "$ref" in schema:
        model = next(model for model in HEADINGS if model.__name__ == schema["$ref"].rpartition("/")[2])
        return f"[{HEADINGS[model].lower()}]({_anchor(model)})"
    if members := schema.get("oneOf", schema.get("anyOf")):
        return " or ".join(_value(member, definitions, plural=plural) for member in members)
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type")
    if kind == "array":
        entries = _value(schema["items"], definitions, plural=True) if schema["items"] else "values"
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        count = f", exactly {least}" if least and least == most else f", {least} or more" if least else ""
        return f"list of {entries}{count}{', none twice' if schema.get('uniqueItems') else ''}"
    if kind == "object":
        inner = next(iter(schema.get("patternProperties", {}).values()), schema.get("additionalProperties"))
        name = "mappings" if plural else "mapping"
        return (
            f"{name} of names to {_value(inner, definitions, plural=True)}"
            if isinstance(inner, dict)
            else name
        )
    ranges = [text.format(schema[key]) for key, text in RANGES.items() if key in schema]
    one, many = {
        "boolean": ("`true` or `false`", "`true` or `false`"),
        "integer": ("integer", "integers"),
        "number": ("number", "numbers"),
    }.get(str(kind), ("string", "strings"))
    return " ".join([many if plural else one, ", ".join(ranges)]).strip()


def _anchor(model: type[Settings]) -> str:
    return f"#{HEADINGS[model].lower().replace(' ', '-')}"


if __name__ == "__main__":
    for path, text in generated():
        path.write_text(text, encoding="utf-8")

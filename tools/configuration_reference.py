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
from saliency_assay.config import configuration, data, methods, metrics, models, scored_study, studies
from saliency_assay.config.fields import Settings
from saliency_assay.registry.records import resolve
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
    configuration.Configuration: "Top level",
    data.DataEntry: "Data",
    data.PlainData: "Data in packages",
    data.FolderData: "Data in folders",
    data.ImageFolderData: "Data of kind folder",
    data.ComposedData: "Data of objects and scenes",
    data.SyntheticData: "Data of kind synthetic",
    data.BamData: "Data of kind bam",
    data.CocoData: "Data of kind coco",
    data.CocoSource: "Annotated images",
    data.CaptionData: "Data of kind caption",
    models.Model: "Models",
    models.RegisteredModel: "Registered architectures",
    models.CustomModel: "Custom networks",
    models.FinetunedModel: "Fine-tuned models",
    models.Normalization: "Normalization",
    methods.RegisteredMethod: "Methods",
    methods.CustomMethod: "Custom methods",
    methods.CaptumMethod: "Methods of captum",
    methods.StoredMaps: "Maps from another program",
    metrics.RegisteredMetric: "Metrics",
    metrics.CustomMetric: "Custom metrics",
    studies.Study: "Studies",
    scored_study.MetricsStudy: "Studies that select metrics",
    scored_study.ScoredStudy: "Studies that score one model",
    **dict(_study_models()),
    configuration.ReliabilitySettings: "Reliability",
    configuration.ReportSettings: "Report",
}
"""All models with their headings, in the order of the page."""
TOP = (
    configuration.Configuration, data.DataEntry, models.Model, methods.RegisteredMethod,
    metrics.RegisteredMetric, studies.Study, configuration.ReliabilitySettings, configuration.ReportSettings,
)  # fmt: skip
"""Models whose section is on the top level of headings."""

COMMON = ("label", "sweep")
"""Keys of many models that have sections of their own."""

INTRODUCTION = """# Configuration reference

This page lists the keys of a configuration, a YAML file such as the demo's `config/config.yaml`. Parameters of [data
sets](data.md), [architectures](models.md), [methods](methods.md) and [metrics](metrics.md) are on their own pages. Pass
the file to `make` as `CONFIG=path/to/configuration.yaml`, or to Snakemake with `--configfile`. The file is checked
before any job runs.

- Data sets and studies require a `kind`, which the headings below name.
- Unknown and duplicate keys, duplicate names in lists, `.nan`, `.inf` and integers of more than 64 bits are rejected.
- A section that extends another one also has that section's keys.
- Types are not converted: 3.0 is not an integer, and `true` is not a number.
- Relative paths are relative to the working directory of the command, with two exceptions: `files` of a custom function
  are relative to its module, and paths in a [list of images](data.md#lists-of-images) are relative to the list.
- The module of a `function` is imported from the folder of the configuration or from `PYTHONPATH`.

For completion and checks in an editor, begin a file in `config` with the line
`# yaml-language-server: $schema=schema.yaml`.

## Display names

The name of an entry is part of file paths. Figures, tables and the report show its display name, the key `label`: one
line without `$`, `{` or `}`, unique in its section. The default is the display name of the registered object, such as
*Grad-CAM* for `gradcam`, or else the name with spaces for underscores and a capital first letter.

## Sweeps

The key `sweep` of a method or metric lists two or more values of parameters. It is not available for [maps from another
program](#maps-from-another-program). The entry becomes a family, with one member for each value or combination of
values:

```yaml
methods:
  smoothgrad: {samples: 10, sweep: {noise: [0.05, 0.1, 0.2]}}
metrics:
  deletion: {sweep: {fill: [black, mean]}}
```

Members, here `smoothgrad_noise_0.05` and so on, are ordinary methods and metrics. In a study, the family's name stands
for all of them.

- For methods, one half of the explained images selects a member for each score: the one with the highest win rate or,
  with `ranks: means`, the best mean. Ranks, tables and heat maps compare this member with other methods on the other
  half. [Groups](data.md#groups-of-images) are not divided; at least 4 images or groups are required. `order.csv` names
  the selected member (`selected`), and `sweeps.csv` lists all members.
- For metrics, `metric_sweeps.csv` compares the orders of methods under each pair of members by Spearman's ρ and
  Kendall's τ, with 95 % intervals. It also lists the pairs of methods whose significant order flips.
"""

LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")
RANGES = {
    "minimum": "≥ {:,}",
    "exclusiveMinimum": "> {:,}",
    "maximum": "≤ {:,}",
    "exclusiveMaximum": "< {:,}",
}
LEVELS = {2: "two-level ", 3: "three-level "}


def generated() -> Iterator[tuple[Path, str]]:
    """Yield the path and the text of the schema and of the reference page."""
    yield SCHEMA, schema_text()
    yield PAGE, page_text()


def schema_text() -> str:
    """Return the JSON Schema of a configuration as YAML."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_clean(_schema_of(configuration.configuration_of(KINDS))),
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
    """Remove content without use in editors: titles that repeat keys, defaults that stand for an absent key, links."""
    if isinstance(schema, list):
        return [_clean(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    cleaned: dict[str, Any] = {}
    not_empty = any(schema.get(f"min{counted}") for counted in ("Items", "Length", "Properties"))
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            cleaned[key] = {name: _clean(entry) for name, entry in value.items()}
        elif key == "description":
            cleaned[key] = LINK.sub(r"\1", value)
        elif key not in ("title", "discriminator") and not (
            key == "default" and (value is None or (not_empty and not value))
        ):
            cleaned[key] = _clean(value)
    if "patternProperties" in cleaned:
        cleaned["additionalProperties"] = False
    return cleaned


def _section(model: type[Settings]) -> str:
    schema = _schema_of(model)
    level = "##" if model in TOP else "###"
    base = model.__bases__[0]
    inherited = f" Extends [{HEADINGS[base]}]({_anchor(base)})." if base in HEADINGS else ""
    rows = [
        _row(key, schema["properties"][key], schema.get("required", []), schema.get("$defs", {}))
        for key in model.__annotations__
        if key in schema["properties"] and key not in COMMON and "const" not in schema["properties"][key]
    ]
    table = ["", "| key | value | meaning |", "|---|---|---|", *rows] if rows else []
    return "\n".join([f"{level} {HEADINGS[model]}", "", f"{model.__doc__}{inherited}", *table, ""])


def _row(key: str, schema: Mapping[str, Any], required: list[str], definitions: Mapping[str, Any]) -> str:
    default = schema.get("default")
    if key in required:
        default_text = "; required"
    elif default in (None, "", {}) or (default == [] and "minItems" in schema) or "$ref" in schema:
        default_text = ""
    else:
        default_text = f"; default `{default if isinstance(default, str) else json.dumps(default)}`"
    description = schema.get("description") or _definition_of(schema, definitions).get("description", "")
    return f"| `{key}` | {_value(schema, definitions)}{default_text} | {description} |"


def _definition_of(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    definition: Mapping[str, Any] = definitions.get(schema.get("$ref", "").rpartition("/")[2], {})
    return definition


def _value(schema: Mapping[str, Any], definitions: Mapping[str, Any], *, plural: bool = False) -> str:
    """Return a description of the type and range of a value, in the plural if ``plural``."""
    if "$ref" in schema:
        model = _model_of(schema["$ref"])
        return f"[{HEADINGS[model].lower()}]({_anchor(model)})"
    if members := schema.get("oneOf", schema.get("anyOf")):
        tops = {_top(member["$ref"]) if "$ref" in member else None for member in members}
        if len(members) > 1 and len(tops) == 1 and (top := tops.pop()):
            return f"[{HEADINGS[top].lower()}]({_anchor(top)})"
        *others, last = (_value(member, definitions, plural=plural) for member in members)
        return f"{', '.join(others)} or {last}" if others else last
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type")
    if isinstance(kind, list):  # of several types
        return "values" if plural else "value"
    if kind == "array":
        entries = _value(schema["items"], definitions, plural=True) if schema["items"] else "values"
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        count = "" if least < 2 else f"{least} " if least == most else f"at least {least} "
        return f"{'lists' if plural else 'list'} of {count}{entries}"
    if kind == "object":
        levels, inner = 0, schema
        while inner.get("type") == "object" and isinstance(deeper := _values_of(inner), dict):
            levels, inner = levels + 1, deeper
        if not levels:
            return "mapping"
        return f"{LEVELS.get(levels, '')}mapping of names to {_value(inner, definitions, plural=True)}"
    ranges = [text.format(schema[key]) for key, text in RANGES.items() if key in schema]
    if schema.get("minimum", -1) >= 0 and "maximum" in schema:
        ranges = [f"{schema['minimum']:,}–{schema['maximum']:,}"]
    one, many = {
        "boolean": ("`true` or `false`", "`true` or `false`"),
        "integer": ("integer", "integers"),
        "number": ("number", "numbers"),
    }.get(str(kind), ("string", "strings"))
    return " ".join([many if plural else one, " and ".join(ranges).replace("-", "−")]).strip()


def _model_of(reference: str) -> type[Settings]:
    return next(model for model in HEADINGS if model.__name__ == reference.rpartition("/")[2])


def _top(reference: str) -> type[Settings]:
    """Return the model of the top-level section that contains the section of a model."""
    models = list(HEADINGS)
    return next(model for model in reversed(models[: models.index(_model_of(reference)) + 1]) if model in TOP)


def _values_of(mapping: Mapping[str, Any]) -> Any:
    """Return the schema of the values of a mapping; not a mapping itself if they can be anything."""
    return next(iter(mapping.get("patternProperties", {}).values()), mapping.get("additionalProperties"))


def _anchor(model: type[Settings]) -> str:
    return f"#{HEADINGS[model].lower().replace(' ', '-')}"


if __name__ == "__main__":
    for path, text in generated():
        path.write_text(text, encoding="utf-8")

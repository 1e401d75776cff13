"""Check for parameters and keys of the configuration that no code reads."""

import ast
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from saliency_assay.catalog import CATALOG
from saliency_assay.data.bam.members import plan_common, rescaled
from saliency_assay.data.bam.placement import plan
from saliency_assay.training.hyperparameters import PARAMETERS
from tools.configuration_reference import HEADINGS
from tools.source_tree import PACKAGE, ROOT, Problem, syntax

SCHEMA = ROOT / "config/schema.yaml"
STEPS = ("write_sources", "collect_bam", "compose_bam")
"""Scripts that build data of objects and scenes; ``pipeline.params`` passes each the parameters that it reads."""
PLANS = (plan, plan_common, rescaled)
"""Functions that take such parameters as keywords."""


def check_settings() -> Iterator[Problem]:
    """Check that the code reads every parameter and every key of the configuration."""
    loop = PACKAGE / "training/loop.py"
    read = _attributes(loop, PACKAGE / "training/task.py", variable="settings")
    for name in sorted(read ^ set(PARAMETERS)):
        fault = (
            "no training reads the parameter"
            if name in PARAMETERS
            else "no parameter of trainings has the name"
        )
        yield Problem(loop, 1, f"{fault} {name}")
    params = PACKAGE / "pipeline/params.py"
    step_names = _strings(*(ROOT / f"workflow/scripts/{name}.py" for name in STEPS)).union(
        *(_keyword_names(function) for function in PLANS)
    )
    for kind in ("bam", "synthetic"):
        for name in sorted(set(CATALOG.data_kinds[kind].parameters) - (_strings(params) & step_names)):
            yield Problem(params, 1, f"no step reads the parameter {name} of data of kind {kind}")
    readers = [
        *(PACKAGE / "config").glob("*.py"),
        *(PACKAGE / "pipeline").glob("*.py"),
        *(PACKAGE / "studies").glob("*/*.py"),
    ]
    known_keys = _strings(*readers) | _attributes(*readers)
    known_keys.update(key for record in CATALOG.data_kinds.values() for key in record.sources)
    for key in sorted(set(_schema_keys(yaml.safe_load(SCHEMA.read_text()))) - known_keys):
        yield Problem(SCHEMA, 1, f"no code reads the key {key}")
    for model in HEADINGS:
        for key in model.own_keys():
            # A kind is described where it is a choice.
            if key != "kind" and not model.model_fields[key].description:
                yield Problem(SCHEMA, 1, f"no description of the key {key} of {model.__name__}")


def _strings(*paths: Path) -> set[str]:
    nodes = (node for path in paths for node in ast.walk(syntax(path)))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _attributes(*paths: Path, variable: str = "") -> set[str]:
    """Return the names of attributes that files read, of all objects or only of the variable named ``variable``."""
    nodes = (node for path in paths for node in ast.walk(syntax(path)) if isinstance(node, ast.Attribute))
    return {
        node.attr
        for node in nodes
        if not variable or (isinstance(node.value, ast.Name) and node.value.id == variable)
    }


def _keyword_names(function: Callable[..., Any]) -> set[str]:
    parameters = inspect.signature(function).parameters.values()
    return {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}


def _schema_keys(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from node.get("properties", {})
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _schema_keys(value)

"""Arguments of captum's classes, read from its source code, because the Snakefile must not import torch."""

import ast
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

PASSED = {"self", "forward_func", "model", "inputs", "target", "additional_forward_args", "kwargs"}
"""Arguments that the adapter passes (``adapters.captum``)."""


class CaptumClass(NamedTuple):
    """A class of ``captum.attr`` that can be a method."""

    arguments: tuple[str, ...]
    """Arguments that a configuration may set."""
    takes_layer: bool
    needs_baselines: bool
    """True if its baselines have no default."""


def captum_classes() -> dict[str, Path]:
    """Return the file of each class that ``captum.attr`` exports, empty if captum is not installed."""
    spec = find_spec("captum")  # does not import it, unlike a search for its modules
    if spec is None or spec.origin is None:
        return {}
    return _imported(Path(spec.origin).parent / "attr/__init__.py")


@cache
def captum_class(name: str) -> CaptumClass | None:
    """Return the arguments of a class; None if it does not explain an output by its inputs or by a layer."""
    path = captum_classes()[name]
    created, called = (_arguments(path, name, function) for function in ("__init__", "attribute"))
    if created is None or called is None or "neuron_selector" in called[0]:
        return None
    if not {"forward_func", "model"} & {*created[0]} or name == "FeaturePermutation":
        return None
    names = [argument for argument in dict.fromkeys([*created[0], *called[0]]) if argument not in PASSED]
    return CaptumClass(tuple(names), "layer" in created[0], "baselines" in called[1])


def _arguments(path: Path, name: str, function: str) -> tuple[list[str], list[str]] | None:
    """Return the arguments of a method of a class or of its first base class that has it, and those without default."""
    tree = ast.parse(path.read_bytes())
    definition = next(
        (each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == name), None
    )
    imported = _imported(path)
    if definition is None:
        return _arguments(imported[name], name, function) if name in imported else None
    members = [
        each for each in definition.body if isinstance(each, ast.FunctionDef) and each.name == function
    ]
    if members:  # the last one implements the overloads before it
        arguments = members[-1].args
        positional = [each.arg for each in [*arguments.posonlyargs, *arguments.args]]
        required = positional[: len(positional) - len(arguments.defaults)]
        return [*positional, *(each.arg for each in arguments.kwonlyargs)], required
    for base in _base_names(definition):
        if found := _arguments(imported.get(base, path), base, function):
            return found
    return None


def _base_names(definition: ast.ClassDef) -> Iterator[str]:
    for base in definition.bases:
        named = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(named, ast.Name):
            yield named.id


@cache
def _imported(path: Path) -> dict[str, Path]:
    """Return the file of each name that a module of captum imports from another one of captum."""
    root = next(parent for parent in path.parents if parent.name == "captum").parent
    names: dict[str, Path] = {}
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("captum."):
            module = root / node.module.replace(".", "/")
            file = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
            names |= {alias.asname or alias.name: file for alias in node.names}
    return names

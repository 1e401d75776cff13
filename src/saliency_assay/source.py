"""What a user's function takes, read from its source: the Snakefile must not import torch to find out."""

import ast
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from saliency_assay.registry import unknown

GIVEN = ("model", "images", "targets", "generator")
"""What the caller passes to every method."""


def source_of(module: str) -> Path | None:
    """The file that ``module`` would be imported from; None where that is no Python source.

    Raises:
        ValueError: there is no such module.
    """
    try:
        spec = find_spec(module)
    except (ImportError, ValueError) as error:
        raise ValueError(f"{module!r}: {error}") from None
    if spec is None:
        raise ValueError(f"no module {module!r} beside the configuration or on PYTHONPATH")
    return Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None


def check_call(function: str, parameters: Iterable[str]) -> None:
    """Whether ``package.module:name`` exists and takes ``parameters`` as keywords, as far as its source tells.

    Raises:
        ValueError: it does not; the line begins with the key at fault.
    """
    module, _, name = function.partition(":")
    if not module or not name:
        raise ValueError(f"function: found {function!r}, expected package.module:name")
    try:
        path = source_of(module)
        tree = ast.parse(path.read_bytes(), filename=str(path)) if path else None
    except SyntaxError as error:
        raise ValueError(f"function: {path}, line {error.lineno}: {error.msg}") from None
    except ValueError as error:
        raise ValueError(f"function: found {function!r}, {error}") from None
    if tree is None:
        return
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    if not found:
        if not any(name in _names(node) for node in tree.body):
            functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
            raise ValueError(f"function: {unknown('function', name, functions)} (in {path})")
        return  # assigned or imported: the job will tell
    _check_signature(found[-1].args, parameters)


def _check_signature(arguments: ast.arguments, parameters: Iterable[str]) -> None:
    given = set(parameters)
    positional = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
    own = [argument.arg for argument in arguments.kwonlyargs] + positional[3:]
    if len(positional) < 3 or (GIVEN[3] not in own and not arguments.kwarg):
        signature = ", ".join([*GIVEN[:3], "*", *GIVEN[3:]])
        raise ValueError(
            f"function: found arguments ({', '.join(positional + own)}), expected ({signature}, …)"
        )
    takes = [name for name in own if name != GIVEN[3]]
    for name in given:
        if name not in takes and not arguments.kwarg:
            raise ValueError(f"{name}: {unknown('parameter', name, takes)}")
    optional = {
        argument.arg
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    }
    optional |= set(positional[len(positional) - len(arguments.defaults) :])
    missing = [name for name in takes if name not in optional and name not in given]
    if missing:
        raise ValueError(f"{missing[0]}: missing, the function has no default for it")


def _names(node: ast.stmt) -> list[str]:
    """What a statement at the top of a module makes known."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [node.name] if isinstance(node, ast.ClassDef) else []

"""What a user's function takes, read from its source: the Snakefile must not import torch to find out."""

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from saliency_assay.registry.records import unknown

GENERATOR = "generator"
"""What every function is handed by name."""
OFFERED = ("mean", "mask", "explain", "fresh")
"""What a user's metric is given beside its parameters, where it takes an argument of that name."""


def source_of(module: str) -> Path | None:
    """The file that ``module`` would be imported from; None where that is no Python source.

    Raises:
        ValueError: there is no such module.
    """
    try:
        spec = find_spec(module)
    except (ImportError, ValueError) as error:
        raise ValueError(f"{module!r}: {error}") from None
    except (Exception, SystemExit) as error:  # to find a module, the packages around it are imported
        raise ValueError(
            f"{module!r}: {type(error).__name__} when its package is imported: {error}"
        ) from None
    if spec is None:
        raise ValueError(f"no module {module!r} beside the configuration or on PYTHONPATH")
    return Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None


def check_call(
    function: str,
    parameters: Iterable[str],
    *,
    positional: Sequence[str],
    offered: Collection[str] = (),
    named: Sequence[str] = (GENERATOR,),
) -> tuple[str, ...]:
    """Whether ``package.module:name`` exists and takes what it will be given, as far as its source tells.

    That is the ``positional`` arguments, and those ``named`` and ``parameters`` as keywords. Returns what it also takes
    of the keywords that are ``offered``.

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
    except (RecursionError, MemoryError):
        raise ValueError(f"function: {path}: too deeply nested for Python to read") from None
    except ValueError as error:
        raise ValueError(f"function: found {function!r}, {error}") from None
    if tree is None:
        return ()
    found = [*_callables(tree, name)]
    if not found:
        if not any(name in _names(node) for node in tree.body):
            functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
            raise ValueError(f"function: {unknown('function', name, functions)} (in {path})")
        return ()  # assigned or imported: the job will tell
    return _check_signature(found[-1], parameters, positional, offered, named)


def _callables(tree: ast.Module, name: str) -> Iterator[ast.arguments]:
    """What functions called ``name`` take, and classes of that name when an object is made."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield node.args
        elif isinstance(node, ast.ClassDef) and node.name == name:
            made = (member for member in node.body if isinstance(member, ast.FunctionDef))
            yield from (_without_self(member.args) for member in made if member.name == "__init__")


def _without_self(arguments: ast.arguments) -> ast.arguments:
    fields = dict(ast.iter_fields(arguments))
    first = "posonlyargs" if arguments.posonlyargs else "args"
    return ast.arguments(**{**fields, first: fields[first][1:]})


def _check_signature(
    arguments: ast.arguments,
    parameters: Iterable[str],
    expected: Sequence[str],
    offered: Collection[str],
    named: Sequence[str],
) -> tuple[str, ...]:
    given, count = set(parameters), len(expected)
    positional = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
    own = [argument.arg for argument in arguments.kwonlyargs] + positional[count:]
    if len(positional) < count or not (arguments.kwarg or set(named) <= set(own)):
        signature = ", ".join([*expected, "*", *named])
        raise ValueError(
            f"function: found arguments ({', '.join(positional + own)}), expected ({signature}, …)"
        )
    taken = tuple(name for name in own if name in offered)
    takes = [name for name in own if name not in named and name not in taken]
    for name in given:
        if name in taken:
            raise ValueError(f"{name}: found a value, expected none: the workflow gives it to the function")
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
    return taken


def _names(node: ast.stmt) -> list[str]:
    """What a statement at the top of a module makes known."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [node.name] if isinstance(node, ast.ClassDef) else []


@dataclass(frozen=True)
class Told:
    """What a function's source says to a reader."""

    summary: str
    """The first line of its docstring without the full stop; empty where there is none."""
    defaults: dict[str, Any]
    """Of its arguments, as far as they are plain values."""


def told(function: str, *, given: Collection[str]) -> Told:
    """What the source of ``package.module:name`` says of it, which ``check_call`` has accepted.

    Defaults of what the caller gives, the ``given``, are not among them.
    """
    module, _, name = function.partition(":")
    path = source_of(module)
    body = ast.parse(path.read_bytes(), filename=str(path)).body if path else []
    found = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
    if not found:  # assigned, imported, or without Python source
        return Told("", {})
    arguments = found[-1].args
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    plain = {
        argument.arg: ast.literal_eval(value)
        for argument, value in pairs
        if value is not None and _is_plain(value) and argument.arg not in given
    }
    first = (ast.get_docstring(found[-1]) or "").partition("\n")[0].strip()
    return Told(first.removesuffix("."), plain)


def _is_plain(value: ast.expr) -> bool:
    """Whether JSON has it: a number, a text, true, false or none, or a list of such."""
    if isinstance(value, ast.List):
        return all(map(_is_plain, value.elts))
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        return isinstance(value.operand, ast.Constant) and type(value.operand.value) in (int, float)
    return isinstance(value, ast.Constant) and isinstance(value.value, str | int | float | None)


@cache
def declared(function: str) -> frozenset[str]:
    """The arguments of a registered ``package.module:name``, all of which its definition names."""
    module, _, name = function.partition(":")
    path = source_of(module)
    assert path is not None
    tree = ast.parse(path.read_bytes(), filename=str(path))
    [found] = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    arguments = found.args
    return frozenset(
        argument.arg for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    )

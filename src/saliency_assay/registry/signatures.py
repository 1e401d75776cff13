"""Signatures of functions, read from their source: the Snakefile must not import torch to know them."""

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from saliency_assay.registry.records import TYPES, Limits, Parameter, unknown

GENERATOR = "generator"  # keyword that every function is given
OFFERED = ("mean", "mask", "explain", "randomized_model")
"""Keywords that a custom metric is given beside its parameters, where it takes an argument of that name."""


def source_of(module: str) -> Path | None:
    """Return the file that ``module`` would be imported from; None where that is no Python source.

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
    """Check, as far as its source tells, that ``package.module:name`` exists and takes what it will be given.

    That is the ``positional`` arguments, and those ``named`` and ``parameters`` as keywords. Returns those of the
    keywords ``offered`` that it takes.

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
    """Yield the arguments of functions called ``name``, and of the constructors of classes of that name."""
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
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [node.name] if isinstance(node, ast.ClassDef) else []


@dataclass(frozen=True)
class FunctionDoc:
    """Description of a function by its own source."""

    summary: str  # the first line of its docstring without the full stop; empty where there is none
    defaults: dict[str, Any]  # of its arguments, as far as they are plain values


def describe_function(function: str, *, given: Collection[str]) -> FunctionDoc:
    """Describe ``package.module:name``, which ``check_call`` has accepted, by its source.

    Defaults of what the caller gives, the ``given``, are not among the defaults.
    """
    module, _, name = function.partition(":")
    path = source_of(module)
    body = ast.parse(path.read_bytes(), filename=str(path)).body if path else []
    functions = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
    if not functions:  # assigned, imported, or without Python source
        return FunctionDoc("", {})
    arguments = functions[-1].args
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
    first = (ast.get_docstring(functions[-1]) or "").partition("\n")[0].strip()
    return FunctionDoc(first.removesuffix("."), plain)


def _is_plain(value: ast.expr) -> bool:
    """Return True for a value that JSON has: a number, a text, true, false or null, or a list of such."""
    if isinstance(value, ast.List):
        return all(map(_is_plain, value.elts))
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        return isinstance(value.operand, ast.Constant) and type(value.operand.value) in (int, float)
    return isinstance(value, ast.Constant) and isinstance(value.value, str | int | float | None)


# ---- registered functions, all of which are defined in Python at the top of their module


def declared(function: str) -> frozenset[str]:
    """Return the names of all arguments of a registered ``package.module:name``."""
    definition = _definition(function)
    assert isinstance(definition, ast.FunctionDef)
    arguments = definition.args
    return frozenset(
        argument.arg for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    )


def parameters_of(
    *functions: str, apart: Collection[str] = (), limits: Mapping[str, Limits]
) -> dict[str, Parameter]:
    """Return the keyword-only parameters of registered functions, and the fields of registered dataclasses.

    Defaults are those of the first signature that names the parameter; its type is that of the default. The generator
    and those ``apart`` are no parameters.

    Raises:
        ValueError: a parameter without a default of a type that a configuration has, or ``limits`` of none of them.
    """
    parameters: dict[str, Parameter] = {}
    for function in functions:
        for name, value in _keywords(_definition(function)):
            if name in parameters or name in apart or name == GENERATOR:
                continue
            default: Any = ast.literal_eval(value) if value is not None and _is_plain(value) else None
            if type(default) not in TYPES:
                valid = ", ".join(TYPES.values())
                raise ValueError(f"{function}: {name}: expected a plain default: {valid}")
            parameters[name] = Parameter(default, **vars(limits.get(name, Limits())))
    for name in limits:
        if name not in parameters:
            raise ValueError(f"{', '.join(functions)}: limits: {unknown('parameter', name, parameters)}")
    return parameters


def _definition(function: str) -> ast.FunctionDef | ast.ClassDef:
    module, _, name = function.partition(":")
    return _definitions(module)[name]


@cache
def _definitions(module: str) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    """Return the functions and classes at the top of a module, by name; each file is parsed once."""
    path = source_of(module)
    assert path is not None
    tree = ast.parse(path.read_bytes(), filename=str(path))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def _keywords(definition: ast.FunctionDef | ast.ClassDef) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the keyword-only arguments of a function, or the fields of a dataclass, with their defaults."""
    if isinstance(definition, ast.FunctionDef):
        arguments = definition.args
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            yield argument.arg, default
    else:
        for node in definition.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id, node.value

"""Signatures of functions, parsed from their source code: the Snakefile must not import torch."""

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

from saliency_assay.registry import limits
from saliency_assay.registry.limits import Limits
from saliency_assay.registry.records import TYPES, Parameter, unknown

GENERATOR = "generator"  # keyword argument that every function receives
OFFERED = ("mean", "mask", "explain", "randomized_model")
"""Keyword arguments that a custom metric receives if its signature has them."""


def source_of(module: str) -> Path | None:
    """Return the file from which ``module`` would be imported; None if it has no Python source.

    Raises:
        ValueError: there is no such module.
    """
    try:
        spec = find_spec(module)
    except (ImportError, ValueError) as error:
        raise ValueError(f"{module!r}: {error}") from None
    except (Exception, SystemExit) as error:  # ``find_spec`` imports the parent packages, which may fail
        raise ValueError(
            f"{module!r}: {type(error).__name__} when its package is imported: {error}"
        ) from None
    if spec is None:
        raise ValueError(f"no module {module!r} in the configuration's folder or on PYTHONPATH")
    return Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None


def check_call(
    function: str,
    parameters: Iterable[str],
    *,
    positional: Sequence[str],
    offered: Collection[str] = (),
    named: Sequence[str] = (GENERATOR,),
) -> tuple[str, ...]:
    """Check a function ``package.module:name`` by its source code, and return the ``offered`` keywords that it takes.

    The function must exist and take the ``positional`` arguments, and ``named`` and ``parameters`` as keywords. A name
    that is imported or assigned in the module is accepted without a check of its signature.

    Raises:
        ValueError: the check fails; the message starts with the key at fault.
    """
    module, _, name = function.partition(":")
    if not name or not all(map(str.isidentifier, module.split("."))) or module.endswith(".py"):
        example = f"{Path(module).stem or 'module'}:{name or 'function'}"
        raise ValueError(f"function: found {function!r}, expected package.module:name, such as {example}")
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
    signatures = [*_signatures_of(tree, name)]
    if not signatures:
        if not any({name, "*"} & {*_assigned_names(node)} for node in tree.body):
            functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
            raise ValueError(f"function: {unknown('function', name, functions)} (in {path})")
        return ()  # assigned or imported: errors appear when the job calls it
    arguments, class_name = signatures[-1]
    return _check_signature(arguments, parameters, positional, offered, named, class_name)


def _signatures_of(tree: ast.Module, name: str) -> Iterator[tuple[ast.arguments, str]]:
    """Yield the arguments of functions called ``name`` with "", and of constructors of such classes with ``name``."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield node.args, ""
        elif isinstance(node, ast.ClassDef) and node.name == name:
            methods = (member for member in node.body if isinstance(member, ast.FunctionDef))
            yield from ((_without_self(member.args), name) for member in methods if member.name == "__init__")


def _without_self(arguments: ast.arguments) -> ast.arguments:
    """Return the arguments of a method without its first one."""
    fields = dict(ast.iter_fields(arguments))
    first = "posonlyargs" if arguments.posonlyargs else "args"
    return ast.arguments(**{**fields, first: fields[first][1:]})


def _check_signature(
    arguments: ast.arguments,
    parameters: Iterable[str],
    expected: Sequence[str],
    offered: Collection[str],
    named: Sequence[str],
    class_name: str,
) -> tuple[str, ...]:
    """Check ``arguments`` as ``check_call`` does, and return the ``offered`` keywords among them.

    ``class_name`` is the name of the class of which they are the constructor's; empty for a function.
    """
    names, positional_count = set(parameters), len(expected)
    positional = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
    keywords = [argument.arg for argument in arguments.kwonlyargs] + positional[positional_count:]
    if len(positional) < positional_count or not (arguments.kwarg or set(named) <= set(keywords)):
        signature = ", ".join([*expected, "*", *named])
        all_names = dict.fromkeys(positional + keywords)
        owner = f"class {class_name} with " if class_name else ""
        hint = f"; valid: a function with these arguments that creates {class_name}" if class_name else ""
        raise ValueError(
            f"function: found {owner}arguments ({', '.join(all_names)}), expected ({signature}, …){hint}"
        )
    offered_keywords = tuple(name for name in keywords if name in offered)
    parameter_names = [name for name in keywords if name not in named and name not in offered_keywords]
    for name in names:
        if name in offered_keywords:
            raise ValueError(f"{name}: found a value, expected none: the workflow passes it to the function")
        if name not in parameter_names and not arguments.kwarg:
            raise ValueError(f"{name}: {unknown('parameter', name, parameter_names)}")
    optional = {
        argument.arg
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    }
    optional |= set(positional[len(positional) - len(arguments.defaults) :])
    missing = [name for name in parameter_names if name not in optional and name not in names]
    if missing:
        raise ValueError(f"{missing[0]}: missing, the function has no default for it")
    return offered_keywords


def _assigned_names(node: ast.stmt) -> list[str]:
    """Return the names that a statement other than a function definition binds in its module; ``*`` for any."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [node.name] if isinstance(node, ast.ClassDef) else []


@dataclass(frozen=True)
class FunctionDoc:
    """Description of a function from its source code."""

    summary: str  # first line of the docstring without the full stop; empty without a docstring
    defaults: dict[str, Any]  # defaults of its arguments that are plain JSON values


def describe_function(function: str, *, passed: Collection[str]) -> FunctionDoc:
    """Describe ``package.module:name``, which ``check_call`` has accepted, from its source code.

    The arguments named in ``passed``, which the caller passes, are left out of the defaults.
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
        if value is not None and _is_plain(value) and argument.arg not in passed
    }
    first = (ast.get_docstring(functions[-1]) or "").partition("\n")[0].strip()
    return FunctionDoc(first.removesuffix("."), plain)


def _is_plain(value: ast.expr) -> bool:
    """Return True for the literal of a JSON value: a number, string, boolean or null, or a list of such values."""
    if isinstance(value, ast.List):
        return all(map(_is_plain, value.elts))
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        return isinstance(value.operand, ast.Constant) and type(value.operand.value) in (int, float)
    return isinstance(value, ast.Constant) and isinstance(value.value, str | int | float | None)


# ---- registered functions, all of which are defined at the top level of their module


def declared(function: str) -> frozenset[str]:
    """Return the names of all arguments of a registered function ``package.module:name``."""
    definition = _definition(function)
    assert isinstance(definition, ast.FunctionDef)
    arguments = definition.args
    return frozenset(
        argument.arg for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    )


def parameters_of(*functions: str, apart: Collection[str] = ()) -> dict[str, Parameter]:
    """Return the keyword-only parameters of registered functions, and the fields of registered dataclasses.

    Default and valid values are those of the first signature with the parameter; the default defines the type. The
    generator and the arguments named in ``apart`` are not parameters.

    Raises:
        ValueError: a parameter has no default of a valid type, or its annotation is none of ``registry.limits``.
    """
    parameters: dict[str, Parameter] = {}
    for function in functions:
        for name, annotation, value in _arguments_with_defaults(_definition(function)):
            if name in parameters or name in apart or name == GENERATOR:
                continue
            default: Any = ast.literal_eval(value) if value is not None and _is_plain(value) else None
            if type(default) not in TYPES:
                valid = ", ".join(TYPES.values())
                raise ValueError(f"{function}: {name}: expected a plain default: {valid}")
            parameters[name] = Parameter(default, **vars(_limits_of(annotation, f"{function}: {name}")))
    return parameters


def _limits_of(annotation: ast.expr | None, place: str) -> Limits:
    """Return the limits in an annotation: a name of ``registry.limits``, or ``Annotated[TYPE, Limits(…)]``.

    Raises:
        ValueError: the annotation is neither, nor the name of a plain type.
    """
    if isinstance(annotation, ast.Name):
        if annotation.id in {kind.__name__ for kind in TYPES}:
            return Limits()
        if (known := vars(limits).get(annotation.id)) is not None:
            return next(entry for entry in get_args(known) if isinstance(entry, Limits))
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple):
        call = annotation.slice.elts[-1]
        if isinstance(call, ast.Call):
            return Limits(**{str(word.arg): ast.literal_eval(word.value) for word in call.keywords})
    text = ast.unparse(annotation) if annotation else "no annotation"
    raise ValueError(f"{place}: found {text}, expected a type of registry.limits")


def _definition(function: str) -> ast.FunctionDef | ast.ClassDef:
    """Return the syntax tree of a registered ``package.module:name``."""
    module, _, name = function.partition(":")
    return _definitions(module)[name]


@cache
def _definitions(module: str) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    """Return the top-level functions and classes of a module by name; each file is parsed once."""
    path = source_of(module)
    assert path is not None
    tree = ast.parse(path.read_bytes(), filename=str(path))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def _arguments_with_defaults(
    definition: ast.FunctionDef | ast.ClassDef,
) -> Iterator[tuple[str, ast.expr | None, ast.expr | None]]:
    """Yield the keyword-only arguments of a function, or the fields of a dataclass: name, annotation, default."""
    if isinstance(definition, ast.FunctionDef):
        arguments = definition.args
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            yield argument.arg, argument.annotation, default
    else:
        for node in definition.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id, node.annotation, node.value

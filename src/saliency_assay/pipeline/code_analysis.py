"""Analysis of the source code of one module: the digest of its code, its imports and the files that it reads.

Parsing all modules behind a plan takes more than a second. Analyses are therefore cached by the content of the file, in
``saliency-assay/code.json`` of the user's cache folder (``XDG_CACHE_HOME``, by default ``~/.cache``). The cache is an
optimization only: without it, or with an unreadable one, all files are parsed again.
"""

import ast
import atexit
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.provenance import digest_of_file

COMPANION = re.compile(r"Path\(__file__\)((?:\.parent)*)\.with_name\('([^']+)'\)")
"""The expression by which a module of the package refers to a file or folder relative to its own path."""
CAPACITY = 5000
"""Number of analyses in the cache; the least recently added are dropped."""


class Analysis(NamedTuple):
    """Properties of a module's source code that depend on nothing but the code."""

    digest: str
    """SHA-256 of the code without docstrings, comments and layout."""
    imports: list[tuple[int, str, str]]
    """Level, module and name of each ``from module import name``; the name of ``import module`` is empty."""
    companions: list[tuple[int, str]]
    """For each file or folder that the code refers to by its own path: how many folders further up, and the name."""


def analysis_of(path: Path) -> Analysis:
    """Return the analysis of a Python file.

    Raises:
        SyntaxError: the file is not valid Python.
    """
    content = path.read_bytes()
    key = hashlib.sha256(content).hexdigest()
    cached = _cached()
    if key not in cached:
        cached[key] = analyze(content, str(path))
        atexit.unregister(_write_cache)
        atexit.register(_write_cache)
    return cached[key]


def analyze(source: bytes, name: str) -> Analysis:
    """Analyze the source code of the file ``name``.

    Statements under ``if TYPE_CHECKING:`` are ignored, as they never run; those under its ``else:`` always run.

    Raises:
        SyntaxError: ``source`` is not valid Python.
    """
    tree = ast.parse(source, filename=name)
    tree.body = [running for statement in tree.body for running in _running(statement)]
    imports: list[tuple[int, str, str]] = []
    companions: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports.extend((0, alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imports.extend((node.level, node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "with_name" and (match := COMPANION.fullmatch(ast.unparse(node))):
                companions.append((match[1].count(".parent"), match[2]))
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = _without_docstrings(node.body)
    tree.body = _without_docstrings(tree.body)
    return Analysis(hashlib.sha256(canonical(tree).encode()).hexdigest(), imports, companions)


def _write_cache() -> None:
    """Write the analyses to the cache. Concurrent processes may overwrite each other's, which are then repeated."""
    cached = dict(list(_cached().items())[-CAPACITY:])
    with suppress(OSError, RuntimeError), replacing(_cache_file()) as temporary:
        temporary.write_text(json.dumps({"analyzer": _analyzer(), "analyses": cached}), encoding="utf-8")


@cache
def _cached() -> dict[str, Analysis]:
    """Return the cached analyses by the SHA-256 of the file; none of another version of this module or of Python."""
    try:
        content = json.loads(_cache_file().read_bytes())
        if content["analyzer"] == _analyzer():
            return {key: Analysis(*analysis) for key, analysis in content["analyses"].items()}
    except (OSError, RuntimeError, ValueError, TypeError, KeyError):
        pass
    return {}


def _cache_file() -> Path:
    """Return the path of the cache.

    Raises:
        RuntimeError: the user has no home folder.
    """
    folder = os.environ.get("XDG_CACHE_HOME")
    return (Path(folder) if folder else Path.home() / ".cache") / "saliency-assay" / "code.json"


def _analyzer() -> list[str]:
    return [digest_of_file(Path(__file__)), sys.version]


def canonical(node: object) -> str:
    """Serialize a syntax tree; unlike ``ast.dump``, with the same result under every version of Python.

    New versions add fields, which are empty for older code and are left out, and split the text of f-strings
    differently.
    """
    if isinstance(node, ast.Constant):
        return f"{type(node.value).__name__} {node.value!a}"
    if isinstance(node, ast.JoinedStr):
        return f"JoinedStr({', '.join(_fstring_parts(node))})"
    if isinstance(node, ast.AST):
        fields = [(name, value) for name, value in ast.iter_fields(node) if value is not None and value != []]
        return f"{type(node).__name__}({', '.join(f'{name}={canonical(value)}' for name, value in fields)})"
    if isinstance(node, list):
        return f"[{', '.join(map(canonical, node))}]"
    return ascii(node)


def _fstring_parts(node: ast.JoinedStr) -> Iterator[str]:
    """Yield the serialized parts of an f-string, with the text between two values joined."""
    text = ""
    for value in node.values:
        if isinstance(value, ast.Constant):
            text += str(value.value)
            continue
        if text:
            yield ascii(text)
        text = ""
        yield canonical(value)
    if text:
        yield ascii(text)


def _without_docstrings(body: list[ast.stmt]) -> list[ast.stmt]:
    """Leave out docstrings, including those of fields and constants: all statements that consist of a string."""
    return [statement for statement in body if not _is_docstring(statement)]


def _is_docstring(statement: ast.stmt) -> bool:
    """Return True for a statement that consists of a string."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _running(statement: ast.stmt) -> list[ast.stmt]:
    """Return the statement, or of ``if TYPE_CHECKING:``, whose body never runs, the statements under its ``else:``."""
    if (
        isinstance(statement, ast.If)
        and isinstance(statement.test, ast.Name)
        and statement.test.id == "TYPE_CHECKING"
    ):
        return statement.orelse
    return [statement]

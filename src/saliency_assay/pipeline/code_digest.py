"""The code behind a rule: a digest of its modules, and the installed packages that they import.

Snakemake watches a rule's script but not the modules that the script imports. Each rule therefore passes this digest,
and the versions of those packages, as a parameter: an edit or an update reruns exactly the jobs that use it. What a
module of the package reads beside itself, such as templates of pages, counts as its code.
"""

import ast
import hashlib
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

from saliency_assay.registry.signatures import source_of
from saliency_assay.runtime.provenance import SOURCE, digest_of_file, fingerprint

PACKAGE = "saliency_assay"
INSTALLED = {"site-packages", "dist-packages"}
"""Folders of installed packages: their version counts, and everything outside of them counts by its content."""
BESIDE = re.compile(r"Path\(__file__\)((?:\.parent)*)\.with_name\('([^']+)'\)")
"""The expression by which a module of the package names a file or folder that it reads."""


@dataclass(frozen=True)
class Code:
    """The code behind a rule: SHA-256 of the modules, and the top-level names of the installed packages they import."""

    digest: str
    packages: tuple[str, ...]


def run_this_source(*folders: Path) -> None:
    """Let all scripts import the library from where this module is, even where another one is installed.

    Otherwise a job could run other code than the one that was digested. ``folders`` are searched after it: those
    of the configuration, where a user's own functions are.

    Raises:
        SystemExit: a file in one of ``folders`` has the name of another module: jobs would import it instead of that.
    """
    for folder in folders:
        for file in sorted(folder.resolve().glob("*.py")):
            other = find_spec(file.stem) if file.stem.isidentifier() and file.stem != "__main__" else None
            if other is not None and other.origin != str(file):
                said = f"has the name of another module, {file.stem}, and jobs would import it instead"
                raise SystemExit(f"{file}: {said}; call it something else")
    paths = [str(SOURCE), *(str(folder.resolve()) for folder in folders)]
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, [*paths, *others])))
    sys.path.extend(path for path in paths if path not in sys.path)


def code_of(*roots: str) -> Code:
    """Read the code that ``roots`` run: their modules, and all modules outside of installed packages they import.

    A root is a dotted module name or the path of a script. Docstrings, comments, and layout do not count, nor do
    statements under ``if TYPE_CHECKING:``. A package's ``__init__`` counts only where a name is imported from it:
    registries list every method, and a rule for one method must not depend on all of them. A file or folder that a
    module of the package names as ``Path(__file__).with_name("templates")`` counts with all that is in it. The digest
    is the same in every checkout and under every version of Python that parses the code.

    Raises:
        ValueError: a root that is neither a file nor a module that can be found.
    """
    pending, packages = list(map(_file_of_root, roots)), set[str]()
    seen: dict[Path, str] = {}
    while pending:
        path = pending.pop()
        if path not in seen:
            seen[path], files, imported = _read(path)
            packages.update(imported)
            # Of an installed module its own content counts: lab packages are edited without another version.
            if not INSTALLED & set(path.parts):
                pending.extend(files)
    # Names, not absolute paths: a checkout elsewhere is the same code.
    digest = fingerprint(sorted([path.stem, digest] for path, digest in seen.items()))
    return Code(digest, tuple(sorted(packages)))


def _file_of_root(root: str) -> Path:
    if root.endswith(".py"):
        path = Path(root)
    elif root.partition(".")[0] == PACKAGE:
        path = _file_in(SOURCE, root) or Path()
    else:
        path = source_of(root) or Path()
    if not path.is_file():
        raise ValueError(f"{root!r}: expected a Python module or the path of a script")
    return path.resolve()


@cache
def _read(path: Path) -> tuple[str, tuple[Path, ...], tuple[str, ...]]:
    """Return the digest of one file's code, the files that it imports or reads, and the packages that it imports."""
    if path.suffix != ".py":
        return digest_of_file(path), (), ()
    tree = ast.parse(path.read_bytes(), filename=str(path))
    tree.body = [statement for statement in tree.body if not _is_for_types(statement)]
    files, packages = dict[Path, None](), dict[str, None]()
    for folders, modules in _imports(tree, path):
        own = [folder for folder in folders if not INSTALLED & set(folder.parts)]
        found = (_file_in(folder, name) for name in modules for folder in own)
        if file := next(filter(None, found), None):
            files[file] = None
        elif len(own) < len(folders):
            packages[modules[0].partition(".")[0]] = None
    if path.is_relative_to(SOURCE / PACKAGE):
        files |= dict.fromkeys(_read_beside(tree, path))
    _drop_prose(tree)
    return hashlib.sha256(canonical(tree).encode()).hexdigest(), tuple(files), tuple(packages)


def _read_beside(tree: ast.Module, path: Path) -> Iterator[Path]:
    """Yield the files that a module names by its own place; of a folder all that are in it."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr == "with_name" and (named := BESIDE.fullmatch(ast.unparse(node))):
            place = path.parents[named[1].count(".parent")] / named[2]
            yield from [place] if place.is_file() else sorted(filter(Path.is_file, place.rglob("*")))


def canonical(node: object) -> str:
    """Serialize a syntax tree; unlike ``ast.dump``, equally under every version of Python.

    Versions differ in the fields that they add, which are empty in older code, and in how they split the text of
    f-strings.
    """
    if isinstance(node, ast.Constant):
        return f"{type(node.value).__name__} {node.value!a}"
    if isinstance(node, ast.JoinedStr):
        return f"JoinedStr({', '.join(_joined(node))})"
    if isinstance(node, ast.AST):
        fields = [(name, value) for name, value in ast.iter_fields(node) if value is not None and value != []]
        return f"{type(node).__name__}({', '.join(f'{name}={canonical(value)}' for name, value in fields)})"
    if isinstance(node, list):
        return f"[{', '.join(map(canonical, node))}]"
    return ascii(node)


def _joined(node: ast.JoinedStr) -> Iterator[str]:
    """Serialize the parts of an f-string, the text between two values as one."""
    text = ""
    for part in node.values:
        if isinstance(part, ast.Constant):
            text += str(part.value)
            continue
        if text:
            yield ascii(text)
        text = ""
        yield canonical(part)
    if text:
        yield ascii(text)


def _drop_prose(tree: ast.Module) -> None:
    """Remove docstrings, also those below fields and constants: statements that are a string and nothing else."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [statement for statement in node.body if not _is_prose(statement)]


def _is_prose(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _is_for_types(statement: ast.stmt) -> bool:
    """Return True for ``if TYPE_CHECKING:``, which only a type checker reads."""
    return (
        isinstance(statement, ast.If)
        and isinstance(statement.test, ast.Name)
        and statement.test.id == "TYPE_CHECKING"
    )


def _imports(tree: ast.Module, path: Path) -> Iterator[tuple[list[Path], list[str]]]:
    """Yield for each import the folders that hold its top-level module, and the names to look for, in this order."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _absolute([alias.name])
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                # ``from module import name`` reads the submodule ``module.name`` if there is one, else ``module``.
                names = [f"{node.module}.{alias.name}" if node.module else alias.name, node.module or ""]
                if node.level:
                    yield [path.parents[node.level - 1]], names
                else:
                    yield from _absolute(names)


def _absolute(names: list[str]) -> Iterator[tuple[list[Path], list[str]]]:
    top = names[0].partition(".")[0]
    if top == PACKAGE:
        # The package's own __init__ holds the version, and a new version alone changes no result.
        yield [SOURCE], [name for name in names if name != PACKAGE]
    elif top not in sys.stdlib_module_names and (spec := _find(top)):
        places = map(Path, spec.submodule_search_locations or filter(None, [spec.origin]))
        yield [place.resolve().parent for place in places], names


@cache
def _find(top: str) -> ModuleSpec | None:
    """Find a top-level module, which does not import it."""
    try:
        return find_spec(top)
    except (ImportError, ValueError):
        return None


def _file_in(folder: Path, module: str) -> Path | None:
    """Return the file of a dotted module below ``folder``; of ``folder`` as a package for an empty name."""
    path = folder.joinpath(*module.split(".")) if module else folder
    for candidate in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
        if candidate.is_file() and (module or candidate.name == "__init__.py"):
            return candidate.resolve()
    return None

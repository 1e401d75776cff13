"""Where results come from: digests of code, fingerprints of parameters, seeds.

``code_of`` is what makes reruns exact. Snakemake watches a rule's script but not what the script imports, so
each rule passes the digest of all project modules behind it as a parameter, and a change there reruns it.
"""

import ast
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from enum import Enum
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from saliency_assay.source import source_of

PACKAGE = "saliency_assay"
SOURCE = Path(__file__).resolve().parent.parent
PLAIN = (str, int, float, bool, type(None))


def plain(value: Any) -> Any:
    """``value`` as plain JSON: dicts with string keys, lists, strings, numbers, booleans, None.

    Snakemake silently does not track parameters of any other type.

    Raises:
        TypeError: a value of a type that has no plain form.
    """
    if type(value) in PLAIN:  # nearly all of them, and plans have hundreds of thousands
        return value
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, Enum):
        return plain(value.value)
    if (
        hasattr(value, "item") and getattr(value, "ndim", None) == 0
    ):  # numpy scalars; np.float64 is a float, too
        return plain(value.item())
    if isinstance(value, str):  # of subclasses, such as Snakemake's files, the text alone
        return str.__str__(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Path):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    raise TypeError(f"{value!r}: no plain JSON form for {type(value).__name__}")


def fingerprint(value: Any) -> str:
    """SHA-256 (hex) of ``value``'s canonical JSON; equal for equal values whatever the order of keys."""
    text = json.dumps(plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def seed_of(seed: int, *names: str) -> int:
    """A 63-bit seed for the stochastic step ``names`` (rule, wildcards, …) of the study seeded ``seed``."""
    return int(fingerprint([seed, *names])[:16], 16) >> 1


def digest_of_file(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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


def code_of(*roots: str) -> str:
    """SHA-256 (hex) of the code that ``roots`` run: their modules and all project modules those import.

    A root is a dotted module name or the path of a script; of a user's own module, what it imports from its own
    folder counts, too. Docstrings, comments and layout do not, nor what stands under ``if TYPE_CHECKING:``.
    A package's ``__init__`` counts only where a name is imported from it: registries list every method, and
    a rule for one method must not depend on all of them.

    Raises:
        ValueError: a root that is neither a file nor a module that can be found.
    """
    pending = [_file_of_root(root) for root in roots]
    seen: dict[Path, str] = {}
    while pending:
        path = pending.pop()
        if path not in seen:
            digest, imports = _read(path)
            seen[path] = digest
            pending.extend(imports)
    # Names, not absolute paths: a checkout elsewhere is the same code.
    return fingerprint(sorted([path.stem, digest] for path, digest in seen.items()))


def _file_of_root(root: str) -> Path:
    if root.endswith(".py"):
        path = Path(root)
    elif root.partition(".")[0] == PACKAGE:
        path = _file_of_module(root) or Path()
    else:
        path = source_of(root) or Path()
    if not path.is_file():
        raise ValueError(f"{root!r}: expected a Python module or the path of a script")
    return path.resolve()


def _file_of_module(module: str, folder: Path | None = None) -> Path | None:
    path = (folder or SOURCE).joinpath(*module.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


@cache
def _read(path: Path) -> tuple[str, tuple[Path, ...]]:
    """Digest of one file's code, and the files of the project, or beside it, that it imports."""
    tree = ast.parse(path.read_bytes(), filename=str(path))
    tree.body = [statement for statement in tree.body if not _is_for_types(statement)]
    imports = tuple(dict.fromkeys(_imported_files(tree, path)))
    _drop_prose(tree)
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), imports


def _drop_prose(tree: ast.Module) -> None:
    """Take out docstrings, also those below fields and constants: statements that are a string and nothing else."""
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
    """Whether only a type checker reads it: ``if TYPE_CHECKING:``."""
    return (
        isinstance(statement, ast.If)
        and isinstance(statement.test, ast.Name)
        and statement.test.id == "TYPE_CHECKING"
    )


def _imported_files(tree: ast.Module, path: Path) -> Iterator[Path]:
    """What ``path`` imports of the project and, where it is a user's own, of the folder that its package is in."""
    own = None if path.is_relative_to(SOURCE / PACKAGE) else _folder_around(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (module := _absolute(node, path, own)):
            names = [_module_behind(module, alias.name, own) for alias in node.names]
        else:
            continue
        for name in names:
            # The package's own __init__ holds the version, and a new version alone changes no result.
            if name != PACKAGE and (file := _file_in(name, own)):
                yield file


def _folder_around(path: Path) -> Path:
    """Where a user's module is imported from: the folder that its outermost package is in."""
    folder = path.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _absolute(node: ast.ImportFrom, path: Path, own: Path | None) -> str:
    """The dotted name of what is imported from; a relative one counts from the packages around ``path``."""
    if not node.level:
        return node.module or ""
    package = path.parents[node.level - 1]
    if own is None or not package.is_relative_to(
        own
    ):  # the project has none; beyond the folder, no import works
        return ""
    return ".".join([*package.relative_to(own).parts, *([node.module] if node.module else [])])


def _file_in(module: str, own: Path | None) -> Path | None:
    """The file of one of the project's modules, or of one in the folder ``own``."""
    if module.partition(".")[0] == PACKAGE:
        return _file_of_module(module)
    return _file_of_module(module, own) if own else None


def _module_behind(module: str, name: str, own: Path | None) -> str:
    """``from module import name`` reads the submodule ``module.name`` if there is one, else ``module``."""
    submodule = f"{module}.{name}"
    return submodule if _file_in(submodule, own) else module

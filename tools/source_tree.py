"""Files of the project, their imports, and the record of a problem."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/saliency_assay"
MODULES = sorted(PACKAGE.rglob("*.py"))
SCRIPTS = sorted((ROOT / "workflow/scripts").glob("*.py"))


class Problem(NamedTuple):
    """Location and description of a fault in the source tree."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.message}"


class Import(NamedTuple):
    """Imported dotted name with the line of its statement."""

    line: int
    name: str


def line_of(text: str, place: int) -> int:
    """Return the line number, from 1, of a position in a text."""
    return text.count("\n", 0, place) + 1


def module_name(path: Path) -> str:
    """Return a module's dotted name, such as ``data.bam`` for ``data/bam.py``; packages have their folder's name."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


@cache
def syntax(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file."""
    return ast.parse(path.read_text())


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """Return all imports of a Python file; ``from a import b`` gives the name ``a.b``."""
    return tuple(_find_imports(path))


def _find_imports(path: Path) -> Iterator[Import]:
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            yield from (Import(node.lineno, f"{start}.{alias.name}") for alias in node.names)


def project_imports(path: Path) -> list[Import]:
    """Return the project's modules that a file imports, with names as in ``module_name``."""
    modules = {module_name(module) for module in MODULES}
    modules_imported = []
    for line, name in imports(path):
        package, _, module = name.partition(".")
        if package == "saliency_assay" and module:
            modules_imported.append(Import(line, module if module in modules else module.rpartition(".")[0]))
    return [item for item in modules_imported if item.name]

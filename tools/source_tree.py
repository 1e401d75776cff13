"""The files of the project, what they import, and the form of a problem."""

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
    """A place in the tree and what is wrong there."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.message}"


class Import(NamedTuple):
    """One imported name: the line of the statement, and the dotted name."""

    line: int
    name: str


def line_of(text: str, place: int) -> int:
    """Return the line of a position in a text, counted from 1."""
    return text.count("\n", 0, place) + 1


def module_name(path: Path) -> str:
    """Return ``data.bam`` for ``data/bam.py``; a package is called as its folder is."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


@cache
def syntax(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file."""
    return ast.parse(path.read_text())


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """Return all that a Python file imports, a name taken from a module as one of its parts."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[Import]:
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            yield from (Import(node.lineno, f"{start}.{alias.name}") for alias in node.names)


def project_imports(path: Path) -> list[Import]:
    """Return the project's modules that a file imports, as ``module_name`` calls them."""
    modules = {module_name(module) for module in MODULES}
    found = []
    for line, name in imports(path):
        package, _, module = name.partition(".")
        if package == "saliency_assay" and module:
            found.append(Import(line, module if module in modules else module.rpartition(".")[0]))
    return [each for each in found if each.name]

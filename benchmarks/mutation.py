"""Share of planted faults (mutants) that the tests detect, and the mutants that survive.

Each mutant changes one expression of a module in one of ``--folders``. The tests of the module and its package run
first, then the rest of the suite, each until the first failure; a timeout counts as killed. ``build/mutation.json``
records the outcomes, and mutants in it are not run again.

    python benchmarks/mutation.py --suite fast --mutants 40
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

PROJECT = Path(__file__).parents[1]
PACKAGE = Path("src/saliency_assay")
FOLDERS = ("metrics", "methods", "reliability", "storage")
RECORD = PROJECT / "build/mutation.json"
SUITES = {"fast": "not (slow or real or slurm)", "all": ""}

COMPARISONS = {
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    **{"is": "is not", "is not": "is", "in": "not in", "not in": "in"},
}
OPERATORS = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "**": "*", "%": "*", "&": "|", "|": "&"}
NAMES = {
    **{"min": "max", "max": "min", "amin": "amax", "amax": "amin", "argmin": "argmax", "argmax": "argmin"},
    **{"any": "all", "all": "any", "sum": "mean", "mean": "sum", "zeros": "ones", "ones": "zeros"},
    **{"floor": "ceil", "ceil": "floor", "minimum": "maximum", "maximum": "minimum", "std": "var"},
}
OWN_PASSED = "survived the related tests"
"""Outcome of a mutant for which the rest of the suite has not run."""
SILENT = {"log", "logging", "warnings", "print"}
"""Calls through these names write messages only."""


@dataclass(frozen=True)
class Mutant:
    """A change of the text of a file."""

    file: str
    line: int
    start: int
    """Offset in the file, in bytes."""
    old: str
    new: str

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line} ({self.start}): {self.old} -> {self.new}"

    @property
    def folder(self) -> str:
        return Path(self.file).relative_to(PACKAGE).parts[0]


class Finder(ast.NodeVisitor):
    """Finds the mutants of a file; messages, docstrings, annotations and ``__repr__`` have none."""

    def __init__(self, file: Path) -> None:
        self.file = file.relative_to(PROJECT).as_posix()
        self.source = file.read_bytes()
        self.lines = [0]
        for line in self.source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.mutants: list[Mutant] = []

    def _add(self, line: int, start: int, end: int, new: str) -> None:
        self.mutants.append(Mutant(self.file, line, start, self.source[start:end].decode(), new))

    def _replace(self, node: ast.expr, new: str) -> None:
        self._add(node.lineno, *self._span(node), new)

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno
        assert node.end_col_offset is not None
        return self.lines[node.lineno - 1] + node.col_offset, self.lines[
            node.end_lineno - 1
        ] + node.end_col_offset

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self.source[start:end].decode()

    def _operator(self, left: ast.expr, right: ast.expr, table: dict[str, str]) -> None:
        """Replace the operator between two operands, if the table has it and only parentheses are beside it."""
        start, end = self._span(left)[1], self._span(right)[0]
        found = re.fullmatch(r"[\s)]*?(\S+(?: not| in)?)[\s(]*", self.source[start:end].decode())
        if found and found[1] in table:
            self._add(left.lineno, start + found.start(1), start + found.end(1), table[found[1]])

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
            self._operator(left, right, COMPARISONS)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._operator(node.left, node.right, OPERATORS)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self._operator(*node.values[:2], {"and": "or", "or": "and"})
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.USub | ast.Not):
            self._replace(node, f"({self._text(node.operand)})")
        # The constant of a negative number is not changed separately.
        if not isinstance(node.operand, ast.Constant):
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace(node, str(not node.value))
        elif isinstance(node.value, int | float):
            self._replace(node, repr(node.value + 1))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in NAMES:
            _, end = self._span(node)
            self._add(node.lineno, end - len(node.attr), end, NAMES[node.attr])
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        if _first_name(called) in SILENT:
            return
        if isinstance(called, ast.Name) and called.id in NAMES:
            self._replace(called, NAMES[called.id])
        if isinstance(called, ast.Attribute) and called.attr in ("abs", "neg") and not node.args:
            self._replace(node, self._text(called.value))
        if isinstance(called, ast.Name) and called.id == "abs":
            self._replace(node, f"({self._text(node.args[0])})")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        self._replace(node.test, f"not ({self._text(node.test)})")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value and not isinstance(node.value, ast.Constant):
            self._replace(node.value, "None")
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in ("__repr__", "__str__"):
            return
        for part in (*node.args.defaults, *node.args.kw_defaults, *node.body):
            if part:
                self.visit(part)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None: ...

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None: ...


def _first_name(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def sample(folders: Iterable[str], seed: int) -> Iterator[Mutant]:
    """Yield mutants, from each folder in turn, each in a random file of the folder."""
    generator = random.Random(seed)
    files = {}
    for folder in folders:
        # Contract tests compare registries with the functions, the schema and the documentation word by word.
        modules = [
            path for path in sorted((PROJECT / PACKAGE / folder).rglob("*.py")) if path.stem != "__init__"
        ]
        files[folder] = {path: _shuffled(path, generator) for path in modules}
    while any(files.values()):
        for left in files.values():
            for path in [path for path in left if not left[path]]:
                del left[path]
            if left:
                yield left[generator.choice(list(left))].pop()


def _shuffled(path: Path, generator: random.Random) -> list[Mutant]:
    finder = Finder(path)
    finder.visit(ast.parse(finder.source))
    generator.shuffle(finder.mutants)
    return finder.mutants


def related(mutant: Mutant, tests: Path) -> list[str]:
    """Return the test files that name the mutant's module, then other tests of its package."""
    module = Path(mutant.file).relative_to(PACKAGE).with_suffix("")
    named = re.compile(rf"saliency_assay[./]{'[./]'.join(module.parts)}\b|import .*\b{module.name}\b")
    package = re.compile(rf"saliency_assay\.{mutant.folder}\b")
    ranks = {}
    for path in sorted(tests.rglob("test_*.py")):
        kind, text = path.relative_to(tests).parts[0], path.read_text()
        if kind in ("workflow", "real", "cluster"):
            continue
        if module.name in path.stem:
            ranks[path] = 0
        elif named.search(text):
            ranks[path] = 1
        elif path.parent.name == mutant.folder or (kind in ("contract", "property") and package.search(text)):
            ranks[path] = 2
    return [path.relative_to(tests.parent).as_posix() for path in sorted(ranks, key=lambda path: ranks[path])]


def killer(project: Path, arguments: list[str], suite: str, timeout: float) -> str:
    """Return the test that fails, or ``timeout``; empty if all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *arguments]
    command += ["-m", SUITES[suite]] if SUITES[suite] else []
    environment = {**os.environ, "PYTHONPATH": str(project / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        command, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        try:
            printed, _ = running.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            running.kill()
            return "timeout"
    if running.returncode in (0, 5):  # 5: no test has the suite's markers
        return ""
    if "ImportError while loading conftest" in printed:
        return "an import"
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", printed, re.MULTILINE)
    if not failed:
        sys.exit(f"pytest {' '.join(arguments)}: {printed[-2000:]}")
    return failed[1]


def outcome_of(mutant: Mutant, project: Path, options: argparse.Namespace) -> str:
    """Plant the mutant in a copy of the project, run the tests, and return the test that killed it, or ``survived``."""
    path = project / mutant.file
    whole = path.read_bytes()
    assert whole[mutant.start :].startswith(mutant.old.encode())
    path.write_bytes(
        whole[: mutant.start] + mutant.new.encode() + whole[mutant.start + len(mutant.old.encode()) :]
    )
    try:
        files = related(mutant, project / "tests")
        if files and (test := killer(project, files, options.suite, options.timeout)):
            return f"killed by {test}"
        if options.related:
            return OWN_PASSED
        rest = [*everything(options), *(f"--ignore={file}" for file in files)]
        test = killer(project, rest, options.suite, 4 * options.timeout)
        return f"killed by {test}" if test else "survived"
    finally:
        path.write_bytes(whole)


def everything(options: argparse.Namespace) -> list[str]:
    return ["-n", str(options.processes), "--dist=loadscope"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", choices=SUITES, default="fast", help="make test, or make test-all")
    parser.add_argument("--folders", nargs="+", default=FOLDERS, help="packages of the modules to change")
    parser.add_argument("--mutants", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--related", action="store_true", help="run only tests of the module and its package: a lower bound"
    )
    parser.add_argument("--processes", type=int, default=1, help="of pytest, for the rest of the suite")
    parser.add_argument("--timeout", type=float, default=900, help="seconds; four times as many for the rest")
    options = parser.parse_args()

    project = PROJECT / "build/mutation"
    shutil.rmtree(project, ignore_errors=True)
    for part in subprocess.check_output(["git", "ls-files", "-z"], cwd=PROJECT, text=True).split("\0"):
        if part and (PROJECT / part).exists():
            (project / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / part, project / part, follow_symlinks=False)
    outcomes: dict[str, str] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    mutants = list(islice(sample(options.folders, options.seed), options.mutants))
    if not options.related and (
        test := killer(project, everything(options), options.suite, 4 * options.timeout)
    ):
        sys.exit(f"{test} fails without a mutant")
    for number, mutant in enumerate(mutants, 1):
        key = f"{options.suite} {mutant.name}"
        unfinished = (None,) if options.related else (None, OWN_PASSED)
        if outcomes.get(key) in unfinished:
            outcomes[key] = outcome_of(mutant, project, options)
            RECORD.write_text(json.dumps(outcomes, indent=1))
        print(f"{number} {mutant.name}: {outcomes[key]}", flush=True)

    print("\n| folder | mutants | killed |\n|---|---|---|")
    killed, planted = Counter[str](), Counter[str]()
    for mutant in mutants:
        for folder in (mutant.folder, "all"):
            planted[folder] += 1
            killed[folder] += outcomes[f"{options.suite} {mutant.name}"].startswith("killed")
    for folder in (*options.folders, "all"):
        print(
            f"| {folder} | {planted[folder]} | {killed[folder]} ({killed[folder] / max(1, planted[folder]):.0%}) |"
        )


if __name__ == "__main__":
    main()

"""Checks of links, paths, quoted messages and generated parts of README and the documentation."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import snakemake

from saliency_assay.catalog import CATALOG
from tools import configuration_reference, metric_records, record_tables
from tools.pages import DOCS, anchors, blocks, pages, prose
from tools.source_tree import MODULES, PACKAGE, ROOT, Problem, line_of, syntax

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"([\w.*-]+/)*[\w.*-]+\.(?:py|smk|yaml|def|md|rst|ipynb)(?:::(\w+))?")
TREES = (ROOT, PACKAGE, ROOT / "tests")
"""Folders to which file names in pages are relative."""
GENERATORS = (record_tables, metric_records, configuration_reference)
"""Modules that generate pages or parts of them."""
HOLE = "\0"
"""Placeholder for a formatted value in a message."""
LEAST = 14
"""Fewest literal characters of a message pattern; shorter ones would match nearly every line."""
OTHER_MESSAGES = re.compile(r"score: metrics\.\w+: KeyError: 'a' \(\w+\.py, line \d+\)")
"""Messages of Python in the format of ``runtime.job``."""


def check_documentation() -> Iterator[Problem]:
    """Check the pages, README and the changelog."""
    for page in (*pages(), ROOT / "CHANGELOG.md"):
        yield from check_links(page)
        yield from check_lists(page)
    for page in pages():
        yield from check_paths(page)
    yield from check_generated()
    yield from check_messages()
    yield from check_test_names()


def check_links(page: Path) -> Iterator[Problem]:
    """Check that links lead to existing files and headings of the repository, and from the site only to its pages."""
    text = prose(page)
    for match in LINK.finditer(text):
        file, _, anchor = match[1].partition("#")
        if re.match(r"(https?:)?//", match[1]):
            continue
        target = (page.parent / file).resolve() if file else page
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            yield Problem(page, line_of(text, match.start()), f"broken link: {match[1]}")
        elif page.is_relative_to(DOCS) and not target.is_relative_to(DOCS):
            yield Problem(page, line_of(text, match.start()), f"link out of the site: {match[1]}")


def check_lists(page: Path) -> Iterator[Problem]:
    """Check for an empty line before each list, which the site's Markdown requires."""
    for number, (before, line) in enumerate(pairwise(prose(page).splitlines()), 2):
        if line.startswith("- ") and before.strip() and not re.match(r"- | {2}", before):
            yield Problem(page, number, "no empty line before a list")


def check_paths(page: Path) -> Iterator[Problem]:
    """Check that the files and tests of the project that a page names exist."""
    text = prose(page)
    for span in CODE.finditer(text):
        for word in span[1].split():
            name = re.sub(r"[A-Z]{4,}", "*", word) if not word.startswith("README") else word
            match = FILE.fullmatch(name)
            if match and not _exists(name.partition("::")[0], match[2]):
                yield Problem(page, line_of(text, span.start()), f"no such file or test: {word}")


def _exists(name: str, test: str | None) -> bool:
    first, _, rest = name.partition("/")
    if not rest:  # a user's file, or one in a folder that the text names
        files = [*(ROOT / "tests").rglob(name)] if name.startswith("test_") else [ROOT]
    elif any((tree / first).is_dir() for tree in TREES) and first not in ("results", "build"):
        files = [path for tree in TREES for path in tree.glob(name)]
    else:
        return True
    return any(not test or f"def {test}(" in path.read_text() for path in files)


def check_generated() -> Iterator[Problem]:
    """Check that the generated parts of pages are up to date."""
    for name in sorted(metric_records.COST.keys() - set(CATALOG.metrics)):
        yield Problem(ROOT / "tools/metric_records.py", 1, f"cost of {name}, which is no metric")
    for module in GENERATORS:
        for page, text in module.generated():
            if page.read_text() != text:
                pairs = zip(page.read_text().splitlines(), text.splitlines(), strict=False)
                line = next((number for number, (old, new) in enumerate(pairs, 1) if old != new), 1)
                yield Problem(page, line, f"not up to date: run python -m {module.__name__}")


def check_messages() -> Iterator[Problem]:
    """Check that each message on the troubleshooting page is one of the project or of Snakemake."""
    page = DOCS / "troubleshooting.md"
    for block in blocks(page):
        for number, message in enumerate(block.text.splitlines() if block.language == "text" else (), 1):
            is_known = any(pattern.search(message) for pattern in known_messages())
            if not is_known and not OTHER_MESSAGES.fullmatch(message):
                yield Problem(page, block.line + number, f"no code produces this message: {message}")


@cache
def known_messages() -> list[re.Pattern[str]]:
    """Return a pattern for each line of all string literals in the sources; formatted values match any text."""
    plugin = (ROOT / "src").glob("snakemake_logger_plugin_*/*.py")
    paths = [*MODULES, *plugin, Path(snakemake.__file__).parent / "exceptions.py"]
    texts = [text for path in paths for text in _string_literals(path)]
    texts += re.findall(r'echo "(.+?)" >&2', (ROOT / "Makefile").read_text().replace("$(CONFIG)", HOLE))
    lines = {line for text in texts for line in text.replace("{}", HOLE).splitlines()}
    return [
        re.compile(".*?".join(map(re.escape, line.split(HOLE))))
        for line in lines
        if len(line.replace(HOLE, "")) >= LEAST
    ]


def _string_literals(path: Path) -> Iterator[str]:
    nodes = list(ast.walk(syntax(path)))
    fstring_values = {id(value) for node in nodes if isinstance(node, ast.JoinedStr) for value in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(value.value) if isinstance(value, ast.Constant) else HOLE for value in node.values
            )
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in fstring_values
        ):
            yield node.value


def check_test_names() -> Iterator[Problem]:
    """Check that test files have distinct names, because pytest imports them by file name."""
    first_path: dict[str, Path] = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path.name != "conftest.py" and first_path.setdefault(path.name, path) != path:
            yield Problem(path, 1, f"{first_path[path.name].relative_to(ROOT)} has the same name")

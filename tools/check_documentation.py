"""Links, paths, quoted messages and generated parts of README and the documentation."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import snakemake

from saliency_assay.catalogue import CATALOGUE
from tools import configuration_reference, metric_records, record_tables
from tools.pages import DOCS, anchors, blocks, pages, prose
from tools.source_tree import MODULES, PACKAGE, ROOT, Problem, line_of, syntax

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"([\w.*-]+/)*[\w.*-]+\.(?:py|smk|yaml|def|md|rst|ipynb)(?:::(\w+))?")
TREES = (ROOT, PACKAGE, ROOT / "tests")
"""Folders that pages name files from."""
GENERATORS = (record_tables, metric_records, configuration_reference)
"""Modules that write pages or parts of them."""
HOLE = "\0"
"""What stands in a message for a value that is put in."""
LEAST = 14
"""Characters of its own that a message must have, else nearly everything would be found in it."""
OTHER_MESSAGES = re.compile(r"score: KeyError: 'a' \(\w+\.py, line \d+\)")
"""Python's own words in the form of ``runtime.job``."""


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
    """Links lead to files and headings, read as files on a forge: README is no page of the site."""
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
    """Check for an empty line before each list: the site's Markdown needs it."""
    for number, (before, line) in enumerate(pairwise(prose(page).splitlines()), 2):
        if line.startswith("- ") and before.strip() and not re.match(r"- | {2}", before):
            yield Problem(page, number, "no empty line before a list")


def check_paths(page: Path) -> Iterator[Problem]:
    """Files of the project and tests that a page names exist."""
    text = prose(page)
    for span in CODE.finditer(text):
        for word in span[1].split():
            name = re.sub(r"[A-Z]{4,}", "*", word) if not word.startswith("README") else word
            match = FILE.fullmatch(name)
            if match and not _exists(name.partition("::")[0], match[2]):
                yield Problem(page, line_of(text, span.start()), f"no such file or test: {word}")


def _exists(name: str, test: str | None) -> bool:
    first, _, rest = name.partition("/")
    if not rest:  # a user's file, or one of the folder that is written of
        files = [*(ROOT / "tests").rglob(name)] if name.startswith("test_") else [ROOT]
    elif any((tree / first).is_dir() for tree in TREES) and first not in ("results", "build"):
        files = [path for tree in TREES for path in tree.glob(name)]
    else:
        return True
    return any(not test or f"def {test}(" in path.read_text() for path in files)


def check_generated() -> Iterator[Problem]:
    """Parts of pages that are written from records are up to date."""
    for name in sorted({*metric_records.RELIABILITY, *metric_records.RELEASED} - set(CATALOGUE.metrics)):
        yield Problem(ROOT / "tools/metric_records.py", 1, f"texts of {name}, which is no metric")
    for module in GENERATORS:
        for page, text in module.generated():
            if page.read_text() != text:
                pairs = zip(page.read_text().splitlines(), text.splitlines(), strict=False)
                line = next((number for number, (old, new) in enumerate(pairs, 1) if old != new), 1)
                yield Problem(page, line, f"not up to date: run python -m {module.__name__}")


def check_messages() -> Iterator[Problem]:
    """Each message that the page on troubleshooting quotes is one that the project, or Snakemake, gives."""
    page = DOCS / "troubleshooting.md"
    for block in blocks(page):
        for number, message in enumerate(block.text.splitlines() if block.language == "text" else (), 1):
            known = any(pattern.search(message) for pattern in known_messages())
            if not known and not OTHER_MESSAGES.fullmatch(message):
                yield Problem(page, block.line + number, f"nothing gives this message: {message}")


@cache
def known_messages() -> list[re.Pattern[str]]:
    """Return the lines of all texts in the sources, with any text in place of the values that are put in."""
    paths = [*MODULES, Path(snakemake.__file__).parent / "exceptions.py"]
    texts = [text for path in paths for text in _texts(path)]
    texts += re.findall(r'echo "(.+?)" >&2', (ROOT / "Makefile").read_text().replace("$(CONFIG)", HOLE))
    lines = {line for text in texts for line in text.replace("{}", HOLE).splitlines()}
    return [
        re.compile(".*?".join(map(re.escape, line.split(HOLE))))
        for line in lines
        if len(line.replace(HOLE, "")) >= LEAST
    ]


def _texts(path: Path) -> Iterator[str]:
    nodes = list(ast.walk(syntax(path)))
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def check_test_names() -> Iterator[Problem]:
    """Files of tests have different names: pytest imports them by name alone."""
    seen: dict[str, Path] = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path.name != "conftest.py" and seen.setdefault(path.name, path) != path:
            yield Problem(path, 1, f"{seen[path.name].relative_to(ROOT)} has the same name")

"""README and the pages of the documentation: code blocks, headings, and the files that a reader is to write."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pymdownx.slugs import slugify

from tools.source_tree import ROOT, line_of

DOCS = ROOT / "docs"
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# ([\w/]+\.(?:py|smk|yaml))\n")


@dataclass(frozen=True)
class Block:
    """One fenced block: the page, the line of its first fence, its language (empty if none is said), its text."""

    page: str
    line: int
    language: str
    text: str

    @property
    def file(self) -> str:
        """The path in the comment that it begins with, if it is a whole file; else empty."""
        found = FILE.match(self.text)
        return found[1] if found else ""


def pages() -> list[Path]:
    """README and all pages of the documentation."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


@cache
def prose(page: Path) -> str:
    """Return the text of a page with code blocks emptied, so that lines keep their numbers."""
    return FENCE.sub(lambda block: "\n" * block[0].count("\n"), page.read_text())


@cache
def anchors(page: Path) -> set[str]:
    """Return what sites and forges make of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    slug = slugify(case="lower")
    return {slug(re.sub(r"[`*]|\]\([^)]*\)|\[", "", heading), "-") for heading in headings}


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in its order."""
    text, name = page.read_text(), str(page.relative_to(ROOT))
    return [
        Block(
            name,
            line_of(text, found.start()),
            found[2],
            re.sub(f"^{found[1]}", "", found[3], flags=re.M),
        )
        for found in FENCE.finditer(text)
    ]


def write_files(page: Path, folder: Path) -> list[str]:
    """Write every file that a page shows whole below ``folder``; their paths."""
    shown = [block for block in blocks(page) if block.file]
    for block in shown:
        path = folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)
    return [block.file for block in shown]

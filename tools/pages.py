"""README and documentation pages: code blocks, headings, and the files that readers create from them."""

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
    """Fenced code block with its page, the line of its first fence, its language (empty if none) and its text."""

    page: str
    line: int
    language: str
    text: str

    @property
    def file(self) -> str:
        """Path in the first comment if the block is a whole file, else empty."""
        match = FILE.match(self.text)
        return match[1] if match else ""


def pages() -> list[Path]:
    """Return the paths of README and all pages of the documentation."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


@cache
def prose(page: Path) -> str:
    """Return the text of a page with empty lines in place of code blocks, so that line numbers do not change."""
    return FENCE.sub(lambda block: "\n" * block[0].count("\n"), page.read_text())


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors that the site and forges generate for the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    slug = slugify(case="lower")
    return {slug(re.sub(r"[`*]|\]\([^)]*\)|\[", "", heading), "-") for heading in headings}


@cache
def link_of(name: str, page: Path) -> str:
    """Return a Markdown link to the section of a record, on ``page`` or in the folder of its name; or only its name."""
    for candidate in [page, *sorted(page.with_suffix("").glob("*.md"))]:
        if name in anchors(candidate):
            target = "" if candidate == page else str(candidate.relative_to(page.parent))
            return f"[`{name}`]({target}#{name})"
    return f"`{name}`"


def blocks(page: Path) -> list[Block]:
    """Return the fenced code blocks of a page in order."""
    text, name = page.read_text(), str(page.relative_to(ROOT))
    return [
        Block(
            name,
            line_of(text, match.start()),
            match[2],
            re.sub(f"^{match[1]}", "", match[3], flags=re.M),
        )
        for match in FENCE.finditer(text)
    ]


def write_files(page: Path, folder: Path) -> list[str]:
    """Write all complete files of a page below ``folder`` and return their relative paths."""
    file_blocks = [block for block in blocks(page) if block.file]
    for block in file_blocks:
        path = folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)
    return [block.file for block in file_blocks]

"""What README and the pages of ``docs/`` hold: code blocks, and the files that how-to pages have a reader write."""

import re
from dataclasses import dataclass
from pathlib import Path

from saliency_assay.runtime.provenance import SOURCE

ROOT = SOURCE.parent
DOCS = ROOT / "docs"
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# ([\w/]+\.(?:py|yaml))\n")


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


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in its order."""
    text, name = page.read_text(), str(page.relative_to(ROOT))
    return [
        Block(
            name,
            text.count("\n", 0, found.start()) + 1,
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

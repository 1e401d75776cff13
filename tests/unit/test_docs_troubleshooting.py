"""Every message that the page on troubleshooting quotes is one that the project, or Snakemake, can still say."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import snakemake
from pages import DOCS, ROOT, blocks

PAGE = DOCS / "troubleshooting.md"
MESSAGES = [line for block in blocks(PAGE) if block.language == "text" for line in block.text.splitlines()]
SNAKEMAKE = Path(snakemake.__file__).parent / "exceptions.py"
SOURCES = sorted((ROOT / "src").rglob("*.py"))
HOLE = "\0"
LEAST = 14
"""Characters of its own that a template must have, else nearly everything would be found in it."""


@dataclass(frozen=True)
class Template:
    """One line that a program can say: its own words, with holes between them."""

    parts: tuple[str, ...]

    def says(self, message: str) -> bool:
        place = 0
        for part in self.parts:
            place = message.find(part, place)
            if place < 0:
                return False
            place += len(part)
        return True


def templates(path: Path) -> Iterator[Template]:
    """The texts in a Python file, line by line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            values = [part.value if isinstance(part, ast.Constant) else HOLE for part in node.values]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            values = [node.value]
        else:
            continue
        for line in "".join(map(str, values)).replace("{}", HOLE).splitlines():
            parts = tuple(part for part in line.split(HOLE) if part)
            if sum(map(len, parts)) >= LEAST:
                yield Template(parts)


def known() -> set[Template]:
    return {template for path in [*SOURCES, SNAKEMAKE] for template in templates(path)} | {
        Template(("CONFIG: ", ": no such file"))
        for line in (ROOT / "Makefile").read_text().splitlines()
        if 'echo "CONFIG: $(CONFIG): no such file"' in line
    }


KNOWN = known()
# Python's own words, in the form that ``runtime.job.in_one_line`` gives them.
OTHERS = re.compile(r"score: KeyError: 'a' \(\w+\.py, line \d+\)")


def test_the_page_quotes_many() -> None:
    assert len(MESSAGES) > 30


@pytest.mark.parametrize("message", MESSAGES)
def test_a_quoted_message_is_still_said(message: str) -> None:
    assert OTHERS.fullmatch(message) or any(template.says(message) for template in KNOWN)


def test_a_message_that_nobody_says_is_found_out() -> None:
    invented = "train: the weights were eaten by the dog, expected a cat"
    assert not any(template.says(invented) for template in KNOWN)

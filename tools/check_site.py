"""Check that the pages of the built documentation fetch nothing from the network."""

import re
from collections.abc import Iterator

from tools.source_tree import ROOT, Problem, line_of

SITE = ROOT / "build/docs"
FETCHED = {
    "html": r"""<(?:script|img|iframe|source)\b[^>]*\bsrc="(?:https?:)?//[^"]+"|"""
    r"""<link (?=[^>]*rel="(?:stylesheet|preconnect|icon)")[^>]*href="(?:https?:)?//[^"]+\"""",
    "css": r"""url\(['"]?(?:https?:)?//[^)]+\)""",
}
"""Patterns of scripts, styles, images and fonts from other sites, by the suffix of the referring file."""


def check_site() -> Iterator[Problem]:
    """Check that all pages of the site, built by ``make docs``, work without a network."""
    for suffix, pattern in FETCHED.items():
        for path in sorted(SITE.rglob(f"*.{suffix}")):
            text = path.read_text()
            for match in re.finditer(pattern, text):
                yield Problem(path, line_of(text, match.start()), f"needs a network: {match[0]}")

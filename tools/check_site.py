"""What the pages of the built documentation fetch from the network."""

import re
from collections.abc import Iterator

from tools.source_tree import ROOT, Problem, line_of

SITE = ROOT / "build/docs"
FETCHED = {
    "html": r"""<(?:script|img|iframe|source)\b[^>]*\bsrc="(?:https?:)?//[^"]+"|"""
    r"""<link (?=[^>]*rel="(?:stylesheet|preconnect|icon)")[^>]*href="(?:https?:)?//[^"]+\"""",
    "css": r"""url\(['"]?(?:https?:)?//[^)]+\)""",
}
"""Scripts, styles, pictures and fonts of other sites, by the kind of file that names them."""


def check_site() -> Iterator[Problem]:
    """Check that the site, which ``make docs`` builds, shows every page without a network."""
    for suffix, pattern in FETCHED.items():
        for path in sorted(SITE.rglob(f"*.{suffix}")):
            text = path.read_text()
            for match in re.finditer(pattern, text):
                yield Problem(path, line_of(text, match.start()), f"needs a network: {match[0]}")

"""Notes of a release: ``python -m tools.release_notes TAG`` prints the changelog's section of this version.

The tag, the package, the citation and the first heading of the changelog must name the same version.
"""

import re
import sys

from saliency_assay import __version__
from tools.check_requirements import check_version
from tools.source_tree import ROOT


def release_notes(changelog: str, version: str) -> str:
    """Return the first section of a changelog, with each paragraph, list item and row of a table in one line.

    Releases on GitHub show every line break.

    Raises:
        ValueError: the first section is that of another version, or empty.
    """
    heading, _, rest = changelog.partition("\n## ")[2].partition("\n")
    if heading.split(" ")[0] != version:
        raise ValueError(f"CHANGELOG.md: first heading {heading!r}, expected version {version}")
    section = rest.partition("\n## ")[0].strip()
    if not section:
        raise ValueError(f"CHANGELOG.md: section {version} is empty")
    return re.sub(r"(?<=[^\n])\n *(?=[^\s#|-])", " ", section)


def main(tag: str) -> None:
    """Print the notes, or exit with one line on each place that names another version."""
    problems = [str(problem) for problem in check_version()]
    if tag != f"v{__version__}":
        problems.append(f"TAG: {tag!r}, expected 'v{__version__}', the version of the package")
    try:
        notes = release_notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), __version__)
    except ValueError as error:
        problems.append(str(error))
    if problems:
        raise SystemExit("\n".join(problems))
    print(notes)


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))

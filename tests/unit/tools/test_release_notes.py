"""Notes of a release from the changelog."""

import pytest

from tools.release_notes import main, release_notes

CHANGELOG = """\
# Changelog

Newest version first.

## 1.10.0 (2026-12-01)

Results differ from
those of 1.1.

### Added

- A method with a description
  on two lines.
- A metric.

| old | new |
|---|---|
| a | b |

## 1.1.0 (2026-11-01)

- Older.
"""


def test_notes_are_the_first_section_without_wrapped_lines() -> None:
    assert release_notes(CHANGELOG, "1.10.0") == (
        "Results differ from those of 1.1.\n\n### Added\n\n"
        "- A method with a description on two lines.\n- A metric.\n\n| old | new |\n|---|---|\n| a | b |"
    )


@pytest.mark.parametrize("version", ["1.1.0", "1.1", "1.10.00", "2.0.0"])
def test_another_version_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match=rf"'1\.10\.0 \(2026-12-01\)', expected version {version}$"):
        release_notes(CHANGELOG, version)


def test_changes_that_are_not_released_are_refused() -> None:
    unreleased = CHANGELOG.replace("## 1.10.0", "## Unreleased\n\n- New.\n\n## 1.10.0", 1)
    with pytest.raises(ValueError, match="'Unreleased', expected version"):
        release_notes(unreleased, "1.10.0")


def test_an_empty_section_is_refused() -> None:
    with pytest.raises(ValueError, match=r"section 2\.0\.0 is empty"):
        release_notes(CHANGELOG.replace("## 1.10.0", "## 2.0.0\n\n## 1.10.0", 1), "2.0.0")


@pytest.mark.parametrize("tag", ["", "v0.0.1", "0.2.0"])
def test_another_tag_is_refused(tag: str) -> None:
    with pytest.raises(SystemExit, match=rf"(?m)^TAG: '{tag}', expected 'v\d"):
        main(tag)

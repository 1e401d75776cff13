"""The documentation as a site builds without a warning and needs no network; no link in it or in README is broken."""

import os
import re
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from pages import FENCE, ROOT, pages
from pymdownx.slugs import slugify

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
ELSEWHERE = re.compile(r"(?:https?:)?//")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    said = run.stdout + run.stderr
    assert run.returncode == 0, said
    assert "WARNING" not in said
    return folder


def test_every_page_is_built(site: Path) -> None:
    built = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    written = {path.relative_to(ROOT / "docs").with_suffix("") for path in pages()[1:]}
    assert {Path(str(path).replace("README", "index")) for path in written} | {Path("404")} == built


def test_it_fetches_nothing(site: Path) -> None:
    """Links lead elsewhere; scripts, styles, pictures and fonts do not."""
    for path in site.rglob("*.html"):
        text = path.read_text()
        fetched = re.findall(r'\bsrc="([^"]+)"', text)
        fetched += re.findall(r'<link [^>]*rel="(?:stylesheet|preconnect|icon)"[^>]*href="([^"]+)"', text)
        fetched += re.findall(r'<link [^>]*href="([^"]+)"[^>]*rel="(?:stylesheet|preconnect|icon)"', text)
        assert "worker.js" in " ".join(fetched), path
        assert [address for address in fetched if ELSEWHERE.match(address)] == [], path
    for style in site.rglob("*.css"):
        assert re.findall(r"url\(['\"]?(?:https?:)?//", style.read_text()) == [], style


def test_the_search_has_all_pages(site: Path) -> None:
    found = (site / "search/search_index.js").read_text()
    for name in (
        "howto/own-method.html",
        "metrics.html#sensitivity_max",
        "troubleshooting.html#the-folder-is-locked",
    ):
        assert f'"{name}"' in found


@cache
def anchors(path: Path) -> set[str]:
    """What forges make of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text()), re.MULTILINE)
    slug = slugify(case="lower")
    return {slug(re.sub(r"[`*]|\]\([^)]*\)|\[", "", heading), "-") for heading in headings}


@pytest.mark.parametrize(
    "page", [*pages(), ROOT / "CHANGELOG.md"], ids=lambda path: str(path.relative_to(ROOT))
)
def test_links_lead_somewhere(page: Path) -> None:
    """As files, on a forge: README's too, which is no page of the site."""
    broken = []
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        if ELSEWHERE.match(link.removeprefix("https:").removeprefix("http:")):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", pages()[1:], ids=lambda path: str(path.relative_to(ROOT)))
def test_links_stay_in_the_site(page: Path) -> None:
    files = [link.partition("#")[0] for link in LINK.findall(page.read_text()) if not ELSEWHERE.search(link)]
    outside = [
        file for file in files if file and not (page.parent / file).resolve().is_relative_to(ROOT / "docs")
    ]
    assert outside == []


@pytest.mark.parametrize("page", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_lists_and_tables_are_read_alike_everywhere(page: Path) -> None:
    """The site's Markdown wants an empty line before a list, where a forge's does not."""
    lines = FENCE.sub("", page.read_text()).splitlines()
    joined = [
        line
        for before, line in pairwise(lines)
        if re.match(r"- ", line) and before.strip() and not re.match(r"- | {2}", before)
    ]
    assert joined == []


def test_pictures_are_small() -> None:
    pictures = [path for path in (ROOT / "docs").rglob("*") if path.suffix in (".png", ".jpg")]
    assert len(pictures) > 5
    assert {path.name: path.stat().st_size for path in pictures if path.stat().st_size > 400_000} == {}

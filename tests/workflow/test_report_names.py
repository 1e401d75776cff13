"""Pages, figures, captions and titles of a finished run have the labels of entries; their keys are only in code."""

from pathlib import Path

import pytest
from checkout import Checkout
from display_names import keys_in, keys_of, texts_of_figure, texts_of_page, variable_of_report
from pipelines import TINY

pytestmark = pytest.mark.slow

KEYS = keys_of(TINY)


@pytest.fixture(scope="module")
def figures(finished_once: Checkout) -> Path:
    return finished_once.root / "results/figures"


@pytest.fixture(scope="module")
def report(finished_once: Checkout) -> str:
    return (finished_once.root / "results/report.html").read_text(encoding="utf-8")


def test_pages_have_labels_and_no_keys(figures: Path) -> None:
    pages = sorted(figures.rglob("*.html"))
    assert len(pages) > 20
    faults = [
        f"{page.relative_to(figures)}: {message}"
        for page in pages
        for message in keys_in(texts_of_page(page.read_text(encoding="utf-8")), KEYS)
    ]
    assert faults == []


def test_figures_have_labels_and_no_keys(figures: Path) -> None:
    texts = {plot: texts_of_figure(plot.read_text(encoding="utf-8")) for plot in figures.rglob("*.svg")}
    assert len(texts) > 20
    assert [plot.name for plot in texts if not texts[plot]] == []
    faults = [
        f"{plot.relative_to(figures)}: {message}"
        for plot in sorted(texts)
        for message in keys_in(texts[plot], KEYS)
    ]
    assert faults == []


def test_captions_and_titles_have_labels_and_no_keys(report: str) -> None:
    results = variable_of_report(report, "results")
    assert len(results) > 40
    for path, result in results.items():
        assert "System Message" not in result["caption"], path  # reStructuredText that docutils cannot read
        titles = [("h2", title) for title in result["labels"].values()]
        assert list(keys_in([*texts_of_page(result["caption"]), *titles], KEYS)) == [], path

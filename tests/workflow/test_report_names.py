"""Pages, figures, captions and titles of a finished run have the labels of entries; their keys are only in code."""

import json
from pathlib import Path
from typing import Any

import pytest
from checkout import Checkout
from display_names import keys_in, keys_of, texts_of_figure, texts_of_page
from pipelines import TINY

pytestmark = pytest.mark.slow

KEYS = keys_of(TINY)


@pytest.fixture(scope="module")
def figures(finished_once: Checkout) -> Path:
    return finished_once.root / "results/figures"


@pytest.fixture(scope="module")
def report(finished_once: Checkout) -> str:
    return (finished_once.root / "results/report.html").read_text(encoding="utf-8")


def variable(report: str, name: str) -> dict[str, Any]:
    """Return a variable of the report's script: ``results`` by path, or ``categories`` by name."""
    start = f"var {name} = "
    script = report.index(f'<script id="{name}">')
    content, _ = json.JSONDecoder().raw_decode(report, report.index(start, script) + len(start))
    assert isinstance(content, dict)
    return content


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
    results = variable(report, "results")
    assert len(results) > 40
    for path, result in results.items():
        assert "System Message" not in result["caption"], path  # reStructuredText that docutils cannot read
        titles = [("h2", title) for title in result["labels"].values()]
        assert list(keys_in([*texts_of_page(result["caption"]), *titles], KEYS)) == [], path


def test_studies_are_pages_by_their_labels(report: str) -> None:
    studies = [f"Study {label}" for label in ("BAM", "Captions", "Digits", "Retraining")]
    others = ["Overview", "Trust in metrics", "Methods", "Metrics", "Models", "Provenance"]
    assert sorted(variable(report, "categories")) == sorted([*studies, *others])

"""What the page on metrics says of each is what its record says."""

import pytest
from metric_records import NONE, PAGE, RELEASED, RELIABILITY, rows_of, with_records
from pages import DOCS

from saliency_assay.metrics import METRICS


def test_the_page_is_written_from_the_records() -> None:
    assert PAGE == DOCS / "metrics.md"
    assert with_records(PAGE.read_text()) == PAGE.read_text(), "run python tests/metric_records.py"


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_record_is_whole(metric: object) -> None:
    rows = dict(rows_of(metric))  # type: ignore[arg-type]
    assert all(rows.values())
    assert len(rows) == 7


def test_words_are_of_metrics_that_there_are() -> None:
    names = {metric.name for metric in METRICS}
    assert set(RELIABILITY) | set(RELEASED) <= names
    assert NONE not in RELEASED.values()


def test_where_the_record_says_below_the_section_says_it() -> None:
    """The words printed, released or silent stand in the text under the record."""
    sections = PAGE.read_text().split("\n## ")
    for name, text in RELEASED.items():
        if text.endswith("below"):
            (section,) = [part for part in sections if part.startswith(f"{name}\n")]
            prose = section.partition("<!-- end of record -->")[2].lower()
            assert any(word in prose for word in ("released", "printed", "not said")), name

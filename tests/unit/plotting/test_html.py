"""Pages that show tables."""

import re

import pandas as pd
from parsed_pages import Page

from saliency_assay.plotting.html import table_page
from saliency_assay.plotting.page import ASSETS

NAN = float("nan")


def test_a_page_shows_the_table() -> None:
    table = pd.DataFrame(
        {"method": ["edge", "gradcam"], "score": [0.12345, NAN], "images": [20, 7], "note": ["a", NAN]}
    )
    page = Page(table_page(table, title="MCS", digits=3))
    assert page.rows == [
        [("method", "text"), ("score", "number"), ("images", "number"), ("note", "text")],
        [("edge", "text"), ("0.123", "number"), ("20", "number"), ("a", "text")],
        [("gradcam", "text"), ("–", "number"), ("7", "number"), ("–", "text")],
    ]
    assert page.texts["title"] == page.texts["caption"] == "MCS"
    assert re.search(r"td\.number, th\.number \{ text-align: right;", page.texts["style"])


def test_names_are_shown_as_text() -> None:
    evil = "<script>alert('x')</script> & \"quoted\" {body} {0}"
    page = Page(table_page(pd.DataFrame({evil: [evil]}), title=evil, digits=1))
    assert page.rows == [[(evil, "text")], [(evil, "text")]]
    assert page.texts["title"] == page.texts["caption"] == evil
    assert page.tags.count("script") == 1  # the page's own
    assert page.texts["script"].strip() == (ASSETS / "page.js").read_text().strip()
    assert not any(name.startswith("on") for name, _ in page.attributes)
    text = table_page(pd.DataFrame({"a": ['"']}), title="'", digits=1)
    assert "<td>&#34;</td>" in text
    assert "<caption>&#39;</caption>" in text


def test_cells_keep_the_numbers_that_they_round() -> None:
    text = table_page(pd.DataFrame({"a": [0.123456, -0.0004, NAN, 1.23e-9, 0.0]}), title="t", digits=2)
    assert re.findall(r'data-value="(.*?)">(.*?)<', text) == [
        ("0.123456", "0.12"),
        ("-0.0004", "−0.00040"),
        ("", "–"),
        ("1.23e-09", "1.2e-09"),
        ("0.0", "0.00"),
    ]


def test_a_page_needs_no_network() -> None:
    page = Page(table_page(pd.DataFrame({"a": [1]}), title="t", digits=1))
    assert not {"link", "img", "iframe"} & set(page.tags)
    assert not {"src", "href"} & {name for name, _ in page.attributes}
    assert "http" not in page.texts["script"] + page.texts["style"]
    assert page.rows == [[("a", "number")], [("1", "number")]]
    assert Page(table_page(pd.DataFrame({"a": []}), title="t", digits=1)).rows == [[("a", "number")]]

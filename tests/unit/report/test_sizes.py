"""Pages of a large and of a small study in a browser: all of them is legible in a wide and in a narrow window."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from generated_studies import generated_evidence, generated_study
from playwright.sync_api import Browser, Page, ViewportSize

from saliency_assay.report.pages.overview import overview_page, summary_page
from saliency_assay.report.pages.preview import flag_levels
from saliency_assay.report.pages.study import StudyResult
from saliency_assay.report.pages.trust import trust_page

pytestmark = pytest.mark.browser

HEIGHT, WIDTHS = 900, (1120, 400)  # the report's frame in windows of 1,400 and 400 pixels
SIZES = {"large": (21, 16, 3, 3), "small": (2, 1, 1, 0)}
PAGES = ("overview", "trust", "large", "small")
CLIPPED = """heads => heads.filter(head => head.getClientRects().length
  && (head.scrollWidth > head.clientWidth + 1 || head.scrollHeight > head.clientHeight + 1))
  .map(head => head.innerText)"""
WIDE_OUTSIDE = """elements => elements.filter(element => !element.closest('.scroll, .hidden')
  && element.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map(element => element.outerHTML)"""


@pytest.fixture(scope="module")
def studies() -> dict[str, StudyResult]:
    return {
        name: generated_study(methods, metrics, seeds, baselines=baselines, name=name)
        for name, (methods, metrics, seeds, baselines) in SIZES.items()
    }


@pytest.fixture(scope="module")
def files(studies: dict[str, StudyResult], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    results = list(studies.values())
    pages = {
        "overview": overview_page(results, seeds=[0, 1, 2], ran=""),
        "trust": trust_page(results, generated_evidence(results)),
    }
    for name, text in {**pages, **{name: summary_page(result) for name, result in studies.items()}}.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


@contextmanager
def opened(browser: Browser, width: int) -> Iterator[Page]:
    context = browser.new_context(viewport=ViewportSize(width=width, height=HEIGHT))
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module", params=WIDTHS)
def window(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    with opened(browser, request.param) as page:
        yield page


@pytest.fixture
def wide(browser: Browser) -> Iterator[Page]:
    with opened(browser, WIDTHS[0]) as page:
        yield page


@pytest.mark.parametrize("name", PAGES)
def test_only_tables_are_wider_than_the_window_and_none_clips_its_heads(
    window: Page, files: Path, name: str
) -> None:
    window.goto((files / f"{name}.html").as_uri())
    width = window.viewport_size["width"] if window.viewport_size else 0
    assert window.evaluate("document.documentElement.scrollWidth") <= width
    assert window.locator("body *").evaluate_all(WIDE_OUTSIDE) == []
    regions = window.locator(".scroll")
    assert regions.evaluate_all("parts => parts.every(part => part.tabIndex === 0 && part.ariaLabel)")
    heads = "table:not([data-plain]) th, .examples th, .preview tbody th, .preview tfoot th"
    assert window.locator(heads).evaluate_all(CLIPPED) == []


@pytest.mark.parametrize("study", SIZES)
def test_every_method_and_metric_is_named(
    wide: Page, files: Path, studies: dict[str, StudyResult], study: str
) -> None:
    result = studies[study]
    methods, metrics = set(result.methods), set(result.names.values())
    wide.goto((files / f"{study}.html").as_uri())
    heads = texts(wide, "table.heat tbody th")
    ranked = {head.removesuffix(" baseline") for head in heads if not head.endswith(" best possible map")}
    assert ranked == methods
    assert {head.rpartition(" ")[0] for head in texts(wide, "table.heat th.metric")} == metrics
    wide.goto((files / "overview.html").as_uri())
    card = wide.locator(".card", has=wide.get_by_role("link", name=result.label, exact=True))
    heads = card.locator(".preview tbody th").all_text_contents()
    assert {head.removesuffix(" baseline") for head in heads} == methods
    assert {*card.locator(".preview .names th").all_text_contents()} == metrics


def texts(window: Page, selector: str) -> list[str]:
    """Return the texts of elements, each on one line."""
    return [" ".join(text.split()) for text in window.locator(selector).all_text_contents()]


def test_the_heads_of_a_large_heat_map_stay_in_sight(window: Page, files: Path) -> None:
    window.goto((files / "large.html").as_uri())
    region = window.locator(".heat-map .scroll")
    assert region.evaluate("part => part.scrollHeight > part.clientHeight")
    region.evaluate("part => part.scrollTo(part.scrollWidth, part.scrollHeight)")
    for selector in ("thead th.metric:last-child", "thead th:first-child", "tbody tr:last-child th"):
        assert region.locator(selector).last.evaluate(
            """head => {
              const box = head.getBoundingClientRect(), part = head.closest('.scroll').getBoundingClientRect();
              return box.left >= part.left - 1 && box.right <= part.right + 1 && box.top >= part.top - 1
                && box.bottom <= part.bottom + 1;
            }"""
        ), selector


def test_metrics_are_sorted_and_filtered(wide: Page, files: Path, studies: dict[str, StudyResult]) -> None:
    wide.goto((files / "trust.html").as_uri())
    table = wide.locator(".trust table")

    def values(place: int) -> list[Any]:
        cells = table.locator(f"tbody td:nth-child({place})")
        numbers = cells.evaluate_all("cells => cells.map(c => c.dataset.value)")
        return [float(value) for value in numbers if value]

    assert values(1) == sorted(values(1), reverse=True)  # by verdict
    for place in (4, 5, 7):
        for reverse in (False, True):
            table.locator(f"thead th:nth-child({place}) button").click()
            assert values(place) == sorted(values(place), reverse=reverse)
    rows = table.locator("tbody tr:visible")
    everything = rows.count()
    wide.get_by_role("searchbox").fill("mcs")
    named = sum("MCS" in name for result in studies.values() for name in result.names.values())
    assert 0 < rows.count() < everything
    assert rows.count() >= named
    wide.get_by_role("searchbox").fill("")
    assert rows.count() == everything
    verdicts = set(texts(wide, ".trust tbody .verdict"))
    hidden = min(verdicts)
    wide.get_by_role("checkbox", name=hidden).uncheck()
    shown = rows.locator(".verdict").all_inner_texts()
    assert set(shown) == verdicts - {hidden} != set()


def test_names_above_columns_do_not_overlap() -> None:
    starts, lengths = [0, 80, 90, 110], [40, 60, 15, 80]
    assert flag_levels(starts, lengths) == [0, 1, 0, 0]
    assert flag_levels([0, 10, 20], [50, 50, 50]) == [2, 1, 0]
    assert flag_levels([0], [50]) == [0]
    assert flag_levels([], []) == []


def test_cards_of_the_overview_show_whole_heat_maps_beside_examples(wide: Page, files: Path) -> None:
    wide.goto((files / "overview.html").as_uri())
    hidden = "parts => parts.map(part => part.scrollWidth - part.clientWidth)"
    assert max(wide.locator(".card .scroll").evaluate_all(hidden)) <= 1
    parts = wide.locator(".card", has_text="2 × 1").locator(".ranks > *")
    [heat_map, examples] = [box["y"] for part in parts.all() if (box := part.bounding_box())]
    assert heat_map == examples

"""The report in a browser without a network, wide and narrow: every page, figure, table and caption shows."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
from checkout import Checkout
from display_names import variable_of_report
from playwright.sync_api import Browser, FrameLocator, Page, ViewportSize

pytestmark = pytest.mark.browser

CATEGORIES = (
    *("Overview", "Trust in metrics", "Methods", "Metrics", "Provenance", "Models"),
    *("Study BAM", "Study Captions", "Study Digits", "Study Retraining"),
)
OF_A_METRIC = "differences may be significant although the distributions overlap"


WIDE, NARROW = {"width": 1400, "height": 900}, {"width": 400, "height": 800}


@contextmanager
def opened(browser: Browser, checkout: Checkout, size: dict[str, int]) -> Iterator[Page]:
    """The open report; leaving it fails on a request to the network or an error in the page."""
    faults: list[str] = []
    context = browser.new_context(viewport=ViewportSize(**size), offline=True)
    page = context.new_page()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: message.type == "error" and faults.append(message.text))
    # A page within the report that is left while it loads is no fault.
    page.on("requestfailed", lambda request: request.url.startswith("blob:") or faults.append(request.url))
    page.goto(Path(checkout.root, "results/report.html").as_uri())
    inside(page).locator("h1").first.wait_for()
    yield page
    context.close()
    assert faults == []


def inside(page: Page) -> FrameLocator:
    """The page that the report shows."""
    return page.frame_locator("iframe")


@pytest.fixture(scope="module")
def wide(browser: Browser, finished_once: Checkout) -> Iterator[Page]:
    with opened(browser, finished_once, WIDE) as page:
        yield page


@pytest.fixture(scope="module")
def narrow(browser: Browser, finished_once: Checkout) -> Iterator[Page]:
    with opened(browser, finished_once, NARROW) as page:
        yield page


def turn_to(page: Page, category: str) -> FrameLocator:
    """The page of a category, from the menu."""
    page.get_by_text(category, exact=True).first.click()
    page.locator(f'iframe[title="{category}"]').wait_for()
    inside(page).locator("h1, h2").first.wait_for()
    return inside(page)


@pytest.mark.slow
def test_the_overview_opens_first_and_the_menu_is_in_the_order_of_the_book(
    browser: Browser, finished_once: Checkout
) -> None:
    with opened(browser, finished_once, WIDE) as page:
        assert inside(page).locator("h1").first.inner_text() == "Results"
        menu = [item.inner_text().strip() for item in page.locator("nav.transition-all li").all()]
        studies = [f"Study {name}" for name in ("BAM", "Captions", "Digits", "Retraining")]
        assert menu[menu.index("Overview") :] == [
            *("Overview", "Trust in metrics"),
            *studies,
            *("Methods", "Metrics", "Models", "Provenance"),
        ]
        assert page.title() == "Saliency Assay"


def titles_of(checkout: Checkout) -> dict[str, list[str]]:
    """Return the titles of the report's figures and tables by category; these are all files that there are."""
    report = (checkout.root / "results/report.html").read_text(encoding="utf-8")
    results = variable_of_report(report, "results")
    files = [
        path
        for path in checkout.root.glob("results/figures/**/*.*")
        if path.stem != "gallery" or path.suffix == ".html"
    ]
    assert {str(path.relative_to(checkout.root)) for path in files if path.suffix != ".json"} == set(results)
    return {
        category: [
            results[path]["labels"]["result"].partition("\n")[0] for paths in parts.values() for path in paths
        ]
        for category, parts in variable_of_report(report, "categories").items()
    }


def check_pages(page: Page, titles: dict[str, list[str]]) -> None:
    """All figures and tables of each category are on its page."""
    for category, names in titles.items():
        shown = turn_to(page, category)
        if len(names) > 1:
            shown.get_by_role("button", name="Unfold all").click()
        assert shown.locator("section:not(#part0) > details:not([open])").count() == 0
        headings = {heading.inner_text().strip() for heading in shown.locator("h2.part").all()}
        assert headings == ({*names} - {"Summary"} if len(names) > 1 else set())
        assert shown.locator("section").count() == len(names)
        broken = "images => images.filter(image => !(image.complete && image.naturalWidth)).length"
        assert shown.locator("img").evaluate_all(broken) == 0
        bare = "parts => parts.filter(part => !part.querySelector('img, td, dd, p')).length"
        assert shown.locator("section").evaluate_all(bare) == 0


@pytest.mark.slow
def test_all_of_a_category_is_on_its_page(wide: Page, finished_once: Checkout) -> None:
    titles = titles_of(finished_once)
    assert sorted(titles) == sorted(CATEGORIES)
    check_pages(wide, titles)


def test_a_report_of_one_study_shows_all_of_it(browser: Browser, smallest_once: Checkout) -> None:
    with opened(browser, smallest_once, WIDE) as page:
        check_pages(page, titles_of(smallest_once))


@pytest.mark.slow
@pytest.mark.parametrize("category", CATEGORIES)
def test_a_phone_shows_every_page_without_scrolling_sideways(narrow: Page, category: str) -> None:
    narrow.evaluate("category => app.showCategory(category)", category)  # the menu is folded away
    narrow.locator(f'iframe[title="{category}"]').wait_for()
    shown = inside(narrow)
    shown.locator("h1, h2").first.wait_for()
    width = shown.locator("html").evaluate("html => html.scrollWidth")
    assert width <= NARROW["width"]
    assert narrow.locator("nav.transition-all").evaluate("nav => nav.getBoundingClientRect().width") < 5


@pytest.mark.slow
def test_a_figure_can_be_had_by_itself_with_what_made_it(browser: Browser, finished_once: Checkout) -> None:
    with opened(browser, finished_once, WIDE) as page:
        turn_to(page, "Study Digits").get_by_text("Separate files").click()
        names = [row.inner_text().strip() for row in page.locator("tbody tr td:first-child").all()]
        names, titles = sorted(filter(None, names)), sorted(titles_of(finished_once)["Study Digits"])
        assert len(names) == len(titles)
        # The name of a metric's figure continues with the definition of the metric.
        assert all(name.startswith(title) for name, title in zip(names, titles, strict=True)), names
        row = page.locator("tbody tr", has_text="Faithfulness correlation estimate: scores").first
        row.locator('a[iconname="eye"]').click()
        page.wait_for_function("() => [...document.images].every(image => image.naturalWidth > 0)")
        row.locator('a[iconname="information-circle"]').click()
        page.get_by_text(OF_A_METRIC).wait_for()


@pytest.mark.slow
def test_links_lead_from_the_overview_to_a_study_by_keyboard(
    browser: Browser, finished_once: Checkout
) -> None:
    with opened(browser, finished_once, WIDE) as page:
        link = inside(page).get_by_role("link", name="Digits", exact=True).first
        link.focus()
        page.keyboard.press("Enter")
        page.locator('iframe[title="Study Digits"]').wait_for()
        assert inside(page).locator("h1").first.inner_text() == "Digits"


def test_a_page_unfolds_its_first_figures_and_those_that_its_contents_link_to(
    browser: Browser, smallest_once: Checkout
) -> None:
    with opened(browser, smallest_once, WIDE) as page:
        shown = turn_to(page, "Study Digits")
        parts = shown.locator("section:not(#part0) > details")
        unfolded = "parts => parts.map(part => part.open)"
        count = len(titles_of(smallest_once)["Study Digits"]) - 1
        assert parts.evaluate_all(unfolded) == [True, True, *[False] * (count - 2)]
        titles = [heading.inner_text() for heading in shown.locator("h2.part").all()]
        tables = ["Tables of all scores", "Tables of reliability, agreement and ranks"]
        assert titles[-2:] == tables
        link = shown.locator("nav").get_by_role("link", name=tables[0])
        link.focus()
        page.keyboard.press("Enter")
        assert parts.evaluate_all(unfolded) == [True, True, *[False] * (count - 4), True, False]


def test_a_heat_map_is_sorted_by_a_metric_and_saved_with_means(
    browser: Browser, smallest_once: Checkout, tmp_path: Path
) -> None:
    with opened(browser, smallest_once, WIDE) as page:
        shown = turn_to(page, "Study Digits")
        table = shown.locator("table.heat")
        details = table.locator("tbody td small").first
        assert not details.is_visible()
        shown.get_by_label("show means with 95 % CI").check()
        assert details.is_visible()
        keys = "table => [...table.tBodies[0].rows].map(row => Number(row.cells[1].dataset.value))"
        button = table.locator("thead button").nth(1)
        for reverse in (False, True):
            button.click()
            values = table.evaluate(keys)
            assert values == sorted(values, reverse=reverse)
        with page.expect_download() as download:
            shown.get_by_role("button", name="Download as CSV: Digits: rank sets of the methods").click()
        download.value.save_as(tmp_path / "heat.csv")
        saved = pd.read_csv(tmp_path / "heat.csv")
        assert saved.shape == (2, 4)
        assert saved.iloc[:, 1:].map(lambda text: "mean " in text).all(axis=None)


def test_a_chart_shows_the_metrics_that_are_selected_and_the_values_of_a_point(
    browser: Browser, smallest_once: Checkout
) -> None:
    with opened(browser, smallest_once, WIDE) as page:
        shown = turn_to(page, "Study Digits")
        shown.get_by_role("button", name="Unfold all").click()
        part = shown.locator("section", has=shown.get_by_role("heading", name="Methods under two metrics"))
        chart = part.locator(".vega-embed svg.marks")
        chart.wait_for()
        assert part.locator("img").count() == 0
        assert not part.locator(".vega-embed details").evaluate("menu => menu.open")
        other = part.get_by_label("y axis")
        metrics = other.locator("option").all_inner_texts()
        assert len(metrics) == 3
        for place in (2, 1):
            other.select_option(index=place)
            chart.get_by_text(metrics[place]).wait_for()
        point = chart.locator(".mark-symbol.role-mark path").first
        point.hover()
        values = shown.locator("#vg-tooltip-element.visible")
        values.wait_for()
        assert "method: Grad" in " ".join(values.inner_text().split())


def test_an_enlarged_map_has_the_scores_of_its_image(browser: Browser, smallest_once: Checkout) -> None:
    scores = pd.read_parquet(Path(smallest_once.root, "results/tables/digits/scores.parquet"))
    with opened(browser, smallest_once, WIDE) as page:
        shown = turn_to(page, "Study Digits")
        shown.get_by_role("button", name="Unfold all").click()
        shown.locator(".gallery li button").first.focus()
        page.keyboard.press("Enter")
        dialog = shown.get_by_role("dialog")
        image = int(dialog.locator("h3").inner_text().rpartition(" ")[2])
        of_map = scores[(scores["image"] == image) & (scores["method"] == "gradient")]
        texts = dialog.locator("table.scores td:nth-child(2)").all_inner_texts()
        assert [float(text.replace(",", "").replace("−", "-")) for text in texts] == pytest.approx(
            list(of_map["score"]), rel=0.01
        )
        assert dialog.locator("table.predictions td").nth(2).inner_text() in ("right", "wrong")
        page.keyboard.press("Escape")
        assert not dialog.is_visible()
        assert shown.locator(".gallery details").get_attribute("open") is None  # a filter, not a part


@pytest.mark.slow
def test_the_menu_is_reached_by_keyboard(browser: Browser, finished_once: Checkout) -> None:
    with opened(browser, finished_once, WIDE) as page:
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("() => document.activeElement.innerText.trim()") == "Study BAM":
                break
        else:
            pytest.fail("the menu's entry of the study was not reached")
        page.keyboard.press("Enter")
        page.locator('iframe[title="Study BAM"]').wait_for()


@pytest.mark.slow
def test_tables_are_sorted_by_keyboard_and_downloaded_whole(wide: Page, tmp_path: Path) -> None:
    shown = turn_to(wide, "Models")
    table = shown.locator("table").first
    head = table.locator("thead th", has_text="images")
    place = head.evaluate("head => head.cellIndex")
    column = f"table => [...table.tBodies[0].rows].map(row => Number(row.cells[{place}].textContent))"
    head.locator("button").focus()
    orders = []
    for _ in range(2):
        wide.keyboard.press("Enter")
        orders.append(table.evaluate(column))
    assert orders[0] == sorted(orders[0])
    assert orders[1] == sorted(orders[0], reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    with wide.expect_download() as download:
        shown.locator("button.csv").first.click()
    download.value.save_as(tmp_path / "table.csv")
    saved = pd.read_csv(tmp_path / "table.csv")
    assert download.value.suggested_filename.startswith("Accuracy_on_")
    assert list(saved["images"]) == orders[1]
    assert ((saved["accuracy (%)"] >= 0) & (saved["accuracy (%)"] <= 100)).all()


@pytest.mark.slow
def test_the_report_is_small(finished_once: Checkout) -> None:
    """The demo's has twice as many figures, and 15 MB is the most that it should have."""
    assert Path(finished_once.root, "results/report.html").stat().st_size < 12e6

"""The report in a browser without a network, wide and narrow: every page, figure, table and caption shows."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
from checkout import Checkout
from playwright.sync_api import Browser, FrameLocator, Page, ViewportSize, sync_playwright

RELIABILITY = [
    "reliability in numbers",
    "reliability: do images rank methods alike?",
    "reliability: do seeds, classes and halves agree?",
    "reliability: rank sets of the methods",
    "reliability: which metrics agree?",
]
SUMMARY = "summary: ranks, intervals and reliability in words"
SHOWN = {
    "Overview": ["results and their uncertainty"],
    "Methods": ["what the methods are, and what a map costs"],
    "Metrics": ["what the metrics are, and how reliable"],
    "Provenance": ["configuration, versions, data, times"],
    "Models": ["accuracy of every model on every set", "training curves"],
    "Study bam": [
        SUMMARY,
        "IDR: input dependence rate",
        "IIR in numbers",
        "IIR: how the changes were found",
        "IIR: input independence rate",
        "IIR: maps before and after the change",
        "IIR: relative change of attribution",
        "IIR: the changes without effect",
        "MCS and IDR in numbers",
        "MCS: model contrast score",
        "premise: do objects matter to f_o, scenes to f_s?",
        "ranking of the methods by every metric",
        *RELIABILITY,
        "TCAV in numbers",
        "TCAV: layer by layer, with random concepts",
        "the paper's claims, checked",
        "the same images under every method",
        "the series: accuracy with and without the common object",
        "the series: MCS against commonality",
        "the series: one image under every model",
    ],
    "Study captions": [
        SUMMARY,
        "image or caption: attribution on the half that the model uses",
        "image or caption: INFD of both models",
        "image or caption: premise, INFD and attribution in numbers",
        *RELIABILITY,
        "the same images under every method",
    ],
    "Study digits": [
        SUMMARY,
        "all scores in numbers",
        "faithfulness: scores",
        "infidelity against sensitivity",
        "infidelity: scores",
        *RELIABILITY,
        "sensitivity: scores",
        "the same images under every method",
    ],
    "Study retrain": [
        SUMMARY,
        "accuracy against the share occluded",
        "accuracy and overlap in numbers",
        "leakage in numbers",
        "leakage: what masks alone tell of the class",
        "overlap of every two masks (iteroar, mean)",
        "overlap of masks by iteration: MMO, MAMO, CMA",
        *RELIABILITY,
        "the same images over the iterations (iteroar, mean)",
        "the same images under every method",
    ],
}
OF_A_METRIC = "so boxes or intervals that overlap may still differ reliably"
WORDS_OF_CAPTIONS = {
    "results and their uncertainty": "nor what other data would give",
    "what the methods are, and what a map costs": "passes depend on the parameters alone",
    "what the metrics are, and how reliable": "not whether the order is right",
    "configuration, versions, data, times": "time spent in a queue is not counted",
    SUMMARY: "The words follow from the tables by fixed thresholds",
    "accuracy of every model on every set": "a model that has memorised",
    "training curves": "nothing on test accuracy",
    "IDR: input dependence rate": "over 3 samples of 5 images",
    "IIR in numbers": "smaller than the spread should not be read as an order",
    "IIR: how the changes were found": "it says nothing about saliency methods",
    "IIR: input independence rate": "a map that ignores the image has a high rate",
    "IIR: relative change of attribution": "It is a mean of ratios",
    "IIR: maps before and after the change": "the model's output did not ask for",
    "IIR: the changes without effect": "Whether δ still shows the object is for the reader to judge",
    "TCAV in numbers": "is unknown, not 0",
    "TCAV: layer by layer, with random concepts": "over 2 experiments of each training seed",
    "ranking of the methods by every metric": "what ranks below one has shown nothing",
    "the paper's claims, checked": "is no refutation where models, images or parameters are others",
    "the series: MCS against commonality": "look at both panels",
    "the series: accuracy with and without the common object": "at k = 1 it tells nothing",
    "the series: one image under every model": "by contrast within a row, not between rows",
    "image or caption: INFD of both models": "may point at the right half and still have a high INFD",
    "image or caption: attribution on the half that the model uses": "compare methods under one model",
    "image or caption: premise, INFD and attribution in numbers": "orders and ratios are what can be compared",
    "MCS and IDR in numbers": "should not be read as an order of methods",
    "MCS: model contrast score": "a low bar is no proof that the method is wrong",
    "premise: do objects matter to f_o, scenes to f_s?": "say nothing about saliency methods",
    "all scores in numbers": "compare ratios and orders of methods, not values",
    "faithfulness: scores": OF_A_METRIC,
    "infidelity against sensitivity": "a map that ignores the image has SENS_MAX 0",
    "infidelity: scores": OF_A_METRIC,
    "sensitivity: scores": OF_A_METRIC,
    "reliability in numbers": "no single order of methods fits all images",
    "reliability: do images rank methods alike?": "A reliable metric need not be a valid one",
    "reliability: do seeds, classes and halves agree?": "with few methods it moves in large steps",
    "reliability: rank sets of the methods": "Ranks of different metrics are not averaged",
    "reliability: which metrics agree?": "metrics that share their perturbations agree for that reason alone",
    "accuracy against the share occluded": "where masks leak the class, accuracy stays up whatever they hide",
    "accuracy and overlap in numbers": "which D_i does not lack yet",
    "leakage in numbers": "only means that this classifier found nothing",
    "leakage: what masks alone tell of the class": "only means that this classifier found nothing",
    "overlap of every two masks (iteroar, mean)": "it highlights the same place whatever the image still shows",
    "overlap of masks by iteration: MMO, MAMO, CMA": "does not follow a method's own past",
    "the same images over the iterations (iteroar, mean)": "says nothing about how often",
    "the same images under every method": "A map that looks convincing may still ignore the model",
}


@pytest.fixture(scope="module")
def chromium() -> str:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no browser: install Debian's package chromium")
    return path


WIDE, NARROW = {"width": 1400, "height": 900}, {"width": 400, "height": 800}


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


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


def test_the_overview_opens_first_and_the_menu_is_in_the_order_of_the_book(
    browser: Browser, finished_once: Checkout
) -> None:
    with opened(browser, finished_once, WIDE) as page:
        assert inside(page).locator("h1").first.inner_text() == "Results"
        menu = [item.inner_text().strip() for item in page.locator("nav.transition-all li").all()]
        studies = [f"Study {name}" for name in ("bam", "captions", "digits", "retrain")]
        assert menu[menu.index("Overview") :] == [
            "Overview",
            *studies,
            *("Methods", "Metrics", "Models", "Provenance"),
        ]
        assert page.title() == "Saliency Assay"


@pytest.mark.parametrize("category", SHOWN)
def test_all_of_a_category_is_on_its_page_with_its_captions(wide: Page, category: str) -> None:
    shown = turn_to(wide, category)
    names = set(SHOWN[category])
    headings = {heading.inner_text().strip() for heading in shown.locator("h2.part").all()}
    assert headings == (names - {SUMMARY} if len(names) > 1 else set())
    assert shown.locator("section").count() == len(names)
    words = shown.locator("body").inner_text()
    assert [name for name in names if WORDS_OF_CAPTIONS[name] not in words] == []
    broken = "images => images.filter(image => !(image.complete && image.naturalWidth)).length"
    assert shown.locator("img").evaluate_all(broken) == 0
    bare = "parts => parts.filter(part => !part.querySelector('img, td, dd, p')).length"
    assert shown.locator("section").evaluate_all(bare) == 0


@pytest.mark.parametrize("category", SHOWN)
def test_a_phone_shows_every_page_without_scrolling_sideways(narrow: Page, category: str) -> None:
    narrow.evaluate("category => app.showCategory(category)", category)  # the menu is folded away
    narrow.locator(f'iframe[title="{category}"]').wait_for()
    shown = inside(narrow)
    shown.locator("h1, h2").first.wait_for()
    width = shown.locator("html").evaluate("html => html.scrollWidth")
    assert width <= NARROW["width"]
    assert narrow.locator("nav.transition-all").evaluate("nav => nav.getBoundingClientRect().width") < 5


def test_a_figure_can_be_had_by_itself_with_what_made_it(browser: Browser, finished_once: Checkout) -> None:
    with opened(browser, finished_once, WIDE) as page:
        turn_to(page, "Study digits").get_by_text("Each as a file of its own").click()
        names = [row.inner_text().strip() for row in page.locator("tbody tr td:first-child").all()]
        assert sorted(name for name in names if name) == sorted(SHOWN["Study digits"])
        row = page.locator("tbody tr", has_text="faithfulness: scores").first
        row.locator('a[iconname="eye"]').click()
        page.wait_for_function("() => [...document.images].every(image => image.naturalWidth > 0)")
        row.locator('a[iconname="information-circle"]').click()
        page.get_by_text(OF_A_METRIC).wait_for()


def test_links_lead_from_the_overview_to_a_study_by_keyboard(
    browser: Browser, finished_once: Checkout
) -> None:
    with opened(browser, finished_once, WIDE) as page:
        link = inside(page).get_by_text("All of digits")
        link.focus()
        page.keyboard.press("Enter")
        page.locator('iframe[title="Study digits"]').wait_for()
        assert inside(page).locator("h1").first.inner_text() == "digits"


def test_the_menu_is_reached_by_keyboard(browser: Browser, finished_once: Checkout) -> None:
    with opened(browser, finished_once, WIDE) as page:
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("() => document.activeElement.innerText.trim()") == "Study bam":
                break
        else:
            pytest.fail("the menu's entry of the study was not reached")
        page.keyboard.press("Enter")
        page.locator('iframe[title="Study bam"]').wait_for()


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
    found = pd.read_csv(tmp_path / "table.csv")
    assert download.value.suggested_filename == "Accuracy_of_every_model.csv"
    assert list(found["images"]) == orders[1]
    assert ((found["accuracy (%)"] >= 0) & (found["accuracy (%)"] <= 100)).all()


def test_the_report_is_small(finished_once: Checkout) -> None:
    """The demo's has twice as many figures, and 15 MB is the most that it should have."""
    assert Path(finished_once.root, "results/report.html").stat().st_size < 12e6

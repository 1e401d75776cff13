"""The report in a browser without a network: every figure, table and caption shows."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkout import Checkout
from playwright.sync_api import Page, sync_playwright

RELIABILITY = [
    "reliability in numbers",
    "reliability: do images rank methods alike?",
    "reliability: do seeds, classes and halves agree?",
    "reliability: which methods can be told apart?",
    "reliability: which metrics agree?",
]
SHOWN = {
    "Models": ["accuracy of every model on every set", "training curves"],
    "Study bam": [
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
        "image or caption: attribution on the half that the model uses",
        "image or caption: INFD of both models",
        "image or caption: premise, INFD and attribution in numbers",
        *RELIABILITY,
        "the same images under every method",
    ],
    "Study digits": [
        "all scores in numbers",
        "faithfulness: scores",
        "infidelity against sensitivity",
        "infidelity: scores",
        *RELIABILITY,
        "sensitivity: scores",
        "the same images under every method",
    ],
    "Study retrain": [
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
    "accuracy of every model on every set": "a model that has memorised",
    "training curves": "nothing on test accuracy",
    "IDR: input dependence rate": "over 3 draws of 5 images",
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
    "reliability: which methods can be told apart?": "Ranks of different metrics are not averaged",
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


@pytest.fixture
def page(chromium: str, finished_once: Checkout) -> Iterator[Page]:
    """The open report; leaving it fails on a request to the network or an error in the page."""
    faults: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(viewport={"width": 1400, "height": 900}, offline=True)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: message.type == "error" and faults.append(message.text))
        page.on("requestfailed", lambda request: faults.append(request.url))
        page.goto(Path(finished_once.root, "results/report.html").as_uri())
        yield page
        browser.close()
    assert faults == []


@pytest.mark.parametrize("category", SHOWN)
def test_all_of_a_category_shows(page: Page, category: str) -> None:
    page.get_by_text(category, exact=True).first.click()
    names = [row.inner_text().strip() for row in page.locator("tbody tr td:first-child").all()]
    assert [name for name in names if name] == SHOWN[category]
    for name in SHOWN[category]:
        row = page.locator("tbody tr", has_text=name).first
        row.locator('a[iconname="eye"]').click()
        # A figure is an image that has loaded, a table or a gallery a page within the page.
        frame = page.frame_locator("iframe")
        shown = page.locator("img[src^='data:'], iframe").last
        shown.wait_for()
        if shown.evaluate("element => element.tagName") == "IFRAME":
            inside = frame.locator("td, img").first
            inside.wait_for()
            assert inside.evaluate("e => e.tagName == 'IMG' ? e.naturalWidth : e.innerText.length") > 0
        else:
            page.wait_for_function("() => [...document.images].every(image => image.naturalWidth > 0)")
        row.locator('a[iconname="information-circle"]').click()
        page.get_by_text(WORDS_OF_CAPTIONS[name]).wait_for()
        page.get_by_text(category, exact=True).first.click()

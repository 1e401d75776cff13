"""The gallery in a browser: enlarged maps with their predictions and scores, filters, keyboard, phone and print."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize

from saliency_assay.plotting.thumbnails import gallery_page, thumbnails

pytestmark = pytest.mark.browser

METHODS = [f"Method {number}" for number in range(14)]
MODELS = ["Model B", "Model A"]
TITLES = ["dog, park", "cat, park", "dog, beach"]
SIDE = 8
DETAILS: dict[str, Any] = {
    "images": [
        {"id": 30 + place, "classes": dict(zip(("object", "scene"), title.split(", "), strict=True))}
        for place, title in enumerate(TITLES)
    ],
    "explained": {"Model B": ["dog", "cat", "dog"], "Model A": ["garden", "park", "sea"]},
    "predictions": {
        "Model B": [("dog", True, "90 %"), ("dog", False, "12 %"), ("dog", True, "80 %")],
        "Model A": [("beach", False, "5 %"), ("park", True, "70 %"), None],
    },
    "scores": [
        {
            "label": "MCS",
            "direction": "higher is better",
            "seeds": 2,
            "values": [
                [("0.5", 1, 0.5), ("0.5", 1, 0.5), None, *[("0.1", 3, 0.1)] * 11],
                [(f"{place}", 14 - place, place) for place in range(14)],
                [None] * 14,
            ],
        },
        {
            "label": "INFD (Model A)",
            "model": "Model A",
            "direction": "lower is better",
            "seeds": 1,
            "values": [[("2", 1, -2)] * 14, [None] * 14, [None] * 14],
        },
    ],
}


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with three images, of which the first is outlined, under fourteen methods, one of them undefined."""
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (3, 3, SIDE, SIDE), dtype=np.uint8)
    masks = np.zeros((3, SIDE, SIDE), dtype=bool)
    masks[0, 2:5, 2:5] = True
    maps = {
        model: {method: generator.random((3, SIDE, SIDE)).astype(np.float32) for method in METHODS}
        for model in MODELS
    }
    maps["Model B"]["Method 3"][:] = np.nan
    content = thumbnails(images, maps, titles=TITLES, masks=masks)
    path = tmp_path_factory.mktemp("gallery") / "gallery.html"
    path.write_text(gallery_page(content, DETAILS, title="Maps"), encoding="utf-8")
    return path


ON_A_PHONE_TOO = pytest.mark.parametrize("page", [1300, 400], indirect=True)


@pytest.fixture
def page(request: pytest.FixtureRequest, browser: Browser, gallery: Path) -> Iterator[Page]:
    """The page in a window of the given width; leaving it fails on any error, or if the page scrolls sideways."""
    faults: list[str] = []
    width = getattr(request, "param", 1300)
    context = browser.new_context(viewport=ViewportSize(width=width, height=800), offline=True)
    page = context.new_page()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text))
    page.goto(gallery.as_uri())
    yield page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()
    assert faults == []


def cell(page: Page, method: int, model: str, image: int) -> Locator:
    return page.get_by_role("button", name=f"Method {method}, {model}, image {image} ")


def title(page: Page) -> str:
    return page.locator("dialog h3").inner_text()


def rows(page: Page, table: str) -> list[list[str]]:
    return [
        [text.strip() for text in row.locator("td").all_inner_texts()]
        for row in page.locator(f"dialog table.{table} tbody tr").all()
    ]


def sources(page: Page, view: str) -> list[str]:
    files: list[str] = page.locator(f"dialog .{view} img").evaluate_all("images => images.map(i => i.src)")
    return files


@ON_A_PHONE_TOO
def test_a_map_is_enlarged_by_keyboard_and_closed_by_escape(page: Page) -> None:
    dialog = page.get_by_role("dialog")
    assert not dialog.is_visible()
    first = cell(page, 0, "Model B", 30)
    first.focus()
    page.keyboard.press("Enter")
    assert dialog.is_visible()
    assert dialog.get_attribute("aria-labelledby") == page.locator("dialog h3").get_attribute("id")
    map_file, image_file = (
        page.locator(selector).first.get_attribute("src")
        for selector in (".item li img", ".item > figure img")
    )
    assert sources(page, "image") == [image_file]
    assert sources(page, "map") == [map_file]
    assert sources(page, "overlay") == [image_file, map_file]
    width = page.locator("dialog .overlay img").first.evaluate("image => image.getBoundingClientRect().width")
    assert width > 1.5 * first.evaluate("button => button.getBoundingClientRect().width")
    outline = "view => getComputedStyle(view.firstElementChild, '::after').backgroundImage"
    assert page.locator("dialog .overlay").evaluate(outline).startswith("url(")
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert first.evaluate("button => button === document.activeElement")


def test_texts_are_those_of_the_image_the_models_and_the_method(page: Page) -> None:
    cell(page, 1, "Model A", 30).click()
    assert {"Method 1", "Model A", "image 30"} <= set(title(page).split(", "))
    words = page.get_by_role("dialog").inner_text()
    assert {"dog (object)", "park (scene)"} <= set(
        words.replace(": ", "\n").replace(", ", "\n").replace(". ", "\n").split("\n")
    )
    assert "Explained class: garden." in words
    assert rows(page, "predictions") == [
        ["Model B", "dog", "right", "90 %"],
        ["Model A", "beach", "wrong", "5 %"],
    ]
    assert rows(page, "scores")[0] == ["MCS", "0.5", "higher is better", "1 of 13 (tied)"]
    assert "2 training seeds" in words
    page.keyboard.press("ArrowRight")
    assert rows(page, "scores")[0] == ["MCS", "no score", "higher is better", ""]
    page.keyboard.press("ArrowDown")
    assert rows(page, "scores") == [["MCS", "2", "higher is better", "12 of 14"]]
    page.keyboard.press("ArrowDown")
    assert rows(page, "predictions") == [["Model B", "dog", "right", "80 %"]]
    assert not page.locator("dialog table.scores").is_visible()
    page.keyboard.press("Escape")
    assert cell(page, 2, "Model A", 32).evaluate("button => button === document.activeElement")


def test_keys_and_buttons_lead_to_the_next_method_and_image(page: Page) -> None:
    cell(page, 13, "Model B", 30).click()
    steps = {
        ("ArrowRight", "Next method"): "Method 0, Model A, image 30",
        ("ArrowLeft", "Previous method"): "Method 13, Model B, image 30",
        ("ArrowUp", "Previous image"): "Method 13, Model B, image 32",
        ("ArrowDown", "Next image"): "Method 13, Model B, image 30",
    }
    for by_key in (True, False):
        for (key, name), shown in steps.items():
            if by_key:
                page.keyboard.press(key)
            else:
                page.get_by_role("dialog").get_by_role("button", name=name).click()
            assert title(page) == shown
    page.get_by_role("button", name="Close").click()
    assert not page.get_by_role("dialog").is_visible()


def test_the_slider_sets_the_opacity_of_the_map_alone(page: Page) -> None:
    cell(page, 0, "Model B", 30).click()
    slider, over = page.get_by_role("slider"), page.locator("dialog .overlay img")
    opacities = "images => images.map(image => Number(getComputedStyle(image).opacity))"
    assert over.evaluate_all(opacities) == [1, 0.5]
    slider.focus()
    before = title(page)
    for key, value in (("ArrowRight", 0.51), ("Home", 0), ("ArrowUp", 0.01), ("End", 1)):
        page.keyboard.press(key)
        assert over.evaluate_all(opacities) == [1, pytest.approx(value)]
    assert title(page) == before  # arrow keys move the slider
    slider.fill("30")
    page.get_by_role("button", name="Next method").click()
    assert over.evaluate_all(opacities) == [1, pytest.approx(0.3)]


def test_an_undefined_map_is_a_cross_and_shows_its_image(page: Page) -> None:
    cell(page, 3, "Model B", 31).click()
    assert sources(page, "map") == []
    assert "×" in page.locator("dialog .map").inner_text()
    assert len(sources(page, "image")) == len(sources(page, "overlay")) == 1


@ON_A_PHONE_TOO
def test_filters_hide_methods_and_images(page: Page) -> None:
    items, maps = page.locator(".item:visible"), page.locator(".item").first.locator("li:visible")
    assert (items.count(), maps.count()) == (3, 28)
    page.locator(".filters summary").click()
    page.get_by_role("button", name="None").click()
    assert maps.count() == 0
    for method in ("Method 2", "Method 5"):
        page.get_by_role("checkbox", name=method, exact=True).check()
    assert maps.count() == 4
    page.get_by_label("Class").select_option("dog")
    assert items.count() == 2
    page.get_by_label("Class").select_option("beach")
    assert items.count() == 1
    page.get_by_label("Class").select_option("all")
    images = "items => items.map(item => item.querySelector('figure img').alt.match(/\\d+/)[0])"
    for model, value, shown in (
        ("Model B", "right", ["30", "32"]),
        ("Model B", "wrong", ["31"]),
        ("Model A", "wrong", ["30"]),  # the last image has no prediction
        ("Model A", "right", ["31"]),
    ):
        option = page.locator(f'.by-prediction optgroup[label="{model}"] option', has_text=value)
        place = option.evaluate("option => option.index")
        page.get_by_label("Prediction").select_option(index=place)
        assert items.evaluate_all(images) == shown
    assert page.locator(".filters output").inner_text().startswith("1 of 3 images")
    page.get_by_label("Prediction").select_option("all")
    page.get_by_label("Class").select_option("dog")
    cell(page, 5, "Model B", 30).click()
    page.keyboard.press("ArrowRight")  # skips what the filters hide
    assert title(page) == "Method 2, Model A, image 30"
    page.keyboard.press("ArrowDown")
    assert title(page) == "Method 2, Model A, image 32"


@ON_A_PHONE_TOO
def test_images_are_sorted_by_the_score_of_a_method(page: Page) -> None:
    methods, metrics = page.get_by_label("of method"), page.get_by_label("Worst of these images first")
    assert not methods.is_visible()
    metrics.select_option("MCS")
    assert methods.locator("option:checked").inner_text() == "Method 13"  # has the best mean
    ids = "items => items.map(item => item.querySelector('figure img').alt.match(/\\d+/)[0])"
    for method, sorted_ids, texts in (
        (0, ["31", "30", "32"], ["0 (rank 14 of 14)", "0.5 (rank 1 of 13)", "no score"]),
        (9, ["30", "31", "32"], ["0.1 (rank 3 of 13)", "9 (rank 5 of 14)", "no score"]),
    ):
        methods.select_option(f"Method {method}")
        assert page.locator(".item").evaluate_all(ids) == sorted_ids
        scores = page.locator(f".item ul:first-of-type li:nth-child({method + 1}) .score")
        assert [scores.nth(2 * place).inner_text() for place in range(3)] == texts  # of two models
    methods.select_option("Method 0")
    cell(page, 0, "Model B", 31).click()
    page.keyboard.press("ArrowDown")
    assert title(page) == "Method 0, Model B, image 30"
    assert rows(page, "scores")[0] == ["MCS", "0.5", "higher is better", "1 of 13 (tied)"]
    page.keyboard.press("Escape")
    metrics.select_option("INFD (Model A)")  # below the maps of this model alone
    scores = page.locator(".item").first.locator("ul")
    assert [set(scores.nth(place).locator(".score").all_inner_texts()) for place in range(2)] == [
        {""},
        {"2 (rank 1 of 14)"},
    ]
    metrics.select_option("no metric")
    assert page.locator(".item").evaluate_all(ids) == ["30", "31", "32"]
    assert set(page.locator(".item .score").all_inner_texts()) == {""}


def test_wrong_predictions_stand_below_their_images(page: Page) -> None:
    texts = [text.split("\n") for text in page.locator(".item figcaption").all_inner_texts()]
    assert texts == [["dog, park", "✗ Model A: beach"], ["cat, park", "✗ Model B: dog"], ["dog, beach"]]


@ON_A_PHONE_TOO
def test_many_methods_wrap_below_each_other(page: Page) -> None:
    tops = "cells => [...new Set(cells.map(cell => cell.getBoundingClientRect().top))].length"
    assert page.locator(".item").first.locator("ul").first.locator("li").evaluate_all(tops) > 1


def test_a_print_has_maps_but_no_controls(page: Page) -> None:
    cell(page, 0, "Model B", 30).click()
    page.emulate_media(media="print")
    assert not page.get_by_role("dialog").is_visible()
    assert not page.locator(".filters").is_visible()
    assert page.locator(".item li img").first.is_visible()


def test_a_dialog_is_dark_in_dark_mode(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    cell(page, 0, "Model B", 30).click()
    colors = "dialog => [getComputedStyle(dialog).backgroundColor, getComputedStyle(document.body).backgroundColor]"
    dialog, body = page.locator("dialog").evaluate(colors)
    assert dialog == body != "rgb(255, 255, 255)"

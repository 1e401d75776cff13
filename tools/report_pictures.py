"""Write the pictures of the report in docs: ``python -m tools.report_pictures``, after ``make demo``.

Needs Debian's package chromium. Takes half a minute.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager

from PIL import Image
from playwright.sync_api import Browser, Frame, Locator, Page, ViewportSize, sync_playwright

from tools.pages import DOCS
from tools.picture_records import IMAGES, RESULTS, write_record

REPORT, GALLERY = RESULTS / "report.html", RESULTS / "figures/bam/gallery.png"
THREE = 975  # pixels of the height of the first three images of the gallery
WIDE, NARROW = (1400, 900), (400, 800)
COLORS = 256  # of a picture, to keep files small
MODES = (
    (("Overview", WIDE, "dark"), ("Study Object localization", WIDE, "dark")),
    (
        ("Overview", NARROW, "light"),
        ("Study BAM", NARROW, "dark"),
        ("Trust in metrics", NARROW, "light"),
        ("Study Retraining", NARROW, "dark"),
        ("Study Fidelity", NARROW, "light"),
        ("Models", NARROW, "dark"),
        ("Metrics", NARROW, "light"),
    ),
)
GAP = 24  # pixels between parts of a picture


@contextmanager
def opened(
    browser: Browser, name: str, size: tuple[int, int], mode: str = "light"
) -> Iterator[tuple[Page, Frame]]:
    """Open a page of the report, and its frame."""
    context = browser.new_context(
        viewport=ViewportSize(width=size[0], height=size[1]),
        color_scheme="dark" if mode == "dark" else "light",
        offline=True,
    )
    page = context.new_page()
    page.goto(REPORT.as_uri())
    page.frame_locator("iframe").locator("h1").first.wait_for()
    page.evaluate("name => window.postMessage({page: name}, '*')", name)
    page.locator(f'iframe[title="{name}"]').wait_for()
    page.wait_for_timeout(2000)  # charts are rendered asynchronously
    yield page, page.frames[-1]
    context.close()


def picture(taken: bytes) -> Image.Image:
    """Return a screenshot."""
    return Image.open(io.BytesIO(taken)).convert("RGB")


def write(name: str, image: Image.Image, width: int) -> None:
    """Write an image, scaled down to a width."""
    if image.width > width:
        image = image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)
    path = IMAGES / f"{name}.png"
    image.quantize(COLORS, method=Image.Quantize.MEDIANCUT).save(path, optimize=True)
    write_record(path)


def joined(rows: list[list[Image.Image]]) -> Image.Image:
    """Return rows of images on white, each row scaled to the width of the first."""
    widths = [sum(image.width for image in row) + GAP * (len(row) - 1) for row in rows]
    lines = []
    for row, width in zip(rows, widths, strict=True):
        line = Image.new("RGB", (width, max(image.height for image in row)), "white")
        for place, image in enumerate(row):
            line.paste(image, (sum(before.width + GAP for before in row[:place]), 0))
        lines.append(
            line.resize((widths[0], round(line.height * widths[0] / width)), Image.Resampling.LANCZOS)
        )
    page = Image.new("RGB", (widths[0], sum(line.height + GAP for line in lines) - GAP), "white")
    for place, line in enumerate(lines):
        page.paste(line, (0, sum(before.height + GAP for before in lines[:place])))
    return page


def unfolded(frame: Frame, title: str) -> Locator:
    """Unfold a figure of a study's page."""
    frame.get_by_role("link", name=title, exact=True).click()
    part = frame.locator("section", has=frame.get_by_role("heading", name=title, exact=True))
    part.scroll_into_view_if_needed()
    return part


def main() -> None:
    """Take all pictures."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        with opened(browser, "Overview", (1400, 1180)) as (page, _):
            write("overview", picture(page.screenshot()), 1200)
        with opened(browser, "Trust in metrics", WIDE) as (page, _):
            write("trust", picture(page.screenshot()), 1000)
        with opened(browser, "Study Fidelity", (1400, 1000)) as (page, frame):
            write("heat_map", picture(frame.locator(".heat-map").screenshot()), 1000)
            write(
                "reliability",
                picture(
                    unfolded(frame, "Inter-rater and inter-method reliability").locator("img").screenshot()
                ),
                1000,
            )
            chart = unfolded(frame, "AOPC: curves").locator(".vega-embed")
            color = chart.locator(".role-legend-symbol path").nth(2).get_attribute("fill")
            chart.locator(f".concat_0_layer_2_marks path[fill='{color}']").nth(3).hover()
            page.wait_for_timeout(500)
            write("curves", picture(chart.screenshot()), 1000)
        with opened(browser, "Study BAM", (1400, 1000)) as (page, frame):
            write(
                "mcs", picture(unfolded(frame, "MCS: model contrast score").locator("img").screenshot()), 640
            )
            gallery = unfolded(frame, "Maps of the same images by every method")
            gallery.get_by_role("button", name="Grad-CAM, Object model, image 0").first.click()
            write("enlarged_map", picture(frame.locator("dialog").screenshot()), 1000)
        with opened(browser, "Study Fidelity", (900, 1600)) as (_, frame):
            write(
                "gallery",
                picture(unfolded(frame, "Maps of the same images by every method").screenshot()),
                700,
            )
        rows = []
        for views in MODES:
            images = []
            for name, size, mode in views:
                with opened(browser, name, size, mode) as (page, _):
                    images.append(picture(page.screenshot()))
            rows.append(images)
        write("modes", joined(rows), 1640)
        browser.close()
    with Image.open(GALLERY) as image:
        image.convert("RGB").crop((0, 0, image.width, THREE)).save(DOCS / "gallery.jpg", quality=85)
    write_record(DOCS / "gallery.jpg")


if __name__ == "__main__":
    main()

"""Keys of a configuration in texts for people, where only their labels belong."""

import json
import re
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from typing import Any

from pipelines import params

from saliency_assay.catalog import CATALOG

WORDS = frozenset(
    [
        "accuracy",
        "bam",
        "caption",
        "captioned",
        "captions",
        "complexity",
        "constant",
        "criteria",
        "deletion",
        "digits",
        "edge",
        "faithfulness",
        "fidelity",
        "gallery",
        "gradient",
        "grid",
        "halves",
        "infidelity",
        "insertion",
        "objects",
        "occlusion",
        "picture",
        "random",
        "randomization",
        "retrain",
        "searched",
        "sensitivity",
        "small",
        "smooth",
        "square",
        "synthetic",
        "validity",
        "f_o",
        "f_s",
    ]
)
"""Keys that are also ordinary words, or the notation of a paper: only an element whose whole text is such a key has the
key in place of the label."""
ATTRIBUTES = ("alt", "aria-label", "title", "data-label", "data-page")
"""Attributes with text for people."""
UNREAD = ("code", "pre", "script", "style")
VOID = ("br", "img", "input", "link", "meta", "wbr")
CELLS = ("td", "th", "dt", "h1", "h2", "h3", "caption", "figcaption", "button", "text")


class Texts(HTMLParser):
    """Texts of a page with their elements, except those in ``UNREAD``."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.texts += [(name, value) for name, value in attrs if name in ATTRIBUTES and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if data.strip() and not set(UNREAD) & set(self.open):
            self.texts.append((self.open[-1] if self.open else "", data.strip()))


def texts_of_page(html: str) -> list[tuple[str, str]]:
    """Return element or attribute and text of everything that a page shows or reads out."""
    return Texts(html).texts


def texts_of_figure(svg: str) -> list[tuple[str, str]]:
    """Return the texts of an SVG file: text elements of charts, and Matplotlib's comments beside outlines of texts."""
    texts = re.findall(r"<text[^>]*>(.*?)</text>", svg, re.DOTALL) + re.findall(
        r"<!--(.*?)-->", svg, re.DOTALL
    )
    return [("text", unescape(re.sub(r"<[^>]*>", " ", text)).strip()) for text in texts]


def keys_of(configuration: dict[str, Any]) -> dict[str, str]:
    """Return the label of each key of a configuration and of each registered object, if it is not the key itself."""
    labels = params(configuration).descriptions.labels()
    names: dict[str, str] = {}
    for section in ("methods", "metrics", "scores", "data", "models", "studies"):
        names |= labels[section]
    for records in (CATALOG.methods, CATALOG.metrics, CATALOG.architectures, CATALOG.study_kinds):
        names |= {name: record.label for name, record in records.items() if name not in names}
    names |= {
        score.name: score.label
        for metric in CATALOG.metrics.values()
        for score in metric.scores
        if score.name not in names
    }
    return {key: label for key, label in names.items() if key != label}


def keys_in(texts: list[tuple[str, str]], keys: dict[str, str]) -> Iterator[str]:
    """Yield a message for each key in the texts: keys that are words as whole cells or headings, others anywhere."""
    codes = sorted(keys.keys() - WORDS, key=len, reverse=True)
    code = re.compile(rf"(?<![\w./-])(?:{'|'.join(map(re.escape, codes))})(?![\w/-]|\.\w)")
    for element, text in texts:
        whole = text.strip(" ↑↓→0")
        if element in CELLS and whole in keys and whole in WORDS:
            yield f"<{element}>: {text!r}, expected {keys[whole]!r}"
        elif match := code.search(text):
            yield f"<{element}>: {match[0]} in {text[:100]!r}, expected {keys[match[0]]!r}"


def variable_of_report(report: str, name: str) -> dict[str, Any]:
    """Return a variable of the report's script: ``results`` by path, or ``categories`` by name."""
    start = f"var {name} = "
    script = report.index(f'<script id="{name}">')
    content, _ = json.JSONDecoder().raw_decode(report, report.index(start, script) + len(start))
    assert isinstance(content, dict)
    return content

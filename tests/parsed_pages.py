"""Pages of HTML, parsed for tests."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """The tags and attributes of a page, the cells of its tables with their classes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.rows: list[list[tuple[str, str]]] = []
        self.text = ""
        """All but styles and scripts."""
        self.texts: dict[str, str] = {}
        """Return the text outside of tables' cells, by its tag."""
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append(("", dict(attrs).get("class") or "text"))

    def handle_endtag(self, tag: str) -> None:
        while self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        tag = self.open[-1] if self.open else ""
        self.text += "" if tag in ("style", "script") else data
        if {"td", "th"} & set(self.open):
            text, kind = self.rows[-1][-1]
            self.rows[-1][-1] = (text + data, kind)
        else:
            self.texts[tag] = self.texts.get(tag, "") + data

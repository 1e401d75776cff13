"""Tables and large images as HTML pages."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from saliency_assay.plotting.page import page_templates

MUCH = 50  # letters of a cell above which a table is one of text
MANY = 25  # rows above which a table scrolls in a window of its own


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str
    value: str | None  # all digits of a number with decimals, empty for NaN; None of other values
    number: bool  # set to the right, as the column is numeric
    label: str  # the name of the column


@dataclass(frozen=True)
class Table:
    """A table as ``templates/table.html.j2`` shows it: sorted by its heads, saved with the numbers that it rounds."""

    title: str
    heads: Sequence[tuple[str, bool]]  # name of each column, and whether it is numeric
    rows: Sequence[Sequence[Cell]]
    cards: bool  # has much text, so that a phone shows rows as cards, which are read from top to bottom
    tall: bool


def image_page(png: bytes, *, title: str) -> str:
    """Return a PNG as an HTML page, which scrolls where the image alone would be cut off."""
    return images_page({title: png}, title=title)


def images_page(pngs: Mapping[str, bytes], *, title: str) -> str:
    """Return several PNGs, by what they show, one below the other, as an HTML page like ``image_page``."""
    images = {name: b64encode(png).decode("ascii") for name, png in pngs.items()}
    return page_templates().get_template("images.html.j2").render(title=title, images=images)


def table_page(table: pd.DataFrame, *, title: str, digits: int) -> str:
    """Return ``table`` as an HTML page: numbers to the right with ``digits`` decimals, NaN as a dash."""
    return tables_page({title: table}, title=title, digits=digits)


def tables_page(tables: Mapping[str, pd.DataFrame], *, title: str, digits: int) -> str:
    """Return several tables, by what stands above each, as an HTML page like ``table_page``."""
    shown = [table_of(table, name, digits) for name, table in tables.items()]
    return page_templates().get_template("tables.html.j2").render(title=title, tables=shown)


def table_of(table: pd.DataFrame, title: str, digits: int) -> Table:
    """Return ``table`` as it is shown: numbers with ``digits`` decimals, NaN as a dash."""
    numeric = [pd.api.types.is_numeric_dtype(table[name]) for name in table.columns]
    heads = list(zip(map(str, table.columns), numeric, strict=True))
    rows = [
        [
            Cell(_text(value, digits), _all_digits(value), number, name)
            for value, (name, number) in zip(row, heads, strict=True)
        ]
        for row in table.itertuples(index=False)
    ]
    cards = any(table[name].map(lambda value: len(str(value)) > MUCH).any() for name in table.columns)
    return Table(title, heads, rows, cards=cards, tall=len(table) > MANY)


def _all_digits(value: object) -> str | None:
    if not isinstance(value, float):
        return None
    return "" if value != value else repr(float(value))


def _text(value: object, digits: int) -> str:
    if isinstance(value, float):
        text = f"{value:.{digits}f}"
        return "–" if value != value else text.lstrip("-") if float(text) == 0 else text
    return str(value)

"""Tables and large images as HTML pages."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from saliency_assay.plotting.page import page_templates
from saliency_assay.plotting.text import significant, with_minus

LONG_TEXT = 50  # characters of a cell above which a table counts as text
MANY_ROWS = 25  # rows above which a table scrolls in a separate area


@dataclass(frozen=True)
class Keyed:
    """Value of a cell: the label of an entry, and its key for those who edit the configuration."""

    label: str
    key: str

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True)
class Code:
    """Value of a cell: names or values as the configuration writes them."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Cell:
    """Cell of a table."""

    text: str
    value: str | None  # a float with all digits, empty for NaN; None for other values
    number: bool  # true in a numeric column, which is right-aligned
    label: str  # name of the column
    key: str = ""  # key in the configuration, printed small next to the text
    code: bool = False  # true if the text is code


@dataclass(frozen=True)
class Table:
    """Content of ``templates/table.html.j2``: a table that sorts by its headers and is saved with unrounded numbers."""

    title: str
    heads: Sequence[tuple[str, bool]]  # name of each column, and True if it is numeric
    rows: Sequence[Sequence[Cell]]
    cards: bool  # true if cells have long text: a phone then shows rows as cards
    tall: bool  # true if the table scrolls in a separate area


def images_page(pngs: Mapping[str, bytes], *, title: str) -> str:
    """Return several PNGs, by title, below each other as an HTML page. Images larger than the window scroll."""
    images = {name: b64encode(png).decode("ascii") for name, png in pngs.items()}
    return page_templates().get_template("images.html.j2").render(title=title, images=images)


def table_page(table: pd.DataFrame, *, title: str, digits: int) -> str:
    """Return ``table`` as an HTML page: numbers right-aligned with ``digits`` decimals, NaN as a dash."""
    return tables_page({title: table}, title=title, digits=digits)


def tables_page(
    tables: Mapping[str, pd.DataFrame], *, title: str, digits: int, digits_of: Mapping[str, int] | None = None
) -> str:
    """Return several tables, by title, as an HTML page like ``table_page``; ``digits_of`` has exceptions by title."""
    contents = [table_of(table, name, (digits_of or {}).get(name, digits)) for name, table in tables.items()]
    return page_templates().get_template("tables.html.j2").render(title=title, tables=contents)


def table_of(table: pd.DataFrame, title: str, digits: int) -> Table:
    """Return ``table`` as text: numbers with ``digits`` decimals, columns of whole numbers with none, NaN as –."""
    numeric = [pd.api.types.is_numeric_dtype(table[name]) for name in table.columns]
    heads = list(zip(map(str, table.columns), numeric, strict=True))
    places = [0 if number and (table[name].dropna() % 1 == 0).all() else digits for name, number in heads]
    rows = [
        [_cell(value, *head, count) for value, head, count in zip(row, heads, places, strict=True)]
        for row in table.itertuples(index=False)
    ]
    cards = any(table[name].map(lambda value: len(str(value)) > LONG_TEXT).any() for name in table.columns)
    return Table(title, heads, rows, cards=cards, tall=len(table) > MANY_ROWS)


def _cell(value: object, column: str, number: bool, digits: int) -> Cell:
    if isinstance(value, Keyed):
        return Cell(value.label, value.label, number, column, key=value.key)
    code = isinstance(value, Code) and value.text != ""
    return Cell(_text(value, digits), _all_digits(value), number, column, code=code)


def _all_digits(value: object) -> str | None:
    if not isinstance(value, float):
        return None
    return "" if value != value else repr(float(value))


def _text(value: object, digits: int) -> str:
    if isinstance(value, float):
        if value != value:
            return "–"
        rounded = f"{value:.{digits}f}"
        return with_minus(significant(value, 2) if value and not float(rounded) else rounded)
    return str(value)

"""Tables and large images as HTML: names from the configuration are shown as text, whatever they hold."""

from base64 import b64encode
from collections.abc import Mapping
from html import escape

import pandas as pd

from saliency_assay.plotting.page import page

MUCH = 50
"""Letters of a cell from which on a table is one of text."""
MANY = 25
"""Rows from which on a table scrolls in a window of its own."""
TABLE = """<div class="scroll{tall}" tabindex="0" role="region" aria-label="{title}">
<table{kind}>
<caption>{title}</caption>
<thead><tr>{head}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>"""
IMAGE = """<div class="scroll" tabindex="0" role="region" aria-label="{title}">
<img class="wide" src="data:image/png;base64,{content}" alt="{title}">
</div>"""


def image_page(png: bytes, *, title: str) -> str:
    """A PNG as an HTML page, which scrolls where the image alone would be cut off."""
    return images_page({title: png}, title=title)


def images_page(pngs: Mapping[str, bytes], *, title: str) -> str:
    """Several PNGs, by what they show, one below the other, as an HTML page like ``image_page``."""
    body = "\n".join(
        IMAGE.format(content=b64encode(png).decode("ascii"), title=escape(name)) for name, png in pngs.items()
    )
    return page(body, title=title)


def table_page(table: pd.DataFrame, *, title: str, digits: int) -> str:
    """``table`` as an HTML page: numbers to the right with ``digits`` decimals, NaN as a dash."""
    return tables_page({title: table}, title=title, digits=digits)


def tables_page(tables: Mapping[str, pd.DataFrame], *, title: str, digits: int) -> str:
    """Several tables, by what stands above each, as an HTML page like ``table_page``."""
    return page("\n".join(table_of(table, name, digits) for name, table in tables.items()), title=title)


def table_of(table: pd.DataFrame, title: str, digits: int) -> str:
    """``table`` as HTML, to be sorted by its heads; its cells keep the numbers that they round.

    Tables of much text are cards on a phone: a row is read from top to bottom.
    """
    numeric = [pd.api.types.is_numeric_dtype(table[name]) for name in table.columns]
    head = "".join(_head(str(name), number) for name, number in zip(table.columns, numeric, strict=True))
    cards = any(table[name].map(lambda value: len(str(value)) > MUCH).any() for name in table.columns)
    names = [str(name) if cards else "" for name in table.columns]
    rows = (
        "".join(_cell(*cell, digits) for cell in zip(row, numeric, names, strict=True))
        for row in table.itertuples(index=False)
    )
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    kind = ' class="cards"' if cards else ""
    tall = " tall" if len(table) > MANY else ""
    return TABLE.format(title=escape(title), kind=kind, tall=tall, head=head, rows=body)


def breakable(name: str) -> str:
    """A name as HTML that may be broken behind an underscore."""
    return escape(name).replace("_", "_<wbr>")


def _head(name: str, number: bool) -> str:
    kind = ' class="number"' if number else ""
    return f'<th scope="col" aria-sort="none"{kind}><button>{escape(name)}</button></th>'


def _cell(value: object, number: bool, label: str, digits: int) -> str:
    text = _text(value, digits)
    kept = f' data-value="{_kept(value)}"' if isinstance(value, float) else ""
    kind = ' class="number"' if number else ""
    named = f' data-label="{escape(label)}"' if label else ""
    return f"<td{kind}{kept}{named}>{escape(text)}</td>"


def _kept(value: float) -> str:
    """All digits; nothing for NaN."""
    return "" if value != value else repr(float(value))


def _text(value: object, digits: int) -> str:
    if isinstance(value, float):
        text = f"{value:.{digits}f}"
        return "–" if value != value else text.lstrip("-") if float(text) == 0 else text
    return str(value)

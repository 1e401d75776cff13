"""Tables and large images as pages of their own: no network, no script, names from the configuration shown as text."""

from base64 import b64encode
from collections.abc import Mapping
from html import escape

import pandas as pd

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; margin: 1.2rem; color: #1b1b1b; background: #fff; }}
table {{ border-collapse: collapse; }}
table + table {{ margin-top: 2.4rem; }}
caption {{ text-align: left; font-weight: 600; padding-bottom: .6rem; }}
th, td {{ padding: .35rem .8rem; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top; }}
th {{ border-bottom: 2px solid #444; }}
td.number, th.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
img {{ max-width: 100%; min-width: 40rem; }}
.scroll {{ overflow-x: auto; }}
</style>
</head>
<body><div class="scroll">
{body}
</div></body>
</html>
"""
TABLE = (
    "<table>\n<caption>{title}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
)
IMAGE = '<img src="data:image/png;base64,{content}" alt="{title}">'


def image_page(png: bytes, *, title: str) -> str:
    """A PNG as an HTML page, which scrolls where the image alone would be cut off."""
    return images_page({title: png}, title=title)


def images_page(pngs: Mapping[str, bytes], *, title: str) -> str:
    """Several PNGs, by what they show, one below the other, as an HTML page like ``image_page``."""
    body = "\n".join(
        IMAGE.format(content=b64encode(png).decode("ascii"), title=escape(name)) for name, png in pngs.items()
    )
    return PAGE.format(title=escape(title), body=body)


def table_page(table: pd.DataFrame, *, title: str, digits: int) -> str:
    """``table`` as an HTML page: numbers to the right with ``digits`` decimals, NaN as a dash."""
    return tables_page({title: table}, title=title, digits=digits)


def tables_page(tables: Mapping[str, pd.DataFrame], *, title: str, digits: int) -> str:
    """Several tables, by what stands above each, as an HTML page like ``table_page``."""
    body = "\n".join(_table(table, name, digits) for name, table in tables.items())
    return PAGE.format(title=escape(title), body=body)


def _table(table: pd.DataFrame, title: str, digits: int) -> str:
    numeric = [pd.api.types.is_numeric_dtype(table[name]) for name in table.columns]
    head = "".join(
        _cell("th", str(name), number) for name, number in zip(table.columns, numeric, strict=True)
    )
    rows = (
        "".join(_cell("td", _text(value, digits), number) for value, number in zip(row, numeric, strict=True))
        for row in table.itertuples(index=False)
    )
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return TABLE.format(title=escape(title), head=head, rows=body)


def _cell(tag: str, text: str, number: bool) -> str:
    kind = ' class="number"' if number else ""
    return f"<{tag}{kind}>{escape(text)}</{tag}>"


def _text(value: object, digits: int) -> str:
    if isinstance(value, float):
        return "–" if value != value else f"{value:.{digits}f}"
    return str(value)

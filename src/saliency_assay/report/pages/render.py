"""Pages of the report from the templates in ``templates``, and the script that makes a book of them."""

import json
from collections.abc import Sequence
from pathlib import Path

from saliency_assay.plotting.page import page_templates

TEMPLATES = Path(__file__).with_name("templates")


def render(template: str, **values: object) -> str:
    """Return a page as HTML; ``values`` are what its template shows."""
    return page_templates(TEMPLATES).get_template(f"{template}.html.j2").render(values)


READER = Path(__file__).parent.with_name("assets") / "reader.js"
TITLE = "Saliency Assay"


def with_reader(report: str, order: Sequence[str]) -> str:
    """Return Snakemake's report with the reader in it.

    Args:
        report: a page of HTML.
        order: paths of the results in the order in which they are read.

    Raises:
        ValueError: the report has no end of a body.
    """
    whole, end, rest = report.rpartition("</body>")
    if not end:
        raise ValueError("Snakemake's report has no </body>, expected an HTML page")
    book = {"shell": render("shell", title=TITLE), "order": order, "title": TITLE}
    known = json.dumps(book).replace("</", "<\\/")  # within a script
    script = READER.read_text(encoding="utf-8")
    scripts = f"<script>const reader = {known};</script>\n<script>{script}</script>\n"
    return whole + scripts + end + rest

"""Script that arranges Snakemake's report as pages (``report/assets/reader.js``)."""

import json
from collections.abc import Sequence
from pathlib import Path

from saliency_assay.report.pages.render import render

READER = Path(__file__).parent.with_name("assets") / "reader.js"
TITLE = "Saliency Assay"


def with_reader(report: str, order: Sequence[str]) -> str:
    """Insert the reader script into Snakemake's report.

    Args:
        report: HTML of the report.
        order: paths of the results in reading order.

    Raises:
        ValueError: the report has no ``</body>``.
    """
    before, end, rest = report.rpartition("</body>")
    if not end:
        raise ValueError("Snakemake's report has no </body>, expected an HTML page")
    book = {"shell": render("shell", title=TITLE), "order": order, "title": TITLE}
    settings = json.dumps(book).replace("</", "<\\/")  # "</" would end the script element
    script = READER.read_text(encoding="utf-8")
    scripts = f"<script>const reader = {settings};</script>\n<script>{script}</script>\n"
    return before + scripts + end + rest

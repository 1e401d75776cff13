"""Write the tables of methods and architectures in docs/methods.md: ``python -m tools.method_tables``."""

from saliency_assay.config.methods import unsupported
from saliency_assay.methods import METHODS
from saliency_assay.models import ARCHITECTURES
from tools.pages import DOCS

PAGE = DOCS / "methods.md"
ONE_CHANNEL = {
    "sensitivity", "cam", "gradcam", "occlusion", "kernel_shap", "square", "halves", "random", "constant",
}  # fmt: skip
"""Methods whose maps have one channel; those of the others have as many as the images."""


def records() -> str:
    """Return a table of the methods' records."""
    rows = [
        [
            f"[`{method.name}`](#{method.name})",
            method.summary,
            "1" if method.name in ONE_CHANNEL else "C",
            "yes" if method.signed else "no",
            ", ".join(name.replace("_", " ") for name in (*method.needs, *method.takes)),
            "yes" if method.stochastic else "",
        ]
        for method in METHODS
    ]
    return _table(["method", "what", "map", "signed", "needs or takes", "random"], rows)


def pairs() -> str:
    """Return a table of methods and architectures, ticked where they work together."""
    rows = [
        [f"`{method.name}`", *("" if unsupported(method.needs, each) else "✓" for each in ARCHITECTURES)]
        for method in METHODS
    ]
    return _table(["method", *(architecture.name for architecture in ARCHITECTURES)], rows)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |\n" for cells in (head, *rows)]
    return "".join([lines[0], f"{'|---' * len(head)}|\n", *lines[1:]])


def written(page: str) -> str:
    """Return the page with the tables between their marks, in place of those that stand there."""
    for name, table in (("records", records()), ("pairs", pairs())):
        begin, end = f"<!-- {name}, written by tools/method_tables.py -->\n", f"<!-- end of {name} -->\n"
        before, _, rest = page.partition(begin)
        page = before + begin + table + end + rest.partition(end)[2]
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))

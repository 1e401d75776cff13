"""Write the tables of data sets, architectures, methods and metrics in docs/: ``python -m tools.record_tables``."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from saliency_assay.config.methods import unsupported
from saliency_assay.data import DATA_KINDS
from saliency_assay.methods import METHODS
from saliency_assay.metrics import METRICS
from saliency_assay.models import ARCHITECTURES
from saliency_assay.registry.directions import arrow
from saliency_assay.registry.records import Parameter
from tools import metric_records
from tools.metric_records import interval, shown
from tools.pages import DOCS

Rows = Iterable[tuple[str, ...]]
BEGIN, END = "<!-- {}, written by tools/record_tables.py -->\n", "<!-- end of {} -->\n"
PIPE = r"\|"
NEEDS = {"mask": "masks", "explain": "the method", "fresh": "new weights"}
"""What a metric takes that not every data set or caller has."""


def data_kinds() -> Iterator[tuple[str, ...]]:
    """Yield the head and the rows of the table of data sets."""
    yield "kind", "images", "labels", "parameters", "source"
    for kind in DATA_KINDS:
        parameters = f"[below](#{kind.name})" if kind.table else _parameters(kind.parameters)
        yield kind.name, kind.summary, ", ".join(kind.labels), parameters, kind.reference


def architectures() -> Iterator[tuple[str, ...]]:
    """Yield the head and the rows of the table of architectures."""
    yield "architecture", "network", "CAM layer", "parameters", "source"
    for record in ARCHITECTURES:
        parameters = _parameters(record.parameters)
        yield record.name, record.summary, f"`{record.cam_layer}`", parameters, record.reference


def methods() -> Iterator[tuple[str, ...]]:
    """Yield the head and the rows of the table of methods."""
    yield "method", "what", "map", "signed", "needs or takes", "random"
    for method in METHODS:
        channels, signed = "1" if method.one_channel else "C", "yes" if method.signed else "no"
        needs = ", ".join(name.replace("_", " ") for name in (*method.needs, *method.takes))
        yield method.name, method.summary, channels, signed, needs, "yes" if method.stochastic else ""


def pairs() -> Iterator[tuple[str, ...]]:
    """Yield a table of methods and architectures, ticked where they work together."""
    yield "method", *(architecture.name for architecture in ARCHITECTURES)
    for method in METHODS:
        yield method.name, *("" if unsupported(method.needs, each) else "✓" for each in ARCHITECTURES)


def metrics() -> Iterator[tuple[str, ...]]:
    """Yield the head and the rows of the table of metrics of single maps."""
    yield "metric", "what it measures", "scores, better direction and range", "needs", "source"
    for metric in METRICS:
        if metric.judges_single_maps:
            scores = (
                f"`{each.name}` {arrow(each.direction)} {interval(*each.range)}" for each in metric.scores
            )
            needs = (NEEDS[name] for name in metric.takes if name in NEEDS)
            yield metric.name, metric.summary, ", ".join(scores), ", ".join(needs), metric.reference


TABLES: Mapping[str, Mapping[str, Callable[[], Rows]]] = {
    "data": {"records": data_kinds},
    "models": {"records": architectures},
    "methods": {"records": methods, "pairs": pairs},
    "metrics": {"records": metrics},
}
"""By page and by the mark that a table stands between."""


def generated() -> dict[Path, str]:
    """Return the pages with their tables, in place of those that stand there."""
    pages = {DOCS / f"{name}.md": tables for name, tables in TABLES.items()}
    written = {path: _with_tables(path.read_text(), tables) for path, tables in pages.items()}
    return {**written, metric_records.PAGE: metric_records.written(written[metric_records.PAGE])}


def _with_tables(page: str, tables: Mapping[str, Callable[[], Rows]]) -> str:
    for mark, table in tables.items():
        before, _, rest = page.partition(BEGIN.format(mark))
        after = rest.partition(END.format(mark))[2]
        page = "".join([before, BEGIN.format(mark), _table(table(), page), END.format(mark), after])
    return page


def _table(rows: Rows, page: str) -> str:
    """Return a table in Markdown, each record linked to the section of its name where the page has one."""
    head, *records = rows
    linked = [
        (f"[`{name}`](#{name})" if f"\n## {name}\n" in page else f"`{name}`", *rest)
        for name, *rest in records
    ]
    lines = [f"| {' | '.join(cell.replace('|', PIPE) for cell in cells)} |\n" for cells in (head, *linked)]
    return "".join([lines[0], "|---" * len(head), "|\n", *lines[1:]])


def _parameters(parameters: Mapping[str, Parameter]) -> str:
    return ", ".join(f"`{name}` {shown(parameter.default)}" for name, parameter in parameters.items())


if __name__ == "__main__":
    for path, text in generated().items():
        path.write_text(text)

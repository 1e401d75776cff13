"""Write the tables of records in docs/: ``PYTHONPATH=src:tools python tools/record_tables.py``."""

from collections.abc import Iterable, Mapping

from metric_records import interval, shown
from pages import DOCS

from saliency_assay.data import DATA_KINDS
from saliency_assay.metrics import METRICS
from saliency_assay.models import ARCHITECTURES
from saliency_assay.registry.directions import arrow
from saliency_assay.registry.records import Parameter

BEGIN, END = "<!-- records, written by tools/record_tables.py -->\n", "<!-- end of records -->\n"
PIPE = r"\|"


def data_table() -> Iterable[tuple[str, ...]]:
    """Yield the head and the rows of the table of data sets."""
    yield "kind", "images", "labels", "parameters", "source"
    for kind in DATA_KINDS:
        parameters = f"[below](#{kind.name})" if kind.table else _parameters(kind.parameters)
        yield kind.name, kind.summary, ", ".join(kind.labels), parameters, kind.reference


def architecture_table() -> Iterable[tuple[str, ...]]:
    """Yield the head and the rows of the table of architectures."""
    yield "architecture", "network", "CAM layer", "parameters", "source"
    for record in ARCHITECTURES:
        parameters = _parameters(record.parameters)
        yield record.name, record.summary, f"`{record.cam_layer}`", parameters, record.reference


def metric_table() -> Iterable[tuple[str, ...]]:
    """Yield the head and the rows of the table of metrics of single maps."""
    yield "metric", "what it measures", "scores, better direction and range", "needs", "source"
    for metric in METRICS:
        if metric.judges_single_maps:
            scores = (
                f"`{each.name}` {arrow(each.direction)} {interval(*each.range)}" for each in metric.scores
            )
            needs = (NEEDS[name] for name in metric.takes if name in NEEDS)
            yield metric.name, metric.summary, ", ".join(scores), ", ".join(needs), metric.reference


NEEDS = {"mask": "masks", "explain": "the method", "fresh": "new weights"}
"""What a metric takes that not every data set or caller has."""
TABLES = {"data": data_table, "models": architecture_table, "metrics": metric_table}


def _parameters(parameters: Mapping[str, Parameter]) -> str:
    return ", ".join(f"`{name}` {shown(parameter.default)}" for name, parameter in parameters.items())


def with_table(page: str, table: Iterable[tuple[str, ...]]) -> str:
    """Return the page with the table; a record is linked to the section of its name, if there is one."""
    head, *rows = table
    linked = [
        (f"[`{name}`](#{name})" if f"\n## {name}\n" in page else f"`{name}`", *rest) for name, *rest in rows
    ]
    lines = [f"| {' | '.join(cell.replace('|', PIPE) for cell in line)} |\n" for line in [head, *linked]]
    text = "".join([lines[0], "|---" * len(head), "|\n", *lines[1:]])
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + text + END + rest.partition(END)[2]


if __name__ == "__main__":
    for name, table in TABLES.items():
        path = DOCS / f"{name}.md"
        path.write_text(with_table(path.read_text(), table()))

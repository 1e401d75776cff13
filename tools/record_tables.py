"""Generate the tables of records in the documentation: ``python -m tools.record_tables``."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from saliency_assay.config.methods import unsupported
from saliency_assay.data import DATA_KINDS
from saliency_assay.methods import METHODS
from saliency_assay.methods.deeplift import deeplift
from saliency_assay.methods.fullgrad import fullgrad
from saliency_assay.methods.guided import guided_backprop, is_rectifier
from saliency_assay.methods.relevance import attnlrp, deep_taylor, lrp_alpha_beta, lrp_epsilon
from saliency_assay.metrics import METRICS
from saliency_assay.models import ARCHITECTURES
from saliency_assay.registry.records import Parameter
from tools.metric_records import cost, scores_text, yaml_text
from tools.pages import DOCS, link_of

REQUIREMENTS = {
    "gradients": "gradients",
    "relu": "a ReLU",
    "layers": "supported layers",
    "cam_layer": "a CAM layer",
    "attention": "attention over all tokens",
    "pool_linear_head": "one linear layer after average pooling",
    "exact_importance": "a [designed network](designed.md)",
    "base": "`base`",
    "background": "`background`",
    "mask": "`mask`",
}
"""Labels of the requirements of methods (``Method.needs``) and of their inputs in addition to parameters."""
IMPLIED_BY_ATTENTION = ("gradients", "layers")
"""Requirements of all methods that require attention."""
PIPE = r"\|"
"""Escaped vertical bar in a table cell."""
Rows = Iterable[tuple[str, ...]]
SEPARATOR = "; "
"""Separator of the names in the first cell of a row that several records share."""


def data_table() -> Rows:
    """Yield the header and the rows of the table of data sets."""
    yield "kind", "images", "labels", "parameters"
    for kind in DATA_KINDS:
        own = {name: each for name, each in kind.parameters.items() if name != "seed"}
        parameters = _parameter_text(own) if len(own) < 6 else f"[below](#{kind.name})"
        yield kind.name, kind.summary, ", ".join(kind.labels), parameters


def architecture_table() -> Rows:
    """Yield the header and the rows of the table of architectures."""
    yield "architecture", "network", "CAM layer", "parameters", "source"
    for record in ARCHITECTURES:
        if not record.is_designed:  # docs/designed.md describes these
            parameters = _parameter_text(record.parameters)
            yield record.name, record.summary, f"`{record.cam_layer}`", parameters, record.reference


def metric_table() -> Rows:
    """Yield the header and the rows of the table of metrics."""
    yield "metric", "property", "scores", "cost"
    for metric in METRICS:
        yield metric.name, metric.measures, scores_text(metric, ranges=False), cost(metric)


def method_table() -> Rows:
    """Yield the header and the rows of the table of methods."""
    yield "method", "definition", "map", "requires", "paper"
    for method in METHODS:
        maps = f"{'1' if method.one_channel else 'C'} {'±' if method.signed else '+'}"
        implied = IMPLIED_BY_ATTENTION if "attention" in method.needs else ()
        needs = ", ".join(
            REQUIREMENTS[name] for name in (*method.needs, *method.takes) if name not in implied
        )
        yield method.name, method.summary, f"{maps}{', random' * method.stochastic}", needs, method.reference


def support_table() -> Rows:
    """Yield the header and the rows of the table of methods that do not support each trained architecture."""
    yield "methods", "architectures"
    trained = [architecture for architecture in ARCHITECTURES if not architecture.is_designed]
    supporting = (
        (method.name, ", ".join(f"`{each.name}`" for each in trained if not unsupported(method.needs, each)))
        for method in METHODS
        if any(unsupported(method.needs, each) for each in trained) and "exact_importance" not in method.needs
    )
    yield from _merged(supporting)


ACTIVATIONS: Mapping[str, nn.Module] = {
    **{
        "ReLU": nn.ReLU(),
        "ReLU6": nn.ReLU6(),
        "Hardtanh(0, c)": nn.Hardtanh(0, 2),
        "Hardtanh(−1, 1)": nn.Hardtanh(),
    },
    **{
        "LeakyReLU": nn.LeakyReLU(),
        "PReLU": nn.PReLU(),
        "ELU": nn.ELU(),
        "CELU": nn.CELU(),
        "SELU": nn.SELU(),
    },
    **{"Softplus": nn.Softplus(), "Sigmoid": nn.Sigmoid(), "Tanh": nn.Tanh(), "Hardswish": nn.Hardswish()},
    **{"Hardsigmoid": nn.Hardsigmoid(), "SiLU": nn.SiLU(), "GELU": nn.GELU(), "Mish": nn.Mish()},
    "Softmax": nn.Softmax(1),
}
RULE_METHODS: Mapping[str, Callable[..., Tensor]] = {
    "`guided_backprop`": guided_backprop,
    "`lrp_alpha_beta`": lrp_alpha_beta,
    "`deep_taylor`": deep_taylor,
    "`deep_taylor`, w²": partial(deep_taylor, rule="w_squared"),
    "`lrp_epsilon`": lrp_epsilon,
    "`attnlrp`": attnlrp,
    "`deeplift`, Rescale": partial(deeplift, rule="rescale"),
    "`deeplift`, RevealCancel": partial(deeplift, rule="reveal_cancel"),
    "`fullgrad`": fullgrad,
}
"""Methods with rules for activation functions, by the heading of their column."""


class _BesideReLU(nn.Module):
    """A network of a ReLU and another activation, of features or of a factor by which they are multiplied."""

    def __init__(self, activation: nn.Module, *, is_factor: bool) -> None:
        super().__init__()
        self.first, self.second, self.head = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 1), nn.Linear(4, 2)
        self.activation, self.is_factor = activation, is_factor

    def forward(self, images: Tensor) -> Tensor:
        features = torch.relu(self.first(images))
        active = self.activation(self.second(features))
        logits: Tensor = self.head((features * active if self.is_factor else active).mean((2, 3)))
        return logits


def activation_table() -> Rows:
    """Yield the header and the rows of the table of activation functions × methods, from a run of each."""
    yield "activation", *RULE_METHODS
    yield from _merged(
        (name, *(_support(method, activation) for method in RULE_METHODS.values()))
        for name, activation in ACTIVATIONS.items()
    )


def _merged(rows: Rows) -> Rows:
    """Yield rows with the same cells as one, with the names of all of them in its first cell."""
    names: dict[tuple[str, ...], list[str]] = {}
    for name, *cells in rows:
        names.setdefault(tuple(cells), []).append(name)
    return ((SEPARATOR.join(each), *cells) for cells, each in names.items())


def _support(method: Callable[..., Tensor], activation: nn.Module) -> str:
    """Return where a method accepts an activation: as such (✓), as a factor of a product, or nowhere (empty)."""
    node = activation(torch.ones(1, 2, requires_grad=True)).grad_fn
    for is_factor, text in ((False, "✓"), (True, "factor")):
        try:
            network = _BesideReLU(activation, is_factor=is_factor).eval()
            method(network, torch.rand(1, 3, 8, 8), torch.tensor([0]), generator=torch.Generator())
        except ValueError:
            continue
        return "gradient" if method is guided_backprop and not (is_factor or is_rectifier(node)) else text
    return ""


TABLES: tuple[tuple[str, str, Callable[[], Rows]], ...] = (
    ("data.md", "records", data_table),
    ("models.md", "records", architecture_table),
    ("metrics.md", "records", metric_table),
    ("methods.md", "records", method_table),
    ("methods.md", "pairs", support_table),
    ("methods/propagation.md", "activations", activation_table),
)
"""Page, name in the markers around the table, and function that yields its rows."""


def generated() -> Iterator[tuple[Path, str]]:
    """Yield the path and the text of each page with its tables up to date."""
    pages = {name: (DOCS / name).read_text() for name, _, _ in TABLES}
    for name, mark, table in TABLES:
        pages[name] = _insert_table(DOCS / name, pages[name], mark, table())
    for name, text in pages.items():
        yield DOCS / name, text


def _insert_table(path: Path, page: str, mark: str, table: Rows) -> str:
    """Return the page with the table; records are linked to the section of their name, if there is one."""
    head, *rows = table
    linked = [
        (", ".join(link_of(name, path) for name in names.split(SEPARATOR)), *rest) for names, *rest in rows
    ]
    lines = [f"| {' | '.join(cell.replace('|', PIPE) for cell in line)} |\n" for line in [head, *linked]]
    text = "".join([lines[0], "|---" * len(head), "|\n", *lines[1:]])
    begin, end = f"<!-- {mark}, written by tools/record_tables.py -->\n", f"<!-- end of {mark} -->\n"
    before, _, rest = page.partition(begin)
    return before + begin + text + end + rest.partition(end)[2]


def _parameter_text(parameters: Mapping[str, Parameter]) -> str:
    return ", ".join(f"`{name}` {yaml_text(parameter.default)}" for name, parameter in parameters.items())


if __name__ == "__main__":
    for path, text in generated():
        path.write_text(text)

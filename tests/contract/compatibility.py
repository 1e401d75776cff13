"""What every method does on every architecture: the tables in docs/methods.md are written from it.

PYTHONPATH=tests .venv/bin/python tests/contract/compatibility.py
"""

from functools import cache
from pathlib import Path

import torch
from support import CLASSES, bound, conv_classifier, cyclic_targets, explain, generator, random_images

from saliency_assay.methods import METHODS
from saliency_assay.models import ARCHITECTURES
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.registry.records import record_of

PAGE = Path(__file__).parents[2] / "docs/methods.md"
SMALL = {"width": 4, "hidden": 8, "pooled": 1}
"""Where an architecture has such a parameter; the others run at full size."""


@cache
def small(name: str) -> Classifier:
    """The architecture for grey images of 32 pixels, with random weights, in evaluation mode."""
    record = record_of(ARCHITECTURES, name, "architecture")
    parameters = {key: value for key, value in SMALL.items() if key in record.parameters}
    blueprint = Blueprint(name, record.function, parameters, record.cam_layer, record.concept_layers)
    return build(blueprint, classes=CLASSES, mean=[0.4], std=[0.2], generator=generator(1)).eval()


@cache
def outcome(method: str, architecture: str) -> str:
    """Empty if the method draws finite maps of the images' shape, else its refusal."""
    images = random_images(2, channels=1, size=32, dtype=torch.float32)
    record = record_of(METHODS, method, "method")
    try:
        given = {"squares": 8} if method == "square" else {}  # all of 32 × 32 pixels are two thousand
        maps = bound(record, images, **given)(
            small(architecture), images, cyclic_targets(2), generator=generator()
        )
    except ValueError as error:
        return str(error)
    assert maps.shape == images.shape
    assert maps.isfinite().all()
    return ""


def pairs() -> str:
    """A table of methods and architectures, ticked where they work together."""
    names = [record.name for record in ARCHITECTURES]
    rows = [
        [f"`{method.name}`", *("" if outcome(method.name, name) else "✓" for name in names)]
        for method in METHODS
    ]
    return _table(["method", *names], rows)


def records() -> str:
    """A table of what the registry says of each method, and of how many channels its maps have."""
    images, page = random_images(2), PAGE.read_text()
    rows = [
        [
            f"[`{method.name}`](#{method.name})" if f"\n## {method.name}\n" in page else f"`{method.name}`",
            method.summary,
            "1" if explain(method, conv_classifier(), images, cyclic_targets(2)).shape[1] == 1 else "C",
            "yes" if method.signed else "no",
            ", ".join(name.replace("_", " ") for name in (*method.needs, *method.takes)),
            "yes" if method.stochastic else "",
        ]
        for method in METHODS
    ]
    return _table(["method", "what", "map", "signed", "needs or takes", "random"], rows)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return (
        "".join(f"| {' | '.join(line)} |\n" for line in lines)
        .replace("| --- ", "|---")
        .replace("--- |", "---|")
    )


TABLES = {"records": records, "pairs": pairs}


def bounds(name: str) -> tuple[str, str]:
    """The lines of the page between which the table stands."""
    return f"<!-- {name}, written by tests/contract/compatibility.py -->\n", f"<!-- end of {name} -->\n"


def write() -> None:
    """Put the tables into the page, in place of those that are there."""
    page = PAGE.read_text()
    for name, table in TABLES.items():
        begin, end = bounds(name)
        before, _, rest = page.partition(begin)
        page = before + begin + table() + end + rest.partition(end)[2]
    PAGE.write_text(page)


if __name__ == "__main__":
    write()

"""Style of all figures: colors that color-blind readers can tell apart, fonts, and the form of their files."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

# Okabe & Ito (2008), "Color Universal Design".
BLUE, ORANGE, GREEN, SKY = "#0072B2", "#E69F00", "#009E73", "#56B4E9"
VERMILION, PURPLE, GREY = "#D55E00", "#CC79A7", "#8A8A8A"
CYCLE = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, GREY)

SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#E4E4E4",
    "legend.frameon": False,
    "svg.hashsalt": "saliency-assay",  # equal figures give equal files
    "figure.constrained_layout.use": True,
}


@contextmanager
def styled() -> Iterator[None]:
    """Within the block, matplotlib draws in the project's style."""
    with mpl.rc_context(SETTINGS):
        yield


def save(figure: Figure, path: Path) -> None:
    """Write ``figure`` as SVG or PNG by the path's ending, without a date in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    figure.savefig(path, dpi=130, metadata=metadata)


def png(figure: Figure) -> bytes:
    """Return ``figure`` as a PNG, without a date in it."""
    content = BytesIO()
    figure.savefig(content, format="png", dpi=130, metadata={"Software": None})
    return content.getvalue()


def readable(name: str) -> str:
    """Return a name from the configuration as a label: underscores become spaces."""
    return name.replace("_", " ")


def joined(names: Iterable[object]) -> str:
    """Return names as in a sentence: ``a, b and c``."""
    texts = [str(name) for name in names]
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"

"""Style of all figures: colors that color-blind readers can tell apart, fonts, and the form of their files."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import SymmetricalLogLocator
from numpy import ndarray as Array

# Okabe & Ito (2008), "Color Universal Design".
BLUE, ORANGE, GREEN, SKY = "#0072B2", "#E69F00", "#009E73", "#56B4E9"
VERMILION, PURPLE, GREY = "#D55E00", "#CC79A7", "#8A8A8A"
CYCLE = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, GREY)
MARKERS = "osD^vP*X<>hpd"  # more than a study's usual methods, so that a grey print can be read too
LINES = ("-", "--", ":")
LOG_SPAN = 100.0
MOST_DECADES = 6
LEAST = 1e-9

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


def look(place: int) -> dict[str, Any]:
    """Return the color, line and marker of the method at ``place`` among those of the study."""
    line = LINES[place // len(CYCLE) % len(LINES)]
    return {"color": CYCLE[place % len(CYCLE)], "linestyle": line, "marker": MARKERS[place % len(MARKERS)]}


def looks_of(
    names: Sequence[str],
    *,
    colors: Sequence[str],
    lines: Sequence[Any],
    fixed: Mapping[str, dict[str, Any]],
    **style: Any,
) -> dict[str, dict[str, Any]]:
    """Return the color, line and marker of each name: those ``fixed`` for some, the others by turns with ``style``."""
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        place = sum(other not in fixed for other in found)
        line = lines[place // len(colors) % len(lines)]
        usual = {"color": colors[place % len(colors)], "linestyle": line, **style}
        found[name] = fixed.get(name, {**usual, "marker": MARKERS[place % len(MARKERS)]})
    return found


def spread_out(
    axes: Axes, axis: str, values: Array, least: float, span: float = LOG_SPAN, lows: Array | None = None
) -> None:
    """Make an axis logarithmic where the ``values`` plotted on it need that.

    That is: nothing is negative and the greatest is more than ``span`` times the smallest. Where some are zero the
    axis is linear from 0 to the decade of the smallest that is not. Less than a billionth of the greatest is zero.

    Args:
        axes: of the plot.
        axis: ``x`` or ``y``.
        values: all that are seen, without ``lows``.
        least: the smallest score behind them, which may be below all that is seen.
        span: the greatest ratio that a linear axis shows.
        lows: lower ends of whiskers, which do not count: few scores near 0 would turn boxes into lines.
    """
    values, lows = values[np.isfinite(values)], np.empty(0) if lows is None else lows
    if not len(values) or least < 0 or values.max() <= 0:
        return
    shown = values[values >= LEAST * values.max()]
    if shown.max() <= span * shown.min():
        return
    set_scale = axes.set_xscale if axis == "x" else axes.set_yscale
    if len(shown) < len(values) or (lows < LEAST * values.max()).any():
        # A tick below this decade would stand in the linear part, on top of the 0.
        least_decade = np.floor(np.log10(shown.min()))
        decades = float(np.log10(shown.max()) - least_decade)
        set_scale("symlog", linthresh=float(10**least_decade), linscale=max(1, decades / 6))
        locator = (axes.xaxis if axis == "x" else axes.yaxis).get_major_locator()
        cast(SymmetricalLogLocator, locator).set_params(numticks=MOST_DECADES)
    else:
        set_scale("log")

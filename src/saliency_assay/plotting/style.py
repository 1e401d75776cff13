"""Style of all figures: fonts, axes, and the writing of files."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from textwrap import wrap
from typing import Any, cast

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterSciNotation, SymmetricalLogLocator
from numpy import ndarray as Array

from saliency_assay.plotting.charts import LineChart, PointChart, svg

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
LOG_SPAN = 100.0
MOST_DECADES = 6
LEAST = 1e-9
LETTER = 0.0085
"""Inches of a letter of a name for each point of the font's size, on average."""
WIDTH = 10.4
"""Inches of the widest figure: the report's 1,000 pixels."""

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
    "text.parse_math": False,  # names of classes may contain dollar signs; formulas are marked by parse_math=True
    "pdf.fonttype": 42,  # TrueType: publishers reject fonts of Type 3, matplotlib's default
    "svg.hashsalt": "saliency-assay",  # makes files of equal figures identical
    "figure.constrained_layout.use": True,
}


@contextmanager
def styled() -> Iterator[None]:
    """Apply the project's matplotlib style within the block."""
    with mpl.rc_context(SETTINGS):
        yield
        # The first figure of a notebook loads a backend that turns this on; without it, later figures are not shown.
        interactive = mpl.is_interactive()
    mpl.interactive(interactive)


def save(figure: Figure | LineChart | PointChart, path: Path) -> None:
    """Write ``figure`` as SVG, PDF or PNG, by the suffix of the path, without a date; a chart as SVG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(figure, LineChart | PointChart):
        path.write_text(svg(figure.specification()), encoding="utf-8")
        return
    date = {".svg": "Date", ".pdf": "CreationDate", ".png": "Software"}[path.suffix]
    dpi = 300 if path.suffix == ".pdf" else 130  # of images within a PDF file, which is for print
    figure.savefig(path, dpi=dpi, metadata={date: None}, bbox_inches="tight")  # long labels are not cut off


def png(figure: Figure) -> bytes:
    """Return ``figure`` as a PNG without a date."""
    content = BytesIO()
    figure.savefig(content, format="png", dpi=130, metadata={"Software": None})
    return content.getvalue()


def spread_out(
    axes: Axes, axis: str, values: Array, least: float, span: float = LOG_SPAN, lows: Array | None = None
) -> None:
    """Make an axis logarithmic if the ``values`` plotted on it span more than a linear axis can show.

    The condition: no value is negative and the largest is more than ``span`` times the smallest. With zeros among them
    the axis is linear from 0 to the decade of the smallest other value. Values below a billionth of the largest count
    as zero.

    Args:
        axes: axes of the plot.
        axis: ``x`` or ``y``.
        values: all plotted values except ``lows``.
        least: the smallest score, which may be below all plotted values.
        span: the largest ratio of values on a linear axis.
        lows: lower ends of whiskers. They do not count as values, because a few scores near 0 would squeeze the boxes
            into lines.
    """
    values, lows = values[np.isfinite(values)], np.empty(0) if lows is None else lows
    if not len(values) or least < 0 or values.max() <= 0:
        return
    nonzero = values[values >= LEAST * values.max()]
    if nonzero.max() <= span * nonzero.min():
        return
    if len(nonzero) < len(values) or (lows < LEAST * values.max()).any():
        # A tick below this decade would be in the linear part and overlap with the tick at 0.
        least_decade = np.floor(np.log10(nonzero.min()))
        decades = float(np.log10(nonzero.max()) - least_decade)
        set_logarithmic(axes, axis, linthresh=float(10**least_decade), linscale=max(1, decades / 6))
        locator = (axes.xaxis if axis == "x" else axes.yaxis).get_major_locator()
        cast(SymmetricalLogLocator, locator).set_params(numticks=MOST_DECADES)
    else:
        set_logarithmic(axes, axis)


def named_width(names: Sequence[str], *, margin: float, least: float, size: float = 10) -> float:
    """Return the width in inches of a figure whose columns have these names horizontally, if a page is wide enough.

    Args:
        names: names of the columns; a name may take several lines, but each word is on one.
        margin: inches beside the columns.
        least: least inches of a column.
        size: size of the font in points.
    """
    longest = max((len(word) for name in names for word in name.split()), default=0)
    column = max(least, LETTER * size * (longest + 1))
    return margin + len(names) * (column if margin + len(names) * column <= WIDTH else least)


def name_columns(
    axes: Axes, names: Sequence[str], inches: float, *, lines: int = 2, size: float = 10, angle: float = 30
) -> None:
    """Name the places 0, 1, … of the x axis: horizontally if the names fit, else at an angle.

    Args:
        axes: axes of the plot.
        names: names of the places.
        inches: width of a place.
        lines: most lines of a horizontal name.
        size: size of the font in points.
        angle: angle of names that do not fit, in degrees.
    """
    letters = int(inches / (LETTER * size))
    wrapped = [wrap(name, max(letters, 1), break_long_words=False, break_on_hyphens=False) for name in names]
    places = range(len(names))
    if all(len(of_name) <= lines and max(map(len, of_name), default=0) <= letters for of_name in wrapped):
        axes.set_xticks(places, ["\n".join(of_name) for of_name in wrapped], fontsize=size)
    else:
        aligned: dict[str, Any] = {"ha": "right"} if angle < 90 else {}
        axes.set_xticks(places, list(names), rotation=angle, fontsize=size, **aligned)


def set_logarithmic(axes: Axes, axis: str, **linear: float) -> None:
    """Make an axis logarithmic or, with the options ``linear`` of symlog, linear near 0."""
    (axes.set_xscale if axis == "x" else axes.set_yscale)("symlog" if linear else "log", **linear)
    line = axes.xaxis if axis == "x" else axes.yaxis
    line.set_major_formatter(_Powers())
    if not linear:
        line.set_minor_formatter(_Powers(labelOnlyBase=False))


class _Powers(LogFormatterSciNotation):
    """Labels of ticks such as 2 × 10⁻³ as text instead of a formula."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        label = re.sub(r"\\mathdefault|[${}]", "", super().__call__(x, pos)).replace(r"\times", " × ")
        number, _, exponent = label.partition("^")
        return number.replace("-", "\u2212") + exponent.translate(SUPERSCRIPTS)

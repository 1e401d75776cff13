"""Lines and bands of figures and charts, and overlaps of texts."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import BboxBase

from saliency_assay.plotting.charts import Panel


def marked_lines(axes: Axes) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return x and y of the lines that have markers: those of methods."""
    lines = [line for line in axes.lines if line.get_marker() != "None"]
    return [(np.asarray(line.get_xdata()), np.asarray(line.get_ydata())) for line in lines]


def bands(axes: Axes) -> list[dict[float, tuple[float, float]]]:
    """Return the lower and upper end of each filled band by x."""
    areas = []
    for body in axes.collections:
        ends: dict[float, list[float]] = {}
        for x, y in [vertex for path in body.get_paths() for vertex in path.vertices]:
            ends.setdefault(round(float(x), 9), []).append(float(y))
        areas.append({x: (min(ys), max(ys)) for x, ys in ends.items()})
    return areas


def assert_apart(extents: Sequence[BboxBase], figure: Figure) -> None:
    """Assert that no two extents overlap, and that all lie on the figure."""
    for place, extent in enumerate(extents):
        assert 0 <= extent.x0 <= extent.x1 <= figure.bbox.width
        assert 0 <= extent.y0 <= extent.y1 <= figure.bbox.height
        assert not any(extent.overlaps(other) for other in extents[:place])


def chart_lines(panel: Panel) -> dict[str, dict[str, np.ndarray]]:
    """Return the columns of each line of a chart by its label."""
    return {
        str(series): {name: rows[name].to_numpy() for name in rows.columns if name != "series"}
        for series, rows in panel.rows.groupby("series", sort=False)
    }


def half_widths(line: dict[str, np.ndarray]) -> np.ndarray:
    """Return half the width of the band at each point."""
    widths: np.ndarray = (line["high"] - line["low"]) / 2
    return widths

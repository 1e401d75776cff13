"""Charts in Vega-Lite: lines with bands, and methods as points under two scores.

``save`` writes a chart as SVG for papers, with its Vega-Lite specification as metadata. Pages of the report render the
specification instead of the image: readers highlight a series and read values by pointing at it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.plotting.palette import Look

VERSION = "5.20"
"""Version of Vega-Lite that renders the static files. The report renders with the one in Snakemake's report, 5.2."""
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
WIDTH, HEIGHT = 930, 250  # pixels of all panels in a row, and of the axes of one
WIDEST = 560  # pixels of a single panel
SQUARE = 380  # pixels of the axes of points
AXIS = 90  # pixels of an axis with its labels and title
MARKERS = 5  # of a line
LETTER, SYMBOL = 6.2, 48  # pixels of a letter and of a symbol in the legend
COLUMNS = ["series", "x", "mean", "low", "high", "images", "faint", "marked"]
CONFIGURATION = {
    "font": "DejaVu Sans, Verdana, sans-serif",
    "view": {"stroke": None},
    "axis": {
        **{"labelFontSize": 11, "labelLimit": 220},
        **{"titleFontSize": 11, "titleFontWeight": "normal", "titleLineHeight": 14},
    },
    "axisX": {"grid": False},
    "title": {"fontSize": 12, "fontWeight": "normal"},
    "legend": {"titleFontWeight": "normal", "titleLimit": 0, "labelLimit": 0, "labelFontSize": 11},
    "aria": False,
}
FOCUS = {
    "name": "focus",
    "select": {"type": "point", "fields": ["series"], "on": "mouseover", "clear": "mouseout"},
    "bind": "legend",
}
"""The series at which a reader points."""


def line_rows(
    series: str,
    x: Array,
    mean: Array,
    low: Array | None = None,
    high: Array | None = None,
    *,
    images: Array | int = 0,
    faint: Array | None = None,
    offset: float = 0,
) -> pd.DataFrame:
    """Return the rows of one line of a panel, the columns ``COLUMNS``.

    Args:
        series: label of the line in the legend.
        x: positions of the points ``[S]``; NaN ends a line.
        mean: values ``[S]``.
        low: lower ends of the band ``[S]``; NaN or None without a band.
        high: upper ends of the band ``[S]``.
        images: number of images of each point, or of all points.
        faint: bool ``[S]``, True for points to which the line is faint.
        offset: shift of the markers as a share of their distance, so that markers of lines that coincide are apart.
    """
    step = max(1, len(x) // MARKERS)
    missing = np.full(len(x), np.nan)
    return pd.DataFrame(
        {
            "series": series,
            "x": x,
            "mean": mean,
            "low": missing if low is None else low,
            "high": missing if high is None else high,
            "images": images,
            "faint": np.zeros(len(x), dtype=int) if faint is None else faint.astype(int),
            "marked": (np.arange(len(x)) % step == int(offset * step)).astype(int),
        },
        columns=COLUMNS,
    )


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x_title: str
    """Lines of the title, separated by newlines, as in ``y_title``."""
    y_title: str
    rows: pd.DataFrame
    """Columns ``COLUMNS``, the rows of a line in the order of x: see ``line_rows``."""
    ticks: Sequence[str] = ()
    """Labels of x = 0, 1, …; empty for a numeric axis."""
    logarithmic: bool = False
    """True for a logarithmic x axis."""
    y_limits: tuple[float, float] | None = None
    integers: bool = False
    """True if x has only integer ticks."""


@dataclass(frozen=True)
class LineChart:
    """Panels with the same series and one legend."""

    panels: Sequence[Panel]
    looks: Mapping[str, Look]
    """Look of each series by its label, in the order of the legend."""
    description: str
    """Text for screen readers."""
    columns: int = 3
    """Number of panels in a row."""
    legend_title: str = ""
    shared: bool = False
    """True if all panels have the same y axis."""

    def specification(self) -> dict[str, Any]:
        """Return the Vega-Lite specification, with the data."""
        columns = min(self.columns, len(self.panels))
        width = min(WIDEST, WIDTH // columns - AXIS)
        return {
            "$schema": SCHEMA,
            "description": self.description,
            "columns": columns,
            "concat": [self._panel(panel, width) for panel in self.panels],
            "resolve": {"scale": {"x": "independent", "y": "shared" if self.shared else "independent"}},
            "config": CONFIGURATION,
        }

    def _panel(self, panel: Panel, width: int) -> dict[str, Any]:
        x_axis: dict[str, Any] = {
            "tickCount": 6,
            **({"tickMinStep": 1, "format": "d"} if panel.integers else {}),
        }
        if panel.ticks:
            names = json.dumps(list(panel.ticks), ensure_ascii=False)
            x_axis = {
                "values": list(range(len(panel.ticks))),
                "labelExpr": f"{names}[datum.value]",
                "labelAngle": -45,
                "labelOverlap": False,
            }
        x_scale = {"type": "log"} if panel.logarithmic else {"zero": False, "nice": False}
        y_scale = {"domain": list(panel.y_limits), "clamp": True} if panel.y_limits else {"zero": False}
        titles = {"x": panel.x_title.split("\n"), "y": panel.y_title.split("\n")}
        y = {"type": "quantitative", "title": titles["y"], "scale": y_scale}
        x = {"field": "x", "type": "quantitative", "title": titles["x"], "scale": x_scale, "axis": x_axis}
        color, dash, shape = _channels(self.looks, self.legend_title)
        numbers = {"x": titles["x"][0], "mean": "mean", "low": "from", "high": "to"}
        numbers |= {"images": "images"} if panel.rows["images"].any() else {}
        formats = {"x": ".4~g", "images": "d"}
        tooltip = [{"field": "series", "title": "line"}]
        tooltip += [
            {"field": name, "type": "quantitative", "title": title, "format": formats.get(name, ".3g")}
            for name, title in numbers.items()
        ]
        band = {
            "mark": "area",
            "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}, "opacity": _focused(0.18)},
        }
        faint = {
            "mark": {"type": "line", "strokeWidth": 1.2},
            "encoding": {"y": {**y, "field": "mean"}, "opacity": _focused(0.5)},
        }
        line = {
            "mark": {"type": "line", "strokeWidth": 1.7},
            "params": [FOCUS],
            "encoding": {"y": {**y, "field": "dense"}, "strokeDash": dash, "opacity": _focused(1)},
        }
        markers = {
            "transform": [{"filter": "datum.marked && isValid(datum.dense)"}],
            "mark": {"type": "point", "filled": True, "size": 42},
            "encoding": {
                "y": {**y, "field": "dense"},
                "shape": shape,
                "opacity": _focused(1),
                "tooltip": tooltip,
            },
        }
        return {
            "title": panel.title,
            "width": width,
            "height": HEIGHT,
            "data": inline(panel.rows),
            "transform": [{"calculate": "datum.faint ? null : datum.mean", "as": "dense"}],
            "encoding": {"x": x, "color": color},
            "layer": [band, *([faint] if panel.rows["faint"].any() else []), line, markers],
        }


@dataclass(frozen=True)
class PointChart:
    """Points with intervals in both directions, of two scores that the reader selects."""

    rows: pd.DataFrame
    """Column ``series``, and ``mean``, ``low`` and ``high`` of each score, followed by its index in ``axes``."""
    axes: Sequence[str]
    """Axis title of each score."""
    looks: Mapping[str, Look]
    description: str
    selected: tuple[int, int] = (0, 1)
    """Indices of the scores on the x and y axis at first, and in the static file."""

    def specification(self) -> dict[str, Any]:
        """Return the Vega-Lite specification, with the data."""
        ends = ("mean", "low", "high")
        params = [
            {
                "name": f"{axis}_score",
                "value": index,
                "bind": {
                    **{"input": "select", "options": list(range(len(self.axes))), "labels": list(self.axes)},
                    "name": f"{axis} axis: ",
                },
            }
            for axis, index in zip("xy", self.selected, strict=True)
        ]
        columns = [
            {"calculate": f"datum['{end}' + {axis}_score]", "as": f"{axis}_{end}"}
            for axis in "xy"
            for end in ends
        ]
        scale, axis = (
            {"zero": False, "nice": True},
            {"grid": True, "title": None, "labelFlush": False, "tickCount": 6},
        )
        x, y = ({"type": "quantitative", "scale": scale, "axis": axis} for _ in "xy")
        color, _, shape = _channels(self.looks, orient="right")
        tooltip = [{"field": "series", "title": "method"}]
        tooltip += [
            {"field": f"{axis}_{end}", "type": "quantitative", "title": f"{axis}: {end}", "format": ".3g"}
            for axis in "xy"
            for end in ends
        ]
        names = json.dumps(list(self.axes), ensure_ascii=False)
        once: dict[str, Any] = {"data": {"values": [{}]}}
        middle, bottom = {"value": {"expr": "width / 2"}}, {"value": SQUARE + 36}
        label = {"type": "text", "style": "guide-title", "fontSize": 11, "fontWeight": "normal"}
        titles = [
            {
                **once,
                "mark": {**label, "text": {"expr": f"{names}[x_score]"}},
                "encoding": {"x": middle, "y": bottom},
            },
            {
                **once,
                "mark": {**label, "angle": 270, "text": {"expr": f"{names}[y_score]"}},
                "encoding": {"x": {"value": -50}, "y": {"value": SQUARE / 2}},
            },
        ]
        rule = {"mark": {"type": "rule", "strokeWidth": 1.2}}
        point = {"type": "point", "filled": True, "size": 90}
        layers = [
            {
                **rule,
                "encoding": {
                    "x": {**x, "field": "x_low"},
                    "x2": {"field": "x_high"},
                    "y": {**y, "field": "y_mean"},
                    "color": color,
                    "opacity": _focused(0.7),
                },
            },
            {
                **rule,
                "encoding": {
                    "x": {**x, "field": "x_mean"},
                    "y": {**y, "field": "y_low"},
                    "y2": {"field": "y_high"},
                    "color": color,
                    "opacity": _focused(0.7),
                },
            },
            {
                "mark": point,
                "params": [FOCUS],
                "encoding": {
                    "x": {**x, "field": "x_mean"},
                    "y": {**y, "field": "y_mean"},
                    "color": color,
                    "shape": shape,
                    "opacity": _focused(1),
                    "tooltip": tooltip,
                },
            },
        ]
        return {
            "$schema": SCHEMA,
            "description": self.description,
            "params": params,
            "width": SQUARE,
            "height": SQUARE,
            "padding": {"left": 30, "right": 5, "top": 5, "bottom": 25},
            "data": inline(self.rows),
            "transform": [*columns, {"filter": "isValid(datum.x_mean) && isValid(datum.y_mean)"}],
            "layer": [*layers, *titles],
            "config": CONFIGURATION,
        }


def _channels(looks: Mapping[str, Look], title: str = "", orient: str = "bottom") -> list[dict[str, Any]]:
    """Return the channels color, dash and shape of series, which share one legend."""
    longest = max(map(len, looks), default=1)
    columns = max(1, min(len(looks), int(WIDTH / (LETTER * longest + SYMBOL)))) if orient == "bottom" else 1
    legend = {
        **{"orient": orient, "columns": columns, "symbolOpacity": 1},
        "title": title.split("\n") if title else None,
    }
    ranges = [
        [look.color for look in looks.values()],
        [list(look.dash) for look in looks.values()],
        [look.shape for look in looks.values()],
    ]
    return [
        {
            "field": "series",
            "type": "nominal",
            "scale": {"domain": list(looks), "range": values},
            "legend": legend,
        }
        for values in ranges
    ]


def inline(rows: pd.DataFrame) -> dict[str, Any]:
    """Return a table as Vega-Lite data: CSV with five digits, empty for NaN."""
    parse = {name: "number" for name in rows.columns if pd.api.types.is_numeric_dtype(rows[name])}
    values = rows.to_csv(index=False, float_format="%.5g")
    return {"values": values, "format": {"type": "csv", "parse": parse}}


def _focused(opacity: float) -> dict[str, Any]:
    """Return the opacity of marks, which is reduced while a reader points at another series."""
    return {"condition": {"param": FOCUS["name"], "value": opacity}, "value": 0.15 * opacity}


def svg(specification: Mapping[str, Any]) -> str:
    """Render a specification as SVG, with the specification as the content of the SVG's ``metadata`` element."""
    import vl_convert  # figures for notebooks do without

    image: str = vl_convert.vegalite_to_svg(dict(specification), vl_version=VERSION)
    start, end = image.split(">", 1)
    metadata = escape(json.dumps(specification, ensure_ascii=False, separators=(",", ":")))
    return f"{start}><metadata>{metadata}</metadata>{end}"


def pdf(image: str) -> bytes:
    """Return an SVG image, of a chart or another figure, as a PDF file."""
    import vl_convert

    content: bytes = vl_convert.svg_to_pdf(image)
    return content

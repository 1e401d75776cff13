"""Colors for color-blind readers, and the look of each method: color, dashes and marker."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import Colormap, LinearSegmentedColormap
from numpy import ndarray as Array

from saliency_assay.registry.labels import Labels

# Okabe & Ito (2008).
BLUE, ORANGE, GREEN, SKY = "#0072B2", "#E69F00", "#009E73", "#56B4E9"
VERMILION, PURPLE, GRAY, BLACK = "#D55E00", "#CC79A7", "#8A8A8A", "#000000"
INDIGO, WINE = "#332288", "#882255"  # of the "muted" scheme of Tol (2021)
CYCLE = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, INDIGO, WINE)
DASHES: tuple[tuple[int, ...], ...] = ((), (7, 3), (2, 2))
BASELINE_DASHES = ((4, 2), (8, 2, 2, 2), (2, 3))
SHAPES = {  # of Vega-Lite, with matplotlib's; for legible prints in gray
    **{"circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "triangle-down": "v"},
    **{"cross": "P", "triangle-right": ">", "triangle-left": "<"},
}
COLORS = colormaps["Blues"]
CORRELATIONS = colormaps["PuOr"]
BEST, WORST = 0.9, 0.06  # positions in COLORS of the first and the last rank
# On dark pages the first rank is the lightest, and the last one is close to the page.
DARK_COLORS = LinearSegmentedColormap.from_list("blues_dark", ["#22303f", "#2c6ca6", "#a9d6fb"])
DARK_CORRELATIONS = LinearSegmentedColormap.from_list(
    "correlations_dark", ["#f3a556", "#7a4a16", "#2b2e33", "#56488c", "#b9a8ee"]
)
LIGHTEST_FOR_WHITE = 0.179  # luminance below which white text has more contrast than black text
BAR = "M-1,-0.3L1,-0.3L1,0.3L-1,0.3Z"


@dataclass(frozen=True)
class Look:
    """Look of a line and its markers."""

    color: str
    dash: tuple[int, ...] = ()
    """Lengths of strokes and gaps in pixels; empty for a solid line."""
    shape: str = BAR
    """One of ``SHAPES``, or the path of another shape."""

    def line(self) -> dict[str, Any]:
        """Return the look as arguments of matplotlib's ``plot``."""
        style = (0, self.dash) if self.dash else "-"
        return {"color": self.color, "linestyle": style, "marker": SHAPES.get(self.shape, "")}


def look(place: int) -> Look:
    """Return the look of the method at ``place`` (``Labels.places``); baselines, at negative places, are gray."""
    shapes = list(SHAPES)
    if place < 0:
        return Look(GRAY, BASELINE_DASHES[-place % len(BASELINE_DASHES)], shapes[-place % len(shapes)])
    dash = DASHES[place // len(CYCLE) % len(DASHES)]
    return Look(CYCLE[place % len(CYCLE)], dash, shapes[(place + place // len(shapes)) % len(shapes)])


def looks(methods: Sequence[str], labels: Labels) -> dict[str, Look]:
    """Return the look of each method: the same in all figures, or by its index for a method without a place."""
    return {method: look(labels.places.get(method, index)) for index, method in enumerate(methods)}


def cell_colors(rank_low: float, rank_high: float, methods: int, *, dark: bool = False) -> tuple[str, str]:
    """Return the background and the text color of a rank set among ``methods`` ranked methods as CSS colors.

    The background mixes a blue, whose lightness follows the middle of the set, with the gray of the same luminance in
    proportion to the size of the set. ``dark`` is for pages with a dark background.
    """
    steps = max(methods - 1, 1)
    worse, uncertain = ((rank_low + rank_high) / 2 - 1) / steps, (rank_high - rank_low) / steps
    blue = np.array((DARK_COLORS(1 - worse) if dark else COLORS(BEST + (WORST - BEST) * worse))[:3])
    gray = 1.055 * _luminance(blue) ** (1 / 2.4) - 0.055
    return _with_text((1 - uncertain) * blue + uncertain * gray)


def correlation_colors(correlation: float, *, dark: bool = False) -> tuple[str, str]:
    """Return the background and the text color of a correlation in [−1, 1] as CSS colors."""
    colors: Colormap = DARK_CORRELATIONS if dark else CORRELATIONS
    return _with_text(np.array(colors((correlation + 1) / 2)[:3]))


def css(light: tuple[str, str], dark: tuple[str, str]) -> str:
    """Return background and text color as a style attribute; ``page.css`` applies the variables on dark pages."""
    variables = f"--dark:{dark[0]};--dark-text:{dark[1]}"
    return f"background-color:{light[0]};color:{light[1]};{variables}"


def _with_text(background: Array) -> tuple[str, str]:
    """Return a color, three values in [0, 1], and the color of legible text on it as CSS colors."""
    rounded = np.round(255 * background).astype(int)
    color = "#ffffff" if _luminance(rounded / 255) < LIGHTEST_FOR_WHITE else "#000000"
    return "#{:02x}{:02x}{:02x}".format(*rounded), color


def _luminance(color: Array) -> float:
    """Return the relative luminance of a color in sRGB, three values in [0, 1] (IEC 61966-2-1)."""
    linear = np.where(color <= 0.04045, color / 12.92, ((color + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])

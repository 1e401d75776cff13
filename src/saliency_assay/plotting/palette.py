"""Colors for color-blind readers, and the look of each method: color, dashes and marker."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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

"""Synthetic objects: a shape for each of BAM's ten object classes.

A shape consists of polygons. Its coordinates extend from about -1 to 1, with y pointing down. Polygons marked as
silhouette form the outline and the annotation of the object; the others are details, painted on and clipped to it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from saliency_assay.data.images import Pixels
from saliency_assay.data.synthetic.textures import sample_object_colors

Points = npt.NDArray[np.float64]

OVERSAMPLING = 3  # subpixels per side of a pixel, for antialiasing
INK, BODY, MARK = range(3)  # outline, main color, color of details


@dataclass(frozen=True)
class Part:
    """One polygon of an object: its corners x, y ``[n, 2]`` and its color (``INK``, ``BODY`` or ``MARK``)."""

    points: Points
    color: int = BODY
    silhouette: bool = True


@dataclass(frozen=True)
class SyntheticObject:
    """An object placed in an image; the coordinates of its parts are in pixels."""

    parts: tuple[Part, ...]

    def polygons(self) -> list[list[float]]:
        """Return the silhouette in COCO's format: x, y, x, y, …"""
        return [np.round(part.points, 2).ravel().tolist() for part in self.parts if part.silhouette]

    def box(self) -> tuple[float, float, float, float]:
        """Return left, top, width and height of the box around the silhouette."""
        points = np.concatenate([part.points for part in self.parts if part.silhouette])
        (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
        return float(left), float(top), float(right - left), float(bottom - top)


def place(name: str, size: int, share: float, generator: np.random.Generator) -> SyntheticObject:
    """Place an object of class ``name`` (one of ``SILHOUETTES``) with random rotation, stretch and location.

    Its longer side is ``share`` times ``size``, and it is completely inside the image of ``size`` × ``size`` pixels.
    """
    parts = SILHOUETTES[name]()
    angle = generator.normal(0, 0.15)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    # A negative stretch in x mirrors the object.
    stretch = np.exp(generator.uniform(-0.12, 0.12, 2)) * [generator.choice([-1, 1]), 1]
    moved = SyntheticObject(tuple(Part(p.points * stretch @ turn, p.color, p.silhouette) for p in parts))
    # The scale follows from the box after rotation and stretch, so that ``share`` is exact.
    left, top, width, height = moved.box()
    scale = share * size / max(width, height)
    room = size - scale * np.array([width, height])
    corner = generator.uniform(0, 1, 2) * room
    return SyntheticObject(
        tuple(Part((p.points - [left, top]) * scale + corner, p.color, p.silhouette) for p in moved.parts)
    )


def paint(background: Pixels, synthetic_object: SyntheticObject, generator: np.random.Generator) -> Pixels:
    """Paint an object with random colors and lighting on an image ``[size, size, 3]``."""
    size = len(background)
    large_size = (size * OVERSAMPLING, size * OVERSAMPLING)
    colors = [tuple(color) for color in np.rint(sample_object_colors(generator) * 255).astype(int).tolist()]
    if generator.random() < 0.5:  # so that details are lighter than the body as often as darker
        colors[BODY], colors[MARK] = colors[MARK], colors[BODY]
    canvas, mask = Image.new("RGB", large_size), Image.new("L", large_size)
    canvas_draw, mask_draw = ImageDraw.Draw(canvas), ImageDraw.Draw(mask)
    for part in synthetic_object.parts:
        corners = [(float(x), float(y)) for x, y in part.points * OVERSAMPLING]
        canvas_draw.polygon(corners, fill=colors[part.color], outline=colors[INK], width=OVERSAMPLING)
        if part.silhouette:
            mask_draw.polygon(corners, fill=255)
    shrunk = np.asarray(canvas.resize((size, size), Image.Resampling.BOX), dtype=np.float64)
    opacity = np.asarray(mask.resize((size, size), Image.Resampling.BOX), dtype=np.float64)[..., None] / 255
    shaded = np.clip(shrunk * _lighting(size, generator)[..., None], 0, 255)
    return np.rint(opacity * shaded + (1 - opacity) * background).astype(np.uint8)


def _lighting(size: int, generator: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return brightness factors ``[size, size]`` that increase linearly in a random direction."""
    angle = generator.uniform(0, 2 * np.pi)
    y, x = np.mgrid[:size, :size] / size - 0.5
    light: npt.NDArray[np.float64] = 0.95 + 0.2 * (np.cos(angle) * x + np.sin(angle) * y)
    return light


def _ellipse(x: float, y: float, radius_x: float, radius_y: float) -> Points:
    angles = np.linspace(0, 2 * np.pi, 28, endpoint=False)
    return np.stack([x + radius_x * np.cos(angles), y + radius_y * np.sin(angles)], axis=1)


def _box(left: float, top: float, right: float, bottom: float) -> Points:
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]])


def _polygon(*corners: Sequence[float]) -> Points:
    return np.array(corners, dtype=np.float64)


def _backpack() -> tuple[Part, ...]:
    return (
        Part(_ellipse(0, -0.8, 0.3, 0.25), MARK),
        Part(_polygon([-0.6, 1], [-0.68, -0.2], [-0.5, -0.75], [0.5, -0.75], [0.68, -0.2], [0.6, 1])),
        Part(_box(-0.92, 0.15, -0.6, 0.9), MARK),
        Part(_box(0.6, 0.15, 0.92, 0.9), MARK),
        Part(_box(-0.42, 0.2, 0.42, 0.8), MARK, silhouette=False),
        Part(_box(-0.42, -0.35, 0.42, -0.2), MARK, silhouette=False),
    )


def _bird() -> tuple[Part, ...]:
    return (
        Part(_polygon([-0.5, 0.0], [-1.2, -0.15], [-1.15, 0.3], [-0.4, 0.35])),
        Part(_ellipse(0, 0.1, 0.7, 0.42)),
        Part(_polygon([0.9, -0.4], [1.3, -0.22], [0.85, -0.12]), MARK),
        Part(_ellipse(0.65, -0.3, 0.32, 0.3)),
        Part(_polygon([0.3, -0.05], [-0.45, -1.0], [-0.5, 0.1]), MARK),
        Part(_ellipse(0.72, -0.36, 0.07, 0.07), INK, silhouette=False),
    )


def _dog() -> tuple[Part, ...]:
    legs = [Part(_box(x, 0.2, x + 0.2, 1.0)) for x in (-0.75, -0.45, 0.25, 0.55)]
    return (
        *legs,
        Part(_polygon([-0.7, -0.1], [-1.1, -0.7], [-0.95, -0.75], [-0.5, -0.2])),
        Part(_box(-0.8, -0.25, 0.75, 0.4)),
        Part(_polygon([0.4, -0.85], [0.85, -0.85], [1.25, -0.55], [1.25, -0.35], [0.8, -0.2], [0.4, 0.0])),
        Part(_polygon([0.4, -0.85], [0.65, -0.8], [0.5, -0.25], [0.3, -0.4]), MARK),
        Part(_ellipse(-0.35, 0.05, 0.28, 0.2), MARK, silhouette=False),
        Part(_ellipse(0.85, -0.6, 0.06, 0.06), INK, silhouette=False),
    )


def _elephant() -> tuple[Part, ...]:
    legs = [Part(_box(x, 0.2, x + 0.33, 1.0)) for x in (-0.85, -0.4, 0.1)]
    trunk = _polygon([0.9, -0.5], [1.15, -0.1], [1.12, 0.9], [0.92, 0.9], [0.9, 0.15], [0.55, 0.1])
    return (
        *legs,
        Part(_ellipse(-0.25, -0.1, 0.8, 0.65)),
        Part(trunk),
        Part(_ellipse(0.65, -0.35, 0.42, 0.42)),
        Part(_ellipse(0.35, -0.3, 0.28, 0.42), MARK),
        Part(_ellipse(0.85, -0.42, 0.06, 0.06), INK, silhouette=False),
    )


def _kite() -> tuple[Part, ...]:
    bows = [
        Part(
            _polygon([x - 0.22, y - 0.12], [x + 0.22, y + 0.12], [x + 0.22, y - 0.12], [x - 0.22, y + 0.12]),
            MARK,
        )
        for x, y in ((0.12, 0.68), (-0.05, 0.98))
    ]
    tail = _polygon([-0.05, 0.4], [0.16, 0.68], [-0.04, 1.1], [-0.12, 1.1], [0.06, 0.68], [0.0, 0.5])
    return (
        Part(tail, MARK),
        *bows,
        Part(_polygon([0, -1.1], [0.75, -0.35], [0, 0.5], [-0.75, -0.35])),
        Part(_polygon([0, -1.1], [0.75, -0.35], [0, -0.35]), MARK, silhouette=False),
        Part(_polygon([0, 0.5], [-0.75, -0.35], [0, -0.35]), MARK, silhouette=False),
    )


def _pizza() -> tuple[Part, ...]:
    slices = np.linspace(0, 2 * np.pi, 6, endpoint=False) + 0.3
    toppings = [_ellipse(0.52 * np.cos(angle), 0.52 * np.sin(angle), 0.17, 0.17) for angle in slices]
    return (
        Part(_ellipse(0, 0, 1, 1), MARK),
        Part(_ellipse(0, 0, 0.82, 0.82), silhouette=False),
        *(Part(topping, MARK, silhouette=False) for topping in [*toppings, _ellipse(0, 0, 0.15, 0.15)]),
    )


def _stop_sign() -> tuple[Part, ...]:
    angles = np.linspace(0, 2 * np.pi, 8, endpoint=False) + np.pi / 8
    octagon = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return (
        Part(_box(-0.1, 0.4, 0.1, 1.5), MARK),
        Part(octagon * 0.85 + [0, -0.2], MARK),
        Part(octagon * 0.72 + [0, -0.2], silhouette=False),
        Part(_box(-0.55, -0.38, 0.55, -0.02), MARK, silhouette=False),
    )


def _toilet() -> tuple[Part, ...]:
    return (
        Part(_polygon([-0.5, 0.4], [0.45, 0.4], [0.25, 1.0], [-0.4, 1.0])),
        Part(_box(-0.85, -1.0, -0.3, 0.3)),
        Part(_box(-0.92, -1.1, -0.22, -0.85), MARK),
        Part(_polygon([-0.6, 0.0], [0.85, 0.0], [0.7, 0.45], [0.35, 0.65], [-0.5, 0.65])),
        Part(_ellipse(0.2, 0.0, 0.72, 0.16), MARK),
    )


def _truck() -> tuple[Part, ...]:
    return (
        Part(_box(-1.2, -0.75, 0.45, 0.5)),
        Part(_polygon([0.45, -0.35], [0.9, -0.35], [1.2, 0.05], [1.2, 0.5], [0.45, 0.5]), MARK),
        Part(_polygon([0.55, -0.25], [0.85, -0.25], [1.05, 0.05], [0.55, 0.05]), INK, silhouette=False),
        *(Part(_box(x, -0.65, x + 0.12, 0.4), MARK, silhouette=False) for x in (-0.95, -0.5, -0.05)),
        *(Part(_ellipse(x, 0.52, 0.25, 0.25), INK) for x in (-0.75, 0.75)),
        *(Part(_ellipse(x, 0.52, 0.1, 0.1), MARK, silhouette=False) for x in (-0.75, 0.75)),
    )


def _zebra() -> tuple[Part, ...]:
    legs = [Part(_box(x, 0.1, x + 0.14, 1.1)) for x in (-0.7, -0.48, 0.22, 0.44)]
    neck = _polygon(
        [0.3, -0.1], [0.6, -1.05], [0.85, -1.1], [1.2, -0.75], [1.1, -0.6], [0.85, -0.65], [0.7, 0.1]
    )
    stripes = [
        _polygon([x, -0.5], [x + 0.12, -0.5], [x + 0.06, 0.5], [x - 0.06, 0.5])
        for x in np.arange(-0.7, 0.6, 0.26)
    ]
    collars = [
        _polygon([0.3, y + 0.1], [0.9, y - 0.02], [0.9, y + 0.09], [0.3, y + 0.21])
        for y in (-0.9, -0.65, -0.4)
    ]
    bands = [_box(leg.points[0, 0], y, leg.points[1, 0], y + 0.12) for leg in legs for y in (0.5, 0.75)]
    return (
        *legs,
        Part(_ellipse(-0.05, -0.05, 0.75, 0.36)),
        Part(neck),
        *(Part(stripe, INK, silhouette=False) for stripe in [*stripes, *collars, *bands]),
    )


_SHAPES = (_backpack, _bird, _dog, _elephant, _kite, _pizza, _stop_sign, _toilet, _truck, _zebra)
SILHOUETTES: Mapping[str, Callable[[], tuple[Part, ...]]] = {
    function.__name__[1:].replace("_", " "): function for function in _SHAPES
}

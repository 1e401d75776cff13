"""Synthetic birds made of parts, whose class is a combination of variants of the parts, as in FunnyBirds.

An image is determined by its scene, a random seed, and by the variants of the bird's parts. It can therefore be
rendered again without a part or without an object in the background: as an image of the same distribution, without an
artificial region.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from saliency_assay.data.images import Block, Pixels
from saliency_assay.data.splits import TEST, TRAIN, Ints, test_count
from saliency_assay.data.synthetic.shapes import OVERSAMPLING
from saliency_assay.registry.limits import Limits

Points = npt.NDArray[np.float64]
Color = tuple[int, int, int]

PARTS = ("beak", "eye", "foot", "tail", "wing")
VARIANTS = (4, 3, 4, 4, 4)
"""Number of variants of each part."""
MISSING = -1
"""Variant of a part that an image lacks."""
NO_LAYER = 0
"""Layer of the body and the empty background in ``Scene.layers``; part p has layer 1 + p, object o 1 + P + o."""
COMBINATIONS = 768
"""Number of combinations of variants, the product of ``VARIANTS``."""

RED, GREEN, BLUE, YELLOW, WHITE, BLACK = (
    *((214, 48, 40), (44, 150, 60), (50, 82, 205), (240, 200, 40)),
    *((250, 250, 250), (25, 25, 25)),
)
OBJECT_COLORS = (RED, GREEN, BLUE, YELLOW)


@dataclass(frozen=True)
class Polygon:
    """A filled polygon: its layer, its color, and its corners x, y ``[n, 2]``."""

    layer: int
    color: Color
    points: Points


@dataclass(frozen=True)
class Scene:
    """A bird in front of objects; polygons are in pixels, in the order in which they are painted."""

    size: int
    background: Color
    polygons: tuple[Polygon, ...]
    light: npt.NDArray[np.float64]
    """Brightness factors ``[size, size]``."""

    def image(self, removed: Collection[int] = ()) -> Pixels:
        """Render the image ``[3, size, size]`` without the layers ``removed``."""
        side = self.size * OVERSAMPLING
        canvas = Image.new("RGB", (side, side), self.background)
        painter = ImageDraw.Draw(canvas)
        for polygon in self.polygons:
            if polygon.layer not in removed:
                painter.polygon(_corners(polygon), fill=polygon.color)
        shrunk = np.asarray(canvas.resize((self.size, self.size), Image.Resampling.BOX), dtype=np.float64)
        shaded: Pixels = np.rint(np.clip(shrunk * self.light[..., None], 0, 255)).astype(np.uint8)
        return np.ascontiguousarray(shaded.transpose(2, 0, 1))

    def layers(self) -> npt.NDArray[np.uint8]:
        """Return the layer that is visible at the center of each pixel, uint8 ``[size, size]``."""
        side = self.size * OVERSAMPLING
        canvas = Image.new("L", (side, side), NO_LAYER)
        painter = ImageDraw.Draw(canvas)
        for polygon in self.polygons:
            painter.polygon(_corners(polygon), fill=polygon.layer)
        return np.asarray(canvas)[OVERSAMPLING // 2 :: OVERSAMPLING, OVERSAMPLING // 2 :: OVERSAMPLING].copy()


def birds(
    *,
    size: Annotated[int, Limits(minimum=32, maximum=256)] = 64,
    class_count: Annotated[int, Limits(minimum=3, maximum=768)] = 20,
    images_per_class: Annotated[int, Limits(minimum=2, maximum=10_000)] = 300,
    test_share: Annotated[float, Limits(minimum=0.01, maximum=0.5)] = 0.1,
    object_count: Annotated[int, Limits(minimum=1, maximum=20)] = 4,
    generator: np.random.Generator,
    block: int = 512,
) -> tuple[dict[str, tuple[str, ...]], Iterator[Block]]:
    """Return images of birds, each of a class that is a random combination of variants of five parts.

    Test images show complete birds and all objects. In half of the training images, a random number of parts is
    missing, as in FunnyBirds, and all training images have a random number of objects, so that images without a part
    or an object are of the distribution that the model was trained on. An image without parts has a class, too: where
    several classes fit its remaining parts, each is equally likely.

    Args:
        size: side of the images in pixels.
        class_count: number of classes.
        images_per_class: number of training and test images of each class.
        test_share: share of the images for testing.
        object_count: largest number of objects in the background.
        generator: random generator.
        block: number of images per block.

    Returns:
        The classes of label ``class``, and blocks of ``image`` uint8 ``[n, 3, size, size]``, ``split`` uint8,
        ``label_class`` and ``scene_seed`` int64 ``[n]``, and ``variants`` int64 ``[n, P]``, the variant of each part or
        ``MISSING``. ``scene_of`` renders an image again from ``scene_seed`` and ``variants``.
    """
    table = sample_classes(class_count, generator)
    count = class_count * images_per_class
    labels = np.arange(count) % class_count
    split = np.where(np.arange(count) < class_count * test_count(images_per_class, test_share), TEST, TRAIN)
    seeds = generator.integers(0, 2**62, count)
    variants = np.where(_sample_missing(split == TRAIN, generator), MISSING, table[labels])
    visible_objects = np.where(split == TRAIN, generator.integers(0, object_count + 1, count), object_count)

    def blocks() -> Iterator[Block]:
        for start in range(0, count, block):
            rows = slice(start, min(start + block, count))
            images = [
                scene_of(parts, int(seed), size=size, objects=int(number)).image()
                for parts, seed, number in zip(
                    variants[rows], seeds[rows], visible_objects[rows], strict=True
                )
            ]
            yield {
                "image": np.stack(images),
                "split": split[rows].astype(np.uint8),
                "label_class": labels[rows].astype(np.int64),
                "scene_seed": seeds[rows],
                "variants": variants[rows],
            }

    return {"class": class_names(class_count)}, blocks()


def class_names(class_count: int) -> tuple[str, ...]:
    """Return the names of the classes."""
    return tuple(f"bird {number:0{len(str(class_count - 1))}}" for number in range(class_count))


def sample_classes(classes: int, generator: np.random.Generator) -> Ints:
    """Return the variants of the parts of each class, int64 ``[classes, P]``; no two classes are equal."""
    numbers = generator.choice(COMBINATIONS, classes, replace=False)
    return np.stack(np.unravel_index(numbers, VARIANTS), axis=1).astype(np.int64)


def _sample_missing(may_miss: npt.NDArray[np.bool_], generator: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Return which parts of each image are missing, bool ``[N, P]``: 0 to P random ones in half of the images."""
    count = len(may_miss)
    missing = generator.integers(0, len(PARTS) + 1, count) * (generator.random(count) < 0.5) * may_miss
    order = generator.random((count, len(PARTS))).argsort(axis=1)
    is_missing: npt.NDArray[np.bool_] = order < missing[:, None]
    return is_missing


def scene_of(variants: Ints, seed: int, *, size: int, objects: int) -> Scene:
    """Return the scene of an image.

    Args:
        variants: variant of each part ``[P]``, or ``MISSING``.
        seed: random seed of the position of the bird, the objects and the light; they do not depend on the variants.
        size: side of the image in pixels.
        objects: number of objects in the background; a smaller number leaves out the last ones.
    """
    generator = np.random.default_rng(seed)
    angle, mirror = generator.normal(0, 0.2), generator.choice([-1, 1])
    scale = generator.uniform(0.26, 0.32) * size  # pixels per unit; a bird is about 2.6 wide and 1.9 high
    center = size * generator.uniform(0.44, 0.56, 2)
    gray, body = (int(level) for level in generator.integers((175, 95), (225, 150)))
    light = _light(size, generator)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    bird = [
        Polygon(polygon.layer, polygon.color, polygon.points * [mirror, 1] @ turn * scale + center)
        for polygon in _bird(variants, (body, body, body))
    ]
    first = 1 + len(PARTS)
    things = [_object(first + number, size, generator) for number in range(objects)]
    return Scene(size, (gray, gray, gray), (*things, *bird), light)


def _corners(polygon: Polygon) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in polygon.points * OVERSAMPLING]


def _light(size: int, generator: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return brightness factors ``[size, size]`` that increase linearly in a random direction."""
    angle, strength = generator.uniform(0, 2 * np.pi), generator.uniform(0, 0.3)
    y, x = np.mgrid[:size, :size] / size - 0.5
    light: npt.NDArray[np.float64] = 0.95 + strength * (np.cos(angle) * x + np.sin(angle) * y)
    return light


def _object(layer: int, size: int, generator: np.random.Generator) -> Polygon:
    """Return a triangle, square, hexagon or disk of random color, anywhere in the image."""
    corners = int(generator.choice([3, 4, 6, 24]))
    angles = generator.uniform(0, 2 * np.pi) + np.linspace(0, 2 * np.pi, corners, endpoint=False)
    radius, center = size * generator.uniform(0.06, 0.13), size * generator.uniform(0.05, 0.95, 2)
    color = OBJECT_COLORS[generator.integers(len(OBJECT_COLORS))]
    return Polygon(layer, color, center + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1))


def _bird(variants: Ints, body: Color) -> Iterator[Polygon]:
    """Yield the polygons of a bird that looks to the right, with y pointing down, in the order of painting."""
    beak, eye, foot, tail, wing = (int(variant) for variant in variants)
    yield from _part("tail", tail, _TAILS)
    yield from _part("foot", foot, _FEET)
    yield Polygon(NO_LAYER, body, _ellipse(0, 0.1, 0.72, 0.48))
    yield Polygon(NO_LAYER, body, _ellipse(0.62, -0.42, 0.4, 0.38))
    yield from _part("wing", wing, _WINGS)
    yield from _part("beak", beak, _BEAKS)
    yield from _part("eye", eye, _EYES)


def _part(
    name: str, variant: int, variants: tuple[tuple[tuple[Color, Points], ...], ...]
) -> Iterator[Polygon]:
    if variant != MISSING:
        layer = 1 + PARTS.index(name)
        yield from (Polygon(layer, color, points) for color, points in variants[variant])


def _ellipse(x: float, y: float, radius_x: float, radius_y: float) -> Points:
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    return np.stack([x + radius_x * np.cos(angles), y + radius_y * np.sin(angles)], axis=1)


def _polygon(*corners: tuple[float, float]) -> Points:
    return np.array(corners, dtype=np.float64)


def _feet(color: Color, *corners: tuple[float, float]) -> tuple[tuple[Color, Points], ...]:
    """Return two equal feet."""
    return tuple((color, _polygon(*((a + x, b + 0.45) for a, b in corners))) for x in (-0.25, 0.25))


_BEAKS = (
    ((YELLOW, _polygon((0.93, -0.6), (1.42, -0.4), (0.93, -0.2))),),
    ((RED, _polygon((0.93, -0.5), (1.75, -0.2), (0.93, -0.26))),),
    ((BLUE, _polygon((0.9, -0.66), (1.3, -0.62), (1.45, -0.05), (1.2, -0.3), (0.93, -0.16))),),
    ((BLACK, _polygon((0.93, -0.5), (1.5, -0.52), (1.5, -0.3), (0.93, -0.24))),),
)
_EYES = (
    ((WHITE, _ellipse(0.68, -0.5, 0.2, 0.2)), (BLACK, _ellipse(0.72, -0.5, 0.1, 0.1))),
    ((YELLOW, _ellipse(0.68, -0.5, 0.22, 0.14)), (RED, _ellipse(0.72, -0.5, 0.09, 0.12))),
    ((BLACK, _polygon((0.5, -0.68), (0.86, -0.68), (0.86, -0.32), (0.5, -0.32))),),
)
_FEET = (
    _feet(YELLOW, (-0.05, 0), (0.05, 0), (0.28, 0.5), (-0.2, 0.5)),
    _feet(RED, (-0.09, 0), (0.09, 0), (0.09, 0.34), (0.3, 0.34), (0.3, 0.52), (-0.09, 0.52)),
    _feet(GREEN, (-0.06, 0), (0.06, 0), (0.06, 0.75), (-0.06, 0.75)),
    _feet(BLACK, (-0.16, 0), (0.16, 0), (0.16, 0.4), (-0.16, 0.4)),
)
_TAILS = (
    ((RED, _polygon((-0.5, 0.0), (-1.35, -0.5), (-1.35, 0.3))),),
    ((GREEN, _polygon((-0.5, -0.1), (-1.45, -0.2), (-1.45, 0.1), (-0.5, 0.2))),),
    (
        (BLUE, _polygon((-0.5, 0.0), (-1.2, -0.65), (-0.95, -0.75), (-0.45, -0.15))),
        (BLUE, _polygon((-0.5, 0.1), (-1.4, -0.1), (-1.35, 0.15), (-0.5, 0.25))),
    ),
    ((YELLOW, _ellipse(-1.0, -0.05, 0.42, 0.28)),),
)
_WINGS = (
    ((RED, _polygon((0.25, 0.0), (-0.5, -0.1), (-0.3, 0.4))),),
    ((GREEN, _ellipse(-0.1, 0.1, 0.38, 0.24)),),
    ((BLUE, _polygon((0.3, 0.05), (-0.35, -0.75), (-0.5, 0.15))),),
    (
        (
            YELLOW,
            _polygon((0.25, -0.1), (-0.45, -0.1), (-0.45, 0.12), (-0.1, 0.12), (-0.1, 0.36), (0.25, 0.36)),
        ),
    ),
)
"""Variants of each part: colors and polygons."""

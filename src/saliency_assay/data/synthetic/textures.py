"""Synthetic scenes: one texture for each of BAM's ten scene classes, and colours sampled alike for every class.

Each texture is a field of levels; the levels are then spread evenly over a random palette. So every image of every
class has the same distribution of levels, and only the pattern tells the class.
"""

from collections.abc import Callable, Mapping
from colorsys import hsv_to_rgb

import numpy as np
import numpy.typing as npt
from PIL import Image

from saliency_assay.data.images import Pixels

Colours = npt.NDArray[np.float64]


def vivid(generator: np.random.Generator) -> Colours:
    """Three colours ``[3, 3]`` in [0, 1] for an object: free hues, brightness evenly spread, darkest first."""
    return _colours(generator.random(3), generator.uniform(0.45, 0.95, 3), np.array([0.22, 0.6, 1.0]))


def muted(generator: np.random.Generator) -> Colours:
    """Four colours ``[4, 3]`` in [0, 1] for a scene: neighbouring hues, darkest first."""
    hues = generator.random() + np.linspace(0, generator.uniform(-0.22, 0.22), 4)
    return _colours(hues, generator.uniform(0.2, 0.6, 4), np.array([0.38, 0.58, 0.78, 0.95]))


def _colours(hues: Colours, saturations: Colours, values: Colours) -> Colours:
    colours = zip((hues % 1).tolist(), saturations.tolist(), values.tolist(), strict=True)
    return np.array([hsv_to_rgb(*colour) for colour in colours])


Field = npt.NDArray[np.float64]
Texture = Callable[[Field, Field, np.random.Generator], Field]


def generate_scene(name: str, size: int, generator: np.random.Generator) -> Pixels:
    """Return a scene of class ``name`` (one of ``TEXTURES``), RGB ``[size, size, 3]``."""
    return colour_levels(_field(TEXTURES[name], size, generator), generator)


def generate_background(size: int, generator: np.random.Generator) -> Pixels:
    """Return a cloudy background for photographs of objects, RGB ``[size, size, 3]``; it tells no class."""
    return colour_levels(_clouds(size, 4, generator), generator)


def colour_levels(levels: Field, generator: np.random.Generator) -> Pixels:
    """Colour a field ``[H, W]``: its ranks are spread evenly over a random palette."""
    ranks = np.empty(levels.size)
    ranks[np.argsort(levels, axis=None, kind="stable")] = np.linspace(0, 1, levels.size)
    colours = muted(generator)
    stops = np.linspace(0, 1, len(colours))
    channels = [np.interp(ranks, stops, channel) for channel in colours.T]
    image: Pixels = np.rint(np.stack(channels, axis=-1) * 255).astype(np.uint8)
    return image.reshape(*levels.shape, 3)


def _field(texture: Texture, size: int, generator: np.random.Generator) -> Field:
    """Return the texture's levels, slightly turned, under soft light."""
    y, x = np.mgrid[:size, :size] / size + (0.5 / size - 0.5)
    angle = generator.normal(0, 0.06)
    turned_x = np.cos(angle) * x - np.sin(angle) * y + 0.5
    turned_y = np.sin(angle) * x + np.cos(angle) * y + 0.5
    levels: Field = texture(turned_x, turned_y, generator) + 0.35 * _clouds(size, 3, generator)
    return levels


def _clouds(size: int, coarseness: int, generator: np.random.Generator) -> Field:
    """Smooth noise in about [-1, 1]: a random grid of ``coarseness`` cells a side, enlarged."""
    grid = generator.uniform(-1, 1, (coarseness + 1, coarseness + 1)).astype(np.float32)
    return np.asarray(Image.fromarray(grid).resize((size, size), Image.Resampling.BICUBIC), dtype=np.float64)


def _wave(turns: Field, generator: np.random.Generator) -> Field:
    """Return a sine of ``turns`` whole periods, at a random phase."""
    wave: Field = np.sin(2 * np.pi * (turns + generator.random()))
    return wave


def _bamboo_forest(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Upright stalks with joints."""
    joints = _wave(2.5 * y + 0.48 * np.floor(5 * x), generator) > 0.93
    return _wave(generator.uniform(4.5, 5.5) * x, generator) - 0.8 * joints


def _bedroom(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Return a quilt: a lattice of rhombs."""
    rate = generator.uniform(1.1, 1.35)
    return 2 * np.abs(_wave(rate * (x + y), generator) * _wave(rate * (x - y), generator))


def _bowling_alley(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Lanes that meet at a vanishing point above the image."""
    slope = (x - generator.uniform(0.4, 0.6)) / (y + generator.uniform(0.25, 0.35))
    return _wave(generator.uniform(3.2, 4.0) * slope, generator)


def _bus_interior(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Frames within frames."""
    across, down = generator.uniform(0.4, 0.6, 2)
    distance = np.maximum(np.abs(x - across), np.abs(y - down))
    return _wave(generator.uniform(4.5, 5.5) * distance, generator)


def _cockpit(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Rows of round dials with a dark centre."""
    rate = generator.uniform(2.8, 3.3)
    shift_x, shift_y = generator.random(2)
    distance = np.hypot((x * rate + shift_x) % 1 - 0.5, (y * rate + shift_y) % 1 - 0.5)
    dials: Field = -np.cos(4 * np.pi * np.minimum(distance, 0.5))
    return dials


def _corn_field(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Level, wavy rows, closer together towards the top."""
    depth = np.sqrt(np.abs(y + 0.15 + 0.03 * _wave(2 * x, generator)))
    return _wave(generator.uniform(5.0, 6.0) * depth, generator)


def _laundromat(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Return a tiled floor: a chequerboard."""
    rate = generator.uniform(2.0, 2.5)
    return np.tanh(6 * _wave(rate * x, generator) * _wave(rate * y, generator))


def _runway(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Oblique stripes, rising to the right."""
    return np.tanh(3 * _wave(generator.uniform(3.0, 3.6) * (x + y), generator))


def _ski_slope(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Return a smooth slope with drifts, and no pattern."""
    fall = float(generator.choice([-1.0, 1.0]))
    return 0.8 * _clouds(len(x), 2, generator) + fall * (y - 0.4 * x)


def _track(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Lanes round a corner of the image."""
    across, down = generator.uniform(-0.25, -0.1), generator.uniform(1.1, 1.25)
    return _wave(generator.uniform(3.2, 3.8) * np.hypot(x - across, y - down), generator)


_FIELDS = (
    *(_bamboo_forest, _bedroom, _bowling_alley, _bus_interior, _cockpit),
    *(_corn_field, _laundromat, _runway, _ski_slope, _track),
)
TEXTURES: Mapping[str, Texture] = {function.__name__[1:]: function for function in _FIELDS}

"""Synthetic scenes: one texture for each of BAM's ten scene classes, with the same color distribution for all classes.

A texture is a field of levels whose ranks are mapped to a random palette. All images therefore have the same histogram
over the palette, and only the pattern depends on the class.
"""

from collections.abc import Callable, Mapping
from colorsys import hsv_to_rgb

import numpy as np
import numpy.typing as npt
from PIL import Image

from saliency_assay.data.images import Pixels

Colors = npt.NDArray[np.float64]


def sample_object_colors(generator: np.random.Generator) -> Colors:
    """Sample three RGB colors ``[3, 3]`` in [0, 1] for an object: random hues, fixed brightness, darkest first."""
    return _convert_to_rgb(generator.random(3), generator.uniform(0.45, 0.95, 3), np.array([0.22, 0.6, 1.0]))


def sample_scene_colors(generator: np.random.Generator) -> Colors:
    """Sample four RGB colors ``[4, 3]`` in [0, 1] for a scene: similar hues, fixed brightness, darkest first."""
    hues = generator.random() + np.linspace(0, generator.uniform(-0.22, 0.22), 4)
    return _convert_to_rgb(hues, generator.uniform(0.2, 0.6, 4), np.array([0.38, 0.58, 0.78, 0.95]))


def _convert_to_rgb(hues: Colors, saturations: Colors, values: Colors) -> Colors:
    colors = zip((hues % 1).tolist(), saturations.tolist(), values.tolist(), strict=True)
    return np.array([hsv_to_rgb(*color) for color in colors])


Field = npt.NDArray[np.float64]
Texture = Callable[[Field, Field, np.random.Generator], Field]


def generate_scene(name: str, size: int, generator: np.random.Generator) -> Pixels:
    """Generate a scene of class ``name`` (one of ``TEXTURES``), RGB ``[size, size, 3]``."""
    return color_levels(_generate_field(TEXTURES[name], size, generator), generator)


def generate_background(size: int, generator: np.random.Generator) -> Pixels:
    """Generate a cloudy background for object images, RGB ``[size, size, 3]``, which does not depend on the class."""
    return color_levels(_smooth_noise(size, 4, generator), generator)


def color_levels(levels: Field, generator: np.random.Generator) -> Pixels:
    """Color a field ``[H, W]`` by mapping its ranks linearly to a random palette; return RGB ``[H, W, 3]``."""
    # Ranks instead of levels, so that no class can be recognized by the distribution of its colors.
    ranks = np.empty(levels.size)
    ranks[np.argsort(levels, axis=None, kind="stable")] = np.linspace(0, 1, levels.size)
    palette = sample_scene_colors(generator)
    stops = np.linspace(0, 1, len(palette))
    channels = [np.interp(ranks, stops, channel) for channel in palette.T]
    image: Pixels = np.rint(np.stack(channels, axis=-1) * 255).astype(np.uint8)
    return image.reshape(*levels.shape, 3)


def _generate_field(texture: Texture, size: int, generator: np.random.Generator) -> Field:
    """Return the levels ``[size, size]`` of a texture with a small random rotation and uneven lighting."""
    y, x = np.mgrid[:size, :size] / size + (0.5 / size - 0.5)  # pixel centers, relative to the image's center
    angle = generator.normal(0, 0.06)
    turned_x = np.cos(angle) * x - np.sin(angle) * y + 0.5
    turned_y = np.sin(angle) * x + np.cos(angle) * y + 0.5
    levels: Field = texture(turned_x, turned_y, generator) + 0.35 * _smooth_noise(size, 3, generator)
    return levels


def _smooth_noise(size: int, coarseness: int, generator: np.random.Generator) -> Field:
    """Return smooth noise in about [-1, 1]: a random grid of ``coarseness`` cells per side, enlarged."""
    grid = generator.uniform(-1, 1, (coarseness + 1, coarseness + 1)).astype(np.float32)
    return np.asarray(Image.fromarray(grid).resize((size, size), Image.Resampling.BICUBIC), dtype=np.float64)


def _sine(turns: Field, generator: np.random.Generator) -> Field:
    """Return the sine of a phase ``turns``, in periods, with a random offset."""
    wave: Field = np.sin(2 * np.pi * (turns + generator.random()))
    return wave


def _bamboo_forest(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Return upright stalks with joints."""
    joints = _sine(2.5 * y + 0.48 * np.floor(5 * x), generator) > 0.93
    return _sine(generator.uniform(4.5, 5.5) * x, generator) - 0.8 * joints


def _bedroom(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Return a quilt: a lattice of rhombs."""
    rate = generator.uniform(1.1, 1.35)
    return 2 * np.abs(_sine(rate * (x + y), generator) * _sine(rate * (x - y), generator))


def _bowling_alley(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Return lanes that meet at a vanishing point above the image."""
    slope = (x - generator.uniform(0.4, 0.6)) / (y + generator.uniform(0.25, 0.35))
    return _sine(generator.uniform(3.2, 4.0) * slope, generator)


def _bus_interior(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Return nested frames."""
    center_x, center_y = generator.uniform(0.4, 0.6, 2)
    distance = np.maximum(np.abs(x - center_x), np.abs(y - center_y))
    return _sine(generator.uniform(4.5, 5.5) * distance, generator)


def _cockpit(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Return rows of round dials with a dark center."""
    rate = generator.uniform(2.8, 3.3)
    shift_x, shift_y = generator.random(2)
    distance = np.hypot((x * rate + shift_x) % 1 - 0.5, (y * rate + shift_y) % 1 - 0.5)
    dials: Field = -np.cos(4 * np.pi * np.minimum(distance, 0.5))
    return dials


def _corn_field(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Return horizontal wavy rows, closer together towards the top."""
    depth = np.sqrt(np.abs(y + 0.15 + 0.03 * _sine(2 * x, generator)))
    return _sine(generator.uniform(5.0, 6.0) * depth, generator)


def _laundromat(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Return a tiled floor: a checkerboard."""
    rate = generator.uniform(2.0, 2.5)
    return np.tanh(6 * _sine(rate * x, generator) * _sine(rate * y, generator))


def _runway(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Return diagonal stripes that rise to the right."""
    return np.tanh(3 * _sine(generator.uniform(3.0, 3.6) * (x + y), generator))


def _ski_slope(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Return a smooth slope with drifts and without a periodic pattern."""
    direction = float(generator.choice([-1.0, 1.0]))
    return 0.8 * _smooth_noise(len(x), 2, generator) + direction * (y - 0.4 * x)


def _track(x: Field, y: Field, generator: np.random.Generator) -> Field:
    """Return lanes around a corner of the image."""
    center_x, center_y = generator.uniform(-0.25, -0.1), generator.uniform(1.1, 1.25)
    return _sine(generator.uniform(3.2, 3.8) * np.hypot(x - center_x, y - center_y), generator)


_FIELDS = (
    *(_bamboo_forest, _bedroom, _bowling_alley, _bus_interior, _cockpit),
    *(_corn_field, _laundromat, _runway, _ski_slope, _track),
)
TEXTURES: Mapping[str, Texture] = {function.__name__[1:]: function for function in _FIELDS}

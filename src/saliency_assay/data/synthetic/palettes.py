"""Colours of drawn objects and scenes: drawn alike for every class, so that colour tells no label."""

from colorsys import hsv_to_rgb

import numpy as np
import numpy.typing as npt

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

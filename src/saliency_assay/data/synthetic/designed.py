"""Images for designed networks (``models.designed``): squares of pure colors on gray noise."""

from collections.abc import Iterator
from itertools import product
from typing import Annotated

import numpy as np
import numpy.typing as npt

from saliency_assay.data.images import Block
from saliency_assay.data.splits import random_split
from saliency_assay.registry.limits import Limits, PositiveInt

NONE, RED, GREEN, BLUE = range(4)
COLORS = np.array([[0, 0, 0], [255, 0, 0], [0, 255, 0], [0, 0, 255]], dtype=np.uint8)
GRAY = (64, 224)
"""Lowest gray level of the background, and the level after the highest one."""
CLASSES = {
    "additive": ("red", "green and blue"),
    "counting": ("more red", "more blue"),
    "saturated": ("red", "only blue"),
    "conjunction": ("red and green", "no pair"),
    "half": ("more red on the left", "more blue on the left"),
}
"""For each label, the classes of positive and of negative evidence in the network of this name."""


def designed(
    *,
    size: Annotated[int, Limits(minimum=16, maximum=256)] = 32,
    images: Annotated[int, Limits(minimum=4, maximum=100_000)] = 400,
    test_share: Annotated[float, Limits(minimum=0.01, maximum=0.5)] = 0.5,
    generator: np.random.Generator,
    block: PositiveInt = 512,
) -> tuple[dict[str, tuple[str, ...]], Iterator[Block]]:
    """Return images of up to four red, green or blue squares, one in each quadrant, on gray noise.

    All squares of an image have the same side, from an eighth to a quarter of the image's. The colors are such that the
    evidence of each network of ``models.designed`` is not zero.

    Args:
        size: side of the images in pixels, an even number.
        images: number of images.
        test_share: share of the images for testing.
        generator: random generator.
        block: number of images per block.

    Returns:
        The classes of each label, and blocks of ``image`` uint8 ``[n, 3, size, size]``, ``mask`` bool ``[n, size,
        size]``, True on all squares, ``split`` uint8 and ``label_…`` int64 ``[n]``.

    Raises:
        ValueError: ``size`` is odd.
    """
    if size % 2:
        raise ValueError(f"size: found {size}, expected an even number")
    split, layouts = random_split(images, test_share, generator), valid_layouts()

    def blocks() -> Iterator[Block]:
        for start in range(0, images, block):
            count = min(block, images - start)
            chosen = layouts[generator.integers(len(layouts), size=count)]
            colors = np.stack([_colors(layout, size, generator) for layout in chosen])
            gray = generator.integers(*GRAY, size=(count, size, size), dtype=np.uint8)
            mask = colors != NONE
            pixels = np.where(mask[..., None], COLORS[colors], gray[..., None])
            labels = {
                f"label_{name}": (evidence < 0).astype(np.int64)
                for name, evidence in evidences(chosen).items()
            }
            image = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
            yield {"image": image, "mask": mask, "split": split[start : start + count], **labels}

    return dict(CLASSES), blocks()


def valid_layouts() -> npt.NDArray[np.int64]:
    """Return the colors of the quadrants, row by row, for which no network has the evidence 0, ``[layouts, 4]``."""
    layouts = np.array(list(product(range(4), repeat=4)))
    is_valid = np.all([evidence != 0 for evidence in evidences(layouts).values()], axis=0)
    return layouts[is_valid]


def evidences(layouts: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.float64]]:
    """Return the evidence of each network for colors of the quadrants ``[N, 4]``, with the area of a square as unit."""
    red, green, blue = ((layouts == color).sum(1) for color in (RED, GREEN, BLUE))
    left = layouts[:, ::2]
    return {
        "additive": red - green / 2 - blue / 2,
        "counting": (red - blue).astype(np.float64),
        "saturated": (red > 0) - (blue > 0) / 2,
        "conjunction": ((red > 0) & (green > 0)) - (blue > 0) / 2,
        "half": ((left == RED).sum(1) - (left == BLUE).sum(1)).astype(np.float64),
    }


def _colors(
    layout: npt.NDArray[np.int64], size: int, generator: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return the color of each pixel ``[size, size]``, with a square at a random place of each quadrant."""
    colors, quadrant = np.full((size, size), NONE), size // 2
    side = int(generator.integers(size // 8, size // 4 + 1))
    for index, color in enumerate(layout):
        top, left = generator.integers(0, quadrant - side + 1, size=2) + np.array(divmod(index, 2)) * quadrant
        colors[top : top + side, left : left + side] = color
    return colors

"""Reader of scikit-learn's handwritten digits, a small real data set that needs no download."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from sklearn.datasets import load_digits

from saliency_assay.data.images import Block, resize_squares
from saliency_assay.data.splits import random_split
from saliency_assay.registry.limits import Limits

CLASSES = tuple(str(digit) for digit in range(10))


def digits(
    *,
    size: Annotated[int, Limits(minimum=8, maximum=256)] = 16,
    test_share: Annotated[float, Limits(minimum=0.01, maximum=0.5)] = 0.1,
    generator: np.random.Generator,
    block: int = 512,
) -> tuple[dict[str, tuple[str, ...]], Iterator[Block]]:
    """Return the 1,797 digits in scikit-learn's order, resized bilinearly from 8 × 8.

    Args:
        size: side of the images in pixels.
        test_share: share of the images for testing.
        generator: random generator for the split.
        block: number of images per block.

    Returns:
        The classes of label ``class``, and blocks of ``image`` uint8 ``[n, 1, size, size]`` (the source's gray levels
        0 to 16 become 0 to 255), ``split`` uint8 and ``label_class`` int64 ``[n]``.
    """
    levels, labels = load_digits(return_X_y=True)
    gray = np.rint(levels.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    split = random_split(len(gray), test_share, generator)
    slices = (slice(start, min(start + block, len(gray))) for start in range(0, len(gray), block))
    blocks = (
        {
            "image": resize_squares(gray[rows, None], size),
            "split": split[rows],
            "label_class": labels[rows].astype(np.int64),
        }
        for rows in slices
    )
    return {"class": CLASSES}, blocks

"""Images cut into segments: cells of a grid, or superpixels."""

import math

import numpy as np
import torch
from torch import Tensor

FEATURES = ("grid", "superpixels")
COMPACTNESS = 10.0
"""Weight of nearness against likeness of colour (in CIELAB) within a superpixel."""


def segment(images: Tensor, features: str, segments: int) -> Tensor:
    """The number of the segment that each pixel belongs to, from 0 without a gap, int64 ``[N, H, W]``.

    ``grid`` gives exactly ``segments`` cells; ``superpixels`` about as many, another number in each image.

    Raises:
        ValueError: unknown ``features``, a number of segments that the images cannot have, or superpixels of
            images that are neither RGB nor grey.
    """
    height, width = images.shape[2:]
    if features not in FEATURES:
        raise ValueError(f"features: found {features!r}, valid: {', '.join(FEATURES)}")
    if not 1 <= segments <= height * width:
        raise ValueError(f"segments: found {segments}, expected 1 to {height * width}, one for each pixel")
    if features == "grid":
        return _grid(height, width, segments).to(images.device).expand(len(images), -1, -1)
    return _superpixels(images, segments)


def _grid(height: int, width: int, cells: int) -> Tensor:
    """Rows · columns = ``cells``, in the proportions whose cells are nearest to squares ``[H, W]``."""
    shapes = [
        (rows, cells // rows) for rows in range(1, height + 1) if cells % rows == 0 and cells // rows <= width
    ]
    if not shapes:
        raise ValueError(
            f"segments: found {cells}, expected a product of rows and columns, at most {height} and {width}, "
            f"with features 'grid'"
        )

    def elongation(shape: tuple[int, int]) -> float:
        return abs(math.log(height / shape[0]) - math.log(width / shape[1]))

    rows, columns = min(shapes, key=elongation)
    down = torch.arange(height) * rows // height
    across = torch.arange(width) * columns // width
    return down[:, None] * columns + across


def _superpixels(images: Tensor, segments: int) -> Tensor:
    """SLIC (Achanta et al., 2012) of each image, on the CPU; a grey image as an RGB image without colour."""
    from skimage.segmentation import slic  # slow to import, and nothing else needs it

    channels = images.shape[1]
    if channels not in (1, 3):
        raise ValueError(f"features: found 'superpixels' of {channels} channels, expected 1 or 3")
    pixels = images.detach().double().expand(-1, 3, -1, -1).permute(0, 2, 3, 1).cpu().numpy()
    labels = [
        slic(image, n_segments=segments, compactness=COMPACTNESS, start_label=0, channel_axis=-1)
        for image in pixels
    ]
    numbered = [np.unique(found, return_inverse=True)[1].reshape(found.shape) for found in labels]
    return torch.from_numpy(np.stack(numbered)).to(images.device, torch.int64)

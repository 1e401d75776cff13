"""Segments of images, which explanations keep or remove as a whole: a grid or superpixels."""

from math import log

import numpy as np
import torch
from torch import Tensor, nn

from saliency_assay.methods.differentiate import target_outputs
from saliency_assay.methods.passes import passes_of
from saliency_assay.runtime.environment import optional
from saliency_assay.runtime.transfer import to_device

COMPACTNESS = 10.0  # weight of spatial distance relative to color distance (in CIELAB) in a superpixel
BLOCK = 1024  # rows of a regression that are summed at a time


def segment(images: Tensor, features: str, segments: int) -> Tensor:
    """Return the segment number of each pixel, consecutive from 0, int64 ``[N, H, W]``.

    ``grid`` has exactly ``segments`` cells; ``superpixels`` about as many, with a different number in each image.

    Raises:
        ValueError: a number of segments that does not fit the images, or superpixels of images that are neither RGB nor
            gray.
    """
    height, width = images.shape[2:]
    if not 1 <= segments <= height * width:
        raise ValueError(f"segments: found {segments}, expected 1 to {height * width}, one for each pixel")
    if features == "grid":
        return to_device(_grid(height, width, segments), images.device).expand(len(images), -1, -1)
    return _superpixels(images, segments)


def _grid(height: int, width: int, cells: int) -> Tensor:
    """Return a grid of rows · columns = ``cells`` cells that are as close to squares as possible, ``[H, W]``."""
    shapes = [
        (rows, cells // rows) for rows in range(1, height + 1) if cells % rows == 0 and cells // rows <= width
    ]
    if not shapes:
        raise ValueError(
            f"segments: found {cells}, expected a product of rows and columns, at most {height} and {width}, "
            f"with features 'grid'"
        )

    def elongation(shape: tuple[int, int]) -> float:
        return abs(log(height / shape[0]) - log(width / shape[1]))

    rows, columns = min(shapes, key=elongation)
    down = torch.arange(height) * rows // height
    across = torch.arange(width) * columns // width
    return down[:, None] * columns + across


def _superpixels(images: Tensor, segments: int) -> Tensor:
    """Segment each image by SLIC (Achanta et al., 2012), on the CPU; a gray image is expanded to RGB."""
    with optional("skimage", "methods"):
        from skimage.segmentation import slic

    channels = images.shape[1]
    if channels not in (1, 3):
        raise ValueError(f"features: found 'superpixels' of {channels} channels, expected 1 or 3")
    pixels = images.detach().double().expand(-1, 3, -1, -1).permute(0, 2, 3, 1).cpu().numpy()
    labels = [
        slic(image, n_segments=segments, compactness=COMPACTNESS, start_label=0, channel_axis=-1)
        for image in pixels
    ]
    # Renumbered, so that the numbers are consecutive.
    numbered = [np.unique(label_map, return_inverse=True)[1].reshape(label_map.shape) for label_map in labels]
    return to_device(torch.from_numpy(np.stack(numbered)), images.device, torch.int64)


def pixel_counts(labels: Tensor) -> Tensor:
    """Return the number of pixels of each segment, int64 ``[N, M]`` with M the largest number of segments.

    It is 0 for segments that an image does not have.
    """
    flat = labels.flatten(1)
    return flat.new_zeros(len(flat), int(flat.max()) + 1).scatter_add(1, flat, torch.ones_like(flat))


def paint(values: Tensor, labels: Tensor) -> Tensor:
    """Return maps ``[N, 1, H, W]`` with the value ``[N, M]`` of its segment at each pixel."""
    return values.gather(1, labels.flatten(1)).reshape(len(labels), 1, *labels.shape[1:])


def coalition_values(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    labels: Tensor,
    members: Tensor,
    color: Tensor,
    output: str = "logit",
) -> Tensor:
    """Compute the target's ``output`` for coalitions ``members [N, R, M]`` of the images' segments, float64 ``[N, R]``.

    Absent segments have the ``color``. One pass for each coalition.

    Raises:
        ValueError: as ``target_outputs``.
    """
    count, rows = members.shape[:2]
    values = torch.empty(count, rows, dtype=torch.float64, device=images.device)
    for row in passes_of(images, rows):
        visible = members[:, row].gather(1, labels.flatten(1)).reshape(count, 1, *labels.shape[1:])
        values[:, row] = target_outputs(model, torch.where(visible, images, color), targets, output)
    return values

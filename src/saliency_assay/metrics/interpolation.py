"""Linear interpolation of removed pixels from their neighbors, as in ROAD (Rong et al., 2022).

x_p = Σ_q w_pq x_q over the eight neighbors q of each removed pixel p, with weight 1/6 for neighbors that share an edge
and 1/12 for those that share a corner. Known neighbors are on the right-hand side. At the border, the weights of the
existing neighbors are divided by their sum.
"""

import numpy as np
import torch
from scipy.linalg import solveh_banded
from torch import Tensor
from torch.nn.functional import conv2d

from saliency_assay.runtime.transfer import to_device

WEIGHTS = ((1 / 12, 1 / 6, 1 / 12), (1 / 6, 0.0, 1 / 6), (1 / 12, 1 / 6, 1 / 12))
"""Weights w of a pixel's neighbors; the pixel is in the center."""
FOLLOWING = ((0, 1), (1, -1), (1, 0), (1, 1))
"""Row and column offsets of the four neighbors that follow in reading order; the others are opposite."""


def impute(images: Tensor, removed: Tensor) -> Tensor:
    """Interpolate the pixels ``removed``, bool ``[N, H, W]``, of images ``[N, C, H, W]`` from the other pixels.

    Σ_q w_pq (x_p − x_q) = 0 over the existing neighbors is a symmetric system. It has a unique solution if any pixel is
    known: from every removed pixel a path of neighbors leads to a known one, so the matrix is irreducibly diagonally
    dominant on each patch. Solved in float64 on the CPU, all channels at once.

    Raises:
        ValueError: an image in which no pixel is known.
    """
    if bool(removed.flatten(1).all(1).any()):
        raise ValueError("removed: found all pixels of an image, expected at least one known pixel")
    # Removed pixels count 0, so the sums are those over known neighbors: the right-hand side of the system.
    known_pixels = images.double() * ~removed[:, None]
    sums = _weighted_sums(known_pixels).permute(0, 2, 3, 1)[removed].cpu().numpy()
    totals = _weighted_sums(known_pixels.new_ones(1, 1, *images.shape[2:]))[0, 0].cpu().numpy()
    masks = removed.cpu().numpy()
    sums_by_image = np.split(sums, np.cumsum(masks.sum((1, 2)))[:-1])
    values = [solve(mask, totals, image_sums) for mask, image_sums in zip(masks, sums_by_image, strict=True)]
    filled = known_pixels.permute(0, 2, 3, 1).contiguous()
    filled[removed] = to_device(torch.from_numpy(np.concatenate(values)), filled.device)
    return filled.permute(0, 3, 1, 2).to(images.dtype)


def solve(removed: np.ndarray, totals: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Return the values ``[n, C]`` of the n pixels ``removed``, bool ``[H, W]``, of one image, in reading order.

    ``totals [H, W]`` is Σ_q w_pq over the existing neighbors, ``sums [n, C]`` is Σ_q w_pq x_q over the known ones. In
    reading order, neighbors are at most W + 1 unknowns apart, so the matrix is banded: its Cholesky factorization takes
    at most n·W² operations and, at image sizes, less time than a general sparse one.
    """
    if not len(sums):
        return sums
    height, width = removed.shape
    number = np.full((height + 1, width + 2), -1)  # index of each unknown; −1 elsewhere and beyond the border
    number[:height, 1:-1][removed] = np.arange(len(sums))
    band = np.zeros((width + 2, len(sums)))
    band[0], widest = totals[removed], 0
    # The matrix is symmetric, so its lower band, the neighbors that follow each unknown, is enough.
    for down, right in FOLLOWING:
        neighbor = number[down : down + height, 1 + right : 1 + right + width][removed]
        columns = np.flatnonzero(neighbor >= 0)
        distance = neighbor[columns] - columns
        band[distance, columns] = -WEIGHTS[1 + down][1 + right]
        widest = max(widest, int(distance.max(initial=0)))
    values: np.ndarray = solveh_banded(band[: widest + 1], sums, lower=True, check_finite=False)
    return values


def _weighted_sums(images: Tensor) -> Tensor:
    """Compute Σ_q w_pq x_q at every pixel over the neighbors inside the image, float64 ``[N, C, H, W]``."""
    weights = to_device(torch.tensor(WEIGHTS, dtype=images.dtype), images.device)
    flat = conv2d(images.flatten(0, 1)[:, None], weights[None, None], padding=1)
    return flat.reshape(images.shape)

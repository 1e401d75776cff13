"""ROAD, remove and debias: removed pixels are interpolated from their neighbours (Rong et al., 2022).

x_p = Σ_q w_pq x_q over the eight neighbours q of each removed pixel p, with 1/6 for those that share an edge and 1/12
for those that share a corner. Neighbours that are known go to the right-hand side. At the border the weights of the
neighbours that exist are divided by their sum.
"""

import numpy as np
import torch
from scipy.linalg import solveh_banded
from torch import Tensor
from torch.nn.functional import conv2d

from saliency_assay.methods.sampling import sample_seeds, standard_normal
from saliency_assay.metrics.perturbation import (
    Predict,
    evaluate_masks,
    original,
    perturbation_batch,
    ranks_of,
)
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, is_rankable, nan_unless


def road(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    points: int = 9,
    noise: float = 0.01,
    output: str = "probability",
) -> Scored:
    """Mean output of images ``[N, C, H, W]`` with 1, 2, … ``points`` of points + 1 equal shares of pixels imputed.

    ``road_morf`` imputes the most relevant pixels of the ``sum`` of maps ``[N, C or 1, H, W]`` first, ``road_lerf`` the
    least relevant first. The curves ``morf`` and ``lerf``, ``[N, points + 1]``, begin with the original. Imputed pixels
    get Gaussian noise of standard deviation ``noise`` in [0, 1] units: one draw an image, so that points, orders and
    methods share it. NaN where the map is NaN or constant. Rong et al. (2022), who take the accuracy over a set.

    Raises:
        ValueError: fewer than one point, or so many that a share is less than a pixel.
    """
    saliency = reduce(maps, "sum")
    pixels = saliency[0].numel()
    if not 1 <= points < pixels:
        expected = f"1 to {pixels - 1}, fewer than the pixels of an image"
        raise ValueError(f"points: found {points}, expected {expected}")
    defined, ranks = is_rankable(saliency), ranks_of(saliency)
    speckle = noise * standard_normal(sample_seeds(len(images), 1, generator), images)
    start = original(perturbation_batch(predict, images, targets, images, output=output))

    def after(removed: Tensor) -> Tensor:
        shown = impute(images, removed.reshape(saliency.shape)) + speckle
        batch = perturbation_batch(predict, images, targets, shown, output=output)
        return evaluate_masks(batch, 1, lambda image, _: removed[image])[:, 0]

    counts = shares(points, pixels)
    morf = torch.stack([start, *(after(ranks < count) for count in counts)], dim=1)
    lerf = torch.stack([start, *(after(ranks >= pixels - count) for count in counts)], dim=1)
    curves = {"morf": nan_unless(defined, morf), "lerf": nan_unless(defined, lerf)}
    scores = {(f"road_{name}", ""): curve[:, 1:].mean(1) for name, curve in curves.items()}
    return Scored(scores, curves)


def shares(points: int, pixels: int) -> list[int]:
    """Return the numbers of pixels i / (points + 1), rounded down, for i = 1 … points."""
    return [number * pixels // (points + 1) for number in range(1, points + 1)]


WEIGHTS = ((1 / 12, 1 / 6, 1 / 12), (1 / 6, 0.0, 1 / 6), (1 / 12, 1 / 6, 1 / 12))
"""w of a pixel's neighbours, the pixel in the middle."""
FOLLOWING = ((0, 1), (1, -1), (1, 0), (1, 1))
"""Rows and columns to the four neighbours that come later in reading order; the others lie opposite."""


def impute(images: Tensor, removed: Tensor) -> Tensor:
    """Images ``[N, C, H, W]`` with the pixels ``removed``, bool ``[N, H, W]``, interpolated from the rest.

    Σ_q w_pq (x_p − x_q) = 0 over the neighbours that exist is a symmetric system. It has one solution if any
    pixel is known: from every removed pixel a path of neighbours leads to a known one, so the matrix is irreducibly
    diagonally dominant on each patch. Solved in float64 on the CPU, all channels at once.

    Raises:
        ValueError: an image of which no pixel is known.
    """
    if bool(removed.flatten(1).all(1).any()):
        raise ValueError("removed: found all pixels of an image, expected one at least to be known")
    known = images.double() * ~removed[:, None]
    sums = _weighted(known).permute(0, 2, 3, 1)[removed].cpu().numpy()
    totals = _weighted(known.new_ones(1, 1, *images.shape[2:]))[0, 0].cpu().numpy()
    patches = removed.cpu().numpy()
    parts = np.split(sums, np.cumsum(patches.sum((1, 2)))[:-1])
    values = [solve(patch, totals, part) for patch, part in zip(patches, parts, strict=True)]
    filled = known.permute(0, 2, 3, 1).contiguous()
    filled[removed] = torch.from_numpy(np.concatenate(values)).to(filled.device)
    return filled.permute(0, 3, 1, 2).to(images.dtype)


def solve(removed: np.ndarray, totals: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Return the values of the n pixels of one image that are ``removed``, bool ``[H, W]``, in reading order, ``[n,
    C]``.

    ``totals [H, W]`` is Σ_q w_pq over the neighbours that exist, ``sums [n, C]`` is Σ_q w_pq x_q over those that are
    known. In reading order neighbours are at most W + 1 unknowns apart, so the matrix is a band: its Cholesky
    factorisation takes n·W² operations at most and, at the sizes of images, less time than a general sparse one.
    """
    if not len(sums):
        return sums
    height, width = removed.shape
    number = np.full((height + 1, width + 2), -1)  # of each unknown; −1 elsewhere, also beyond the border
    number[:height, 1:-1][removed] = np.arange(len(sums))
    band = np.zeros((width + 2, len(sums)))
    band[0], widest = totals[removed], 0
    for down, right in FOLLOWING:
        other = number[down : down + height, 1 + right : 1 + right + width][removed]
        here = np.flatnonzero(other >= 0)
        apart = other[here] - here
        band[apart, here] = -WEIGHTS[1 + down][1 + right]
        widest = max(widest, int(apart.max(initial=0)))
    found: np.ndarray = solveh_banded(band[: widest + 1], sums, lower=True, check_finite=False)
    return found


def _weighted(images: Tensor) -> Tensor:
    """Σ_q w_pq x_q at every pixel over the neighbours inside the image, float64 ``[N, C, H, W]``."""
    flat = conv2d(images.flatten(0, 1)[:, None], images.new_tensor(WEIGHTS)[None, None], padding=1)
    return flat.reshape(images.shape)

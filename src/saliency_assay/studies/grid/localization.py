"""Localization score of maps of grids, and their aggregation (Rao et al., 2022)."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy import ndarray as Array
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from saliency_assay.methods.engine import attribute
from saliency_assay.metrics.reductions import reduce
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.grid_settings import of_setting, part_of_cell
from saliency_assay.studies.grid.grid_tables import BINS

THUMBNAIL = 64
"""Largest height and width of the positive maps that AggAtt keeps of all grids, in pixels."""


def localization(positive: Tensor, *, cells: int, cell: int) -> Tensor:
    """Return Σ_cell A⁺ / Σ A⁺ of positive attributions ``[N, H, W]``, float64 ``[N]`` in [0, 1].

    Böhle et al. (2021), section 4.2; Rao et al. (2022), equation 1. 0 without positive attribution, which localizes
    nothing, as in the authors' program (there for a sum up to 1e-7); NaN for a map that is not finite.
    """
    inside = part_of_cell(positive, cells, cell).sum((1, 2), dtype=torch.float64)
    others = positive.clone()
    part_of_cell(others, cells, cell).zero_()
    total = inside + others.sum((1, 2), dtype=torch.float64)  # in this order, rounding gives no score above 1
    return torch.where(total == 0, 0.0, inside / total)


def positive_attribution(maps: Tensor) -> Tensor:
    """Return the positive part of the sum over the channels of maps ``[N, C or 1, H, W]``, ``[N, H, W]``."""
    return reduce(maps, "sum").clamp(min=0)


def score_cells(
    classifier: Classifier,
    grids: Any,
    targets: Array,
    setting: str,
    *,
    cells: int,
    method: Callable[..., Tensor],
    parameters: Any,
    seed_of_cell: Callable[[int], int],
    batch_size: int,
) -> Iterator[tuple[Array, Array]]:
    """Yield for each cell the localization scores ``[G]`` and thumbnails ``[G, h, w]`` of the maps of its class.

    All cells are scored in all settings; the authors' program scores those of two corners in DiFull and DiPart.

    Args:
        classifier: model of single images.
        grids: ``[G, C, n h, n w]``; slices are uint8, or float32 in [0, 1].
        targets: class of each cell ``[G, n²]``.
        setting: one of ``grid_settings.SETTINGS``.
        cells: n.
        method: attribution method.
        parameters: keyword arguments of the method.
        seed_of_cell: seed of the random samples of the method.
        batch_size: images in a batch, of n² to a grid.

    Raises:
        ValueError: as ``methods.engine.attribute`` and ``grid_settings.of_setting``.
    """
    for cell in range(cells**2):
        blocks = attribute(
            method,
            parameters,
            of_setting(classifier, setting, cells=cells, cell=cell),
            grids,
            np.ascontiguousarray(targets[:, cell]),
            seed=seed_of_cell(cell),
            batch_size=max(1, batch_size // cells**2),
        )
        scores, thumbnails = [], []
        for block in blocks:
            positive = positive_attribution(torch.from_numpy(block["map"]))
            scores.append(localization(positive, cells=cells, cell=cell).numpy())
            thumbnails.append(_thumbnails(positive).numpy())
        yield np.concatenate(scores), np.concatenate(thumbnails)


def _thumbnails(positive: Tensor) -> Tensor:
    """Return maps ``[N, H, W]`` as means over areas, at most ``THUMBNAIL`` pixels high and wide."""
    height, width = (min(side, THUMBNAIL) for side in positive.shape[1:])
    return adaptive_avg_pool2d(positive, (height, width))


def aggregate(thumbnails: Array, scores: Array, bins: Iterable[float] = BINS) -> Array:
    """Return AggAtt: the mean maps ``[B, h, w]`` of bins of the maps in order of their scores, highest first.

    Rao et al. (2022), section 3.3. NaN for a bin without maps; maps that are not finite are left out. Maps with equal
    scores are in order of their positive attribution in the authors' program, here in that of the grids.
    """
    order = np.argsort(-scores, kind="stable")[: np.isfinite(scores).sum()]
    ends = [int(share * len(order)) for share in bins]
    means = [
        thumbnails[order[start:end]].mean(0) if end > start else np.full(thumbnails.shape[1:], np.nan)
        for start, end in pairwise(ends)
    ]
    return np.stack(means)

"""Occlusion sensitivity: decrease of the logit when a window hides part of the image."""

import torch
from torch import Tensor, nn

from saliency_assay.methods.baselines import baseline
from saliency_assay.methods.differentiate import check_inputs, target_logits
from saliency_assay.methods.passes import passes_of
from saliency_assay.registry.limits import Baseline, Share
from saliency_assay.runtime.transfer import to_device


def occlusion(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    window: Share = 0.25,
    stride: Share = 0.125,
    fill: Baseline = "gray",
) -> Tensor:
    """Compute f_t(x) − f_t(x with a window filled), averaged over the windows that contain a pixel, ``[N, 1, H, W]``.

    ``window`` and ``stride`` are shares of the image's height and width, rounded to pixels, at least one. Windows start
    at multiples of the stride until one reaches the border, where it is clipped. ``fill`` is a color of ``baselines``.
    Zeiler & Fergus (2014), section 4.2, cover the image with a gray square. One pass for the image and one for each
    position of the window.

    Raises:
        ValueError: as ``baselines.baseline``.
    """
    check_inputs(images, targets)
    height, width = images.shape[2:]
    rows, columns = (to_device(_bands(side, window, stride), images.device) for side in (height, width))
    drops = _drops(model, images, targets, rows, columns, baseline(model, images, fill))
    row_cover, column_cover = rows.to(images.dtype), columns.to(images.dtype)
    # A window is the product of two bands, so no mask of every window is in memory.
    total = torch.einsum("nij,ih,jw->nhw", drops, row_cover, column_cover)
    # The number of windows differs between pixels: those near the border are in fewer.
    return (total / (row_cover.sum(0)[:, None] * column_cover.sum(0)))[:, None]


def _bands(side: int, window: float, stride: float) -> Tensor:
    """Return the pixels of one side that each position of the window covers, bool ``[positions, side]``."""
    size, step = max(1, round(window * side)), max(1, round(stride * side))
    # Up to the first window that reaches the border; the comparisons below clip it there.
    starts = torch.arange(0, side - size + step, step)[:, None]
    pixels = torch.arange(side)
    return (starts <= pixels) & (pixels < starts + size)


def _drops(
    model: nn.Module, images: Tensor, targets: Tensor, rows: Tensor, columns: Tensor, color: Tensor
) -> Tensor:
    """Compute f_t(x) − f_t(x filled where band i of ``rows`` meets band j of ``columns``), ``[N, i, j]``."""
    shape = (len(rows), len(columns))
    original = target_logits(model, images, targets)
    logits = original.new_empty(len(images), *shape)
    for position in passes_of(images, shape[0] * shape[1]):
        i, j = divmod(position, shape[1])
        filled = torch.where(rows[i][:, None] & columns[j], color, images.detach())
        logits[:, i, j] = target_logits(model, filled, targets)
    return (original[:, None, None] - logits).to(images.dtype)

"""Guided integrated gradients: a path to the image on which pixels with small gradients move first."""

from math import ceil, inf
from typing import Annotated

import numpy as np
import torch
from torch import Tensor, nn

from saliency_assay.methods.baselines import baseline as baseline_color
from saliency_assay.methods.differentiate import check_inputs, input_gradient
from saliency_assay.methods.passes import per_row, reported
from saliency_assay.registry.limits import Baseline, Limits, PositiveInt, Share

TIES = {torch.float32: 1e-5, torch.float64: 1e-9}
"""Share of an image's largest absolute gradient within which gradients count as equal, so that rounding errors do not
order them: at a baseline of one color, all pixels away from the border have the same gradient."""


def guided_ig(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    steps: PositiveInt = 200,
    fraction: Annotated[float, Limits(minimum=0.001, maximum=1)] = 0.25,
    max_dist: Share = 0.02,
    baseline: Baseline = "black",
) -> Tensor:
    """Compute (x − x′) ⊙ Σ_k (α_{k+1} − α_k) ⊙ ∂f_t(x_k) / ∂x, x′ the baseline, ``[N, C, H, W]``, signed.

    x_k = x′ + α_k ⊙ (x − x′): each value of an image has its own position α between baseline (0) and image (1). After
    step k, the L1 distance to the image is 1 − k / ``steps`` of that of the baseline, as on the straight path. The
    distance is reduced by the values with the smallest absolute gradients, a ``fraction`` of all values at a time, and
    no position differs from the straight path's by more than ``max_dist``; with 0, this is integrated gradients by the
    left Riemann sum. Each step costs one pass. Kapishnikov et al. (2021), with the bound of the released code in place
    of the paper's anchor points.

    A map sums to f_t(x) − f_t(x′) in the limit of many steps only if f_t is smooth: the path can follow a kink, where
    the gradient is that of one side.

    Which values move depends on gradients that change abruptly at kinks. Maps of most images agree to rounding whatever
    the batch size, but rounding can put the path of an image on another side of a kink and change its map visibly.

    Raises:
        ValueError: as ``baselines.baseline``.
    """
    check_inputs(images, targets)
    start = baseline_color(model, images, baseline).expand_as(images)
    spans = images.detach() - start
    distances = spans.abs()
    shares = distances / per_row(_sums(distances).clamp(min=torch.finfo(spans.dtype).tiny)).to(spans)
    positions, total = torch.zeros_like(spans), torch.zeros_like(spans)
    for step in reported(steps, 1, f"passes of {len(images)} images"):
        slopes = input_gradient(model, start + positions * spans, targets)
        moved = advance(positions, slopes.abs(), shares, (step + 1) / steps, fraction, max_dist)
        total += (moved - positions) * slopes
        positions = moved
    return spans * total


def advance(
    positions: Tensor, slopes: Tensor, shares: Tensor, progress: float, fraction: float, max_dist: float
) -> Tensor:
    """Return the positions α ``[N, C, H, W]`` after a step, at which Σ ``shares`` ⊙ α is ``progress``.

    ``slopes`` are absolute gradients, ``shares`` the parts of the L1 distance from baseline to image, which sum to 1.
    """
    lowest, highest = max(progress - max_dist, 0.0), min(progress + max_dist, 1.0)
    positions = positions.clamp(min=lowest)
    missing = progress - _sums(shares * positions)
    left = highest - positions
    room = shares * left
    # Values that cannot move further, or that are equal in baseline and image, are not in any group.
    ranked = slopes.masked_fill(room <= 0, inf)
    levels = _ascending(ranked.flatten(1))
    values = levels.shape[1]
    size = int(fraction * (values - 1)) + 1
    tie = TIES[slopes.dtype] * slopes.flatten(1).amax(1, keepdim=True)
    first = torch.zeros(len(levels), 1, dtype=torch.int64, device=levels.device)
    for _ in range(ceil(values / size)):
        threshold = levels.gather(1, (first + size - 1).clamp(max=values - 1)) + tie
        # Includes earlier groups, which have no room left. Products of floats are faster than those with booleans.
        group = (ranked <= per_row(threshold[:, 0])).to(room)
        total = _sums(room * group)
        # Every group moves to the end of its range, except the last one that is needed.
        stride = (missing / total).nan_to_num(0.0).clamp(0, 1).to(left)
        remaining = 1 - per_row(stride) * group
        left *= remaining
        missing = (missing - total).clamp(min=0)
        # On a GPU, waiting for the answer would take longer than the other groups do.
        if missing.device.type == "cpu" and not missing.any():
            break
        room *= remaining
        first = torch.searchsorted(levels, threshold, right=True)
    return highest - left


def _sums(values: Tensor) -> Tensor:
    """Return the sum over each image, float64 ``[N]``, since small differences decide which values move."""
    return values.sum((1, 2, 3), dtype=torch.float64)


def _ascending(values: Tensor) -> Tensor:
    """Sort each row of ``[N, n]``."""
    if values.device.type == "cpu":  # where NumPy takes a fifth of the time
        return torch.from_numpy(np.sort(values.numpy(), axis=1))
    return values.sort(1).values

"""Localization scores: agreement of a map with the object's mask (Zhang et al., 2018; Arras et al., 2022)."""

from typing import Annotated

import numpy as np
import torch
from scipy.ndimage import distance_transform_edt
from torch import Tensor

from saliency_assay.metrics.perturbation import Predict
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, is_rankable, mean_ranks, nan_unless
from saliency_assay.registry.limits import Limits, NonNegativeInt
from saliency_assay.runtime.environment import optional
from saliency_assay.runtime.transfer import to_device


def pointing_game(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    mask: Tensor,
    tolerance: NonNegativeInt = 0,
) -> Scored:
    """Return 1 if the maximum of the ``sum`` of a map lies at most ``tolerance`` pixels from the object, else 0.

    ``mask`` is bool ``[N, H, W]``, True on the object. If several pixels have the maximum, the score is the share of
    them that hits, the expectation of a uniform choice. NaN where the map is NaN or constant, or the mask is empty.
    Zhang et al. (2018): the mean over the images of a class is their Hits / (Hits + Misses).

    Raises:
        ValueError: the mask does not fit the maps.
    """
    saliency = _checked(reduce(maps, "sum"), mask)
    near = dilated(mask, tolerance).flatten(1)
    flat = saliency.flatten(1)
    is_maximum = flat == flat.amax(1, keepdim=True)
    hits = (is_maximum & near).sum(1).double() / is_maximum.sum(1)
    return Scored({("pointing_game", ""): nan_unless(_is_defined(saliency, mask), hits)})


def mask_attribution(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    mask: Tensor,
) -> Scored:
    """Return ``relevance_mass_accuracy`` and ``relevance_rank_accuracy`` of the ``sum`` of maps, both in [0, 1].

    ``mask`` is bool ``[N, H, W]``, True on the object. NaN where the map is NaN or constant, or the mask is empty;
    ``relevance_mass_accuracy`` also where no value is positive (Arras et al., 2022).

    Raises:
        ValueError: the mask does not fit the maps.
    """
    saliency = _checked(reduce(maps, "sum"), mask)
    defined = _is_defined(saliency, mask)
    flat, inside = saliency.flatten(1).double(), mask.flatten(1)
    scores = {
        "relevance_mass_accuracy": mass_inside(flat, inside),
        "relevance_rank_accuracy": rank_inside(flat, inside),
    }
    return Scored({(name, ""): nan_unless(defined, score) for name, score in scores.items()})


def mask_overlap(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    mask: Tensor,
    threshold: Annotated[float | str, Limits(minimum=0, maximum=0.99, words=("area", "otsu"))] = 0.2,
) -> Scored:
    """Return ``iou`` and ``dice`` of the object and the pixels above a threshold of the ``sum`` of a map, in [0, 1].

    ``threshold`` is a share of the map's maximum, ``otsu`` (Otsu, 1979), or ``area``: as many pixels of largest value
    as the object has, where pixels tied for the last place count with their expectation. ``mask`` is bool ``[N, H,
    W]``, True on the object. NaN where the map is NaN or constant, or the mask is empty; 0 where no pixel is above the
    threshold because no value is positive. Zhou et al. (2016).

    Raises:
        ValueError: the mask does not fit the maps.
    """
    saliency = _checked(reduce(maps, "sum"), mask)
    defined = _is_defined(saliency, mask)
    flat, inside = saliency.flatten(1).double(), mask.flatten(1)
    area = inside.sum(1)
    if threshold == "area":
        common, selected = rank_inside(flat, inside) * area, area
    else:
        above = (
            flat > (_otsu(flat, defined) if isinstance(threshold, str) else threshold * flat.amax(1))[:, None]
        )
        common, selected = (above & inside).sum(1).double(), above.sum(1)
    scores = {"iou": common / (selected + area - common), "dice": 2 * common / (selected + area)}
    return Scored({(name, ""): nan_unless(defined, score) for name, score in scores.items()})


def mask_ranking(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    mask: Tensor,
) -> Scored:
    """Return ``mask_auc`` and ``average_precision`` of the ``sum`` of maps as a predictor of the mask, in [0, 1].

    ``mask_auc`` is the area under the ROC curve: the probability that a pixel of the object has a larger value than
    another pixel, ties counted as half. ``average_precision`` is the mean, over the object's pixels, of the share of
    the object among the pixels with at least their value. ``mask`` is bool ``[N, H, W]``, True on the object. NaN where
    the map is NaN or constant, or the mask is empty; ``mask_auc`` also where the mask is the whole image. Fawcett
    (2006); Choe et al. (2020).

    Raises:
        ValueError: the mask does not fit the maps.
    """
    saliency = _checked(reduce(maps, "sum"), mask)
    defined = _is_defined(saliency, mask)
    flat, inside = saliency.flatten(1), mask.flatten(1)
    scores = {"mask_auc": auc_inside(flat, inside), "average_precision": precision_inside(flat, inside)}
    return Scored({(name, ""): nan_unless(defined, score) for name, score in scores.items()})


def auc_inside(saliency: Tensor, inside: Tensor) -> Tensor:
    """Return the area under the ROC curve of maps ``[N, P]`` for ``inside``, ``[N]``; NaN without pixels on a side."""
    area = inside.sum(1).double()
    # The Mann-Whitney statistic: pairs of a pixel inside and one outside in which the former is larger.
    pairs = (mean_ranks(saliency) * inside).sum(1) - area * (area + 1) / 2
    return pairs / (area * (inside.shape[1] - area))


def precision_inside(saliency: Tensor, inside: Tensor) -> Tensor:
    """Return the average precision of maps ``[N, P]`` for ``inside``, ``[N]``; NaN without pixels inside."""
    ordered, order = saliency.sort(dim=1)
    below = torch.searchsorted(ordered, saliency.contiguous())
    inside_below = torch.nn.functional.pad(inside.gather(1, order).cumsum(1), (1, 0)).gather(1, below)
    area = inside.sum(1, keepdim=True)
    precision = (area - inside_below).double() / (inside.shape[1] - below)
    return (precision * inside).sum(1) / area[:, 0]


def mass_inside(saliency: Tensor, inside: Tensor) -> Tensor:
    """Return Σ_mask max(s, 0) / Σ max(s, 0) of maps float64 ``[N, P]``, ``[N]``; NaN where no value is positive."""
    positive = saliency.clamp(min=0)
    return (positive * inside).sum(1) / positive.sum(1)


def rank_inside(saliency: Tensor, inside: Tensor) -> Tensor:
    """Return the share of the K pixels of largest value that lie inside, K the number inside, ``[N]``; NaN where K = 0.

    Pixels tied for the last of the K places count with the expectation over random orders of equal values.
    """
    area = inside.sum(1, keepdim=True)
    # The K-th largest value. Larger ones are all among the K pixels; equal ones share the places that are left.
    weakest = saliency.sort(dim=1, descending=True).values.gather(1, (area - 1).clamp(min=0))
    above, tied = saliency > weakest, saliency == weakest
    tied_share = (area - above.sum(1, keepdim=True)).double() / tied.sum(1, keepdim=True)
    return ((above & inside) + tied_share * (tied & inside)).sum(1) / area[:, 0]


def dilated(mask: Tensor, radius: int) -> Tensor:
    """Return the pixels within ``radius`` of a True pixel, from center to center, bool ``[N, H, W]`` like the mask."""
    if radius == 0:
        return mask
    # An empty mask stays empty: without a True pixel, SciPy's distances are undefined.
    near = [distance_transform_edt(~each) <= radius if each.any() else each for each in mask.cpu().numpy()]
    return torch.from_numpy(np.stack(near)).to(mask.device)


def _otsu(flat: Tensor, defined: Tensor) -> Tensor:
    """Return Otsu's threshold of each map float64 ``[N, P]`` that is ``defined``, from 256 bins, else NaN, ``[N]``."""
    with optional("skimage", "methods"):
        from skimage.filters import threshold_otsu

    low, high = flat.amin(1), flat.amax(1)
    # Scaled, because NumPy refuses bins narrower than the spacing of floating-point numbers.
    scaled = ((flat - low[:, None]) / (high - low)[:, None]).cpu().numpy()
    shares = [
        threshold_otsu(values) if is_defined else np.nan  # type: ignore[no-untyped-call]
        for values, is_defined in zip(scaled, defined.tolist(), strict=True)
    ]
    return low + (high - low) * to_device(
        torch.tensor(shares, dtype=torch.float64, device="cpu"), flat.device
    )


def _checked(saliency: Tensor, mask: Tensor) -> Tensor:
    if mask.shape != saliency.shape or mask.dtype != torch.bool:
        actual = f"{mask.dtype} {list(mask.shape)}"
        raise ValueError(f"mask: found {actual}, expected torch.bool {list(saliency.shape)} like the maps")
    return saliency


def _is_defined(saliency: Tensor, mask: Tensor) -> Tensor:
    return is_rankable(saliency) & mask.flatten(1).any(1)

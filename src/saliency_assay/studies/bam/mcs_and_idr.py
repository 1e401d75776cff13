"""MCS and IDR: relative feature importance between models and between inputs (Yang & Kim, 2019, section 4)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest

import numpy as np
import torch
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.reductions import reduce

BASELINE_REGIONS = {"mcs": "random", "idr": "outside", "iir": "outside", "iir_difference": "outside"}
"""Baseline region of each metric, of equally many pixels as the object.

``random``: random pixels of the image, for metrics that compare two models. ``outside``: random pixels outside the
object, for metrics that compare two inputs, because those pixels are equal in both.
"""


def attributions(
    maps: Mapping[str, Iterable[np.ndarray]],
    masks: Iterable[np.ndarray],
    names: Sequence[str],
    regions_of: Callable[[Tensor], Mapping[str, Tensor]],
    reduction: str,
) -> dict[str, Tensor]:
    """Return ``concept_{name}_{region}``: g_c of every image ``[N]`` for each of ``names`` and each region.

    For each name, one block of ``maps`` ``[n, C or 1, H, W]`` is in memory at a time, with its block of ``masks``, bool
    ``[n, H, W]``. ``regions_of`` returns the regions of such a block by name.

    Raises:
        ValueError: blocks of different lengths.
    """
    blocks_by_key: dict[str, list[Tensor]] = {}
    zipped_blocks = zip_longest(masks, *(maps[name] for name in names), fillvalue=np.empty(0))
    for number, (block_masks, *raw_blocks) in enumerate(zipped_blocks):
        if len({len(block_maps) for block_maps in (block_masks, *raw_blocks)}) > 1:
            counts_text = ", ".join(
                f"{len(block_maps)} of {name}" for name, block_maps in zip(names, raw_blocks, strict=True)
            )
            raise ValueError(
                f"block {number}: found {len(block_masks)} masks and {counts_text} maps, expected equally many"
            )
        regions = regions_of(torch.tensor(block_masks))
        for name, block_maps in zip(names, raw_blocks, strict=True):
            saliency = reduce(torch.tensor(block_maps), reduction)
            for region, inside in regions.items():
                key = f"concept_{name}_{region}"
                blocks_by_key.setdefault(key, []).append(concept_attribution(saliency, inside))
    return {key: torch.cat(blocks) for key, blocks in blocks_by_key.items()}


def concept_attribution(saliency: Tensor, mask: Tensor) -> Tensor:
    """Compute g_c = Σ(e ⊙ I_c) / Σ I_c, the mean of each map over its region, ``[N]`` (section 4.1).

    ``saliency [N, H, W]`` is the ``visual`` reduction e, in [0, 1]; ``mask`` is bool ``[N, H, W]``, True inside the
    region c. The result is NaN if the mask is empty or the map contains NaN.

    Raises:
        ValueError: mask and maps differ in shape, or the mask is not bool.
    """
    if mask.shape != saliency.shape or mask.dtype != torch.bool:
        actual = f"{mask.dtype} {list(mask.shape)}"
        raise ValueError(f"mask: found {actual}, expected bool {list(saliency.shape)} like the maps")
    return (saliency * mask).sum((1, 2)) / mask.sum((1, 2))


def model_contrast(important: Tensor, unimportant: Tensor, correct: Tensor) -> Tensor:
    """Compute g_c(f_1, x) − g_c(f_2, x) per image, ``[N]`` in [−1, 1]; its mean over valid images is MCS (section 4.2).

    ``important`` and ``unimportant`` are g_c ``[N]`` of the model that needs the region and of the one that does not.
    ``correct`` is bool ``[N]``, True for X_corr, the images that both models classify correctly; other images are NaN.
    Both G_c are means over the same X_corr, so their difference is the mean of these differences.
    """
    return torch.where(correct, important - unimportant, torch.nan)


def input_dependence(with_object: Tensor, without: Tensor, correct: Tensor) -> Tensor:
    """Return 1 where g_c(x_cf) < g_c(x_¬cf), strictly, else 0, ``[N]``; its mean over valid images is IDR (4.3).

    Both inputs are g_c ``[N]`` of one model over the object's region. ``correct`` is bool ``[N]``, True for images that
    the model classifies correctly with and without the object. Other images, and those with a NaN, are NaN.
    """
    less = (with_object < without).to(with_object.dtype)
    return torch.where(correct & ~(with_object.isnan() | without.isnan()), less, torch.nan)


def random_masks(mask: Tensor, generator: torch.Generator, *, outside: bool = False) -> Tensor:
    """Sample as many pixels of each image as its region has: I_c of the baseline, bool ``[N, H, W]`` (appendix G).

    Pixels are sampled without replacement from the whole image or, with ``outside``, from the pixels outside the
    region; if the region has more pixels than these, all of them are used. The result does not depend on how images
    are divided into blocks, if one generator is used for all blocks in order.
    """
    result = torch.zeros_like(mask).flatten(1)
    child = torch.Generator()  # reseeded for each image, so that masks do not depend on block boundaries
    for row, region, seed in zip(result, mask.flatten(1), sample_seeds(len(mask), 1, generator), strict=True):
        candidates = (~region if outside else torch.ones_like(region)).nonzero().squeeze(1)
        order = torch.randperm(len(candidates), generator=child.manual_seed(seed))
        row[candidates[order[: int(region.sum())].to(mask.device)]] = True
    return result.reshape(mask.shape)

"""BAM: relative feature importance between two models, and between two inputs (Yang & Kim, 2019, section 4)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest

import numpy as np
import torch
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.reductions import reduce

BASELINE_REGIONS = {"mcs": "random", "idr": "outside", "iir": "outside", "iir_difference": "outside"}
"""The region that each metric's object is compared with: as many ``random`` pixels of the image, which are some feature
for two models, or as many random pixels ``outside`` the object, which did not change between two inputs."""


def attributions(
    maps: Mapping[str, Iterable[np.ndarray]],
    masks: Iterable[np.ndarray],
    names: Sequence[str],
    regions_of: Callable[[Tensor], Mapping[str, Tensor]],
    reduction: str,
) -> dict[str, Tensor]:
    """``concept_{name}_{region}``: g_c of every image ``[N]`` for each of ``names`` and each region.

    One block of ``maps`` ``[n, C or 1, H, W]`` of each name is in memory at a time, beside its block of ``masks``, bool
    ``[n, H, W]``, of which ``regions_of`` gives the regions by name.

    Raises:
        ValueError: blocks of different lengths.
    """
    parts: dict[str, list[Tensor]] = {}
    streams = zip_longest(masks, *(maps[name] for name in names), fillvalue=np.empty(0))
    for number, (block, *raw) in enumerate(streams):
        if len({len(each) for each in (block, *raw)}) > 1:
            found = ", ".join(f"{len(each)} of {name}" for name, each in zip(names, raw, strict=True))
            raise ValueError(
                f"block {number}: found {len(block)} masks and {found} maps, expected equally many"
            )
        regions = regions_of(torch.tensor(block))
        for name, each in zip(names, raw, strict=True):
            saliency = reduce(torch.tensor(each), reduction)
            for region, inside in regions.items():
                key = f"concept_{name}_{region}"
                parts.setdefault(key, []).append(concept_attribution(saliency, inside))
    return {key: torch.cat(blocks) for key, blocks in parts.items()}


def concept_attribution(saliency: Tensor, mask: Tensor) -> Tensor:
    """g_c = Σ(e ⊙ I_c) / Σ I_c: the mean of each map over its region, ``[N]`` (section 4.1).

    ``saliency [N, H, W]`` is the ``visual`` reduction e, in [0, 1]; ``mask`` is bool ``[N, H, W]``, True inside the
    region c. NaN where the mask is empty or the map holds a NaN.

    Raises:
        ValueError: mask and maps differ in shape, or the mask is not bool.
    """
    if mask.shape != saliency.shape or mask.dtype != torch.bool:
        found = f"{mask.dtype} {list(mask.shape)}"
        raise ValueError(f"mask: found {found}, expected bool {list(saliency.shape)} like the maps")
    return (saliency * mask).sum((1, 2)) / mask.sum((1, 2))


def model_contrast(important: Tensor, unimportant: Tensor, correct: Tensor) -> Tensor:
    """g_c(f_1, x) − g_c(f_2, x) of each image, ``[N]`` in [−1, 1]; the mean over valid images is MCS (section 4.2).

    ``important`` and ``unimportant`` are ``[N]`` under the model that needs the region and the one that does not.
    ``correct`` is bool ``[N]``, True for the images of X_corr, which both models classify rightly; the rest is NaN.
    Both G_c are means over the same X_corr, so their difference is the mean of the differences.
    """
    return torch.where(correct, important - unimportant, torch.nan)


def input_dependence(with_object: Tensor, without: Tensor, correct: Tensor) -> Tensor:
    """1 where g_c(x_cf) < g_c(x_¬cf), strictly, else 0, ``[N]``; the mean over valid images is IDR (section 4.3).

    Both are ``[N]`` under one model, over the object's region. NaN where an attribution is NaN, and outside
    ``correct``, bool ``[N]``, the images that the model classifies rightly with and without the object.
    """
    less = (with_object < without).to(with_object.dtype)
    return torch.where(correct & ~(with_object.isnan() | without.isnan()), less, torch.nan)


def random_masks(mask: Tensor, generator: torch.Generator, *, outside: bool = False) -> Tensor:
    """As many random pixels of each image as its region has: the baseline's I_c, bool ``[N, H, W]`` (appendix G).

    Pixels are drawn without replacement from the whole image or, with ``outside``, from the pixels outside the
    region; where those are fewer than the region's, all of them are taken. Masks do not depend on how images are
    split into blocks, as long as one generator serves the blocks in order.
    """
    result = torch.zeros_like(mask).flatten(1)
    child = torch.Generator()
    for row, region, seed in zip(result, mask.flatten(1), sample_seeds(len(mask), 1, generator), strict=True):
        open_pixels = (~region if outside else torch.ones_like(region)).nonzero().squeeze(1)
        order = torch.randperm(len(open_pixels), generator=child.manual_seed(seed))
        row[open_pixels[order[: int(region.sum())].to(mask.device)]] = True
    return result.reshape(mask.shape)

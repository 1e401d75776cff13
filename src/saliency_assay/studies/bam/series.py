"""MCS of the commonality series, whose common feature is in more and more classes (Yang & Kim, 2019, 3.2, 3.3, 4.2)."""

from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import Tensor

from saliency_assay.metrics.reductions import reduce
from saliency_assay.studies.bam.mcs_and_idr import (
    BASELINE_REGIONS,
    concept_attribution,
    model_contrast,
    random_masks,
)

REGIONS = ("object", BASELINE_REGIONS["mcs"])


def contrast(model: str, last: str) -> str:
    """Return the ``model`` of an MCS of the series in the score table, such as ``f_k01-f_k10``."""
    return f"{model}-{last}"


def check_images(images: np.ndarray, scenes: np.ndarray) -> None:
    """Check that images are of the first scene class, the only one that is the same in all sets of a series.

    ``images`` are indices ``[N]`` into a set, ``scenes`` the scene class of each, ``[N]``.

    Raises:
        ValueError: an image of another scene class, in which the object is under some k only.
    """
    if len(others := np.flatnonzero(scenes)):
        image_text = f"image {images[others[0]]} of class {scenes[others[0]]}"
        raise ValueError(f"series: found maps of {image_text}, expected the first scene class alone")


def correct_images(correct: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return X_corr of each f_k, bool ``[N]``: the images that both f_k and f_1.0, the last, classify correctly."""
    last = list(correct.values())[-1]
    return {model: is_correct & last for model, is_correct in correct.items()}


def score_series(
    maps: Mapping[str, Iterable[np.ndarray]],
    masks: Iterable[np.ndarray],
    correct: Mapping[str, np.ndarray],
    *,
    generator: torch.Generator,
    reduction: str = "visual",
) -> dict[str, dict[str, np.ndarray]]:
    """Score each image under every f_k; only one block of one model's maps is in memory at a time.

    ``maps`` contains blocks of raw maps ``[n, C or 1, H, W]`` by model, in order of growing k, the last of k = 1;
    ``masks`` the blocks of the object's mask, bool ``[n, H, W]``, and ``correct`` bool ``[N]`` by model, the images
    that it classifies correctly. All are of the same images in the same order, and blocks are equally long.

    Returns for each of ``concept_object``, ``concept_random``, ``mcs_object`` and ``mcs_random``, by model, an array
    ``[N]`` of the maps' type: g_c(f_k, x) in [0, 1] of every image, correct or not, and g_c(f_k, x) − g_c(f_1.0, x) in
    [−1, 1], NaN outside ``correct_images``. For the last model the latter is 0 by definition, NaN where its map is
    undefined. Random pixels are the same for all models.

    Raises:
        ValueError: fewer than two models, or blocks or arrays do not fit each other.
    """
    if len(maps) < 2 or list(correct) != list(maps):
        actual = f"maps of {', '.join(maps) or 'none'} and correct of {', '.join(correct) or 'none'}"
        raise ValueError(f"series: found {actual}, expected the same two models or more")
    parts: dict[str, dict[str, list[Tensor]]] = {region: {model: [] for model in maps} for region in REGIONS}
    block_iterators = {model: iter(blocks) for model, blocks in maps.items()}
    for number, block in enumerate(masks):
        mask = torch.tensor(block)
        regions = dict(
            zip(REGIONS, (mask, random_masks(mask, generator, outside=REGIONS[1] == "outside")), strict=True)
        )
        for model, block_iterator in block_iterators.items():
            raw_maps = next(block_iterator, np.empty(0))
            if len(raw_maps) != len(mask):
                actual = f"{len(raw_maps)} maps of {model} and {len(mask)} masks"
                raise ValueError(f"block {number}: found {actual}, expected equally many")
            saliency = reduce(torch.tensor(raw_maps), reduction)
            for region, region_mask in regions.items():
                parts[region][model].append(concept_attribution(saliency, region_mask))
    if not all(parts["object"].values()):
        raise ValueError("masks: found none, expected at least one block")
    for model, block_iterator in block_iterators.items():
        if (extra_block := next(block_iterator, None)) is not None:
            raise ValueError(
                f"maps: {model}: found a block of {len(extra_block)} after the last mask, expected none"
            )
    concept = {
        region: {model: torch.cat(blocks) for model, blocks in by_model.items()}
        for region, by_model in parts.items()
    }
    scores = {f"concept_{region}": by_model for region, by_model in concept.items()}
    scores |= {f"mcs_{region}": _contrasts(by_model, correct) for region, by_model in concept.items()}
    return {
        key: {model: values.numpy() for model, values in by_model.items()} for key, by_model in scores.items()
    }


def _contrasts(concept: Mapping[str, Tensor], correct: Mapping[str, np.ndarray]) -> dict[str, Tensor]:
    """Return g_c(f_k, x) − g_c(f_1.0, x) by model, NaN outside its X_corr."""
    last = list(concept.values())[-1]
    for model, is_correct in correct.items():
        if is_correct.dtype != bool or is_correct.shape != last.shape:
            dtype_and_shape = f"{is_correct.dtype} {list(is_correct.shape)}"
            raise ValueError(f"correct: {model}: found {dtype_and_shape}, expected bool [{len(last)}]")
    in_x_corr = correct_images(correct)
    return {
        model: model_contrast(values, last, torch.tensor(in_x_corr[model]))
        for model, values in concept.items()
    }

"""MCS of the commonality series: models with the common object in ever more classes (Yang & Kim, 2019, 3.2 to 4.2)."""

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
    """Return the ``model`` by which score tables identify an MCS of the series, such as ``f_k01-f_k10``."""
    return f"{model}-{last}"


def check_images(images: np.ndarray, scenes: np.ndarray) -> None:
    """Check that all images are of the first scene class, the only one that is the same in all sets of a series.

    ``images`` are indices ``[N]`` into a set, ``scenes`` the scene class of each, ``[N]``.

    Raises:
        ValueError: an image is of another scene class, where only some of the sets contain the object.
    """
    if len(others := np.flatnonzero(scenes)):
        image_text = f"image {images[others[0]]} of class {scenes[others[0]]}"
        raise ValueError(f"series: found maps of {image_text}, expected only the first scene class")


def correct_images(correct: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return X_corr of each f_k, bool ``[N]``: images that f_k and f_1.0, the last model, both classify correctly."""
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
    """Score each image under every f_k, with only one block of one model's maps in memory at a time.

    Args:
        maps: blocks of raw maps ``[n, C or 1, H, W]`` by model, in order of increasing k up to 1, of the same images in
            the same order.
        masks: blocks of equal length, the object's mask, bool ``[n, H, W]``.
        correct: bool ``[N]`` by model, True for images that it classifies correctly.
        generator: random generator for the baseline region, whose pixels are the same for all models.
        reduction: e, from raw maps to one value per pixel.

    Returns:
        By model, arrays ``[N]`` of the maps' type: ``concept_object`` and ``concept_random``, g_c(f_k, x) in [0, 1] of
        every image, including those that are not classified correctly; ``mcs_object`` and ``mcs_random``,
        g_c(f_k, x) − g_c(f_1.0, x) in [−1, 1], NaN outside ``correct_images``. For the last model, the difference is 0
        by definition, NaN where its map is undefined.

    Raises:
        ValueError: there are fewer than two models, or blocks or arrays do not match.
    """
    if len(maps) < 2 or list(correct) != list(maps):
        actual = f"maps of {', '.join(maps) or 'none'} and correct of {', '.join(correct) or 'none'}"
        raise ValueError(f"series: found {actual}, expected two or more models, the same in both")
    attributions: dict[str, dict[str, list[Tensor]]] = {
        region: {model: [] for model in maps} for region in REGIONS
    }
    block_iterators = {model: iter(blocks) for model, blocks in maps.items()}
    for number, block in enumerate(masks):
        mask = torch.tensor(block)
        # Sampled once per block, so that the same random pixels are used for all models.
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
                attributions[region][model].append(concept_attribution(saliency, region_mask))
    if not all(attributions["object"].values()):
        raise ValueError("masks: found none, expected at least one block")
    for model, block_iterator in block_iterators.items():
        if (extra_block := next(block_iterator, None)) is not None:
            raise ValueError(
                f"maps: {model}: found a block of {len(extra_block)} after the last mask, expected none"
            )
    concept = {
        region: {model: torch.cat(blocks) for model, blocks in by_model.items()}
        for region, by_model in attributions.items()
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

"""MCS over models whose common feature is in ever more classes (Yang & Kim, 2019, sections 3.2, 3.3 and 4.2)."""

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
    """What the score table calls the models behind an MCS of the series, such as ``f_k01-f_k10``."""
    return f"{model}-{last}"


def check_images(images: np.ndarray, scenes: np.ndarray) -> None:
    """Refuse images that differ between the sets of a series: all but those of the first scene class.

    ``images`` are indices ``[N]`` into a set, ``scenes`` the scene class of each, ``[N]``.

    Raises:
        ValueError: an image of another scene class, in which the object is under some k only.
    """
    if len(others := np.flatnonzero(scenes)):
        found = f"image {images[others[0]]} of class {scenes[others[0]]}"
        raise ValueError(f"series: found maps of {found}, expected the first scene class alone")


def correct_images(correct: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """X_corr of each f_k, bool ``[N]``: the images that f_k and f_1.0, the last, both classify rightly."""
    last = list(correct.values())[-1]
    return {model: right & last for model, right in correct.items()}


def score_series(
    maps: Mapping[str, Iterable[np.ndarray]],
    masks: Iterable[np.ndarray],
    correct: Mapping[str, np.ndarray],
    *,
    generator: torch.Generator,
    reduction: str = "visual",
) -> dict[str, dict[str, np.ndarray]]:
    """Score each image under every f_k; one block of one model's maps is in memory at a time.

    ``maps`` holds blocks of raw maps ``[n, C or 1, H, W]`` by model, in order of growing k, the last of k = 1;
    ``masks`` the blocks of the object's mask, bool ``[n, H, W]``, and ``correct`` bool ``[N]`` by model, the images
    that it classifies rightly. All are of the same images in the same order, and blocks are equally long.

    Returns for each of ``concept_object``, ``concept_random``, ``mcs_object`` and ``mcs_random``, by model, an array
    ``[N]`` of the maps' type: g_c(f_k, x) in [0, 1] of every image, right or wrong, and g_c(f_k, x) − g_c(f_1.0, x) in
    [−1, 1], NaN outside ``correct_images``. Of the last model the latter is 0 by definition, NaN where its map is not
    defined. Random pixels are the same under all models.

    Raises:
        ValueError: fewer than two models, or blocks or arrays do not fit each other.
    """
    if len(maps) < 2 or list(correct) != list(maps):
        found = f"maps of {', '.join(maps) or 'none'} and correct of {', '.join(correct) or 'none'}"
        raise ValueError(f"series: found {found}, expected the same two models or more")
    parts: dict[str, dict[str, list[Tensor]]] = {region: {model: [] for model in maps} for region in REGIONS}
    streams = {model: iter(blocks) for model, blocks in maps.items()}
    for number, block in enumerate(masks):
        mask = torch.tensor(block)
        regions = dict(
            zip(REGIONS, (mask, random_masks(mask, generator, outside=REGIONS[1] == "outside")), strict=True)
        )
        for model, stream in streams.items():
            raw = next(stream, np.empty(0))
            if len(raw) != len(mask):
                found = f"{len(raw)} maps of {model} and {len(mask)} masks"
                raise ValueError(f"block {number}: found {found}, expected equally many")
            saliency = reduce(torch.tensor(raw), reduction)
            for region, inside in regions.items():
                parts[region][model].append(concept_attribution(saliency, inside))
    if not all(parts["object"].values()):
        raise ValueError("masks: found none, expected at least one block")
    for model, stream in streams.items():
        if (more := next(stream, None)) is not None:
            raise ValueError(
                f"maps: {model}: found a block of {len(more)} after the last mask, expected none"
            )
    concept = {
        region: {model: torch.cat(blocks) for model, blocks in of_region.items()}
        for region, of_region in parts.items()
    }
    scores = {f"concept_{region}": of_region for region, of_region in concept.items()}
    scores |= {f"mcs_{region}": _contrasts(of_region, correct) for region, of_region in concept.items()}
    return {key: {model: found.numpy() for model, found in of_key.items()} for key, of_key in scores.items()}


def _contrasts(concept: Mapping[str, Tensor], correct: Mapping[str, np.ndarray]) -> dict[str, Tensor]:
    """MCS of every image and model against the last one."""
    last = list(concept.values())[-1]
    for model, right in correct.items():
        if right.dtype != bool or right.shape != last.shape:
            found = f"{right.dtype} {list(right.shape)}"
            raise ValueError(f"correct: {model}: found {found}, expected bool [{len(last)}]")
    counted = correct_images(correct)
    return {model: model_contrast(of, last, torch.tensor(counted[model])) for model, of in concept.items()}

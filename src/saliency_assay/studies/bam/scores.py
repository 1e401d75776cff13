"""MCS and IDR of one attribution method, from the raw maps of BAM's three pairs of model and input."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.studies.bam.mcs_and_idr import (
    BASELINE_REGIONS,
    attributions,
    input_dependence,
    model_contrast,
    random_masks,
)

PAIRS = ("object_model", "scene_model", "scene_model_without")
"""f_o on X_os, f_s on X_os, and f_s on X_0s: the same images, the last without the object."""
REGIONS = ("object", "random", "outside")
"""The object's mask, as many random pixels of the image, and as many random pixels outside the object."""


def score_bam(
    maps: Mapping[str, Iterable[np.ndarray]],
    masks: Iterable[np.ndarray],
    correct: Mapping[str, np.ndarray],
    *,
    generator: torch.Generator,
    reduction: str = "visual",
) -> dict[str, np.ndarray]:
    """Score each image under both metrics and both regions; one block of maps of each pair is in memory at a time.

    ``maps`` holds blocks of raw maps ``[n, C or 1, H, W]`` for each of ``PAIRS``, ``masks`` the blocks of the object's
    mask, bool ``[n, H, W]``, and ``correct`` bool ``[N]`` for each of ``PAIRS``. All are of the same images in the same
    order, and blocks are equally long.

    Returns arrays ``[N]`` of the maps' type: ``mcs_{region}`` and ``idr_{region}`` for the object and for the metric's
    baseline, NaN outside X_corr (both models right on X_os for MCS, f_s right with and without the object for IDR), and
    ``concept_{pair}_{region}`` for all regions, g_c of every image, right or wrong.

    Raises:
        ValueError: a pair is missing, or blocks or arrays do not fit each other.
    """
    for given, what in ((maps, "maps"), (correct, "correct")):
        if set(given) != set(PAIRS):
            raise ValueError(f"{what}: found {', '.join(sorted(given))}, expected {', '.join(sorted(PAIRS))}")
    # A generator for each kind of region: shared, their masks would depend on how maps are split into blocks.
    anywhere, outside = (torch.Generator().manual_seed(seed) for seed in sample_seeds(1, 2, generator))

    def regions(mask: Tensor) -> dict[str, Tensor]:
        sampled = random_masks(mask, anywhere), random_masks(mask, outside, outside=True)
        return dict(zip(REGIONS, (mask, *sampled), strict=True))

    concept = attributions(maps, masks, PAIRS, regions, reduction)
    return {key: scores.numpy() for key, scores in (concept | _metrics(concept, correct)).items()}


def correct_images(correct: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """X_corr of each metric, bool ``[N]``: both models right for ``mcs``, both inputs for ``idr``."""
    return {
        "mcs": correct["object_model"] & correct["scene_model"],
        "idr": correct["scene_model"] & correct["scene_model_without"],
    }


def pairs_of(
    object_model: str, scene_model: str, with_object: str, without: str
) -> dict[str, tuple[str, str]]:
    """Return the names of model and set that each of ``PAIRS`` stands for."""
    pairs = ((object_model, with_object), (scene_model, with_object), (scene_model, without))
    return dict(zip(PAIRS, pairs, strict=True))


def right_images(
    predictions: pd.DataFrame, asked: Mapping[str, tuple[str, str]], images: np.ndarray
) -> dict[str, np.ndarray]:
    """Return whether each of ``images`` is classified correctly, bool ``[N]`` for each of ``PAIRS``.

    ``predictions`` are those of one seed: ``model, data, image, label, predicted``; ``asked`` is as ``pairs_of`` gives
    it.
    """
    table = predictions.assign(right=predictions["label"] == predictions["predicted"])
    right = table.set_index(["model", "data", "image"])["right"].sort_index()
    return {pair: right.loc[of_pair].loc[images].to_numpy() for pair, of_pair in asked.items()}


def score_rows(
    found: Mapping[str, np.ndarray],
    correct: Mapping[str, np.ndarray],
    images: np.ndarray,
    asked: Mapping[str, tuple[str, str]],
    *,
    pairs: Iterable[str] = PAIRS,
) -> pd.DataFrame:
    """Return the scores of ``score_bam`` as rows of the score table: ``data, model, metric, variant, image, score``.

    Images outside X_corr have no row for ``mcs`` and ``idr``, so that a NaN is always a map that could not be scored;
    ``concept_attribution`` has one for every image, of each of ``pairs``.
    """
    (object_model, with_object), (scene_model, _), _ = (asked[pair] for pair in PAIRS)
    named = {f"concept_{pair}": ("concept_attribution", *asked[pair]) for pair in pairs}
    named |= {"mcs": ("mcs", f"{object_model}-{scene_model}", with_object)}
    named |= {"idr": ("idr", scene_model, with_object)}
    counted, everywhere = correct_images(correct), np.ones(len(images), dtype=bool)
    parts = [
        pd.DataFrame({"image": images, "score": np.asarray(found[f"{key}_{region}"], dtype=np.float64)})[
            counted.get(key, everywhere)
        ].assign(data=data, model=model, metric=metric, variant=region)
        for key, (metric, model, data) in named.items()
        for region in REGIONS
        if f"{key}_{region}" in found
    ]
    return pd.concat(parts, ignore_index=True)


def _metrics(concept: Mapping[str, Tensor], correct: Mapping[str, np.ndarray]) -> dict[str, Tensor]:
    count = len(concept[f"concept_{PAIRS[0]}_{REGIONS[0]}"])
    for pair in PAIRS:
        if correct[pair].dtype != bool or len(correct[pair]) != count:
            found = f"{correct[pair].dtype} {list(correct[pair].shape)}"
            raise ValueError(f"correct: {pair}: found {found}, expected bool [{count}]")
    counted = {metric: torch.tensor(images) for metric, images in correct_images(correct).items()}
    scores = {}
    for region in ("object", BASELINE_REGIONS["mcs"]):
        object_model, scene_model = (concept[f"concept_{pair}_{region}"] for pair in PAIRS[:2])
        scores[f"mcs_{region}"] = model_contrast(object_model, scene_model, counted["mcs"])
    for region in ("object", BASELINE_REGIONS["idr"]):
        with_object, without = (concept[f"concept_{pair}_{region}"] for pair in PAIRS[1:])
        scores[f"idr_{region}"] = input_dependence(with_object, without, counted["idr"])
    return scores

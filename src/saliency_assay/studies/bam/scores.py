"""Scores of one attribution method by MCS and IDR, from its raw maps for BAM's three pairs of model and input."""

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
"""The object's mask, equally many random pixels of the image, and equally many random pixels outside the object."""


def score_bam(
    maps: Mapping[str, Iterable[np.ndarray]],
    masks: Iterable[np.ndarray],
    correct: Mapping[str, np.ndarray],
    *,
    generator: torch.Generator,
    reduction: str = "visual",
) -> dict[str, np.ndarray]:
    """Score each image by both metrics in both regions, with only one block of maps per pair in memory at a time.

    Args:
        maps: blocks of raw maps ``[n, C or 1, H, W]`` for each of ``PAIRS``, of the same images in the same order.
        masks: blocks of equal length, the object's mask, bool ``[n, H, W]``.
        correct: bool ``[N]`` for each of ``PAIRS``, True where the image is classified correctly.
        generator: random generator for the baseline regions.
        reduction: e, from raw maps to one value per pixel.

    Returns:
        Arrays ``[N]`` of the maps' type: ``mcs_{region}`` and ``idr_{region}`` for the object and the metric's
        baseline, NaN outside X_corr (both models correct on X_os for MCS, f_s correct with and without the object for
        IDR); and ``concept_{pair}_{region}`` for all regions, g_c of every image, including those that are not
        classified correctly.

    Raises:
        ValueError: a pair is missing, or blocks or arrays do not match.
    """
    for inputs, name in ((maps, "maps"), (correct, "correct")):
        if set(inputs) != set(PAIRS):
            raise ValueError(
                f"{name}: found {', '.join(sorted(inputs))}, expected {', '.join(sorted(PAIRS))}"
            )
    # One generator per kind of region: with a shared one, masks would depend on how maps are divided into blocks.
    anywhere, outside = (torch.Generator().manual_seed(seed) for seed in sample_seeds(1, 2, generator))

    def regions(mask: Tensor) -> dict[str, Tensor]:
        sampled = random_masks(mask, anywhere), random_masks(mask, outside, outside=True)
        return dict(zip(REGIONS, (mask, *sampled), strict=True))

    concept = attributions(maps, masks, PAIRS, regions, reduction)
    return {key: scores.numpy() for key, scores in (concept | _mcs_and_idr(concept, correct)).items()}


def correct_images(correct: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return X_corr of each metric, bool ``[N]``: correct by both models for ``mcs``, on both inputs for ``idr``."""
    return {
        "mcs": correct["object_model"] & correct["scene_model"],
        "idr": correct["scene_model"] & correct["scene_model_without"],
    }


def pairs_of(
    object_model: str, scene_model: str, with_object: str, without: str
) -> dict[str, tuple[str, str]]:
    """Return the model and set names of each of ``PAIRS``."""
    pairs = ((object_model, with_object), (scene_model, with_object), (scene_model, without))
    return dict(zip(PAIRS, pairs, strict=True))


def right_images(
    predictions: pd.DataFrame, model_and_set: Mapping[str, tuple[str, str]], images: np.ndarray
) -> dict[str, np.ndarray]:
    """Return True for each of ``images`` that is classified correctly, bool ``[N]`` for each of ``PAIRS``.

    ``predictions`` has the columns ``model, data, image, label, predicted`` of one seed; ``model_and_set`` is from
    ``pairs_of``.
    """
    table = predictions.assign(correct=predictions["label"] == predictions["predicted"])
    correct = table.set_index(["model", "data", "image"])["correct"].sort_index()
    return {pair: correct.loc[key].loc[images].to_numpy() for pair, key in model_and_set.items()}


def score_rows(
    scores: Mapping[str, np.ndarray],
    correct: Mapping[str, np.ndarray],
    images: np.ndarray,
    model_and_set: Mapping[str, tuple[str, str]],
    *,
    pairs: Iterable[str] = PAIRS,
) -> pd.DataFrame:
    """Return the scores of ``score_bam`` as rows of the score table: ``data, model, metric, variant, image, score``.

    Images outside X_corr have no rows for ``mcs`` and ``idr``, so that NaN always means a map that could not be scored.
    ``concept_attribution`` has a row for every image of each of ``pairs``.
    """
    (object_model, with_object), (scene_model, _), _ = (model_and_set[pair] for pair in PAIRS)
    labels = {f"concept_{pair}": ("concept_attribution", *model_and_set[pair]) for pair in pairs}
    labels |= {"mcs": ("mcs", f"{object_model}-{scene_model}", with_object)}
    labels |= {"idr": ("idr", scene_model, with_object)}
    selected, all_images = correct_images(correct), np.ones(len(images), dtype=bool)
    tables = [
        pd.DataFrame({"image": images, "score": np.asarray(scores[f"{key}_{region}"], dtype=np.float64)})[
            selected.get(key, all_images)
        ].assign(data=data, model=model, metric=metric, variant=region)
        for key, (metric, model, data) in labels.items()
        for region in REGIONS
        if f"{key}_{region}" in scores
    ]
    return pd.concat(tables, ignore_index=True)


def _mcs_and_idr(concept: Mapping[str, Tensor], correct: Mapping[str, np.ndarray]) -> dict[str, Tensor]:
    """Return ``mcs_{region}`` and ``idr_{region}`` of every image, NaN outside X_corr."""
    count = len(concept[f"concept_{PAIRS[0]}_{REGIONS[0]}"])
    for pair in PAIRS:
        if correct[pair].dtype != bool or len(correct[pair]) != count:
            shape_text = f"{correct[pair].dtype} {list(correct[pair].shape)}"
            raise ValueError(f"correct: {pair}: found {shape_text}, expected bool [{count}]")
    in_x_corr = {metric: torch.tensor(is_correct) for metric, is_correct in correct_images(correct).items()}
    scores = {}
    for region in ("object", BASELINE_REGIONS["mcs"]):
        object_model, scene_model = (concept[f"concept_{pair}_{region}"] for pair in PAIRS[:2])
        scores[f"mcs_{region}"] = model_contrast(object_model, scene_model, in_x_corr["mcs"])
    for region in ("object", BASELINE_REGIONS["idr"]):
        with_object, without = (concept[f"concept_{pair}_{region}"] for pair in PAIRS[1:])
        scores[f"idr_{region}"] = input_dependence(with_object, without, in_x_corr["idr"])
    return scores

"""Predictions of a classifier for every image of a set, and its accuracy."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from saliency_assay.data.splits import TEST, TRAIN, VALIDATION
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import logit_batches

SPLITS = {TRAIN: "train", VALIDATION: "validation", TEST: "test"}


def predict(
    classifier: Classifier,
    images: Any,
    labels: npt.NDArray[np.int64],
    split: npt.NDArray[np.uint8],
    *,
    batch_size: int,
) -> pd.DataFrame:
    """One row per image: ``image`` (its index), ``split``, ``label``, ``predicted`` and ``probability``.

    Args:
        images: uint8 ``[N, C, H, W]``, read ``batch_size`` at a time.
        labels: class indices ``[N]``.
        split: ``[N]``, as ``data.splits`` has it.

    ``probability`` is the softmax of the label's logit, computed in float64: it is compared between inputs, and
    float32 has no numbers between 1 − 6e-8 and 1.

    Raises:
        ValueError: logits that are not finite.
    """
    predicted = np.empty(len(labels), dtype=np.int64)
    probability = np.empty(len(labels))
    broken = start = 0
    with closing(logit_batches(classifier, images, batch_size=batch_size)) as parts:
        for part in parts:
            here = slice(start, start + len(part))
            found = part.double()
            wanted = torch.tensor(labels[here], device=found.device)
            predicted[here] = found.argmax(1).cpu().numpy()
            probability[here] = found.softmax(1).gather(1, wanted[:, None]).squeeze(1).cpu().numpy()
            broken += int((~found.isfinite()).any(1).sum())
            start = here.stop
    if broken:
        raise ValueError(f"logits of {broken} of {len(labels)} images are not finite")
    return pd.DataFrame(
        {
            "image": np.arange(len(labels)),
            "split": [SPLITS[int(part)] for part in split],
            "label": labels,
            "predicted": predicted,
            "probability": probability,
        }
    )


def accuracies(predictions: pd.DataFrame, classes: Sequence[str]) -> dict[str, Any]:
    """Accuracy (share in 0–1) of each set and split, over all images and for each class, as plain JSON.

    Args:
        predictions: rows of ``predict`` with the set's name in ``data``.
        classes: names of the labels.

    Returns:
        ``{set: {split: {"images": n, "accuracy": a, "per_class": {class: a}}}}``.
    """
    table = predictions.assign(right=predictions["label"] == predictions["predicted"])
    found: dict[str, Any] = {}
    for name in dict.fromkeys(table["data"]):
        found[name] = {}
        of_set = table[table["data"] == name]
        for split in dict.fromkeys(of_set["split"]):
            part = of_set[of_set["split"] == split]
            by_class = part.groupby("label")["right"].mean().to_dict()
            found[name][split] = {
                "images": len(part),
                "accuracy": float(part["right"].mean()),
                "per_class": {classes[label]: float(share) for label, share in by_class.items()},
            }
    return found

"""Predictions of a classifier for all images of a set, and its accuracy."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from saliency_assay.data.splits import TEST, TRAIN, VALIDATION
from saliency_assay.models.classifier import Classifier, is_predicted, probabilities
from saliency_assay.models.inference import logit_batches

NO_CLASS = -1
"""Predicted class of an image without its label, by a multi-label classifier."""
SPLITS = {TRAIN: "train", VALIDATION: "validation", TEST: "test"}


def predict(
    classifier: Classifier,
    images: Any,
    labels: npt.NDArray[np.int64],
    split: npt.NDArray[np.uint8],
    *,
    batch_size: int,
) -> pd.DataFrame:
    """Return one row per image: ``image`` (its index), ``split``, ``label``, ``predicted`` and ``probability``.

    ``probability`` is that of the label. It is computed in float64, because probabilities of different inputs are
    compared, and float32 has no numbers between 1 − 6e-8 and 1. ``predicted`` is the most probable class; for a
    multi-label classifier it is the label if its probability is above 1/2, and otherwise -1.

    Args:
        classifier: the model.
        images: ``[N, C, H, W]`` as in ``data.batching``, read ``batch_size`` at a time.
        labels: class indices ``[N]``.
        split: codes of ``data.splits``, ``[N]``.
        batch_size: number of images per forward pass.

    Raises:
        ValueError: logits are not finite, or they are probabilities.
    """
    predicted = np.empty(len(labels), dtype=np.int64)
    probability = np.empty(len(labels))
    not_finite, start, are_probabilities = 0, 0, len(labels) > 0
    with closing(logit_batches(classifier, images, batch_size=batch_size)) as batches:
        for batch in batches:
            rows = slice(start, start + len(batch))
            logits = batch.double()
            targets = torch.tensor(labels[rows], device=logits.device)
            classes = logits.argmax(1)
            if classifier.multi_label:
                classes = torch.where(is_predicted(classifier, logits, targets), targets, NO_CLASS)
            predicted[rows] = classes.cpu().numpy()
            of_labels = probabilities(classifier, logits).gather(1, targets[:, None])
            probability[rows] = of_labels.squeeze(1).cpu().numpy()
            # Counted instead of raised at once, so that the message contains the number of images.
            not_finite += int((~logits.isfinite()).any(1).sum())
            sums_to_one = (logits.sum(1) - 1).abs().amax() < 1e-4
            are_probabilities &= bool((logits >= 0).all() & sums_to_one)
            start = rows.stop
    if are_probabilities and classifier.classes > 1 and not classifier.multi_label:
        raise ValueError("logits of all images are probabilities that sum to 1; set output: softmax")
    if not_finite:
        raise ValueError(f"logits of {not_finite} of {len(labels)} images are not finite")
    return pd.DataFrame(
        {
            "image": np.arange(len(labels)),
            "split": [SPLITS[int(code)] for code in split],
            "label": labels,
            "predicted": predicted,
            "probability": probability,
        }
    )


def accuracies(
    predictions: pd.DataFrame, classes: Sequence[str], *, chance: float | None = None
) -> dict[str, Any]:
    """Return accuracies in [0, 1] as plain JSON: for each set and split, over all images and per class.

    Balanced accuracy is the mean of the accuracies of the classes that have images.

    Args:
        predictions: rows of ``predict``, with the name of the set in a column ``data``.
        classes: names of the model's classes.
        chance: balanced accuracy of random predictions, if it does not follow from the classes that have images.

    Returns:
        ``{set: {split: {"images": n, "accuracy": a, "balanced_accuracy": b, "largest_class": s, "per_class":
        {class: a}, "counts": {class: {"correct": c, "images": n}}}}}`` with s the share of the most frequent class, and
        ``"chance"`` if it is not None.
    """
    table = predictions.assign(correct=predictions["label"] == predictions["predicted"])
    result: dict[str, Any] = {}
    for name in dict.fromkeys(table["data"]):
        result[name] = {}
        set_rows = table[table["data"] == name]
        for split in dict.fromkeys(set_rows["split"]):
            split_rows = set_rows[set_rows["split"] == split]
            by_class = split_rows.groupby("label")["correct"].agg(["mean", "sum", "size"])
            result[name][split] = {
                "images": len(split_rows),
                "accuracy": float(split_rows["correct"].mean()),
                "balanced_accuracy": float(by_class["mean"].mean()),
                **({"chance": chance} if chance is not None else {}),
                "largest_class": float(split_rows["label"].value_counts(normalize=True).iloc[0]),
                "per_class": {
                    classes[label]: float(accuracy) for label, accuracy in by_class["mean"].items()
                },
                "counts": {
                    classes[label]: {"correct": int(row["sum"]), "images": int(row["size"])}
                    for label, row in by_class.iterrows()
                },
            }
    return result

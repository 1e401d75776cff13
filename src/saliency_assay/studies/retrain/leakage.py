"""Mask leakage: accuracy of a classifier trained on masks alone (IteROAR, section 4.7)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.nn import functional

from saliency_assay.data.splits import TEST, TRAIN, Ints, Split
from saliency_assay.models.inference import logits
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.training.hyperparameters import training_from
from saliency_assay.training.task import RuntimeOptions, TrainingTask, fit

LABELS = ("own", "random")
# Fixed, because mask pixels are 0 or 1 in every iteration: statistics of the masks would differ between iterations.
NORMALIZATION = ((0.5,), (0.5,))
# Shifting or mirroring the masks, or removing pixels of them, would hide leakage by position.
PLAIN = {"augment_flip": False, "augment_shift": 0, "augment_removal": 0.0, "augment_deletion": 0}


def leakage(
    task: TrainingTask,
    model: Mapping[str, Any],
    training: Mapping[str, Any],
    runtime: RuntimeOptions,
    *,
    repeats: int,
    seed: int,
) -> pd.DataFrame:
    """Train classifiers on masks, with the images' labels and with permuted labels, and measure their test accuracy.

    Args:
        task: masks as images uint8 ``[N, 1, H, W]``, and the labels of their images.
        model: fields of ``Blueprint``: f_i's architecture, with one input channel.
        training: fields of ``Training`` as for f_i, defaults for the rest; augmentation is turned off.
        runtime: runtime options; ``state`` is a folder for one state per training, which the caller deletes.
        repeats: number of pairs of classifiers; the two of a pair share initial weights and order of images.
        seed: seed of the study.

    Returns:
        One row per classifier: ``repeat``, ``labels`` (``own`` or ``random``), ``accuracy`` (share of test images in
        0–1), ``loss`` (cross-entropy, nats) and ``images``, the number of test images.
    """
    rows, unaugmented = [], {**training, **PLAIN}
    batch_size = training_from(unaugmented).batch_size
    for repeat in range(repeats):
        # This name is part of the seed: with another, random numbers would differ.
        repeat_seed = seed_of(seed, "leak", str(repeat))
        for name in LABELS:
            labels = task.labels if name == "own" else shuffled(task.labels, task.split, repeat_seed)
            state = runtime.state / f"{repeat}_{name}.pt"
            # A fingerprint per kind of labels: a training must not resume from the state of the other kind.
            relabeled = replace(task, labels=labels, fingerprint=f"{task.fingerprint} {name}")
            training_runtime = replace(runtime, state=state)
            classifier, _ = fit(
                relabeled, model, unaugmented, training_runtime, seed=repeat_seed, normalization=NORMALIZATION
            )
            rows.append({"repeat": repeat, "labels": name, **_evaluate(classifier, relabeled, batch_size)})
    return pd.DataFrame(rows)


def shuffled(labels: Ints, split: Split, seed: int) -> Ints:
    """Permute labels ``[N]`` separately within training and test images, so that each keeps its class counts."""
    generator = np.random.default_rng(seed)
    result = labels.copy()
    for split_value in (TRAIN, TEST):
        indices = np.flatnonzero(split == split_value)
        result[indices] = labels[generator.permutation(indices)]
    return result


def _evaluate(classifier: Any, task: TrainingTask, batch_size: int) -> dict[str, float | int]:
    """Return test accuracy, test loss and the number of test images."""
    test = torch.from_numpy(np.flatnonzero(task.split == TEST))
    outputs = logits(classifier, task.images, batch_size=batch_size, indices=test).double()
    labels = torch.from_numpy(task.labels)[test]
    return {
        "accuracy": (outputs.argmax(1) == labels).double().mean().item(),
        "loss": functional.cross_entropy(outputs, labels).item(),
        "images": len(test),
    }

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
from saliency_assay.training.settings import training_from
from saliency_assay.training.task import RuntimeOptions, TrainingTask, fit

LABELS = ("own", "random")
# A mask's pixels are 0 or 1, whatever their shares: a fixed scale keeps classifiers of all iterations alike.
NORMALISATION = ((0.5,), (0.5,))
# A leak at a place is the first that moving or mirroring the masks would hide.
PLAIN = {"augment_flip": False, "augment_shift": 0}


def leakage(
    task: TrainingTask,
    model: Mapping[str, Any],
    training: Mapping[str, Any],
    runtime: RuntimeOptions,
    *,
    repeats: int,
    seed: int,
) -> pd.DataFrame:
    """Test accuracy of classifiers of masks, with the images' own labels and with labels at random.

    Args:
        task: masks as images uint8 ``[N, 1, H, W]``, and the labels of the images that they are of.
        model: fields of ``Blueprint``: f_i's architecture, with one input channel.
        training: fields of ``Training``, defaults for the rest: f_i's, but for augmentation, which is left out.
        runtime: where it runs; ``state`` is a folder with one state for each training, which the caller deletes.
        repeats: classifiers with either labels, each pair from other initial weights and in another order.
        seed: the study's.

    Returns:
        One row a classifier: ``repeat``, ``labels`` (``own`` or ``random``), ``accuracy`` (share of test images in
        0–1), ``loss`` (cross-entropy, nats) and ``images``, the number of test images.
    """
    rows, plain = [], {**training, **PLAIN}
    batch_size = training_from(plain).batch_size
    for repeat in range(repeats):
        own = seed_of(seed, "leak", str(repeat))
        for name in LABELS:
            labels = task.labels if name == "own" else shuffled(task.labels, task.split, own)
            state = runtime.state / f"{repeat}_{name}.pt"
            relabeled = replace(task, labels=labels, fingerprint=f"{task.fingerprint} {name}")
            at = replace(runtime, state=state)
            classifier, _ = fit(relabeled, model, plain, at, seed=own, normalisation=NORMALISATION)
            rows.append({"repeat": repeat, "labels": name, **_judged(classifier, relabeled, batch_size)})
    return pd.DataFrame(rows)


def shuffled(labels: Ints, split: Split, seed: int) -> Ints:
    """Labels ``[N]`` assigned at random, training and test images each keeping their numbers of every class."""
    generator = np.random.default_rng(seed)
    mixed = labels.copy()
    for part in (TRAIN, TEST):
        where = np.flatnonzero(split == part)
        mixed[where] = labels[generator.permutation(where)]
    return mixed


def _judged(classifier: Any, task: TrainingTask, batch_size: int) -> dict[str, float | int]:
    test = torch.from_numpy(np.flatnonzero(task.split == TEST))
    found = logits(classifier, task.images, batch_size=batch_size, indices=test).double()
    labels = torch.from_numpy(task.labels)[test]
    return {
        "accuracy": (found.argmax(1) == labels).double().mean().item(),
        "loss": functional.cross_entropy(found, labels).item(),
        "images": len(test),
    }

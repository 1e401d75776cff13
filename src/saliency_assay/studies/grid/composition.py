"""Composition of grids of images of different classes, each of which the model classifies with confidence."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

import numpy as np
import torch
from numpy import ndarray as Array

from saliency_assay.data.selection import background_images
from saliency_assay.methods.engine import arguments
from saliency_assay.methods.inputs import arguments_of, labels_of
from saliency_assay.models.classifier import Classifier, probabilities
from saliency_assay.models.grid_settings import join
from saliency_assay.models.inference import logit_batches

NO_CLASS = -1
"""Class of an image that is not in any grid."""


class Grids:
    """Grids ``[G, C, n h, n w]`` of stored images ``[G n², C, h, w]``, composed batch by batch."""

    def __init__(self, images: Any, cells: int) -> None:
        self.images, self.cells = images, cells

    def __len__(self) -> int:
        return len(self.images) // self.cells**2

    def __getitem__(self, rows: slice) -> torch.Tensor:
        start, stop, _ = rows.indices(len(self))
        size = self.cells**2
        return join(torch.from_numpy(np.asarray(self.images[start * size : stop * size])), self.cells)


def confident_classes(
    classifiers: Iterable[Classifier],
    images: Any,
    labels: Array | None,
    *,
    confidence: float,
    batch_size: int,
) -> Array:
    """Return the class of each image that all classifiers predict with confidence, int64 ``[N]``, else ``NO_CLASS``.

    Args:
        classifiers: models of different training seeds.
        images: ``[N, C, H, W]`` as in ``data.batching``.
        labels: the class that the models must predict ``[N]``; None for any that is the same for all.
        confidence: smallest probability of the class.
        batch_size: images per forward pass.
    """
    classes = labels.copy() if labels is not None else None
    for classifier in classifiers:
        predicted, start = np.empty(len(images), dtype=np.int64), 0
        with closing(logit_batches(classifier, images, batch_size=batch_size)) as batches:
            for logits in batches:
                # In float64, because float32 has no numbers between 1 − 6e-8 and 1.
                of_batch, best = probabilities(classifier, logits.double()).max(1)
                best[of_batch < confidence] = NO_CLASS
                predicted[start : start + len(best)] = best.cpu().numpy()
                start += len(best)
        classes = predicted if classes is None else np.where(predicted == classes, classes, NO_CLASS)
    assert classes is not None
    return classes


def one_of_each(groups: Array, classes: Array) -> Array:
    """Return ``classes`` ``[N]`` with ``NO_CLASS`` for all images of a group but the first that has a class.

    No two grids then contain images of one group, such as a patient.
    """
    chosen = np.flatnonzero(classes != NO_CLASS)
    _, first = np.unique(groups[chosen], return_index=True)
    result = np.full_like(classes, NO_CLASS)
    result[chosen[first]] = classes[chosen[first]]
    return result


def compose(classes: Array, *, cells: int, grids: int, generator: np.random.Generator) -> Array:
    """Return the images of each grid, row by row, as indices ``[grids, n²]`` with n ``cells``.

    The classes in a grid are different, and no image is in two grids. Classes contribute as equal numbers of images as
    possible; these images, and the cells in which they are, are random. The authors' program samples classes
    uniformly until one has no images left.

    Args:
        classes: class of each image, or ``NO_CLASS`` ``[N]``.
        cells: images in a row.
        grids: number of grids.
        generator: source of random numbers.

    Raises:
        ValueError: there are too few images for as many grids.
    """
    size = cells**2
    names, counts = np.unique(classes[classes != NO_CLASS], return_counts=True)
    possible = _most_grids(counts, size)
    if possible < grids:
        raise ValueError(
            f"grids: found {counts.sum()} images of {len(names)} classes that are classified with confidence, enough "
            f"for {possible} grids of {cells} × {cells} different classes, expected {grids}; set a lower confidence, "
            "or fewer grids or cells"
        )
    quota = next(limit for limit in range(1, grids + 1) if np.minimum(counts, limit).sum() >= size * grids)
    remaining = {name: list(generator.permutation(np.flatnonzero(classes == name))[:quota]) for name in names}
    result = np.empty((grids, size), dtype=np.int64)
    for row in result:
        # The classes with most images left, which leaves as many grids as possible; ties in random order.
        order = generator.permutation(len(names))
        left = np.array([len(remaining[names[index]]) for index in order])
        chosen = order[np.argsort(-left, kind="stable")[:size]]
        row[:] = generator.permutation([remaining[names[index]].pop() for index in chosen])
    return result


def _most_grids(counts: Array, size: int) -> int:
    """Return how many grids of ``size`` different classes can be composed of ``counts`` images of each class."""
    low, high = 0, int(counts.sum()) // size
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(counts, middle).sum() >= size * middle else (low, middle - 1)
    return low


def arguments_for_grids(
    method: Mapping[str, Any], grids: Any, data: Any, device: torch.device, cells: int
) -> dict[str, Any]:
    """Return a method's keyword arguments; its background, if any, are grids of training images.

    Args:
        method: as in ``methods.inputs.arguments_of``.
        grids: open store of the images of grids.
        data: open store of the set that they are from; None if the method takes no background.
        device: device of the background.
        cells: images in a row of a grid.
    """
    if data is None:
        return arguments_of(method, grids, device)
    count = method["background"] * cells**2
    indices = background_images(data["split"][:], labels_of(data), count)
    return arguments(method["parameters"], None, Grids(data["image"][indices], cells)[:], device)

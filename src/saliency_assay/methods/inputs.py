"""Images and targets that the maps of a model explain, and the keyword arguments of a method."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from saliency_assay.data.selection import background_images, explained_images, fitting
from saliency_assay.methods.engine import arguments
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import logits
from saliency_assay.models.labels import model_labels
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.runtime.shards import WHOLE, Shard, blocks

TARGETS = ("label", "predicted")


class Explained(NamedTuple):
    """The explained images of one shard of a data set."""

    images: np.ndarray  # ascending indices into the set, int64 [N]
    targets: np.ndarray  # the explained class of each, int64 [N]
    offset: int  # number of explained images in the shards before it


def explained(
    data: Any,
    classifier: Classifier,
    *,
    limit: int,
    order: str,
    label: str,
    target: str,
    batch_size: int,
    classes: Mapping[str, Any] | None = None,
    where: Mapping[str, int | Sequence[str]] | None = None,
    shard: Shard = WHOLE,
) -> Explained:
    """Select at most ``limit`` test images, and return those in ``shard`` with a class for each.

    ``data`` is an open store with the arrays ``image``, ``split`` and ``label_…``, listed in its ``names``. Images are
    chosen in the ``order`` of ``explained_images``, balanced over all labels or the first. The class is the image's
    ``label`` or, with ``target`` ``predicted``, the class of highest probability; ``classes`` as in ``model_labels``.

    ``where`` restricts the choice to images with this value in each named array of numbers or booleans, or with one of
    these classes.

    Raises:
        ValueError: unknown ``target``; ``where`` names an array without one value per image, or no test image has its
            values; more shards than blocks of images (``shards``).
    """
    if target not in TARGETS:
        raise ValueError(f"target: found {target!r}, valid: {', '.join(TARGETS)}")
    indices = explained_indices(data, limit=limit, order=order, where=where)
    shard_slice = shard.slice_of(len(indices))
    indices, offset = indices[shard_slice], shard_slice.start
    if target == "label":
        return Explained(indices, model_labels(data, label, classes)[indices], offset)
    # Blocks do not depend on the number of shards: with other batches, rounding could change the most probable class.
    targets = np.empty(len(indices), dtype=np.int64)
    for _, block in blocks(len(indices), offset):
        block_logits = logits(classifier, data["image"].at(indices[block]), batch_size=batch_size)
        targets[block] = block_logits.argmax(1).numpy()
    return Explained(indices, targets, offset)


def explained_indices(
    data: Any, *, limit: int, order: str, where: Mapping[str, int | Sequence[str]] | None = None
) -> np.ndarray:
    """Return the ascending indices of the explained images of all shards, int64 ``[N]``; see ``explained``."""
    among = fitting(data, where) if where else None
    return np.sort(explained_images(data["split"][:], labels_of(data), limit, order=order, among=among))


def labels_of(data: Any) -> list[np.ndarray]:
    """Return all labels of the images in ``data``, each ``[N]``."""
    return [data[name][:] for name in data.names if name.startswith("label_")]


def arguments_of(
    method: Mapping[str, Any], data: Any, device: torch.device, images: Any = None
) -> dict[str, Any]:
    """Return a method's keyword arguments: its ``parameters``, its ``base`` and its ``background`` images.

    The background is taken from ``data`` or, if not None, from ``images``: a modified copy of the same images.
    """
    indices = background_images(data["split"][:], labels_of(data), method.get("background", 0))
    background = (data["image"] if images is None else images)[indices]
    base = method.get("base")
    smoothed = partial(resolve(base["function"]), **base["parameters"]) if base else None
    return arguments(method["parameters"], smoothed, background, device)


def map_seed(seed: int, model: str, data: str, noise_group: str) -> int:
    """Return the seed of a method's maps of one model on one set; methods of one ``noise_group`` share their noise."""
    return seed_of(seed, "attribute", model, data, noise_group)

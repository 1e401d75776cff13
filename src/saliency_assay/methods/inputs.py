"""Images and targets that the maps of a model explain, and the data that a method takes."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from saliency_assay.data.selection import background_images, explained_images, fitting
from saliency_assay.methods.engine import arguments
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import logits
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.runtime.shards import WHOLE, Part, blocks

TARGETS = ("label", "predicted")


class Explained(NamedTuple):
    """The images that one part of a set's maps are of."""

    images: np.ndarray  # ascending indices into the set, int64 [N]
    targets: np.ndarray  # the class of each that is explained, int64 [N]
    offset: int  # how many explained images the parts before it have


def explained(
    data: Any,
    classifier: Classifier,
    *,
    limit: int,
    order: str,
    label: str,
    target: str,
    batch_size: int,
    where: Mapping[str, int] | None = None,
    part: Part = WHOLE,
) -> Explained:
    """At most ``limit`` test images, of them those of ``part``, and a class for each.

    ``data`` holds the arrays ``image``, ``split`` and ``label_…`` and lists them as ``names``: an open store. Images
    are chosen in the ``order`` of ``explained_images``, balanced over all labels or the first. The class is the image's
    own ``label``, or under ``target`` ``predicted`` the one that the classifier finds most probable.

    Only images come into question of which each array that ``where`` names, of numbers or of booleans, has the value
    that it gives.

    Raises:
        ValueError: another ``target``; ``where`` names no array of one value an image, or no test image has its values;
            more parts than there are blocks of images (``shards``).
    """
    if target not in TARGETS:
        raise ValueError(f"target: found {target!r}, valid: {', '.join(TARGETS)}")
    split = data["split"][:]
    among = fitting(data, where) if where else None
    chosen = np.sort(explained_images(split, labels_of(data), limit, order=order, among=among))
    stretch = part.stretch(len(chosen))
    chosen, offset = chosen[stretch], stretch.start
    if target == "label":
        return Explained(chosen, data[f"label_{label}"][chosen], offset)
    # In the batches of the whole set: in others, rounding could make another class the most probable one.
    targets = np.empty(len(chosen), dtype=np.int64)
    for _, block in blocks(len(chosen), offset):
        found = logits(classifier, data["image"].at(chosen[block]), batch_size=batch_size)
        targets[block] = found.argmax(1).numpy()
    return Explained(chosen, targets, offset)


def labels_of(data: Any) -> list[np.ndarray]:
    """All labels of the images in ``data``, each ``[N]``."""
    return [data[name][:] for name in data.names if name.startswith("label_")]


def arguments_of(
    method: Mapping[str, Any], data: Any, device: torch.device, images: Any = None
) -> dict[str, Any]:
    """Return a method's keyword arguments: its ``parameters``, its ``base``, its ``background`` of images.

    Those are from ``data``, or from ``images``, which are the same in another state.
    """
    sample = background_images(data["split"][:], labels_of(data), method.get("background", 0))
    background = (data["image"] if images is None else images)[sample]
    base = method.get("base")
    smoothed = partial(resolve(base["function"]), **base["parameters"]) if base else None
    return arguments(method["parameters"], smoothed, background, device)


def map_seed(seed: int, model: str, data: str, noise_group: str) -> int:
    """Return the seed of a method's maps of one model on one set; methods of one ``noise_group`` see the same noise."""
    return seed_of(seed, "attribute", model, data, noise_group)

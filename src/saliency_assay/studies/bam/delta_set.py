"""The set of originals and changed images that input independence is measured on, from BAM's X_os and X_0s."""

import logging
from collections.abc import Mapping, Sequence

import numpy as np

from saliency_assay.data.selection import explained_images
from saliency_assay.data.splits import TEST, Ints, Split

log = logging.getLogger(__name__)


def chosen_images(
    split: Split, labels: Mapping[str, Ints], objects: Sequence[str], wanted: str, limit: int
) -> Ints:
    """Indices of at most ``limit`` test images with the object ``wanted``, balanced over scenes, in order of choice.

    Fewer than ``limit`` are logged.

    Args:
        split: ``[N]``.
        labels: ``label_object`` and ``label_scene``, ``[N]`` each.
        objects: names of the objects.
        wanted: one of them.
        limit: at least 1.

    Raises:
        ValueError: another object, or one that no test image has.
    """
    if wanted not in objects:
        raise ValueError(f"common_object: found {wanted!r}, valid: {', '.join(objects)}")
    order = explained_images(split, list(labels.values()))
    found: Ints = order[labels["label_object"][order] == objects.index(wanted)][:limit]
    if not len(found):
        raise ValueError(f"images: found no test image of {wanted!r}, expected up to {limit}")
    if len(found) < limit:
        log.warning("images: %d test images of %r, fewer than %d: all are taken", len(found), wanted, limit)
    return found


def paired(
    images: np.ndarray, columns: Mapping[str, np.ndarray], source: Ints, found: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The arrays ``[2n, …]`` of the data store: first the n originals, then the n changed images in the same order.

    ``image``; ``changed``, False and then True; ``source``, indices into the set of the originals; ``columns`` twice;
    ``split``, all of them test images; and the norms and the convergence of ``found``, 0 for originals.

    Args:
        images: the originals, uint8 ``[n, C, H, W]``.
        columns: mask and labels of each, ``[n, …]``.
        source: ``[n]``.
        found: as ``functional.change_all`` gives it.
    """
    count = len(images)
    measured = {name: values for name, values in found.items() if name != "image"}
    return {
        "image": np.concatenate([images, found["image"]]),
        **{name: np.concatenate([values, values]) for name, values in columns.items()},
        "split": np.full(2 * count, TEST, dtype=np.uint8),
        "source": np.concatenate([source, source]),
        "changed": np.arange(2 * count) >= count,
        **{name: np.concatenate([np.zeros_like(values), values]) for name, values in measured.items()},
    }

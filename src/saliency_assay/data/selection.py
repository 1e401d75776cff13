"""Selection of test images to explain, and of training images for a background sample."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from saliency_assay.data.splits import TEST, TRAIN, Ints, Split
from saliency_assay.registry.records import unknown

ORDERS = ("balanced", "first")


def explained_images(
    split: Split,
    labels: Sequence[Ints],
    limit: int | None = None,
    *,
    order: str = "balanced",
    among: npt.NDArray[np.bool_] | None = None,
) -> Ints:
    """Return the indices of at most ``limit`` test images, in the order of selection.

    The order ``balanced`` cycles through the combinations of ``labels``, one test image of each, by the diagonals of
    the table of labels, so that the first ten images of BAM show ten objects and ten scenes. The selection is not
    random: a larger limit returns the same indices followed by more.

    Args:
        split: ``[N]``, TRAIN or TEST.
        labels: one or several arrays ``[N]`` of class indices.
        limit: None for all test images.
        order: ``balanced``, or ``first`` for the order of the data set.
        among: ``[N]``, mask of the eligible images; None for all.

    Raises:
        ValueError: an unknown ``order``.
    """
    if order not in ORDERS:
        raise ValueError(f"order: found {order!r}, valid: {', '.join(ORDERS)}")
    members = np.flatnonzero(split == TEST if among is None else (split == TEST) & among)
    return members[:limit].astype(np.int64) if order == "first" else _balance(members, labels)[:limit]


def fitting(data: Any, where: Mapping[str, int | Sequence[str]]) -> npt.NDArray[np.bool_]:
    """Return a mask ``[N]`` of the images in an open store whose arrays have all values in ``where``.

    Args:
        data: the store.
        where: required value of each array, by name, such as ``{"label_object": 2}``; for a label also the names of
            classes, one of which an image must have.

    Raises:
        ValueError: the store has no such array or class, or no test image matches.
    """
    split = data["split"][:]
    vector_names = [name for name in data.names if len(data[name].shape) == 1]
    matches = np.ones(len(split), dtype=bool)
    for name, value in where.items():
        if name not in vector_names:
            raise ValueError(f"where: found {name!r}, valid: {', '.join(vector_names)}")
        if isinstance(value, int):
            matches &= data[name][:] == value
        else:
            matches &= np.isin(data[name][:], indices_of(value, data.attributes["classes"][name[6:]]))
    if not (matches & (split == TEST)).any():
        texts = {
            name: value if isinstance(value, int) else " or ".join(value) for name, value in where.items()
        }
        values = ", ".join(f"{name} {text}" for name, text in texts.items())
        raise ValueError(f"where: found no test image of {values}, expected at least one")
    return matches


def indices_of(names: Sequence[str], classes: Sequence[str]) -> list[int]:
    """Return the indices of classes by name.

    Raises:
        ValueError: there is no such class.
    """
    for name in names:
        if name not in classes:
            raise ValueError(f"explained_classes: {unknown('class', name, classes)}")
    return [classes.index(name) for name in names]


def background_images(split: Split, labels: Sequence[Ints], count: int) -> Ints:
    """Return the ascending indices of ``count`` training images, or all if fewer, balanced as ``explained_images``."""
    return np.sort(_balance(np.flatnonzero(split == TRAIN), labels)[:count])


def _balance(members: Ints, labels: Sequence[Ints]) -> Ints:
    """Order ``members`` so that every leading part is balanced over the combinations of ``labels``."""
    if not len(members):
        return members.astype(np.int64)
    member_labels = [np.asarray(label)[members] for label in labels]
    # The n-th members of all combinations precede the (n+1)-th. Among the n-th, images on one diagonal (equal
    # difference of two labels) precede those on the next. ``lexsort`` sorts by its last key first.
    diagonals = [(label - member_labels[0]) % (int(label.max()) + 1) for label in member_labels[1:]]
    order = np.lexsort([member_labels[0], *diagonals, _count_earlier(member_labels)])
    return members[order].astype(np.int64)


def _count_earlier(labels: Sequence[Ints]) -> Ints:
    """Return, for each member, the number of earlier members with the same labels."""
    _, stratum = np.unique(np.stack(labels), axis=1, return_inverse=True)
    # Position of each member in its stratum: its position in the sorted order minus that of the stratum's first member.
    by_stratum = np.argsort(stratum.ravel(), kind="stable")
    sizes = np.bincount(stratum.ravel())
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    earlier = np.empty(len(by_stratum), dtype=np.int64)
    earlier[by_stratum] = np.arange(len(by_stratum)) - starts
    return earlier

"""Selection of the test images to explain, and of the training images of a background sample."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from saliency_assay.data.splits import TEST, TRAIN, Ints, Split

ORDERS = ("balanced", "first")


def explained_images(
    split: Split,
    labels: Sequence[Ints],
    limit: int | None = None,
    *,
    order: str = "balanced",
    among: npt.NDArray[np.bool_] | None = None,
) -> Ints:
    """Return indices of at most ``limit`` test images, ``balanced`` over the combinations of ``labels``, or the
    ``first``.

    Combinations are visited in turn, each giving its next test image. They are visited along the diagonals of
    the table of labels, so that ten images of BAM show ten objects and ten scenes. The answer is in order of
    choice and random-free: a larger limit gives the same indices and then more.

    Args:
        split: ``[N]``, TRAIN or TEST.
        labels: one or several ``[N]`` of class indices.
        limit: None for all test images.
        order: ``balanced`` or ``first``, as the data set has them.
        among: ``[N]``, the images that come into question; None for all.

    Raises:
        ValueError: another ``order``.
    """
    if order not in ORDERS:
        raise ValueError(f"order: found {order!r}, valid: {', '.join(ORDERS)}")
    members = np.flatnonzero(split == TEST if among is None else (split == TEST) & among)
    return members[:limit].astype(np.int64) if order == "first" else _balanced(members, labels)[:limit]


def fitting(data: Any, where: Mapping[str, int]) -> npt.NDArray[np.bool_]:
    """Return the images ``[N]`` of an open store that have all values of ``where``: of its arrays, by name.

    Raises:
        ValueError: an array that it does not have, or no test image.
    """
    split = data["split"][:]
    single = [name for name in data.names if len(data[name].shape) == 1]
    found = np.ones(len(split), dtype=bool)
    for name, value in where.items():
        if name not in single:
            raise ValueError(f"where: found {name!r}, valid: {', '.join(single)}")
        found &= data[name][:] == value
    if not (found & (split == TEST)).any():
        values = ", ".join(f"{name} {value}" for name, value in where.items())
        raise ValueError(f"where: found no test image of {values}, expected at least one")
    return found


def background_images(split: Split, labels: Sequence[Ints], count: int) -> Ints:
    """Return indices of ``count`` training images, or all if there are fewer, balanced as ``explained_images`` is."""
    return np.sort(_balanced(np.flatnonzero(split == TRAIN), labels)[:count])


def _balanced(members: Ints, labels: Sequence[Ints]) -> Ints:
    """``members`` in an order of which every beginning is balanced over the combinations of ``labels``."""
    if not len(members):
        return members.astype(np.int64)
    chosen = [np.asarray(label)[members] for label in labels]
    # Lexicographic sort keys, the last one first: turn, diagonals, first label.
    diagonals = [(label - chosen[0]) % (int(label.max()) + 1) for label in chosen[1:]]
    order = np.lexsort([chosen[0], *diagonals, _turn(chosen)])
    return members[order].astype(np.int64)


def _turn(labels: Sequence[Ints]) -> Ints:
    """For each member, how many members before it have the same labels."""
    _, stratum = np.unique(np.stack(labels), axis=1, return_inverse=True)
    by_stratum = np.argsort(stratum.ravel(), kind="stable")
    sizes = np.bincount(stratum.ravel())
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    turn = np.empty(len(by_stratum), dtype=np.int64)
    turn[by_stratum] = np.arange(len(by_stratum)) - starts
    return turn

"""Classes as combinations of variants of parts: sufficient sets of parts, and classes that share parts.

A set of parts is a number whose bit p is 1 if it contains part p, so that sets are indices into arrays of 2^P entries.
"""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
SHARED = 2
"""Number of parts that an image's class shares with each of the classes of target sensitivity."""


def class_table(labels: Ints, variants: Ints) -> Ints:
    """Return the variants of the parts of each class, int64 ``[K, P]``.

    Args:
        labels: class of each image ``[N]``, from 0 without gaps.
        variants: variant of each part ``[N, P]``, or a negative number if the image lacks it.

    Raises:
        ValueError: a class has no variant of a part, or several.
    """
    table = np.full((labels.max() + 1, variants.shape[1]), -1, dtype=np.int64)
    np.maximum.at(table, labels, variants)
    if (table < 0).any():
        raise ValueError(
            f"variants: found no image with all parts of class {int((table < 0).any(1).argmax())}"
        )
    if ((variants >= 0) & (variants != table[labels])).any():
        raise ValueError(
            "variants: found images of one class with different variants of a part, expected one"
        )
    return table


def sizes_of_sets(parts: int) -> Ints:
    """Return the number of parts in each set, int64 ``[2^P]``."""
    return np.array([number.bit_count() for number in range(2**parts)], dtype=np.int64)


def minimal_sufficient_sets(table: Ints) -> npt.NDArray[np.bool_]:
    """Return which sets of parts identify each class without a superfluous part, bool ``[K, 2^P]``.

    A set is sufficient if no other class has the same variants of its parts, and minimal if no proper subset is.
    """
    shared = _shared_sets(table)
    sets = np.arange(2 ** table.shape[1])
    others = ~np.eye(len(table), dtype=bool)
    occurs_in_other = (
        sets & ~shared[:, :, None]
    ) == 0  # the set is a subset of the parts that both classes share
    sufficient = ~(occurs_in_other & others[:, :, None]).any(1)
    is_proper_subset = ((sets & ~sets[:, None]) == 0) & (sets != sets[:, None])  # [set, subset]
    minimal: npt.NDArray[np.bool_] = sufficient & ~(sufficient[:, None] & is_proper_subset).any(2)
    return minimal


def intersection_rates(table: Ints) -> npt.NDArray[np.float64]:
    """Return for each class and set the largest share of a minimal sufficient set in it, float64 ``[K, 2^P]``."""
    sets, sizes = np.arange(2 ** table.shape[1]), sizes_of_sets(table.shape[1])
    shares = sizes[sets[:, None] & sets] / np.maximum(sizes, 1)  # [set, minimal sufficient set]
    rates: npt.NDArray[np.float64] = (minimal_sufficient_sets(table)[:, None] * shares).max(2)
    return rates


def contrasted_classes(table: Ints) -> tuple[Ints, Ints]:
    """Return for each class two others that share two parts each with it, but no part with both.

    Returns:
        The first such pair of classes ``[K, 2]``, −1 if there is none, and the sets of the shared parts ``[K, 2]``.
    """
    shared = _shared_sets(table)
    sizes = sizes_of_sets(table.shape[1])
    classes, sets = np.full((len(table), 2), -1), np.zeros((len(table), 2), dtype=np.int64)
    for number, of_class in enumerate(shared):
        candidates = np.flatnonzero(sizes[of_class] == SHARED)
        for first in candidates:
            disjoint = candidates[(candidates > first) & (of_class[candidates] & of_class[first] == 0)]
            if len(disjoint):
                classes[number] = first, disjoint[0]
                sets[number] = of_class[classes[number]]
                break
    return classes, sets


def _shared_sets(table: Ints) -> Ints:
    """Return the set of parts whose variants each two classes share, int64 ``[K, K]``."""
    shared: Ints = ((table[:, None] == table) << np.arange(table.shape[1])).sum(2)
    return shared

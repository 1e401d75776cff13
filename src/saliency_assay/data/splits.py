"""Split of images into training, validation and test sets."""

from typing import Any

import numpy as np
import numpy.typing as npt

from saliency_assay.runtime.provenance import seed_of

TRAIN = 0
TEST = 1
VALIDATION = 2  # not stored: each training samples it from the training images (with_validation)

Ints = npt.NDArray[np.int64]
Split = npt.NDArray[np.uint8]


def test_count(count: int, test_share: float) -> int:
    """Return the number of test members among ``count``: the rounded share, but at least one."""
    return max(1, round(count * test_share))


def random_split(count: int, test_share: float, generator: np.random.Generator) -> Split:
    """Return a random split ``[count]`` with exactly ``test_count`` test members."""
    split = np.full(count, TRAIN, dtype=np.uint8)
    split[generator.permutation(count)[: test_count(count, test_share)]] = TEST
    return split


class ClassError(ValueError):
    """No split of groups has training and test members of the class ``label``."""

    def __init__(self, label: int) -> None:
        super().__init__(f"class {label}: found too few groups to split")
        self.label = label


def grouped_split(labels: Ints, groups: Ints, test_share: float, generator: np.random.Generator) -> Split:
    """Return a random split ``[N]`` in which all members of a group are on one side.

    The groups are taken in random order, and each becomes part of the test set if this brings the numbers of test
    members of its classes closer, in sum, to those of ``random_split``, and leaves a training member of each class. A
    class that has no test member then gets its smallest group.

    Args:
        labels: class indices ``[N]``.
        groups: group indices ``[N]``, from 0 without gaps.
        test_share: share of test members.
        generator: random generator.

    Raises:
        ClassError: a class has no group that can be split off.
    """
    totals = np.bincount(labels)
    targets = np.array([test_count(int(total), test_share) if total else 0 for total in totals])
    by_group = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    counts = [np.unique(labels[members], return_counts=True) for members in by_group]
    tested, is_test = np.zeros_like(totals), np.zeros(len(by_group), dtype=bool)

    def take(group: int) -> None:
        is_test[group] = True
        np.add.at(tested, counts[group][0], counts[group][1])

    def leaves_training(group: int) -> bool:
        classes, number = counts[group]
        return bool((totals[classes] - tested[classes] > number).all())

    for group in generator.permutation(len(by_group)).tolist():
        classes, number = counts[group]
        missing = targets[classes] - tested[classes]
        if leaves_training(group) and np.abs(missing - number).sum() < np.abs(missing).sum():
            take(group)
    for label in np.flatnonzero((totals > 0) & (tested == 0)).tolist():
        candidates = [
            group for group in range(len(by_group)) if label in counts[group][0] and leaves_training(group)
        ]
        if not candidates:
            raise ClassError(label)
        take(min(candidates, key=lambda group: len(by_group[group])))
    return np.where(is_test[groups], TEST, TRAIN).astype(np.uint8)


def groups_of(data: Any) -> Ints | None:
    """Return the index of each image's group ``[N]``, from the array ``group`` of an open store; None without one."""
    if "group" not in data.names:
        return None
    groups: Ints = np.unique(data["group"][:], axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return groups


def with_validation(split: Split, share: float, seed: int, groups: Ints | None = None) -> Split:
    """Return ``split`` ``[N]`` with a random ``share`` of its training images marked as validation images.

    Their number is rounded, but at least one; a ``share`` of 0 returns the split unchanged. With ``groups`` ``[N]``,
    all images of a group are on one side, and the number is that nearest to it among those of the first groups in
    random order. The images depend only on the split, the groups and on ``seed``, the seed of the study, so that
    training and evaluation of a model use the same ones.

    Raises:
        ValueError: all training images are in one group.
    """
    extended = split.copy()
    training = np.flatnonzero(split == TRAIN)
    if share and len(training):
        generator = np.random.default_rng(seed_of(seed, "validation"))
        count = max(1, round(len(training) * share))
        if groups is None:
            extended[generator.permutation(training)[:count]] = VALIDATION
            return extended
        names, sizes = np.unique(groups[training], return_counts=True)
        if len(names) == 1:
            raise ValueError(
                "validation_share: found training images of one group, expected two or more groups"
            )
        order = generator.permutation(len(names))
        held_out = 1 + int(np.abs(np.cumsum(sizes[order])[:-1] - count).argmin())
        chosen = names[order[:held_out]]
        extended[training[np.isin(groups[training], chosen)]] = VALIDATION
    return extended

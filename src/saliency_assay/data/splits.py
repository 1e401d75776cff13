"""Split of images into training, validation and test sets."""

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


def with_validation(split: Split, share: float, seed: int) -> Split:
    """Return ``split`` ``[N]`` with a random ``share`` of its training images marked as validation images.

    Their number is rounded, but at least one; a ``share`` of 0 returns the split unchanged. The images depend only on
    the split and on ``seed``, the seed of the study, so that training and evaluation of a model use the same ones.
    """
    extended = split.copy()
    training = np.flatnonzero(split == TRAIN)
    if share and len(training):
        generator = np.random.default_rng(seed_of(seed, "validation"))
        extended[generator.permutation(training)[: max(1, round(len(training) * share))]] = VALIDATION
    return extended

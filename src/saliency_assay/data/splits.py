"""Training, validation and test split of images."""

import numpy as np
import numpy.typing as npt

from saliency_assay.runtime.provenance import seed_of

TRAIN = 0
TEST = 1
VALIDATION = 2  # not in a stored set: each training takes its own from the training images (with_validation)

Ints = npt.NDArray[np.int64]
Split = npt.NDArray[np.uint8]


def test_count(count: int, test_share: float) -> int:
    """Return how many of ``count`` are for testing: the rounded share, but at least one."""
    return max(1, round(count * test_share))


def random_split(count: int, test_share: float, generator: np.random.Generator) -> Split:
    """Split ``[count]`` at random, with exactly ``test_count`` test members."""
    split = np.full(count, TRAIN, dtype=np.uint8)
    split[generator.permutation(count)[: test_count(count, test_share)]] = TEST
    return split


def with_validation(split: Split, share: float, seed: int) -> Split:
    """``split`` ``[N]`` with the rounded ``share`` of its training images, but at least one, for validation.

    Which ones ``seed`` decides, that of the study: training and evaluation of one model draw the same. A ``share`` of
    0 leaves the split as it is.
    """
    found = split.copy()
    learn = np.flatnonzero(split == TRAIN)
    if share and len(learn):
        generator = np.random.default_rng(seed_of(seed, "validation"))
        found[generator.permutation(learn)[: max(1, round(len(learn) * share))]] = VALIDATION
    return found

"""Who is trained on and who is tested on."""

import numpy as np
import numpy.typing as npt

TRAIN = 0
TEST = 1

Ints = npt.NDArray[np.int64]
Split = npt.NDArray[np.uint8]


def test_count(count: int, test_share: float) -> int:
    """How many of ``count`` are for testing: the rounded share, but at least one."""
    return max(1, round(count * test_share))


def random_split(count: int, test_share: float, generator: np.random.Generator) -> Split:
    """Split ``[count]`` at random, with exactly ``test_count`` test members."""
    split = np.full(count, TRAIN, dtype=np.uint8)
    split[generator.permutation(count)[: test_count(count, test_share)]] = TEST
    return split

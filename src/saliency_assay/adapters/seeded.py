"""Global random number generators of a known state, for libraries that sample from them."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the global generators of PyTorch and NumPy, from which libraries sample, within the context."""
    state = np.random.get_state()  # noqa: NPY002  # captum uses it
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(state)  # noqa: NPY002

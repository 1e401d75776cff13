"""How much a score that is a mean over images varies from one small set of images to the next."""

import numpy as np


def spread(
    scores: np.ndarray, *, generator: np.random.Generator, draws: int = 10, draw_size: int = 100
) -> float:
    """Standard deviation of the mean score over ``draws`` draws of ``draw_size`` images (BAM, Figs. 4 and 8).

    ``scores`` is ``[N]``; NaN is left out. A draw takes each image at most once; draws are independent of each other.
    The deviation has ``draws − 1`` in the denominator. NaN unless more than ``draw_size`` images are valid:
    otherwise all draws would be the same images and the deviation a meaningless 0.

    Raises:
        ValueError: fewer than two draws, or a draw of no image.
    """
    if draws < 2 or draw_size < 1:
        raise ValueError(f"draws, draw_size: found {draws}, {draw_size}, expected at least 2 and 1")
    if np.count_nonzero(~np.isnan(scores)) <= draw_size:
        return float("nan")
    # All images are shuffled, then the valid ones taken: methods that lack different images share the rest of a draw.
    shuffled = (scores[generator.permutation(len(scores))] for _ in range(draws))
    means = [drawn[~np.isnan(drawn)][:draw_size].mean() for drawn in shuffled]
    return float(np.std(means, ddof=1))

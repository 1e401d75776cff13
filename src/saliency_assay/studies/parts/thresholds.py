"""The threshold of importance, which is selected for each method; this module must not import torch."""

from collections.abc import Iterable

import numpy as np
from numpy import ndarray as Array

THRESHOLDS = np.linspace(0.01, 0.50, 80)
"""Shares of a map's sum above which a part is important."""
OF_THRESHOLDS = ("csdc", "preservation_check", "deletion_check", "distractibility")
"""Scores that depend on the threshold."""


def best_threshold(curves: Iterable[Array]) -> int:
    """Return the index of the threshold with the best means, the same for all images.

    The sum of distractibility and of the mean of the other three scores is greatest; the lowest threshold of several.

    Args:
        curves: the scores of ``OF_THRESHOLDS``, ``[N, T]`` each, with NaN for images without a score.

    Raises:
        ValueError: no image has a score.
    """
    curves = list(curves)
    if any(np.isnan(curve).all() for curve in curves):
        raise ValueError("protocols: found no image with a score, expected correctly classified images")
    *completeness, without_distraction = (np.nanmean(curve, axis=0) for curve in curves)
    return int((sum(completeness) / 3 + without_distraction).argmax())


def part_completeness(csdc: Array, preservation: Array, deletion: Array, without_distraction: Array) -> Array:
    """Return the mean of distractibility and of the mean of the other three scores, of arrays of one shape."""
    completeness: Array = ((csdc + preservation + deletion) / 3 + without_distraction) / 2
    return completeness

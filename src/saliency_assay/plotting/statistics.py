"""Means of scores over seeds and images, with their errors, where some scores are missing."""

import numpy as np
from numpy import ndarray as Array

NORMAL_95 = 1.96


def over_seeds(rows: Array, seeds: int) -> Array:
    """Return the mean over seeds of ``[seeds · images, …]``: ``[images, …]``, of the seeds that are not NaN.

    Averages over images then have the images as their independent replicates.

    Raises:
        ValueError: the rows are not as many for every seed.
    """
    if len(rows) % seeds:
        raise ValueError(f"curves: found {len(rows)} rows, expected a multiple of {seeds}, the seeds")
    return mean_of(rows.reshape(seeds, -1, *rows.shape[1:]))


def mean_of(values: Array) -> Array:
    """Return the mean along the first axis of the values that are not NaN; NaN where there is none."""
    counts = (~np.isnan(values)).sum(0)
    return np.where(counts > 0, np.nansum(values, 0) / np.maximum(counts, 1), np.nan)


def mean_and_band(values: Array) -> tuple[Array, Array]:
    """Return the mean along the first axis and the half width of its 95 % interval, by the normal approximation.

    The half width is NaN where fewer than two values are not NaN.
    """
    counts = (~np.isnan(values)).sum(0)
    mean = mean_of(values)
    variance = np.nansum((values - mean) ** 2, 0) / np.maximum(counts - 1, 1)
    half = NORMAL_95 * np.sqrt(variance / np.maximum(counts, 1))
    return mean, np.where(counts > 1, half, np.nan)


def sparse(by_image: Array) -> Array:
    """Return where fewer than half of the images that have any value have one: bool ``[S]`` of ``[images, S]``."""
    defined = ~np.isnan(by_image)
    few: Array = 2 * defined.sum(axis=0) < defined.any(axis=1).sum()
    return few


def mean_and_error(values: Array) -> tuple[float, float]:
    """Return the mean and its standard error over the values ``[n]`` that are finite; NaN of none, and of one."""
    valid = values[np.isfinite(values)]
    error = float(valid.std(ddof=1) / np.sqrt(len(valid))) if len(valid) > 1 else np.nan
    return (float(valid.mean()) if len(valid) else np.nan), error

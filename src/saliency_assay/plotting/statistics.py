"""Means of scores over seeds and images, with standard errors, for tables with missing scores."""

import numpy as np
from numpy import ndarray as Array

NORMAL_95 = 1.96


def over_seeds(rows: Array, seeds: int) -> Array:
    """Average ``[seeds · images, …]`` over the seeds that are not NaN: ``[images, …]``.

    The images are then the independent replicates of averages over images.

    Raises:
        ValueError: the number of rows is not a multiple of ``seeds``.
    """
    if len(rows) % seeds:
        raise ValueError(f"curves: found {len(rows)} rows, expected a multiple of {seeds}, the seeds")
    return mean_of(rows.reshape(seeds, -1, *rows.shape[1:]))


def mean_of(values: Array) -> Array:
    """Return the mean along the first axis, ignoring NaN; NaN where all values are NaN."""
    counts = (~np.isnan(values)).sum(0)
    return np.where(counts > 0, np.nansum(values, 0) / np.maximum(counts, 1), np.nan)


def mean_and_band(values: Array) -> tuple[Array, Array]:
    """Return the mean along the first axis and the half width of its 95 % interval by the normal approximation.

    NaN is ignored; the half width is NaN for fewer than two values.
    """
    counts = (~np.isnan(values)).sum(0)
    mean = mean_of(values)
    variance = np.nansum((values - mean) ** 2, 0) / np.maximum(counts - 1, 1)
    half = NORMAL_95 * np.sqrt(variance / np.maximum(counts, 1))
    return mean, np.where(counts > 1, half, np.nan)


def sparse(by_image: Array) -> Array:
    """Return bool ``[S]`` of ``[images, S]``: True where fewer than half of the images with any value have one."""
    defined = ~np.isnan(by_image)
    few: Array = 2 * defined.sum(axis=0) < defined.any(axis=1).sum()
    return few


def mean_and_error(values: Array) -> tuple[float, float]:
    """Return mean and standard error of the finite values of ``[n]``; NaN without values, the error also for one."""
    valid = values[np.isfinite(values)]
    error = float(valid.std(ddof=1) / np.sqrt(len(valid))) if len(valid) > 1 else np.nan
    return (float(valid.mean()) if len(valid) else np.nan), error

"""Checks of parameter combinations: the field ``check`` of the records of methods and metrics.

Each check takes a function's parameters and returns why they are inconsistent, or an empty string. The Snakefile runs
them, so this module must not import torch.
"""

from collections.abc import Mapping
from typing import Any

Parameters = Mapping[str, Any]


def alpha_beta(parameters: Parameters) -> str:
    """Check that α − β = 1, without which LRP does not conserve relevance."""
    alpha, beta = parameters["alpha"], parameters["beta"]
    if beta < 0 or abs(alpha - beta - 1) > 1e-9:
        return f"alpha, beta: found {alpha}, {beta}, expected alpha - beta = 1 and beta of at least 0"
    return ""


def steps(parameters: Parameters) -> str:
    """Check that the trapezoid rule has a point at both ends."""
    least = 2 if parameters["rule"] == "trapezoid" else 1
    if parameters["steps"] < least:
        return (
            f"steps: found {parameters['steps']}, expected at least {least} with rule {parameters['rule']!r}"
        )
    return ""


def coalitions(parameters: Parameters) -> str:
    """Check that there are enough samples for a grid; the number of superpixels depends on the image."""
    return (
        few_samples(parameters["segments"], parameters["samples"]) if parameters["features"] == "grid" else ""
    )


def fewest_samples(segments: int) -> int:
    """Return the number of coalitions that determines the values of ``segments`` segments."""
    return min(int(2**segments) - 2, 2 * segments + 2)


def few_samples(segments: int, samples: int) -> str:
    """Check that there are enough samples to determine the values of ``segments`` segments."""
    least = fewest_samples(segments)
    return (
        f"samples: found {samples}, expected at least {least} for {segments} segments"
        if samples < least
        else ""
    )


def window(parameters: Parameters) -> str:
    """Check that the stride is not larger than the window, which would leave pixels out."""
    if not 0 <= parameters["stride"] <= parameters["window"] <= 1:
        values = f"{parameters['window']}, {parameters['stride']}"
        return f"window, stride: found {values}, expected shares of the image, 0 <= stride <= window <= 1"
    return ""


def cell_and_sigma(parameters: Parameters) -> str:
    """Check that the kernel of a mask covers few cells, since memory grows with the square of their number."""
    if parameters["sigma"] > 16 * parameters["cell"]:
        return f"sigma: found {parameters['sigma']}, expected at most 16 times cell, {parameters['cell']}"
    return ""


def sides(parameters: Parameters) -> str:
    """Check that the smallest side is not larger than the largest side."""
    if parameters["smallest"] > parameters["largest"]:
        return f"largest: found {parameters['largest']}, expected at least smallest, {parameters['smallest']}"
    return ""


def grid(parameters: Parameters) -> str:
    """Check that a grid has several cells, of which there is more than one set."""
    if parameters["grid"] == 1:
        return "grid: found 1, expected 0, for sets of pixels, or at least 2"
    return ""


def shift(parameters: Parameters) -> str:
    """Check that there is a shift, without which maps do not change."""
    return "shift: found 0, expected another number" if parameters["shift"] == 0 else ""

"""Parameters that exclude each other, told when a run is planned: nothing heavy is imported here.

Each check takes a method's parameters and returns why they do not fit together, in the words of the method's own
error, or an empty string.
"""

from collections.abc import Mapping
from typing import Any

Parameters = Mapping[str, Any]


def alpha_beta(given: Parameters) -> str:
    """LRP conserves relevance only if α − β = 1."""
    alpha, beta = given["alpha"], given["beta"]
    if abs(alpha - beta - 1) > 1e-9:
        return f"alpha, beta: found {alpha}, {beta}, expected alpha - beta = 1 and beta of at least 0"
    return ""


def steps(given: Parameters) -> str:
    """The trapezoid rule has a point at both ends."""
    if given["rule"] == "trapezoid" and given["steps"] < 2:
        return f"steps: found {given['steps']}, expected at least 2 with rule 'trapezoid'"
    return ""


def coalitions(given: Parameters) -> str:
    """Fewer samples than these do not determine the values of a grid's cells; superpixels may be fewer."""
    segments, samples = given["segments"], given["samples"]
    least = min(2**segments - 2, 2 * segments + 2)
    if given["features"] == "grid" and samples < least:
        return f"samples: found {samples}, expected at least {least} for {segments} segments"
    return ""


def window(given: Parameters) -> str:
    """Windows that are further apart than they are wide leave pixels out."""
    if given["stride"] > given["window"]:
        found = f"{given['window']}, {given['stride']}"
        return f"window, stride: found {found}, expected shares of the image, 0 <= stride <= window <= 1"
    return ""


def sides(given: Parameters) -> str:
    """There is no square between these sides."""
    if given["smallest"] > given["largest"]:
        return f"largest: found {given['largest']}, expected at least smallest, {given['smallest']}"
    return ""

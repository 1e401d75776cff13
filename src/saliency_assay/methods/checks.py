"""Parameters that exclude each other, refused when a run is planned and by the functions themselves.

Each check takes a function's parameters and returns why they do not fit together, or an empty string. Nothing heavy is
imported here.
"""

from collections.abc import Mapping
from typing import Any

Parameters = Mapping[str, Any]


def require(misfit: str) -> None:
    """Refuse parameters of which a check says why they do not fit together.

    Raises:
        ValueError: it says so.
    """
    if misfit:
        raise ValueError(misfit)


def alpha_beta(given: Parameters) -> str:
    """LRP conserves relevance only if α − β = 1."""
    alpha, beta = given["alpha"], given["beta"]
    if beta < 0 or abs(alpha - beta - 1) > 1e-9:
        return f"alpha, beta: found {alpha}, {beta}, expected alpha - beta = 1 and beta of at least 0"
    return ""


def steps(given: Parameters) -> str:
    """Check that the trapezoid rule has a point at both ends."""
    least = 2 if given["rule"] == "trapezoid" else 1
    if given["steps"] < least:
        return f"steps: found {given['steps']}, expected at least {least} with rule {given['rule']!r}"
    return ""


def coalitions(given: Parameters) -> str:
    """Fewer samples than these do not determine the values of a grid's cells; superpixels may be fewer."""
    return few_samples(given["segments"], given["samples"]) if given["features"] == "grid" else ""


def few_samples(segments: int, samples: int) -> str:
    """Fewer samples than these do not determine the values of so many segments."""
    least = min(2**segments - 2, 2 * segments + 2)
    return (
        f"samples: found {samples}, expected at least {least} for {segments} segments"
        if samples < least
        else ""
    )


def window(given: Parameters) -> str:
    """Windows that are further apart than they are wide leave pixels out."""
    if not 0 <= given["stride"] <= given["window"] <= 1:
        found = f"{given['window']}, {given['stride']}"
        return f"window, stride: found {found}, expected shares of the image, 0 <= stride <= window <= 1"
    return ""


def sides(given: Parameters) -> str:
    """There is no square between these sides."""
    if given["smallest"] > given["largest"]:
        return f"largest: found {given['largest']}, expected at least smallest, {given['smallest']}"
    return ""

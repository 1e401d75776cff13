"""Directions of scores: ``higher`` or ``lower`` is better, or closer to an ideal value, such as ``target 0``."""

from contextlib import suppress
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt  # not at runtime: the Snakefile imports this module and must start fast

ARROWS = {"higher": "↑", "lower": "↓"}
VALID = "higher, lower, target followed by a number"


def target_of(direction: str) -> float | None:
    """Return the ideal value of a score; None if higher or lower scores are better.

    Raises:
        ValueError: ``direction`` is neither ``higher``, ``lower`` nor ``target X`` with a finite number X.
    """
    if direction in ARROWS:
        return None
    name, _, number = str(direction).partition(" ")
    if name == "target":
        with suppress(ValueError):
            if isfinite(value := float(number)):
                return value
    raise ValueError(f"direction: found {direction!r}, valid: {VALID}")


def oriented(scores: "npt.NDArray[Any]", direction: str) -> "npt.NDArray[Any]":
    """Transform scores so that higher is better: ``scores``, ``-scores`` or ``-|scores - X|``; NaN stays NaN.

    Raises:
        ValueError: see ``target_of``.
    """
    target = target_of(direction)
    if target is not None:
        return -abs(scores - target)
    return scores if direction == "higher" else -scores


def arrow(direction: str) -> str:
    """Return ``↑``, ``↓`` or ``→ 0``.

    Raises:
        ValueError: see ``target_of``.
    """
    target = target_of(direction)
    return ARROWS[direction] if target is None else f"→ {target:g}"


def phrase(direction: str) -> str:
    """Return ``higher is better``, ``lower is better`` or ``closer to 0 is better``.

    Raises:
        ValueError: see ``target_of``.
    """
    target = target_of(direction)
    return f"{direction if target is None else f'closer to {target:g}'} is better"

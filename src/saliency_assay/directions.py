"""Directions of scores: higher is better, lower is better, or closer to a target is better."""

import re
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def target_of(direction: str) -> float | None:
    """Return the target of ``target X``, or None for ``higher`` and ``lower``.

    Raises:
        ValueError: ``direction`` is none of these, or X is not a finite number.
    """
    if direction in ("higher", "lower"):
        return None
    name, _, number = direction.partition(" ")
    if name == "target" and re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", number):
        target = float(number)
        if np.isfinite(target):
            return target
    raise ValueError(f"direction: found {direction!r}, valid: higher, lower, target followed by a number")


def oriented(scores: Array, direction: str) -> Array:
    """Return scores of which higher ones are better: minus the distance from a target; NaN stays NaN."""
    target = target_of(direction)
    if target is None:
        return scores if direction == "higher" else -scores
    distance: Array = np.abs(scores - target)
    return -distance


def arrow(direction: str) -> str:
    """Return ``↑``, ``↓``, or an arrow to the target, such as ``→ 0``."""
    target = target_of(direction)
    return {"higher": "↑", "lower": "↓"}.get(direction, f"→ {target:g}" if target is not None else "")


def phrase(direction: str) -> str:
    """Return the direction in words, such as ``closer to 0 is better``."""
    target = target_of(direction)
    return f"{direction} is better" if target is None else f"closer to {target:g} is better"

"""Directions of scores: higher or lower scores are better, or those closer to an ideal value."""

from contextlib import suppress
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt  # not at runtime: the Snakefile imports this module and must start fast

ARROWS = {"higher": "↑", "lower": "↓"}
VALID = "higher, lower, target followed by a number"


class Direction(str):
    """The direction of a score: ``higher`` or ``lower`` is better, or ``target X``, if closer to X is better.

    In files, it is this text.

    Raises:
        ValueError: the text is none of these, or X is not finite.
    """

    target: float | None
    """The ideal value X; None if higher or lower scores are better."""

    def __new__(cls, text: str) -> "Direction":
        """Check the text and read the ideal value."""
        direction = super().__new__(cls, text)
        direction.target = None
        if text in ARROWS:
            return direction
        name, _, number = str(text).partition(" ")
        if name == "target":
            with suppress(ValueError):
                if isfinite(value := float(number)):
                    direction.target = value
                    return direction
        raise ValueError(f"direction: found {text!r}, valid: {VALID}")

    @classmethod
    def closer_to(cls, target: float) -> "Direction":
        """Return the direction of scores that are better the closer they are to ``target``."""
        return cls(f"target {target!r}".removesuffix(".0"))

    def oriented(self, scores: "npt.NDArray[Any]") -> "npt.NDArray[Any]":
        """Transform scores so that higher is better: ``scores``, ``-scores`` or ``-|scores - X|``; NaN stays NaN."""
        if self.target is not None:
            return -abs(scores - self.target)
        return scores if self == "higher" else -scores

    @property
    def arrow(self) -> str:
        """``↑``, ``↓`` or ``→ 0``."""
        return ARROWS[self] if self.target is None else f"→ {self.target:g}"

    @property
    def phrase(self) -> str:
        """``higher is better``, ``lower is better`` or ``closer to 0 is better``."""
        return f"{self if self.target is None else f'closer to {self.target:g}'} is better"


HIGHER, LOWER = Direction("higher"), Direction("lower")

"""Text of figures, tables and pages: names, lists, counts, directions."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from saliency_assay.registry.directions import Direction

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
NO_SCORE = "no score"
NEGATIVE = re.compile(r"(?<![\w.])-(?=\.?\d)")  # hyphen of a negative number, but not of a range or a name


class Answer(NamedTuple):
    """A line of the answer of a study."""

    text: str
    """A sentence or, after ``method``, the part of one that follows its name."""
    method: str = ""
    detail: str = ""
    """Numbers that support it."""

    def __str__(self) -> str:
        if not self.method and not self.detail:
            return self.text
        return (
            f"{' '.join(filter(None, [self.method, self.text]))}{f' ({self.detail})' if self.detail else ''}."
        )


def readable(name: str) -> str:
    """Return a name from the configuration as a label: underscores become spaces."""
    return name.replace("_", " ")


def data_set(iteration: int) -> str:
    """Return the name of the data set after ``iteration`` masks, such as ``D₁₀``."""
    return "D" + str(iteration).translate(SUBSCRIPTS)


def with_minus(text: str) -> str:
    """Return the text of a number with a minus sign (U+2212) in place of a hyphen, and with no sign before zero."""
    sign, digits = text[:1], text[1:]
    if sign != "-":
        return text
    return digits if not digits.strip("0.,") else f"\u2212{digits}"


def with_minus_signs(text: str) -> str:
    """Return a sentence with a minus sign in place of the hyphen of each negative number."""
    return NEGATIVE.sub("\u2212", text)


def significant(value: float, digits: int) -> str:
    """Return a number with this many significant digits, zeros at its end included, such as ``0.10`` or ``12``."""
    return f"{value:#.{digits}g}".rstrip(".")


def joined(names: Iterable[object]) -> str:
    """Return names joined as in a sentence: ``a, b and c``."""
    texts = [str(name) for name in names]
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def span_text(counts: Iterable[int]) -> str:
    """Return the smallest and the largest of ``counts``, such as ``3–5``, or their common value."""
    ordered = sorted(counts)
    least, most = ordered[0], ordered[-1]
    return str(least) if least == most else f"{least}–{most}"


def seeds_text(seeds: int) -> str:
    """Return text with the number of seeds, to follow a number of images; empty for a single seed."""
    return f" × {seeds} seeds" if seeds > 1 else ""


def groups_text(groups: Iterable[float]) -> str:
    """Return text with the smallest and the largest number of groups, to follow a number of images; empty for none."""
    counts = [int(count) for count in groups]
    return f" of {span_text(counts)} group{'s' if max(counts) != 1 else ''}" if counts else ""


def better(direction: str) -> str:
    """Return text that names the better direction of an axis; its arrow is also right in a rotated axis label."""
    text = Direction(direction).phrase
    return {"higher": f"{text} →", "lower": f"← {text}"}.get(direction, text)

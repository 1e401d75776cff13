"""Small heat map of ranks on the overview: colored cells below the names of metrics and properties."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from saliency_assay.report.pages.heat_map import Group, HeatMap

WIDTH = 500  # pixels of the heat map, at most, in a window of 1,400 pixels
BESIDE = 264  # the same beside the examples of a card
NAMES = 108  # pixels that the names of methods have at least
NARROWEST, WIDEST = 11, 21  # pixels of a column with its border
LINE, UPRIGHT = 10, 5.5  # pixels of a line of the names of metrics, and of a letter, at most on average
LONGEST_WORD = 14  # letters that a line of a name may lack
LETTERS = 16  # letters of a line in columns that are wider than WIDEST, so that long names need less height
LETTER = 6.8  # pixels of a letter of the names above the columns, at most on average
MOST_ROWS = 10  # methods above which the heat map scrolls in a separate area


@dataclass(frozen=True)
class Flag:
    """Name of a group above its columns; a line from the left edge of the group leads to it."""

    group: Group
    name: str
    level: int
    """Lines of text between the name and the columns."""


@dataclass(frozen=True)
class Preview:
    """Content of ``templates/preview.html.j2``."""

    heat: HeatMap
    column: int
    """Width of a column in pixels."""
    names: int
    """Largest width of the names of methods in pixels."""
    overhang: int
    """Pixels by which the names of groups extend beyond the last column."""
    flags: Sequence[Flag]

    @property
    def levels(self) -> int:
        """Number of lines of text above the columns."""
        return 1 + max((flag.level for flag in self.flags), default=0)

    @property
    def wraps(self) -> bool:
        """True if a column has space for several lines of the name of its metric."""
        return self.column >= 2 * LINE

    @property
    def height(self) -> int:
        """Pixels in which the names of the metrics fit on the lines of a column."""
        return math.ceil(UPRIGHT * (_longest(self.heat) / (self.column // LINE) + LONGEST_WORD))

    @property
    def tall(self) -> bool:
        """True if the heat map scrolls in a separate area."""
        return len(self.heat.methods) + len(self.heat.baselines) > MOST_ROWS

    @property
    def has_open_orders(self) -> bool:
        """True if, under any metric, no order of the methods was shown."""
        return any(column.reason for column in self.heat.columns)


def preview(heat: HeatMap) -> Preview:
    """Return a heat map for a card of the overview, with names of groups on as many lines as they need."""
    names = [f"{group.measures[:1].upper()}{group.measures[1:]}" for group in heat.groups]
    starts = [sum(group.columns for group in heat.groups[:place]) for place in range(len(names))]
    lengths = [LETTER * len(name) for name in names]
    width = WIDTH - NAMES
    fits = [(width - length) / start for start, length in zip(starts, lengths, strict=True) if start]
    widest = max(WIDEST, 1 + LINE * math.ceil(_longest(heat) / LETTERS))
    column = int(max(NARROWEST, min(widest, width / max(len(heat.columns), 1), *fits)))
    edges = [column * start for start in starts]
    ends = [column * len(heat.columns), *map(sum, zip(edges, lengths, strict=True))]
    flags = [Flag(*entry) for entry in zip(heat.groups, names, flag_levels(edges, lengths), strict=True)]
    overhang = math.ceil(max(ends) - ends[0])
    return Preview(heat, column, max(NAMES, int(BESIDE - max(ends))), overhang, flags)


def _longest(heat: HeatMap) -> int:
    """Return the length of the longest name of a metric."""
    return max((len(column.name) for column in heat.columns), default=0)


def flag_levels(starts: Sequence[float], lengths: Sequence[float]) -> list[int]:
    """Return the smallest levels of names such that none overlaps another one or the line of one.

    A name begins at its start, where a line leads down from it. A name that is longer than its group is above the names
    that begin below it.

    Args:
        starts: left edges of the groups, ascending.
        lengths: lengths of the names.
    """
    levels: list[int] = []  # from right to left
    for place in reversed(range(len(starts))):
        end = starts[place] + lengths[place]
        covered = [level for level, start in zip(levels, starts[:place:-1], strict=True) if start < end]
        levels.append(1 + max(covered, default=-1))
    return levels[::-1]

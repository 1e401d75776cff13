"""The results of one metric, which figures plot, and what all such figures have in common."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import SymmetricalLogLocator
from numpy import ndarray as Array

from saliency_assay.plotting.style import CYCLE
from saliency_assay.registry.directions import phrase

NORMAL_95 = 1.96
MARKERS = "osD^vP*X<>hpd"  # more than a study's usual methods, so that a grey print can be read too
LINES = ("-", "--", ":")
NO_SCORE = "no score"
LOG_SPAN = 100.0
MOST_DECADES = 6
LEAST = 1e-9


@dataclass(frozen=True)
class MetricResults:
    """One entry of the configuration's metrics, scored for the methods of a study; a figure plots it."""

    entry: str
    """The entry's name. Variants are this name, alone or followed by a space and the sub-variant."""
    parameters: Mapping[str, Any]
    scores: pd.DataFrame
    """The entry's rows of the score table; those of a method and score in the order of its curves."""
    labels: Mapping[str, str]
    """The label of an axis, by the score's name."""
    directions: Mapping[str, str]
    """``higher``, ``lower`` or ``target X`` (``directions``), by the score's name."""
    curves: Mapping[str, Mapping[str, Array]]
    """For each method, by name: ``[n, S]``, the images of one seed after those of another; empty where a figure
    does not read them."""
    probed: Mapping[str, Array]
    """Model responses that all methods share, ``[n, …]`` like the curves; empty where there are none, or a figure does
    not read them."""
    methods: Sequence[str]

    @property
    def seeds(self) -> int:
        """The number of trained models that were scored."""
        return int(self.scores["seed"].nunique())

    def sub_variants(self, score: str) -> list[str]:
        """Return the parts of the variants of ``score`` that follow the entry's name, as first met."""
        variants = self.scores.loc[self.scores["metric"] == score, "variant"].unique()
        return [str(variant).removeprefix(self.entry).strip() for variant in variants]

    def rows(self, score: str, sub_variant: str) -> pd.DataFrame:
        """Return the rows of one score and sub-variant."""
        variant = f"{self.entry} {sub_variant}".strip()
        return self.scores[(self.scores["metric"] == score) & (self.scores["variant"] == variant)]

    def curve(self, method: str, name: str) -> Array | None:
        """Return a method's curves ``[n, S]``; None where it has none of this name or none is defined."""
        curve = self.curves.get(method, {}).get(name)
        return None if curve is None or np.isnan(curve).all() else curve


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


def look(place: int) -> dict[str, Any]:
    """Return the color, line and marker of the method at ``place`` among those of the study."""
    line = LINES[place // len(CYCLE) % len(LINES)]
    return {"color": CYCLE[place % len(CYCLE)], "linestyle": line, "marker": MARKERS[place % len(MARKERS)]}


def looks_of(
    names: Sequence[str],
    *,
    colors: Sequence[str],
    lines: Sequence[Any],
    fixed: Mapping[str, dict[str, Any]],
    **style: Any,
) -> dict[str, dict[str, Any]]:
    """Return the color, line and marker of each name: those ``fixed`` for some, the others by turns with ``style``."""
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        place = sum(other not in fixed for other in found)
        line = lines[place // len(colors) % len(lines)]
        usual = {"color": colors[place % len(colors)], "linestyle": line, **style}
        found[name] = fixed.get(name, {**usual, "marker": MARKERS[place % len(MARKERS)]})
    return found


def mean_and_error(values: Array) -> tuple[float, float]:
    """Return the mean and its standard error over the values ``[n]`` that are finite; NaN of none, and of one."""
    valid = values[np.isfinite(values)]
    error = float(valid.std(ddof=1) / np.sqrt(len(valid))) if len(valid) > 1 else np.nan
    return (float(valid.mean()) if len(valid) else np.nan), error


def better(direction: str) -> str:
    """Return which values on an axis are better; an arrow points the right way when turned with the axis's label."""
    text = phrase(direction)
    return {"higher": f"{text} →", "lower": f"← {text}"}.get(direction, text)


def span_text(counts: Iterable[int]) -> str:
    """Return the least and the greatest of ``counts``, or their common value."""
    ordered = sorted(counts)
    least, most = ordered[0], ordered[-1]
    return str(least) if least == most else f"{least}–{most}"


def seeds_text(seeds: int) -> str:
    """Return the number of seeds in words that follow a number of images; nothing for a single one."""
    return f" × {seeds} seeds" if seeds > 1 else ""


def spread_out(
    axes: Axes, axis: str, values: Array, least: float, span: float = LOG_SPAN, lows: Array | None = None
) -> None:
    """Make an axis logarithmic where the ``values`` plotted on it need that.

    That is: nothing is negative and the greatest is more than ``span`` times the smallest. Where some are zero the
    axis is linear from 0 to the decade of the smallest that is not. Less than a billionth of the greatest is zero.

    Args:
        axes: of the plot.
        axis: ``x`` or ``y``.
        values: all that are seen, without ``lows``.
        least: the smallest score behind them, which may be below all that is seen.
        span: the greatest ratio that a linear axis shows.
        lows: lower ends of whiskers, which do not count: few scores near 0 would turn boxes into lines.
    """
    values, lows = values[np.isfinite(values)], np.empty(0) if lows is None else lows
    if not len(values) or least < 0 or values.max() <= 0:
        return
    shown = values[values >= LEAST * values.max()]
    if shown.max() <= span * shown.min():
        return
    set_scale = axes.set_xscale if axis == "x" else axes.set_yscale
    if len(shown) < len(values) or (lows < LEAST * values.max()).any():
        # A tick below this decade would stand in the linear part, on top of the 0.
        least_decade = np.floor(np.log10(shown.min()))
        decades = float(np.log10(shown.max()) - least_decade)
        set_scale("symlog", linthresh=float(10**least_decade), linscale=max(1, decades / 6))
        locator = (axes.xaxis if axis == "x" else axes.yaxis).get_major_locator()
        cast(SymmetricalLogLocator, locator).set_params(numticks=MOST_DECADES)
    else:
        set_scale("log")

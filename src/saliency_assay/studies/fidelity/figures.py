"""Scores of single images: boxes and densities by method."""

from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy import ndarray as Array

from saliency_assay.plotting.metric_results import MetricResults
from saliency_assay.plotting.statistics import mean_and_band
from saliency_assay.plotting.style import BLUE, SKY, VERMILION, spread_out
from saliency_assay.plotting.text import NO_SCORE, better, readable, seeds_text, span_text
from saliency_assay.registry.directions import target_of

MOST_PANELS = 4
MOST_IN_A_ROW = 4
MOST_TICKS = 5
LABEL_LETTERS = 34
SEEN = (5, 25, 50, 75, 95)  # percentiles
ENDS = ("whislo", "q1", "med", "q3", "whishi")
MEAN: dict[str, Any] = {
    "marker": "D",
    "color": VERMILION,
    "markeredgecolor": "black",
    "markersize": 6,
    "linestyle": "none",
}
SEED: dict[str, Any] = {"marker": "o", "color": "black", "markersize": 3, "linestyle": "none"}
FACE = "#D6E8F4"
BOX: dict[str, Any] = {
    "facecolor": FACE,
    "edgecolor": BLUE,
    "label": "box: quartiles and median; whiskers: 5–95 % of images",
}
DENSITY: dict[str, Any] = {
    "facecolor": SKY,
    "edgecolor": BLUE,
    "label": "area: density of images; bar: quartiles and median",
}

RATE: dict[str, Any] = {
    "color": BLUE,
    "marker": "|",
    "markersize": 9,
    "label": "whiskers: 95 % interval of the mean over images",
}


def boxes(results: MetricResults) -> Figure:
    """Box plots of the scores of images by method, a panel for each score and sub-variant.

    Boxes are quartiles with the median, whiskers the 5th and 95th percentile. More than four panels become one for
    each score: of the score without a sub-variant, or of its last one. Axes are logarithmic where scores that are not
    negative need it. Scores that are only hits and misses have their rate with its 95 % interval instead.
    """
    if results.scores["score"].dropna().isin((0, 1)).all():
        return _panels(results, rate_panel, Line2D([], [], **RATE))
    return _panels(results, box_panel, Patch(**BOX))


def distributions(results: MetricResults) -> Figure:
    """The distribution of the scores of images by method, as a density with quartiles, median, mean and a line at 0.

    Panels are those of ``boxes``; Tomsett et al. (2020), Fig. 2b.
    """
    return _panels(results, density_panel, Patch(**DENSITY))


def _panels(results: MetricResults, plot: Callable[..., None], spread: Artist) -> Figure:
    chosen = _chosen(results)
    columns = min(len(chosen), MOST_IN_A_ROW)
    lines = -(-len(chosen) // columns)
    height = (0.36 * len(results.methods) + 1.5) * lines + 0.6
    figure = Figure(figsize=(2.2 + max(3.1 * columns, 4.5), height))
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat[len(chosen) :]:
        axes.set_axis_off()
    for axes, (score, sub_variant, of) in zip(grid.flat, chosen, strict=False):
        rows = results.rows(score, sub_variant)
        plot(axes, rows, results.methods, label=results.labels[score], direction=results.directions[score])
        last = f", the last of {of}" if of > 1 and sub_variant else ""
        axes.set_title(f"{sub_variant}{last}", fontsize=10)
    mark(figure, spread, several_seeds=results.seeds > 1)
    return figure


def _chosen(results: MetricResults) -> list[tuple[str, str, int]]:
    """Score, sub-variant, and of how many it is the last where not all are shown, for each panel."""
    names = [name for name in results.labels if name in set(results.scores["metric"])]
    subs = {name: results.sub_variants(name) for name in names}
    if sum(map(len, subs.values())) <= MOST_PANELS:
        return [(name, sub, 1) for name in names for sub in subs[name]]
    return [(name, "" if "" in subs[name] else subs[name][-1], len(subs[name])) for name in names]


def box_panel(axes: Axes, rows: pd.DataFrame, methods: Sequence[str], *, label: str, direction: str) -> None:
    """Boxes of the ``score`` in ``rows``, one for each of ``methods`` from top to bottom; see ``boxes``."""
    valid = _valid(rows, methods)
    defined = {place: values for place, values in enumerate(valid) if len(values)}
    if defined:
        ends = {place: np.percentile(values, SEEN) for place, values in defined.items()}
        axes.bxp(  # boxplot's whiskers would end at scores within the percentiles
            [dict(zip(ENDS, found.tolist(), strict=True)) for found in ends.values()],
            positions=list(defined),
            orientation="horizontal",
            widths=0.6,
            showfliers=False,
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": FACE, "edgecolor": BLUE},
            whiskerprops={"color": BLUE},
            capprops={"color": BLUE},
            medianprops={"color": "black", "linewidth": 1.6},
        )
        everything = np.concatenate(list(defined.values()))
        seen = [[*found[1:], defined[place].mean()] for place, found in ends.items()]
        lows = np.array([found[0] for found in ends.values()])
        target = target_of(direction)
        if target is not None:  # the axis shows it, too
            seen.append([target])
            everything = np.append(everything, target)
        spread_out(axes, "x", np.concatenate(seen), float(everything.min()), lows=lows)
    _finish(axes, rows, methods, valid, label=label, direction=direction)


def rate_panel(axes: Axes, rows: pd.DataFrame, methods: Sequence[str], *, label: str, direction: str) -> None:
    """The mean of the ``score`` in ``rows``, 0 or 1, with whiskers by the normal approximation; see ``boxes``."""
    for place, method in enumerate(methods):
        by_image = rows[rows["method"] == method].groupby("image")["score"].mean()
        mean, half = mean_and_band(by_image.to_numpy())
        ends = np.nan_to_num([[np.fmin(half, mean)], [np.fmin(half, 1 - mean)]])  # none beyond 0 and 1
        axes.errorbar([mean], [place], xerr=ends, color=BLUE, capsize=6, linestyle="none")
    axes.set_xlim(-0.03, 1.03)
    _finish(axes, rows, methods, _valid(rows, methods), label=label, direction=direction)


def density_panel(
    axes: Axes, rows: pd.DataFrame, methods: Sequence[str], *, label: str, direction: str
) -> None:
    """Densities of the ``score`` in ``rows``, one for each of ``methods`` from top to bottom; see ``distributions``."""
    valid = _valid(rows, methods)
    several = {place: values for place, values in enumerate(valid) if len(values) > 1}
    if several:
        drawn = axes.violinplot(
            list(several.values()),
            positions=list(several),
            orientation="horizontal",
            widths=0.85,
            showextrema=False,
        )
        for body in cast(list[PolyCollection], drawn["bodies"]):
            body.set(facecolor=SKY, edgecolor=BLUE, alpha=0.55)
    for place, values in enumerate(valid):
        if len(values):
            low, middle, high = np.percentile(values, (25, 50, 75))
            axes.plot([low, high], [place, place], color=BLUE, linewidth=4, solid_capstyle="butt")
            axes.plot([middle], [place], marker="|", color="black", markersize=12, markeredgewidth=1.6)
    axes.axvline(0, color="black", linewidth=0.8, linestyle="--", zorder=1)
    _finish(axes, rows, methods, valid, label=label, direction=direction)


def _valid(rows: pd.DataFrame, methods: Sequence[str]) -> list[Array]:
    return [rows.loc[rows["method"] == method, "score"].dropna().to_numpy() for method in methods]


def _finish(
    axes: Axes,
    rows: pd.DataFrame,
    methods: Sequence[str],
    valid: Sequence[Array],
    *,
    label: str,
    direction: str,
) -> None:
    """What boxes and densities have in common: means, methods without a score, names and counts."""
    for place, (method, values) in enumerate(zip(methods, valid, strict=True)):
        if not len(values):
            across = axes.get_yaxis_transform()
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            axes.text(0.5, place, NO_SCORE, transform=across, ha="center", va="center", bbox=box)
            continue
        axes.plot([values.mean()], [place], **MEAN)
        means = rows[rows["method"] == method].groupby("seed")["score"].mean().dropna()
        if rows["seed"].nunique() > 1:
            axes.plot(means, np.full(len(means), place + 0.38), **SEED)
    target = target_of(direction)
    if target is not None:
        axes.axvline(target, color="black", linewidth=0.8, linestyle=":", zorder=1)
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.set_yticks(range(len(methods)), _ticks(axes, rows, methods, valid))
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    if axes.get_xscale() == "linear":
        axes.xaxis.set_major_locator(MaxNLocator(nbins=MOST_TICKS))
    axes.set_xlabel("\n".join([*wrap(label, LABEL_LETTERS), better(direction), counted(rows)]))


def counted(rows: pd.DataFrame) -> str:
    """How many images have a score, by method where that differs, of how many seeds, and how many scores lack."""
    defined = rows[rows["score"].notna()]
    images = span_text(defined.groupby("method")["image"].nunique()) if len(defined) else "0"
    undefined = len(rows) - len(defined)
    lacking = f"{undefined} of {len(rows)} scores undefined" if undefined else "all scores defined"
    return f"n = {images} images{seeds_text(rows['seed'].nunique())}\n{lacking}"


def _ticks(axes: Axes, rows: pd.DataFrame, methods: Sequence[str], valid: Sequence[Array]) -> list[str]:
    """The methods' names on the first panel of a row; on all, how many scores a method has that lacks some."""
    names = [readable(method) for method in methods]
    place = axes.get_subplotspec()
    if place is not None and not place.is_first_col():
        names = [""] * len(names)
    of = [(rows["method"] == method).sum() for method in methods]
    return [
        f"{name} ({len(values)} of {all_})".strip() if 0 < len(values) < all_ else name
        for name, values, all_ in zip(names, valid, of, strict=True)
    ]


def mark(figure: Figure, spread: Artist, *, several_seeds: bool) -> None:
    """Say below the panels what the marks are."""
    handles: list[Artist] = [spread, Line2D([], [], label="mean", **MEAN)]
    if several_seeds:
        handles.append(Line2D([], [], label="mean of one seed", **SEED))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=len(handles) if figure.get_figwidth() > 8 else 2,
        fontsize=9,
    )

"""Scores of single images: boxes and densities by method."""

from collections.abc import Callable, Mapping, Sequence
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
from saliency_assay.plotting.palette import BLUE, SKY, VERMILION
from saliency_assay.plotting.style import spread_out
from saliency_assay.plotting.text import NO_SCORE, better, groups_text, seeds_text, span_text
from saliency_assay.registry.directions import Direction
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.reliability.clusters import factors_of
from saliency_assay.reliability.variance import mean_of
from saliency_assay.storage import GROUP

MOST_PANELS = 4
BINARY = 0.95  # share of scores that are 0 or 1 from which they are plotted as a rate
MOST_IN_A_ROW = 4
MOST_TICKS = 5
LABEL_LETTERS = 34
PERCENTILES = (5, 25, 50, 75, 95)
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
    """Plot the scores of images as box plots by method, one panel per score and sub-variant.

    Boxes are quartiles with the median, whiskers the 5th and 95th percentile. Instead of more than four panels, there
    is one per score: without a sub-variant, or of the last one. Axes are logarithmic where nonnegative scores require
    it. In a panel whose scores are 0 or 1, but for at most 5 %, their mean is plotted with its 95 % interval instead.
    """
    return _plot_panels(
        results, _box_or_rate_panel, {box_panel: Patch(**BOX), rate_panel: Line2D([], [], **RATE)}
    )


def distributions(results: MetricResults) -> Figure:
    """Plot densities of the scores of images by method, with quartiles, median, mean and a line at 0.

    Panels are those of ``boxes``; Tomsett et al. (2020), Fig. 2b.
    """
    return _plot_panels(results, lambda rows: density_panel, {density_panel: Patch(**DENSITY)})


def _box_or_rate_panel(rows: pd.DataFrame) -> Callable[..., None]:
    scores = rows["score"].dropna()
    is_rate = scores.isin((0, 1)).mean() >= BINARY and scores.between(0, 1).all()
    return rate_panel if is_rate or scores.empty else box_panel


def _plot_panels(
    results: MetricResults,
    select_panel: Callable[[pd.DataFrame], Callable[..., None]],
    spreads: Mapping[Callable[..., None], Artist],
) -> Figure:
    """Plot the selected panels; ``spreads`` are the entries in the legend of each kind of panel."""
    panels = _select_panels(results)
    columns = min(len(panels), MOST_IN_A_ROW)
    lines = -(-len(panels) // columns)
    height = (0.36 * len(results.methods) + 1.5) * lines + 0.6
    figure = Figure(figsize=(2.2 + max(3.1 * columns, 4.5), height))
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    plotted: dict[Callable[..., None], Artist] = {}
    for axes, (score, sub_variant, count) in zip(grid.flat, panels, strict=False):
        rows = results.rows(score, sub_variant)
        texts = {"label": results.axis(score), "direction": results.directions[score], "names": results.names}
        plot_panel = select_panel(rows)
        plotted[plot_panel] = spreads[plot_panel]
        plot_panel(axes, rows, results.methods, **texts)
        note = f" (last of {count})" if count > 1 and sub_variant else ""
        axes.set_title(f"{results.names.sub_variant(results.entry, sub_variant)}{note}", fontsize=10)
    mark(figure, *plotted.values(), several_seeds=results.seeds > 1)
    return figure


def _select_panels(results: MetricResults) -> list[tuple[str, str, int]]:
    """Return score, sub-variant and number of sub-variants for each panel; the number is 1 if all are plotted."""
    names = [name for name in results.labels if name in set(results.scores["metric"])]
    sub_variants = {name: results.sub_variants(name) for name in names}
    if sum(map(len, sub_variants.values())) <= MOST_PANELS:
        return [(name, sub_variant, 1) for name in names for sub_variant in sub_variants[name]]
    return [
        (name, "" if "" in sub_variants[name] else sub_variants[name][-1], len(sub_variants[name]))
        for name in names
    ]


def box_panel(
    axes: Axes,
    rows: pd.DataFrame,
    methods: Sequence[str],
    *,
    label: str,
    direction: str,
    names: Labels = UNLABELED,
) -> None:
    """Plot boxes of the ``score`` in ``rows``, one per method from top to bottom; see ``boxes``."""
    valid = _valid_scores(rows, methods)
    defined = {place: values for place, values in enumerate(valid) if len(values)}
    if defined:
        percentiles_by_row = {place: np.percentile(values, PERCENTILES) for place, values in defined.items()}
        axes.bxp(  # boxplot would end whiskers at data points, not at percentiles
            [
                dict(zip(ENDS, percentiles.tolist(), strict=True))
                for percentiles in percentiles_by_row.values()
            ],
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
        all_values = np.concatenate(list(defined.values()))
        visible = [
            [*percentiles[1:], defined[place].mean()] for place, percentiles in percentiles_by_row.items()
        ]
        lows = np.array([percentiles[0] for percentiles in percentiles_by_row.values()])
        target = Direction(direction).target
        if target is not None:  # keep it within the axis limits
            visible.append([target])
            all_values = np.append(all_values, target)
        spread_out(axes, "x", np.concatenate(visible), float(all_values.min()), lows=lows)
    _finish_panel(axes, rows, methods, valid, label=label, direction=direction, names=names)


def rate_panel(
    axes: Axes,
    rows: pd.DataFrame,
    methods: Sequence[str],
    *,
    label: str,
    direction: str,
    names: Labels = UNLABELED,
) -> None:
    """Plot the mean of the ``score`` in ``rows``, 0 or 1, with Wilson's interval as whiskers; see ``boxes``."""
    for place, method in enumerate(methods):
        by_image = rows[rows["method"] == method].groupby("image")
        mean = mean_of(by_image["score"].mean().to_numpy(), factors_of(by_image.first()))
        low, high = mean.rate_interval()
        ends = np.nan_to_num([[mean.value - low], [high - mean.value]])
        axes.errorbar([mean.value], [place], xerr=ends, color=BLUE, capsize=6, linestyle="none")
    axes.set_xlim(-0.03, 1.03)
    _finish_panel(
        axes, rows, methods, _valid_scores(rows, methods), label=label, direction=direction, names=names
    )


def density_panel(
    axes: Axes,
    rows: pd.DataFrame,
    methods: Sequence[str],
    *,
    label: str,
    direction: str,
    names: Labels = UNLABELED,
) -> None:
    """Plot densities of the ``score`` in ``rows``, one per method from top to bottom; see ``distributions``."""
    valid = _valid_scores(rows, methods)
    by_row = {place: values for place, values in enumerate(valid) if len(values) > 1}
    if by_row:
        violins = axes.violinplot(
            list(by_row.values()),
            positions=list(by_row),
            orientation="horizontal",
            widths=0.85,
            showextrema=False,
        )
        for body in cast(list[PolyCollection], violins["bodies"]):
            body.set(facecolor=SKY, edgecolor=BLUE, alpha=0.55)
    for place, values in enumerate(valid):
        if len(values):
            low, middle, high = np.percentile(values, (25, 50, 75))
            axes.plot([low, high], [place, place], color=BLUE, linewidth=4, solid_capstyle="butt")
            axes.plot([middle], [place], marker="|", color="black", markersize=12, markeredgewidth=1.6)
    axes.axvline(0, color="black", linewidth=0.8, linestyle="--", zorder=1)
    _finish_panel(axes, rows, methods, valid, label=label, direction=direction, names=names)


def _valid_scores(rows: pd.DataFrame, methods: Sequence[str]) -> list[Array]:
    return [rows.loc[rows["method"] == method, "score"].dropna().to_numpy() for method in methods]


def _finish_panel(
    axes: Axes,
    rows: pd.DataFrame,
    methods: Sequence[str],
    valid: Sequence[Array],
    *,
    label: str,
    direction: str,
    names: Labels,
) -> None:
    """Add the common elements of all panels: means, methods without a score, names and counts."""
    for place, (method, values) in enumerate(zip(methods, valid, strict=True)):
        if not len(values):
            transform = axes.get_yaxis_transform()
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            axes.text(0.5, place, NO_SCORE, transform=transform, ha="center", va="center", bbox=box)
            continue
        axes.plot([values.mean()], [place], **MEAN)
        means = rows[rows["method"] == method].groupby("seed")["score"].mean().dropna()
        if rows["seed"].nunique() > 1:
            axes.plot(means, np.full(len(means), place + 0.38), **SEED)
    target = Direction(direction).target
    if target is not None:
        axes.axvline(target, color="black", linewidth=0.8, linestyle=":", zorder=1)
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.set_yticks(range(len(methods)), _tick_labels(axes, rows, methods, valid, names))
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    if axes.get_xscale() == "linear":
        axes.xaxis.set_major_locator(MaxNLocator(nbins=MOST_TICKS))
    axes.set_xlabel("\n".join([*wrap(label, LABEL_LETTERS), better(direction), counted(rows)]))


def counted(rows: pd.DataFrame) -> str:
    """Return a text with the numbers of images with a score (a range if methods differ), seeds and missing scores.

    Scores that no method has, as of images without an object to localize, are not missing: ``26 of 60 images``.
    """
    total, rows = rows["image"].nunique(), _of_scored_images(rows)
    defined = rows[rows["score"].notna()]
    images = span_text(defined.groupby("method")["image"].nunique()) if len(defined) else "0"
    images += f" of {total}" if rows["image"].nunique() < total else ""
    groups = defined.groupby("method")[GROUP].nunique() if GROUP in rows else ()
    undefined = len(rows) - len(defined)
    undefined_text = f"{undefined} of {len(rows)} scores undefined" if undefined else "all scores defined"
    return f"n = {images} images{groups_text(groups)}{seeds_text(rows['seed'].nunique())}\n{undefined_text}"


def _of_scored_images(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of images and seeds with a score of any method; all rows if there are none."""
    scored = rows["score"].notna().groupby([rows["seed"], rows["image"]]).transform("any")
    return rows[scored] if scored.any() else rows


def _tick_labels(
    axes: Axes, rows: pd.DataFrame, methods: Sequence[str], valid: Sequence[Array], labels: Labels
) -> list[str]:
    """Return the methods' names, only for the first panel of a row, and the score count of incomplete methods."""
    names = [labels.method(method) for method in methods]
    subplot = axes.get_subplotspec()
    if subplot is not None and not subplot.is_first_col():
        names = [""] * len(names)
    scored = _of_scored_images(rows)
    counts = [(scored["method"] == method).sum() for method in methods]
    return [
        f"{name} ({len(values)} of {count})".strip() if 0 < len(values) < count else name
        for name, values, count in zip(names, valid, counts, strict=True)
    ]


def mark(figure: Figure, *spreads: Artist, several_seeds: bool) -> None:
    """Add a legend of the marks below the panels."""
    handles: list[Artist] = [*spreads, Line2D([], [], label="mean", **MEAN)]
    if several_seeds:
        handles.append(Line2D([], [], label="mean of one seed", **SEED))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=len(handles) if figure.get_figwidth() > 8 else 2,
        fontsize=9,
    )

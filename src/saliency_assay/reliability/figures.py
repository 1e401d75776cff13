"""Figures of reliability: agreement of images on the order of methods, rank sets, agreement of metrics."""

from collections.abc import Collection, Sequence
from textwrap import fill
from typing import cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy import ndarray as Array
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from saliency_assay.plotting.charts import PointChart
from saliency_assay.plotting.palette import BLUE, GRAY, GREEN, ORANGE, VERMILION, cell_colors, looks
from saliency_assay.plotting.style import name_columns
from saliency_assay.plotting.text import groups_text, span_text
from saliency_assay.registry.directions import Direction
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.reliability.raters import SPLITS
from saliency_assay.reliability.reliability_tables import PAIR, rank_text

RELIABLE = 0.65
"""Smallest α of reliable raters, by a common rule (Tomsett et al., 2020, "Local saliency metric reliability")."""
PANELS = {
    "alpha": "inter-rater reliability: Krippendorff's α\n(higher is more reliable →)",
    "correlation": "inter-method reliability: mean Spearman's ρ\n(higher is more reliable →)",
}
SUBSETS = {
    "with": ("with baselines", ORANGE, "s", "white"),
    "without": ("without baselines", BLUE, "o", BLUE),
    "none": ("all methods", BLUE, "o", BLUE),
}
RATERS = {
    "seeds": ("training seeds", VERMILION, "^"),
    "classes": ("classes of the images", BLUE, "o"),
    "halves": ("random halves of the images", GREEN, "D"),
    "variants": ("variants of a score", ORANGE, "s"),
    "models": ("models", ORANGE, "s"),
}
"""Label, color and marker of each kind of rater."""
MOST_ROWS, MOST_COLUMNS = 30, 14
UNSCORED = "no scores of single images"
CELL, COLUMN = 0.55, 1.1  # inches of a column of correlations and of rank sets
LETTERS, COLUMN_LETTERS = 34, 24
MOST_LINES = 5  # of a horizontal name of a column


def reliability_figure(table: pd.DataFrame, *, level: float, labels: Labels = UNLABELED) -> Figure:
    """Plot α and the mean correlation of methods for every metric and variant, with their intervals.

    A point has no whiskers if a seed has too few images for an interval.

    Args:
        table: result of ``reliability.reliability_tables.reliability_table`` for one set and model.
        level: confidence level of the intervals.
        labels: labels of scores.
    """
    if table.empty:
        return _message_figure(UNSCORED)
    names = scored_names(table, labels, most=MOST_ROWS)
    kinds = [kind for kind in SUBSETS if (table["baselines"] == kind).any()]
    figure = Figure(figsize=(11.5, 0.34 * len(names) + 1.9))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (statistic, label) in zip(panels, PANELS.items(), strict=True):
        for place, kind in enumerate(kinds):
            of_kind = table[table["baselines"] == kind]
            shift = 0.16 * (2 * place - len(kinds) + 1)
            _plot_intervals(axes, of_kind, list(names), statistic, kind, shift)
        axes.axvline(0, color=GRAY, linewidth=1)
        axes.set_xlabel(label)
        axes.set_xlim(min(-0.1, axes.get_xlim()[0]), 1.03)
        axes.grid(visible=True, axis="x")
    panels[0].axvline(RELIABLE, color=GRAY, linewidth=1, linestyle="--")
    panels[0].set_yticks(range(len(names)), [fill(name, LETTERS) for name in names.values()])
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    seeds = table["seed"].nunique()
    over = "groups" if "groups" in table else "images"
    whiskers = f"whiskers: {100 * level:.4g} % confidence interval over {over}"
    if seeds > 1:
        whiskers += f", outermost ends of {seeds} seeds"
    handles = [_legend_line(kind) for kind in kinds]
    handles.append(Line2D([], [], color=GRAY, linestyle="--", label=f"α = {RELIABLE}, common threshold"))
    images = f"n = {span_text(table['images'])} images{groups_text(table.get('groups', ()))} (α)"
    title = f"{images}, {span_text(table['correlation_images'])} (ρ); {whiskers}"
    figure.legend(handles=handles, title=title, loc="outside upper center", ncols=len(handles))
    return figure


def _plot_intervals(
    axes: Axes, rows: pd.DataFrame, names: list[tuple[str, str]], statistic: str, kind: str, shift: float
) -> None:
    _, color, marker, face = SUBSETS[kind]
    for place, (metric, variant) in enumerate(names):
        of_name = rows[(rows["metric"] == metric) & (rows["variant"] == variant)]
        values = of_name[statistic].dropna()
        if values.empty:
            continue
        ends = of_name[[f"{statistic}_low", f"{statistic}_high"]]
        low, high = ends.iloc[:, 0].min(skipna=False), ends.iloc[:, 1].max(skipna=False)
        axes.plot([low, high], [place + shift] * 2, color=color, linewidth=1.5)
        positions = np.full(len(values), place + shift)
        axes.plot(values, positions, marker, color=color, markerfacecolor=face, markersize=6)


def _legend_line(kind: str) -> Line2D:
    label, color, marker, face = SUBSETS[kind]
    return Line2D([], [], color=color, marker=marker, markerfacecolor=face, label=label)


def order_figure(table: pd.DataFrame, labels: Labels = UNLABELED) -> Figure:
    """Plot the rank sets of methods × metrics in the colors of the report's heat map, baselines below the methods.

    Args:
        table: result of ``reliability.order_tables.order_tables`` for one set and model.
        labels: labels of methods and scores.
    """
    if table.empty:
        return _message_figure(UNSCORED)
    names = scored_names(table, labels, most=MOST_COLUMNS)
    # Baselines are last; the sort is stable.
    methods = list(dict.fromkeys(table.sort_values("baseline", kind="stable")["method"]))
    ends = np.full((2, len(methods), len(names)), np.nan)
    for column, (metric, variant) in enumerate(names):
        of_name = table[(table["metric"] == metric) & (table["variant"] == variant)].set_index("method")
        ends[:, :, column] = of_name[["rank_low", "rank_high"]].reindex(methods).T
    ranked = np.isfinite(ends[0]).sum(0)  # methods under each metric
    figure = Figure(figsize=(COLUMN * len(names) + 2.6, 0.42 * len(methods) + 2.4))
    axes = figure.subplots()
    colors = np.ones((*ends.shape[1:], 3))
    for row, column in np.ndindex(*ends.shape[1:]):
        low, high = ends[:, row, column]
        background, color = cell_colors(low, high, int(ranked[column])) if low == low else ("white", "black")
        colors[row, column] = to_rgb(background)
        text = rank_text(low, high) or "no rank"
        axes.text(column, row, text, ha="center", va="center", fontsize=8, color=color)
    axes.imshow(colors, aspect="auto")
    if baselines := table.loc[table["baseline"], "method"].nunique():
        axes.axhline(len(methods) - baselines - 0.5, color="white", linewidth=6)
    style_matrix(axes, list(names.values()), [labels.method(method) for method in methods], COLUMN)
    axes.set_xlabel(
        "rank sets: simultaneous 95 % confidence sets of the ranks under each metric;\n"
        "a method with the set 1 is ranked first; gray: uncertain, a large set"
    )
    return figure


def agreement_figure(table: pd.DataFrame, labels: Labels = UNLABELED) -> Figure:
    """Plot the agreement of raters other than single images on the order of the methods, by metric and variant.

    Args:
        table: result of ``reliability.agreement.agreement_table``, a missing variant as an empty string.
        labels: labels of scores.
    """
    table = table[table["correlation"].notna()]
    if table.empty:
        return _message_figure("fewer than three methods or four images with scores: no rankings to compare")
    names = scored_names(table, labels, most=MOST_ROWS)
    kinds = [kind for kind in RATERS if (table["between"] == kind).any()]
    figure = Figure(figsize=(8.5, 0.4 * len(names) + 2.2))
    axes = figure.subplots()
    for row, pair in enumerate(names):
        of_pair = table[(table["metric"] == pair[0]) & (table["variant"] == pair[1])]
        estimates = of_pair[["between", "correlation", "low", "high"]].itertuples(index=False, name=None)
        for place, (kind, mean, low, high) in enumerate(estimates):
            position = row + 0.7 * ((place + 0.5) / len(of_pair) - 0.5)
            _, color, marker = RATERS[kind]
            axes.plot([low, high], [position, position], color=color, linewidth=1.5)
            axes.plot(mean, position, marker, color=color, markersize=6)
    handles = []
    for kind in kinds:
        label, color, marker = RATERS[kind]
        raters = (
            "" if kind == "halves" else f" (n = {span_text(table.loc[table['between'] == kind, 'raters'])})"
        )
        handles.append(Line2D([], [], color=color, marker=marker, label=label + raters))
    axes.axvline(0, color=GRAY, linewidth=1)
    axes.set_xlim(-1.05, 1.05)
    axes.set_ylim(len(names) - 0.5, -0.5)
    titles = [name if variant else f"{name}, all variants" for (_, variant), name in names.items()]
    axes.set_yticks(range(len(names)), [fill(title, LETTERS) for title in titles])
    axes.grid(visible=True, axis="x")
    axes.set_xlabel(
        "mean Spearman's ρ between two raters' rankings of the methods\n(higher is more similar →)"
    )
    title = f"{span_text(table['methods'])} methods; whiskers: smallest and largest ρ of two raters"
    if "halves" in kinds:
        title += f";\nfor halves, central 95 % of {SPLITS} splits"
    figure.legend(handles=handles, title=title, loc="outside upper center", ncols=min(len(handles), 3))
    return figure


def consistency_figure(
    table: pd.DataFrame, baselines: Collection[str] = (), labels: Labels = UNLABELED
) -> Figure:
    """Plot the correlations of metrics over images as a matrix in which metrics that agree are adjacent.

    Entries are means of ``agreement`` over methods (without baselines) and seeds; metrics are ordered by hierarchical
    clustering (average linkage of 1 − agreement). For a study with a single score the figure is a message.

    Args:
        table: result of ``reliability.reliability_tables.consistency_table`` for one set and model.
        baselines: methods to leave out.
        labels: labels of scores.
    """
    of_methods = table[~table["method"].isin(baselines)]
    other = of_methods[["other_metric", "other_variant"]].set_axis(["metric", "variant"], axis=1)
    scored = pd.concat([of_methods[["metric", "variant"]], other])
    named = scored_names(scored, labels, most=MOST_COLUMNS)
    names = list(named)
    if not names:
        return _message_figure("only one score: no correlation between metrics")
    places = {name: place for place, name in enumerate(names)}
    matrix = np.full((len(names), len(names)), np.nan)
    np.fill_diagonal(matrix, 1)
    means = of_methods.groupby(PAIR, sort=False)["agreement"].mean().reset_index()
    for *pair, mean in means.itertuples(index=False, name=None):
        a, b = places.get((pair[0], pair[1])), places.get((pair[2], pair[3]))
        if a is not None and b is not None:
            matrix[a, b] = matrix[b, a] = mean
    side = CELL * len(names)
    figure = Figure(figsize=(side + 3.6, side + 2.6))
    label = "Spearman's ρ over images, mean over methods\n(1: both rate the same images best)"
    show_correlations(figure.subplots(), matrix, list(named.values()), label)
    return figure


def show_correlations(axes: Axes, matrix: Array, titles: Sequence[str], label: str) -> None:
    """Plot a matrix of correlations ``[K, K]`` with its values, in an order in which rows that agree are adjacent.

    Args:
        axes: axes of the plot.
        matrix: correlations; NaN where undefined.
        titles: titles of the rows, and of the columns.
        label: label of the color bar.
    """
    order = grouped(matrix)
    matrix, titles = matrix[np.ix_(order, order)], [titles[place] for place in order]
    image = axes.imshow(matrix, cmap="PuOr", vmin=-1, vmax=1)
    for row, column in np.ndindex(matrix.shape):
        value = matrix[row, column]
        text = "–" if np.isnan(value) else f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")
        color = "white" if abs(value) > 0.7 else "black"
        axes.text(column, row, text, ha="center", va="center", fontsize=8, color=color)
    style_matrix(axes, titles, titles, CELL)
    cast(Figure, axes.get_figure()).colorbar(image, ax=axes, shrink=0.8, label=label)


def _message_figure(message: str) -> Figure:
    figure = Figure(figsize=(5, 1.2))
    axes = figure.subplots()
    axes.set_axis_off()
    axes.text(0.5, 0.5, message, ha="center", va="center")
    return figure


def grouped(agreement: Array) -> list[int]:
    """Return an order of the rows of ``[K, K]`` in which rows that agree are adjacent; NaN counts as no agreement."""
    if len(agreement) < 3:
        return list(range(len(agreement)))
    distance = 1 - np.nan_to_num(agreement)
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    return [int(place) for place in leaves_list(tree)]


def scored_names(table: pd.DataFrame, labels: Labels = UNLABELED, *, most: int) -> dict[tuple[str, str], str]:
    """Return the label of every metric and variant, in the order of the table.

    If there are more than ``most``, only the last sub-variant of each score of an entry is kept.
    """
    pairs = list(dict.fromkeys(zip(table["metric"], table["variant"], strict=True)))
    if len(pairs) > most:
        last = {(metric, variant.partition(" ")[0]): variant for metric, variant in pairs}
        pairs = [(metric, variant) for (metric, _), variant in last.items()]
    return {pair: labels.score(*pair) for pair in pairs}


def style_matrix(axes: Axes, columns: list[str], rows: list[str], inches: float) -> None:
    """Write the names of the columns, which are so wide, above a matrix, and those of the rows on its left."""
    titles = [fill(column, COLUMN_LETTERS) for column in columns]
    name_columns(axes, titles, inches, lines=MOST_LINES, size=8, angle=90)
    axes.set_yticks(range(len(rows)), [fill(row, LETTERS) for row in rows], fontsize=8)
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def score_pairs_chart(table: pd.DataFrame, labels: Labels = UNLABELED) -> Figure | PointChart:
    """Plot the mean scores of methods under two scores, with 95 % intervals; a reader selects the scores.

    For a study with a single score the figure is a message.

    Args:
        table: result of ``reliability.order_tables.order_tables`` for one set and model.
        labels: labels of methods and scores.
    """
    names, methods = scored_names(table, labels, most=MOST_ROWS), list(dict.fromkeys(table["method"]))
    if len(names) < 2:
        return _message_figure("only one score: no other score to compare with")
    rows = pd.DataFrame({"series": [labels.method(method) for method in methods]})
    axes = []
    for index, ((metric, variant), name) in enumerate(names.items()):
        of_name = table[(table["metric"] == metric) & (table["variant"] == variant)]
        axes.append(f"{name} ({Direction(of_name['direction'].iloc[0]).phrase})")
        by_method = of_name.groupby("method", sort=False)[["mean", "low", "high"]].first().reindex(methods)
        for end in by_method:
            rows[f"{end}{index}"] = by_method[end].to_numpy()
    other = next((index for index, (metric, _) in enumerate(names) if metric != next(iter(names))[0]), 1)
    method_looks = {labels.method(method): look for method, look in looks(methods, labels).items()}
    return PointChart(rows, axes, method_looks, "Mean scores of methods under two scores", (0, other))

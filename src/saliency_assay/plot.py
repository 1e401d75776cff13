"""Figures for notebooks, of what ``saliency_assay.score``, ``assess`` and ``attribute`` return.

Each function plots on matplotlib axes, by default those of a new figure, and returns the axes. Methods have the labels,
colors and markers of the report.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from textwrap import fill
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from saliency_assay.api.across import AcrossTasks
from saliency_assay.api.agreement import Assessment
from saliency_assay.api.inputs import Array, Arrays, images_of, maps_of, mask_of
from saliency_assay.api.results import Benchmark
from saliency_assay.api.scores import Scores
from saliency_assay.methods import METHODS
from saliency_assay.metrics import METRICS
from saliency_assay.metrics.reductions import reduce
from saliency_assay.plotting.gallery import CELL as TILE
from saliency_assay.plotting.gallery import show_image, show_map
from saliency_assay.plotting.palette import GRAY, VERMILION, Look, looks
from saliency_assay.plotting.statistics import mean_and_band
from saliency_assay.plotting.style import styled
from saliency_assay.plotting.text import NO_SCORE, better, with_minus_signs
from saliency_assay.registry.aliases import registered_name
from saliency_assay.registry.labels import Labels, label_of, method_places
from saliency_assay.registry.records import record_of, unknown
from saliency_assay.reliability.figures import CELL, show_correlations
from saliency_assay.reliability.order_tables import Rule
from saliency_assay.reliability.sweep_figures import (
    plot_rank_sweep,
    plot_sweep,
    score_title,
    scores_of_family,
)
from saliency_assay.runtime.job import printable
from saliency_assay.studies.fidelity.curves import perturbed_shares

CURVES = {
    "deletion": "pixels removed (%)",
    "insertion": "pixels inserted (%)",
    "road": "pixels removed (%)",
    "aopc": "perturbed pixels",
}
"""Metrics with perturbation curves, and the horizontal axis of each."""
MOST_IN_LEGEND = 10
"""Methods above which the legend of curves is beside the axes of a new figure."""
MOST_WIDE_COLUMNS = 6
"""Columns of a heat map above which there is no space for means with intervals."""
NEGATIVE, UNDEFINED = "−", "×"
"""Marks of maps without positive values, and of maps that are constant or not finite."""
GAP = 0.03
"""Space between the tiles of a gallery, as a share of a tile."""


@styled()
def ranks(assessment: Assessment, ax: Axes | None = None, *, highlight: str = "") -> Axes:
    """Plot the rank of each method with its confidence set, the best methods on top.

    Args:
        assessment: result of ``saliency_assay.assess``.
        ax: axes to plot on.
        highlight: method in an accent color, with a bold label; all others are gray.

    Raises:
        ValueError: ``assessment`` is another object, or does not contain the method to highlight.
    """
    _check_assessment(assessment)
    labels = _labels(assessment.order.index)
    return _plot_ranks(assessment.order, labels, assessment.label, assessment.rank_level, ax, highlight)


def _plot_ranks(
    order: pd.DataFrame, labels: Labels, label: str, level: float, ax: Axes | None, highlight: str
) -> Axes:
    order = order.sort_values(["rank", "rank_low", "rank_high"], kind="stable")
    ends = order[["rank", "rank_low", "rank_high"]].to_numpy(np.float64)
    by_method = _highlighted_looks(list(order.index), labels, highlight)
    ax = ax or _axes(6, (0.35 if len(order) <= 12 else 0.25) * len(order) + 1.2)
    for row, look in enumerate(by_method.values()):
        rank, low, high = ends[row]
        ax.plot([low, high], [row, row], color=look.color, linewidth=2)
        ax.plot(rank, row, **{**look.line(), "linestyle": ""}, markersize=7, clip_on=False)
        if np.isnan(rank):
            ax.text(1, row, "no rank", va="center")
    ax.set_yticks(range(len(order)), [labels.method(method) for method in order.index])
    ax.set_ylim(len(order) - 0.5, -0.5)
    _mark_tick(ax, labels.method(highlight))
    margin = max(0.2, 0.02 * len(order))
    ax.set_xlim(1 - margin, len(order) + margin)
    ticks = MaxNLocator(integer=True).tick_values(1, len(order))
    ax.set_xticks([1, *(tick for tick in ticks if 2 <= tick <= len(order))])
    ax.grid(visible=True, axis="x", color=plt.rcParams["grid.color"])
    under = f" under {label}" if label else ""
    ax.set_xlabel(f"rank{under} (1 is best)\nwith simultaneous {100 * level:.4g} % confidence sets")
    return ax


@styled()
def curves(
    scores: Mapping[str, Scores], ax: Axes | None = None, *, curve: str = "", highlight: str = ""
) -> Axes:
    """Plot the model's output as pixels are removed or inserted: means over images with their 95 % bands.

    The bands treat images as independent; ``saliency_assay.benchmark`` takes groups of images, such as patients.

    Args:
        scores: for each method its result of ``saliency_assay.score`` under one metric of ``CURVES``.
        ax: axes to plot on.
        curve: ``morf`` or ``lerf``, for metrics that perturb the most and the least relevant pixels first; by default
            ``morf``.
        highlight: method in an accent color, with a bold label; all others are gray.

    Raises:
        ValueError: there are no scores, scores of another metric or of several, or no such curve or method.
    """
    _check_by_method("scores", scores)
    metrics = {
        method: each.metric if isinstance(each, Scores) else type(each).__name__
        for method, each in scores.items()
    }
    metric = next(iter(metrics.values()), "")
    if len(set(metrics.values())) != 1 or metric not in CURVES:
        raise ValueError(
            f"scores: found {metrics}, expected results of score under one of {', '.join(CURVES)}"
        )
    first = next(iter(scores.values()))
    name = curve or next(iter(first.curves))
    if name not in first.curves:
        raise ValueError(unknown("curve", name, first.curves))
    means = {method: mean_and_band(each.curves[name]) for method, each in scores.items()}
    return _plot_curves(
        means, _labels(scores), metric, name, str(first.parameters["output"]), ax, [highlight]
    )


def _plot_curves(
    means: Mapping[str, tuple[Array, Array]],
    labels: Labels,
    metric: str,
    name: str,
    output: str,
    ax: Axes | None,
    highlight: Sequence[str],
) -> Axes:
    """Plot means and half widths of their bands, by method."""
    record = record_of(METRICS, metric, "metric")
    by_method = _highlighted_looks(list(means), labels, *highlight)
    outside = ax is None and len(means) > MOST_IN_LEGEND
    ax = ax or (_axes(9, max(4, 0.19 * len(means))) if outside else _axes(6.4, 4))
    for method, look in by_method.items():
        mean, half = means[method]
        x = np.arange(len(mean)) if metric == "aopc" else perturbed_shares(name, len(mean))
        line = {**look.line(), "markevery": max(1, len(x) // 8), "markersize": 5}
        line["zorder"] = 3 if method in highlight else 2
        label = labels.method(method)
        ax.plot(x, mean, label=f"{label}: {NO_SCORE}" if np.isnan(mean).all() else label, **line)
        ax.fill_between(x, mean - half, mean + half, color=look.color, alpha=0.15, linewidth=0)
    ax.set_title(
        next((score for score in record.scores if score.name.endswith(f"_{name}")), record.scores[0]).label
    )
    ax.set_xlabel(CURVES[metric])
    direction = "higher" if name == "lerf" or metric == "insertion" else "lower"
    ax.set_ylabel(f"output{f' ({output})' if output else ''}, mean and 95 % band\n{better(direction)}")
    legend = ax.legend(
        **({"loc": "center left", "bbox_to_anchor": (1, 0.5), "fontsize": 8} if outside else {})
    )
    for method, text in zip(by_method, legend.get_texts(), strict=True):
        if method in highlight:
            text.set(fontweight="bold", color=VERMILION)
    return ax


@styled()
def maps(
    images: Arrays,
    maps: Mapping[str, Arrays],
    ax: Axes | None = None,
    *,
    titles: Iterable[object] = (),
    mask: Arrays | None = None,
) -> Axes:
    """Plot a gallery with one row for each image, and one column for each method beside that of the images.

    Maps have the ``visual`` reduction of the report: positive values, summed over channels and clipped at the 99th
    percentile of the map, or at its maximum if fewer than 1 % of the pixels are above the smallest value. × marks a map
    that is constant or not finite, and − a map without positive values; a note below the gallery explains these marks.

    Args:
        images: ``[N, C, H, W]`` with one or three channels, uint8 or floating point in [0, 1].
        maps: for each method its maps ``[N, C or 1, H, W]`` or ``[N, H, W]``, such as those of
            ``saliency_assay.attribute``.
        ax: axes to plot on.
        titles: title of each image, such as its class.
        mask: pixels of the object, bool ``[N, H, W]``, plotted as an outline.

    Raises:
        ValueError: no maps, images with another number of channels, arrays that do not fit the images, or another
            number of titles.
    """
    _check_by_method("maps", maps)
    pixels, labels = images_of(images).detach().cpu(), _labels(maps)
    names = [printable(_text(title)) for title in titles]
    if not maps:
        raise ValueError("maps: found none, expected those of at least one method")
    if pixels.shape[1] not in (1, 3):
        raise ValueError(f"images: found {list(pixels.shape)}, expected one or three channels")
    if names and len(names) != len(pixels):
        raise ValueError(f"titles: found {len(names)}, expected one for each of {len(pixels)} images")
    shown = [_visual(torch.from_numpy(maps_of(of, pixels))) for of in maps.values()]
    outlines = [None] * len(pixels) if mask is None else list(mask_of(mask, pixels))
    colors = (pixels if pixels.dtype == torch.uint8 else (255 * pixels).round().to(torch.uint8)).numpy()
    rows, columns = len(pixels), len(maps) + 1
    heads = ["image", *(printable(labels.method(method)) for method in maps)]
    ax = ax or _axes(TILE * columns + 0.6, TILE * rows * pixels.shape[2] / pixels.shape[3] + 0.4)
    ax.set_axis_off()
    for row, column in np.ndindex(rows, columns):
        place = column / columns, 1 - (row + 1) / rows, (1 - GAP) / columns, (1 - GAP) / rows
        tile = ax.inset_axes(place, xticks=[], yticks=[], frame_on=False)
        if column == 0:
            show_image(tile, colors[row], outlines[row])
            if names:
                tile.set_ylabel(names[row], fontsize=8)
        else:
            of_method, is_negative = shown[column - 1]
            show_map(tile, of_method[row], outlines[row])
            if is_negative[row]:
                tile.text(
                    *(0.5, 0.5, NEGATIVE), ha="center", va="center", transform=tile.transAxes, color="white"
                )
        tile.grid(visible=False)
        if row == 0:
            tile.set_title(heads[column], fontsize=8)
    notes = []
    if any(np.isnan(of_method).any() for of_method, _ in shown):
        notes.append(f"{UNDEFINED}: constant or not finite")
    if any(is_negative.any() for _, is_negative in shown):
        notes.append(f"{NEGATIVE}: no positive values")
    if notes:
        ax.text(0, -0.02, "; ".join(notes), va="top", fontsize=8, transform=ax.transAxes)
    return ax


def _visual(maps: Tensor) -> tuple[Array, Array]:
    """Return ``[N, H, W]`` in [0, 1] of maps ``[N, C, H, W]``, and bool ``[N]``: True without positive values.

    Unlike the ``visual`` reduction, it is NaN only for maps that are constant or not finite.
    """
    visual, positive = reduce(maps, "visual"), reduce(maps, "positive_sum")
    rounding = 16 * torch.finfo(maps.dtype).eps  # as in the reduction
    varies = (maps.amax((2, 3)) - maps.amin((2, 3)) > rounding * maps.abs().amax((2, 3))).any(1)
    low, high = positive.amin((1, 2)), positive.amax((1, 2))
    is_negative = varies & (high == 0)
    is_sparse = visual.isnan().flatten(1).any(1) & (high - low > rounding * high)
    span = torch.where(is_sparse, high - low, 1)[:, None, None]
    scaled = torch.where(is_sparse[:, None, None], (positive - low[:, None, None]) / span, visual)
    return torch.where(is_negative[:, None, None], 0, scaled).numpy(), is_negative.numpy()


@styled()
def agreement(assessment: Assessment, ax: Axes | None = None) -> Axes:
    """Plot Spearman's ρ over images of each pair of methods, with methods that agree beside each other.

    Args:
        assessment: result of ``saliency_assay.assess``.
        ax: axes to plot on.
    """
    _check_assessment(assessment)
    table = assessment.correlations
    labels = _labels(table.index)
    side = CELL * len(table)
    ax = ax or _axes(side + 3.6, side + 2)
    of_score = f" of {assessment.label}" if assessment.label else ""
    show_correlations(
        ax,
        table.to_numpy(),
        [labels.method(method) for method in table.index],
        f"Spearman's ρ over images{of_score}\n(1: both rank images alike)",
    )
    return ax


@styled()
def ranks_of_benchmark(
    benchmark: Benchmark, metric: str = "", ax: Axes | None = None, highlight: str = ""
) -> Axes:
    """Plot the rank set of each method under one metric of a benchmark; see ``Benchmark.plot``."""
    pair = benchmark.score_name(metric)
    rows = benchmark.ranks
    rows = rows[(rows["metric"] == pair[0]) & (rows["variant"] == pair[1])].set_index("method")
    label = benchmark.labels.score(*pair)
    return _plot_ranks(rows, benchmark.labels, label, Rule().level, ax, highlight)


@styled()
def sweep_of_benchmark(benchmark: Benchmark, family: str, metric: str = "", ax: Axes | None = None) -> Axes:
    """Plot the scores of a swept method, or the ranks under a swept metric; see ``Benchmark.plot``.

    Raises:
        ValueError: no parameter of ``family`` is swept, or ``metric`` is no score of it, one of several, or one that no
            member has.
    """
    methods = {each.name: each for each in benchmark.families}
    metrics = {each.name: each for each in benchmark.metric_families}
    if family in methods:
        pair = benchmark.score_name(metric)
        table = benchmark.sweeps
        rows = table[table["family"] == family]
        rows = rows[(rows["metric"] == pair[0]) & (rows["variant"] == pair[1])]
        if rows["mean"].isna().all():
            raise ValueError(
                f"family: found {family}, which has no score under {benchmark.labels.score(*pair)}"
            )
        ax = ax or _axes(5.5, 3.6)
        plot_sweep(ax, rows, methods[family])
        ax.set_title(f"{methods[family].label} under {benchmark.labels.score(*pair)}")
        if len(methods[family].parameters) > 1:
            ax.legend()
        return ax
    if family not in metrics:
        raise ValueError(unknown("family", family, [*methods, *metrics]))
    scores = scores_of_family(benchmark.ranks, metrics[family])
    names = list(dict.fromkeys(zip(scores["metric"], scores["sub_variant"], strict=True)))
    matches = [name for name in names if metric in ("", name[0], " ".join(name))]
    if len(matches) != 1:
        raise ValueError(
            f"metric: found {metric!r}, valid: {', '.join(' '.join(name).strip() for name in names)}"
        )
    rows = scores[(scores["metric"] == matches[0][0]) & (scores["sub_variant"] == matches[0][1])]
    ax = ax or _axes(6.5, 1.5 + 0.35 * rows["method"].nunique())
    plot_rank_sweep(ax, rows, metrics[family], benchmark.labels)
    ax.set_title(f"Ranks under {score_title(rows, metrics[family], benchmark.labels)}")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


@styled()
def curves_of_benchmark(
    benchmark: Benchmark, metric: str, ax: Axes | None = None, curve: str = "", highlight: str = ""
) -> Axes:
    """Plot the mean curves of a benchmark; see ``Benchmark.plot``.

    Raises:
        ValueError: the metric has no perturbation curves.
    """
    entry = next((each for each in benchmark.metrics if each.name == metric), None)
    name, means = benchmark.curve(metric, curve)
    registered = entry.registered if entry else ""
    if registered not in CURVES:
        raise ValueError(f"metric: found {metric!r}, expected one of {', '.join(CURVES)}")
    output = entry.output if entry else ""
    members = {family.name: list(family.members) for family in benchmark.families}
    highlighted = [each for each in members.get(highlight, []) if each in means] or [highlight]
    return _plot_curves(means, benchmark.labels, registered, name, output, ax, highlighted)


@styled()
def maps_of_benchmark(
    benchmark: Benchmark,
    ax: Axes | None = None,
    images: int = 4,
    methods: Sequence[str] = (),
    titles: Iterable[object] = (),
) -> Axes:
    """Plot the maps of the first images of a benchmark; see ``Benchmark.plot``.

    Raises:
        ValueError: a method has no maps.
    """
    pixels, by_method, mask, targets = benchmark.kept()
    labels = [benchmark.labels.method(name) for name in methods]
    for label in labels:
        if label not in by_method:
            raise ValueError(unknown("method", label, by_method))
    shown = {name: by_method[name][:images] for name in labels or by_method}
    names = list(titles) or [f"class {target}" for target in targets[:images]]
    return maps(pixels[:images], shown, ax, titles=names, mask=None if mask is None else mask[:images])


@styled()
def heat_map(benchmark: Benchmark, ax: Axes | None = None, highlight: str = "") -> Axes:
    """Plot the rank sets of all methods under all metrics of a benchmark.

    Up to six scores have their means with 95 % intervals below the rank sets.

    The lightness of a cell follows the middle of its rank set, and its saturation decreases with the size of the set.
    Hatched cells are not significantly better than every baseline. The last row is Krippendorff's α of each metric.
    """
    content = benchmark.heat_map
    rows = [*content.methods, *content.baselines]
    _check_highlight(list(benchmark.ranks["method"].unique()), highlight)
    has_means = len(content.columns) <= MOST_WIDE_COLUMNS
    width, height = (1.35, 0.42) if has_means else (0.85, 0.27)
    ax = ax or _axes(2.6 + width * len(content.columns), 0.9 + height * (len(rows) + 1))
    for row, method in enumerate(rows):
        for column, cell in enumerate(method.cells):
            if cell is None or not cell.mean:
                ax.text(
                    column,
                    row,
                    "failed" if cell is None else cell.absent,
                    ha="center",
                    va="center",
                    fontsize=7,
                )
                continue
            hatch = "///" if cell.hatched else None
            ax.add_patch(
                Rectangle(
                    (column - 0.48, row - 0.46),
                    0.96,
                    0.92,
                    facecolor=cell.background,
                    hatch=hatch,
                    edgecolor=(1, 1, 1, 0.4),
                    linewidth=0,
                )
            )
            text: dict[str, Any] = {"color": cell.color, "ha": "center", "va": "center"}
            ax.text(column, row - (0.14 if has_means else 0), cell.ranks, fontsize=9, **text)
            if has_means:
                ax.text(column, row + 0.24, with_minus_signs(cell.mean), fontsize=6, **text)
    for column, each in enumerate(content.columns):
        alpha = each.alpha.value if each.alpha else ""
        ax.text(column, len(rows), alpha or "–", ha="center", va="center", fontsize=8)
    marks = [*("" for _ in content.methods), *(" (baseline)" for _ in content.baselines)]
    ax.set_yticks(
        range(len(rows) + 1),
        [*(f"{row.method}{mark}" for row, mark in zip(rows, marks, strict=True)), "Krippendorff's α"],
        fontsize=8,
    )
    ax.set_xticks(
        range(len(content.columns)),
        [
            fill(each.name, 16 if has_means else 13, break_on_hyphens=False) + f" {each.arrow}"
            for each in content.columns
        ],
        fontsize=8,
    )
    label = benchmark.labels.method(highlight)
    is_baseline = label in [row.method for row in content.baselines]
    _mark_tick(ax, f"{label} (baseline)" if is_baseline else label)
    ax.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    if any(cell and cell.hatched for method in rows for cell in method.cells):
        ax.set_xlabel("hatched: not significantly better than every baseline", fontsize=7)
    ax.set_xlim(-0.5, len(content.columns) - 0.5)
    ax.set_ylim(len(rows) + 0.5, -0.5)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    return ax


def _check_highlight(methods: Sequence[str], highlight: str) -> None:
    if highlight and highlight not in methods:
        raise ValueError(unknown("method", highlight, methods).replace("unknown", "highlight: unknown", 1))


def _highlighted_looks(methods: Sequence[str], labels: Labels, *highlight: str) -> dict[str, Look]:
    """Return the look of each method; with ``highlight``, those in an accent color and all others in gray."""
    for each in highlight:
        _check_highlight(methods, each)
    by_method = looks(methods, labels)
    if not any(highlight):
        return by_method
    return {
        method: replace(look, color=VERMILION if method in highlight else GRAY)
        for method, look in by_method.items()
    }


def _mark_tick(ax: Axes, label: str) -> None:
    """Print the label of a method at the vertical axis in bold, in the accent color; an empty one marks none."""
    for tick in ax.get_yticklabels():
        if label and tick.get_text() == label:
            tick.set(fontweight="bold", color=VERMILION)


@styled()
def across_tasks(result: AcrossTasks, ax: Axes | None = None) -> Axes:
    """Plot the agreement of each pair of tasks on the order of the methods, with its intervals, for each metric.

    Args:
        result: result of ``saliency_assay.across``.
        ax: axes to plot on.
    """
    content = result.heat_map
    ax = ax or _axes(1.3 * len(content.columns) + 2.2, 0.5 * len(content.rows) + 1.4)
    for row, cells in enumerate(content.rows.values()):
        for column, cell in enumerate(cells):
            if cell is None:
                ax.text(column, row, NO_SCORE, ha="center", va="center", fontsize=7)
                continue
            has_value = cell.value is not None
            ax.add_patch(
                Rectangle(
                    (column - 0.48, row - 0.46),
                    0.96,
                    0.92,
                    facecolor=cell.background if has_value else "none",
                    hatch="///" if cell.is_open and has_value else None,
                    edgecolor=(0.5, 0.5, 0.5, 0.4),
                    linewidth=0,
                )
            )
            text: dict[str, Any] = {
                "ha": "center",
                "va": "center",
                "color": cell.color if has_value else "black",
            }
            ax.text(column, row - 0.14, cell.text, fontsize=9, **text)
            ax.text(column, row + 0.24, cell.note, fontsize=5.5, **text)
    ax.set_yticks(range(len(content.rows)), list(content.rows), fontsize=8)
    ax.set_xticks(range(len(content.columns)), [fill(name, 20) for name in content.columns], fontsize=8)
    ax.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    ax.set_xlabel(
        "Spearman's ρ between the orders of the methods; hatched: CI contains 0, or there is none", fontsize=7
    )
    ax.set_xlim(-0.5, max(len(content.columns), 1) - 0.5)
    ax.set_ylim(max(len(content.rows), 1) - 0.5, -0.5)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    return ax


def _check_assessment(assessment: object) -> None:
    if not isinstance(assessment, Assessment):
        raise ValueError(
            f"assessment: found {type(assessment).__name__}, expected the result of saliency_assay.assess"
        )


def _check_by_method(name: str, values: object) -> None:
    if isinstance(values, Scores) or not isinstance(values, Mapping):
        raise ValueError(
            f"{name}: found {type(values).__name__}, expected a dictionary: {name} of each method"
        )


def _text(title: object) -> str:
    """Return a title as text; a tensor without axes, such as an entry of a tensor of classes, as its number."""
    if isinstance(title, Tensor) and title.ndim == 0:
        value = title.item()
        return str(np.float32(value)) if isinstance(value, float) else str(value)  # 0.1, not 0.10000000149
    return str(title)


def _labels(methods: Iterable[Any]) -> Labels:
    """Return the labels and places of methods, as for entries of the configuration without a label."""
    records = {record.name: record for record in METHODS}
    names = [str(method) for method in methods]
    full_names = {name: registered_name(name, records) or name for name in names}
    entries = {name: (name, records[name].uses_model) if name in records else ("", True) for name in names}
    return Labels(
        methods={name: label_of(full, None, records.get(full)) for name, full in full_names.items()},
        places=method_places(entries, {name: record.uses_model for name, record in records.items()}),
    )


def _axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure of this size in inches, which a notebook shows."""
    _, axes = plt.subplots(figsize=(width, height))
    return axes

"""Figures for notebooks, of what ``saliency_assay.score``, ``assess`` and ``attribute`` return.

Each function plots on matplotlib axes, by default those of a new figure, and returns the axes. Methods have the labels,
colors and markers of the report.
"""

from collections.abc import Iterable, Mapping, Sequence
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

from saliency_assay.api.agreement import Assessment
from saliency_assay.api.inputs import Array, Arrays, images_of, maps_of, mask_of
from saliency_assay.api.results import Benchmark
from saliency_assay.api.scores import Scores
from saliency_assay.methods import METHODS
from saliency_assay.metrics import METRICS
from saliency_assay.metrics.reductions import reduce
from saliency_assay.plotting.gallery import CELL as TILE
from saliency_assay.plotting.gallery import show_image, show_map
from saliency_assay.plotting.palette import looks
from saliency_assay.plotting.statistics import mean_and_band
from saliency_assay.plotting.style import styled
from saliency_assay.plotting.text import NO_SCORE, better, with_minus_signs
from saliency_assay.registry.labels import Labels, label_of, method_places
from saliency_assay.registry.records import ALIASES, record_of, unknown
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
GAP = 0.03
"""Space between the tiles of a gallery, as a share of a tile."""


@styled()
def ranks(assessment: Assessment, ax: Axes | None = None) -> Axes:
    """Plot the rank of each method with its confidence set, the best methods on top.

    Args:
        assessment: result of ``saliency_assay.assess``.
        ax: axes to plot on.
    """
    _check_assessment(assessment)
    return _plot_ranks(
        assessment.order, _labels(assessment.order.index), assessment.label, assessment.rank_level, ax
    )


def _plot_ranks(order: pd.DataFrame, labels: Labels, label: str, level: float, ax: Axes | None) -> Axes:
    order = order.sort_values(["rank", "rank_low", "rank_high"], kind="stable")
    ends = order[["rank", "rank_low", "rank_high"]].to_numpy(np.float64)
    ax = ax or _axes(6, 0.35 * len(order) + 1.2)
    for row, look in enumerate(looks(list(order.index), labels).values()):
        rank, low, high = ends[row]
        ax.plot([low, high], [row, row], color=look.color, linewidth=2)
        ax.plot(rank, row, **{**look.line(), "linestyle": ""}, markersize=7)
        if np.isnan(rank):
            ax.text(1, row, "no rank", va="center")
    ax.set_yticks(range(len(order)), [labels.method(method) for method in order.index])
    ax.set_ylim(len(order) - 0.5, -0.5)
    ax.set_xlim(0.8, len(order) + 0.2)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(visible=True, axis="x", color=plt.rcParams["grid.color"])
    under = f" under {label}" if label else ""
    ax.set_xlabel(f"rank{under} (1 is best)\nwith simultaneous {100 * level:.4g} % confidence sets")
    return ax


@styled()
def curves(scores: Mapping[str, Scores], ax: Axes | None = None, *, curve: str = "") -> Axes:
    """Plot the model's output as pixels are removed or inserted: means over images with their 95 % bands.

    Args:
        scores: for each method its result of ``saliency_assay.score`` under one metric of ``CURVES``.
        ax: axes to plot on.
        curve: ``morf`` or ``lerf``, for metrics that perturb the most and the least relevant pixels first; by default
            ``morf``.

    Raises:
        ValueError: there are no scores, scores of another metric or of several, or no such curve.
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
    return _plot_curves(means, _labels(scores), metric, name, str(first.parameters["output"]), ax)


def _plot_curves(
    means: Mapping[str, tuple[Array, Array]],
    labels: Labels,
    metric: str,
    name: str,
    output: str,
    ax: Axes | None,
) -> Axes:
    """Plot means and half widths of their bands, by method."""
    record = record_of(METRICS, metric, "metric")
    ax = ax or _axes(6.4, 4)
    for method, look in looks(list(means), labels).items():
        mean, half = means[method]
        x = np.arange(len(mean)) if metric == "aopc" else perturbed_shares(name, len(mean))
        line = {**look.line(), "markevery": max(1, len(x) // 8), "markersize": 5}
        label = labels.method(method)
        ax.plot(x, mean, label=f"{label}: {NO_SCORE}" if np.isnan(mean).all() else label, **line)
        ax.fill_between(x, mean - half, mean + half, color=look.color, alpha=0.15, linewidth=0)
    ax.set_title(
        next((score for score in record.scores if score.name.endswith(f"_{name}")), record.scores[0]).label
    )
    ax.set_xlabel(CURVES[metric])
    direction = "higher" if name == "lerf" or metric == "insertion" else "lower"
    ax.set_ylabel(f"output{f' ({output})' if output else ''}, mean and 95 % band\n{better(direction)}")
    ax.legend()
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
    percentile of the map. A cross marks a map that is constant or not finite.

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
    shown = {
        method: reduce(torch.from_numpy(maps_of(of, pixels)), "visual").numpy() for method, of in maps.items()
    }
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
            show_map(tile, list(shown.values())[column - 1][row], outlines[row])
        tile.grid(visible=False)
        if row == 0:
            tile.set_title(heads[column], fontsize=8)
    return ax


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
def ranks_of_benchmark(benchmark: Benchmark, metric: str = "", ax: Axes | None = None) -> Axes:
    """Plot the rank set of each method under one metric of a benchmark; see ``Benchmark.plot``."""
    pair = benchmark.score_name(metric)
    rows = benchmark.ranks
    rows = rows[(rows["metric"] == pair[0]) & (rows["variant"] == pair[1])].set_index("method")
    return _plot_ranks(rows, benchmark.labels, benchmark.labels.score(*pair), Rule().level, ax)


@styled()
def sweep_of_benchmark(benchmark: Benchmark, family: str, metric: str = "", ax: Axes | None = None) -> Axes:
    """Plot the scores of a swept method, or the ranks under a swept metric; see ``Benchmark.plot``.

    Raises:
        ValueError: no parameter of ``family`` is swept, or ``metric`` is no score of it or one of several.
    """
    methods = {each.name: each for each in benchmark.families}
    metrics = {each.name: each for each in benchmark.metric_families}
    if family in methods:
        pair = benchmark.score_name(metric)
        table = benchmark.sweeps
        rows = table[table["family"] == family]
        rows = rows[(rows["metric"] == pair[0]) & (rows["variant"] == pair[1])]
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
def curves_of_benchmark(benchmark: Benchmark, metric: str, ax: Axes | None = None, curve: str = "") -> Axes:
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
    return _plot_curves(means, benchmark.labels, registered, name, output, ax)


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
def heat_map(benchmark: Benchmark, ax: Axes | None = None) -> Axes:
    """Plot the rank sets of all methods under all metrics of a benchmark, with means and 95 % intervals.

    The lightness of a cell follows the middle of its rank set, and its saturation decreases with the size of the set.
    Hatched cells are not significantly better than every baseline. The last row is Krippendorff's α of each metric.
    """
    content = benchmark.heat_map
    rows = [*content.methods, *content.baselines]
    ax = ax or _axes(1.9 + 1.35 * len(content.columns), 0.9 + 0.42 * (len(rows) + 1))
    for row, method in enumerate(rows):
        for column, cell in enumerate(method.cells):
            if cell is None or not cell.mean:
                ax.text(
                    column,
                    row,
                    "failed" if cell is None else "no score",
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
            ax.text(column, row - 0.14, cell.ranks, fontsize=9, **text)
            ax.text(column, row + 0.24, with_minus_signs(cell.mean), fontsize=5.5, **text)
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
        [f"{fill(each.name, 16)} {each.arrow}" for each in content.columns],
        fontsize=8,
    )
    ax.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    if any(cell and cell.hatched for method in rows for cell in method.cells):
        ax.set_xlabel("hatched: not significantly better than every baseline", fontsize=7)
    ax.set_xlim(-0.5, len(content.columns) - 0.5)
    ax.set_ylim(len(rows) + 0.5, -0.5)
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
    full_names = {name: ALIASES.get(name, name) for name in names}
    entries = {name: (name, records[name].uses_model) if name in records else ("", True) for name in names}
    return Labels(
        methods={name: label_of(full, None, records.get(full)) for name, full in full_names.items()},
        places=method_places(entries, {name: record.uses_model for name, record in records.items()}),
    )


def _axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure of this size in inches, which a notebook shows."""
    _, axes = plt.subplots(figsize=(width, height))
    return axes

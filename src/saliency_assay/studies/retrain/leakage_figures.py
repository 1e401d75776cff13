"""Mask leakage as a displayed table and as a bar chart."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

from saliency_assay.plotting.palette import BLUE, GRAY, SKY, VERMILION
from saliency_assay.plotting.style import WIDTH
from saliency_assay.plotting.text import NO_SCORE, data_set, significant, span_text
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.studies.retrain.leakage_tables import METRICS, leakage_values
from saliency_assay.studies.retrain.retrain_tables import KEYS, named, protocol_label

COLUMNS = 5
NARROW = 6.5
UNTESTED = "?"
VALUE: dict[str, Any] = {"marker": "o", "color": "black", "markersize": 3, "linestyle": "none"}
BAND: dict[str, Any] = {"color": GRAY, "alpha": 0.5, "linewidth": 0}
CHANCE: dict[str, Any] = {"color": "black", "linewidth": 1, "linestyle": ":"}


def displayed_leakage(table: pd.DataFrame, labels: Labels = UNLABELED) -> pd.DataFrame:
    """Return a ``leakage_table`` for display: in percent, with its verdict as text."""
    verdicts = np.where(table["leaks"], "leaks", np.where(table["reason"] == "", "no", table["reason"]))
    columns: dict[str, Any] = {
        "protocol": table["protocol"].map(protocol_label),
        "fill": table["fill"],
        "method": table["method"].map(labels.method),
        "iteration": table["iteration"],
        "accuracy on masks (%)": 100 * table["accuracy"],
        "sd": 100 * table["accuracy_sd"],
        "n": table["accuracy_values"],
        "loss (nats)": table["loss"],
        "sd of loss": table["loss_sd"],
        "with permuted labels (%)": 100 * table["random"],
        "sd with permuted labels": 100 * table["random_sd"],
        "n with permuted labels": table["random_values"],
        "loss with permuted labels (nats)": table["random_loss"],
        "sd of that loss": table["random_loss_sd"],
        "chance (%)": 100 * table["chance"],
        "test images": table["images"],
        "p": [_p_text(p) for p in table["p"]],
        "p (Holm)": [_p_text(p) for p in table["p_holm"]],
        "leaks": verdicts,
    }
    return pd.DataFrame(columns)


def _p_text(p: float) -> str:
    return "–" if np.isnan(p) else significant(p, 2)


def leakage_bars(
    means: pd.DataFrame, table: pd.DataFrame, *, alpha: float, labels: Labels = UNLABELED
) -> Figure:
    """Plot test accuracy of classifiers of masks alone: a panel per protocol, fill and iteration, a bar per method.

    Dots are repeats and seeds; the band at a bar is the range of those with permuted labels. Arms that leak according
    to ``table``, the ``leakage_table`` of ``means`` for this ``alpha``, are red and labeled.
    """
    chance = 100 * float(table["chance"].iloc[0])
    values = leakage_values(means, list(METRICS))
    methods = list(values["method"].unique())
    arms = [arm for _, arm in table.groupby(["protocol", "fill"], sort=False)]
    panels = [sorted(arm["iteration"].unique()) for arm in arms]
    columns = min(COLUMNS, max(map(len, panels)))
    lines = [-(-len(iterations) // columns) for iterations in panels]
    figure = Figure(
        figsize=(WIDTH if columns > 1 else NARROW, sum(lines) * (0.21 * len(methods) + 0.9) + 0.85)
    )
    grid = figure.subplots(sum(lines), columns, squeeze=False, sharex=True, sharey=True)
    for axes in grid.flat:
        axes.set_visible(False)
    first_lines = np.cumsum([0, *lines])  # each arm starts a new line
    for arm, iterations, line in zip(arms, panels, first_lines[:-1], strict=True):
        protocol, fill = arm["protocol"].iloc[0], arm["fill"].iloc[0]
        arm_values = values[(values["protocol"] == protocol) & (values["fill"] == fill)]
        for axes, iteration in zip(grid[line:].flat, iterations, strict=False):
            axes.set_visible(True)
            panel_rows = arm[arm["iteration"] == iteration].set_index("method")
            _plot_panel(axes, methods, panel_rows, arm_values[arm_values["iteration"] == iteration], labels)
            axes.set_title(f"{named(protocol, fill)}, {data_set(iteration)}", fontsize=9)
            axes.axvline(chance, **CHANCE)
    grid[0, 0].set_xlim(left=0)
    _add_legend(figure, values, chance=chance, alpha=alpha)
    return figure


def _plot_panel(
    axes: Axes, methods: Sequence[str], panel_rows: pd.DataFrame, values: pd.DataFrame, labels: Labels
) -> None:
    """Plot a bar for each of ``methods`` from top to bottom, with dots, band and verdict."""
    for place, method in enumerate(methods):
        across = axes.get_yaxis_transform()
        if np.isnan(mean := float(panel_rows["accuracy"].get(method, np.nan))):
            axes.text(0.5, place, NO_SCORE, transform=across, ha="center", va="center", fontsize=8)
            continue
        method_values = values[values["method"] == method]
        row = panel_rows.loc[method]
        color = VERMILION if row["leaks"] else SKY
        axes.barh(place, 100 * mean, 0.7, color=color, edgecolor="none")
        repeats = 100 * method_values.loc[method_values["metric"] == "leakage", "score"].dropna()
        axes.plot(repeats, np.full(len(repeats), place), **VALUE)
        random = method_values.loc[method_values["metric"] == "leakage_random", "score"].dropna()
        if len(random):
            low, high = 100 * random.min(), 100 * random.max()
            axes.barh(place, high - low, 0.9, left=low, **BAND)
            axes.plot([100 * random.mean()] * 2, [place - 0.45, place + 0.45], color="black", linewidth=1)
        mark = "leaks" if row["leaks"] else UNTESTED if row["reason"] else ""
        color = VERMILION if row["leaks"] else BLUE
        axes.text(
            1.02, place, mark, transform=across, va="center", color=color, fontsize=8, fontweight="bold"
        )
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.set_yticks(range(len(methods)), [labels.method(method) for method in methods], fontsize=8)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.tick_params(axis="x", labelsize=8, labelbottom=True)
    axes.set_xlabel("test accuracy (%)", fontsize=8)


def _add_legend(figure: Figure, values: pd.DataFrame, *, chance: float, alpha: float) -> None:
    """Add a legend with the number of values per bar and the meaning of the marks."""
    counts = values.dropna(subset="score").groupby([*KEYS, "metric"], sort=False).size()
    sizes = {
        metric: span_text(metric_counts.tolist()) for metric, metric_counts in counts.groupby(level="metric")
    }
    seeds = values["seed"].nunique()
    title = (
        f"mask-only classifiers: {sizes.get('leakage', 0)} values per bar, {sizes.get('leakage_random', 0)} per band, "
        f"{seeds} seed{'s' if seeds > 1 else ''}"
    )
    handles = [
        Patch(color=SKY, label="mean with true labels"),
        Patch(color=VERMILION, label=f"leakage detected: corrected p < {alpha:g}"),
        Line2D([], [], label="one repeat of one seed", **VALUE),
        Patch(label="permuted labels: range, and mean (line)", **BAND),
        Line2D([], [], label=f"chance: {chance:.3g} %", **CHANCE),
    ]
    if any(text.get_text() == UNTESTED for axes in figure.axes for text in axes.texts):
        sign = TextPath((0, 0), UNTESTED)
        centered = sign.transformed(Affine2D().translate(*-sign.get_extents().get_points().mean(0)))
        mark: dict[str, Any] = {"marker": centered, "color": BLUE, "linestyle": "none"}
        handles.append(Line2D([], [], label="too few values to test", **mark))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=3 if figure.get_figwidth() > NARROW else 2,
        fontsize=9,
        title=title,
        title_fontsize=9,
    )

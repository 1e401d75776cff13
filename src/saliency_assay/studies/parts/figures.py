"""Figure of a parts study: the mean of every protocol with its interval, by method."""

from collections.abc import Collection
from textwrap import fill

import pandas as pd
from matplotlib.figure import Figure

from saliency_assay.plotting.palette import BLUE, GRAY, ORANGE
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.studies.parts.parts_tables import SCORES

ROW, COLUMN = 0.28, 1.75  # inches
LETTERS = 20  # in a line of a title


def protocols_figure(
    order: pd.DataFrame, baselines: Collection[str], level: float, labels: Labels = UNLABELED
) -> Figure:
    """Plot a panel for each score with a dot and an interval for each method, in the order of completeness.

    Args:
        order: means and intervals, see ``reliability.order_tables.order_tables``.
        baselines: methods that do not use the model, in another color.
        level: level of the intervals.
        labels: labels of methods and scores.
    """
    best = order[order["metric"] == SCORES[0]].sort_values("mean", ascending=False, kind="stable")
    methods = list(dict.fromkeys([*best["method"], *order["method"]]))
    figure = Figure(figsize=(COLUMN * len(SCORES) + 1.5, ROW * len(methods) + 1.6))
    panels = figure.subplots(1, len(SCORES), sharey=True)
    for axes, score in zip(panels, SCORES, strict=True):
        rows = order[order["metric"] == score].set_index("method").reindex(methods)
        for place, (method, row) in enumerate(rows.iterrows()):
            color = ORANGE if method in baselines else BLUE
            axes.plot([row["low"], row["high"]], [place, place], color=color, linewidth=1)
            axes.plot(row["mean"], place, "s" if method in baselines else "o", color=color, markersize=5)
        axes.set_title(fill(labels.score(score, ""), LETTERS), fontsize=9)
        axes.set_xlim(-0.03, 1.03)
        axes.axvline(0.5, color=GRAY, linewidth=0.8, linestyle=":")
        axes.grid(visible=True, axis="x")
    panels[0].set_yticks(range(len(methods)), [labels.method(str(method)) for method in methods])
    panels[0].set_ylim(len(methods) - 0.5, -0.5)
    interval = f"mean over images with {100 * level:.4g} % confidence interval (higher is better →)"
    figure.supxlabel(f"{interval}; orange squares: baselines", fontsize=9)
    return figure

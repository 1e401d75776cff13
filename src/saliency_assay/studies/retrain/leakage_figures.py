"""Whether masks alone give the class away: a test of every arm of the retrain study, and its figure."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from scipy.stats import norm, t

from saliency_assay.plotting.metric_results import NO_SCORE, span_text
from saliency_assay.plotting.style import BLUE, GREY, SKY, VERMILION, readable
from saliency_assay.studies.retrain.tables import KEYS, PROTOCOLS, named, ordered, split_variants

Array = npt.NDArray[Any]

ALPHA = 0.01
"""Masks leak where the corrected p is below."""
COLUMNS = 5
WIDTH = 10.4  # inches: the report's 1,000 pixels
NARROW = 6.5
UNTESTED = "?"
LEAST_VALUES = 2
METRICS = {"leakage": "accuracy", "leakage_random": "random"}
LOSSES = {"leakage_loss": "loss", "leakage_loss_random": "random_loss"}
VALUE: dict[str, Any] = {"marker": "o", "color": "black", "markersize": 3, "linestyle": "none"}
BAND: dict[str, Any] = {"color": GREY, "alpha": 0.5, "linewidth": 0}
CHANCE: dict[str, Any] = {"color": "black", "linewidth": 1, "linestyle": ":"}


def leakage_table(means: pd.DataFrame, classes: int, alpha: float) -> pd.DataFrame:
    """Test accuracy of classifiers of masks alone, against those whose labels were permuted.

    Args:
        means: the study's ``tables.means``, with ``leakage``, ``leakage_random`` (and ``leakage_loss``,
            ``leakage_loss_random``) of each repeat and seed, and ``accuracy``, which tells the number of test images.
        classes: K.
        alpha: masks leak where the corrected p is below.

    Returns:
        One row for each of ``KEYS``, in the order of ``means``: ``accuracy`` and ``random`` in 0–1, ``loss`` and
        ``random_loss`` in nats (NaN if not given), means over repeats and seeds, each with ``…_sd`` (n − 1);
        ``accuracy_values`` and ``random_values`` (n); ``chance`` = 1/K; ``images``, test images behind each accuracy;
        ``p``, see ``p_above``; ``p_holm``, corrected for all rows (Holm 1979); ``leaks``; ``reason``, why p is NaN and
        nothing is flagged: fewer than two values.

    Raises:
        ValueError: no test accuracy, or see ``tables.split_variants``.
    """
    table, images = _values(means, [*METRICS, *LOSSES]), _images(means)
    rows: list[dict[str, Any]] = []
    for arm, of_arm in table.groupby(KEYS, sort=False):
        row: dict[str, Any] = dict(zip(KEYS, arm, strict=True))
        sides = []
        for metric, name in (METRICS | LOSSES).items():
            values = of_arm.loc[of_arm["metric"] == metric, "score"].dropna()
            row |= {name: values.mean(), f"{name}_sd": values.std()}
            if metric in METRICS:
                row[f"{name}_values"] = len(values)
                sides.append(values.to_numpy())
        if arm not in images:
            raise ValueError(f"accuracy: found none of {'/'.join(map(str, arm))}, expected one a test image")
        p = p_above(*sides, images=images[arm], chance=1 / classes)
        counts = f"{row['accuracy_values']} with labels, {row['random_values']} with permuted ones"
        reason = f"found {counts}, expected at least {LEAST_VALUES} of each" if np.isnan(p) else ""
        rows.append(row | {"chance": 1 / classes, "images": images[arm], "p": p, "reason": reason})
    found = ordered(pd.DataFrame(rows), table)
    corrected = holm(found["p"].to_numpy())
    at = list(found).index("reason")
    found.insert(at, "p_holm", corrected)
    found.insert(at + 1, "leaks", corrected < alpha)
    return found


def _images(means: pd.DataFrame) -> dict[Any, int]:
    """Test images of each of ``KEYS``: the least of its seeds."""
    if not (means["metric"] == "accuracy").any():
        return {}
    rows = split_variants(means, ["accuracy"], "protocol/fill/iteration")
    return {arm: int(count) for arm, count in rows[rows["images"] > 0].groupby(KEYS)["images"].min().items()}


def leakage_shown(table: pd.DataFrame) -> pd.DataFrame:
    """A ``leakage_table`` to read: in percent, with its verdict in words."""
    verdicts = np.where(table["leaks"], "leaks", np.where(table["reason"] == "", "no", table["reason"]))
    shown: dict[str, Any] = {
        "protocol": table["protocol"].map(lambda name: PROTOCOLS.get(name, readable(name))),
        "fill": table["fill"],
        "method": table["method"].map(readable),
        "iteration": table["iteration"],
        "accuracy on masks (%)": 100 * table["accuracy"],
        "sd": 100 * table["accuracy_sd"],
        "n": table["accuracy_values"],
        "loss (nats)": table["loss"],
        "sd of loss": table["loss_sd"],
        "with permuted labels (%)": 100 * table["random"],
        "its sd": 100 * table["random_sd"],
        "its n": table["random_values"],
        "its loss (nats)": table["random_loss"],
        "sd of its loss": table["random_loss_sd"],
        "chance (%)": 100 * table["chance"],
        "test images": table["images"],
        "p": [_p_text(p) for p in table["p"]],
        "p (Holm)": [_p_text(p) for p in table["p_holm"]],
        "leaks": verdicts,
    }
    return pd.DataFrame(shown)


def _p_text(p: float) -> str:
    return "–" if np.isnan(p) else f"{p:.2g}"


def _values(means: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """The rows of ``metrics``, with the parts of their variants as columns."""
    return split_variants(means, metrics, "protocol/fill/iteration/repeatN")


def p_above(values: Array, others: Array, *, images: int, chance: float) -> float:
    """p that accuracies ``values`` are on average not above ``others``, those with permuted labels; one-sided.

    Classifiers with the images' labels are tested on the same images with the same labels, so they err together, and
    their spread does not show that error. One accuracy a over n test images has sampling variance s = a(1 − a)/n
    (binomial), at most as much as all share, so it is a floor that repeats do not lower:

        Var of the mean = v/m + s             with the images' labels (m values of variance v)
        Var of the mean = max(v'/m', s/m')    with permuted labels, which each repeat draws for itself

    t is the difference of means over the root of the sum of both. As in Welch's test the degrees of freedom are
    Satterthwaite's, of what is estimated alone: s is taken as known, so that without spread t is normal. a is the mean
    of both sides' means (pooled, as in a test of two proportions) or ``chance``, whichever has the larger a(1 − a).

    Args:
        values: test accuracies in 0–1 with the images' labels, ``[m]``.
        others: with permuted labels, ``[m']``.
        images: n.
        chance: 1/K.

    Returns:
        p; NaN of fewer than two values in either.
    """
    if min(len(values), len(others)) < LEAST_VALUES:
        return float("nan")
    pooled = (values.mean() + others.mean()) / 2
    sampling = max(a * (1 - a) for a in (pooled, chance)) / images
    spread = values.var(ddof=1) / len(values)
    beyond = max(others.var(ddof=1) / len(others) - sampling / len(others), 0.0)
    variance = sampling + sampling / len(others) + spread + beyond
    statistic = (values.mean() - others.mean()) / variance**0.5
    estimated = spread**2 / (len(values) - 1) + beyond**2 / (len(others) - 1)
    # The variance of equal values is not exactly 0 when their mean is rounded.
    if estimated < 1e-12 * variance**2:
        return float(norm.sf(statistic))
    return float(t.sf(statistic, variance**2 / estimated))


def holm(ps: Array) -> Array:
    """Ps ``[n]`` corrected for their number, so that one below α is wrong with probability α at most; NaN stays.

    The smallest is multiplied by n, the next by n − 1 and so on, and none is below one before it (Holm 1979).
    """
    corrected = np.full(len(ps), np.nan)
    order = np.argsort(ps)[: np.isfinite(ps).sum()]  # NaN come last
    scaled = ps[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return corrected


def leakage_bars(means: pd.DataFrame, table: pd.DataFrame, *, alpha: float) -> Figure:
    """Test accuracy of classifiers of masks alone: a panel for each protocol, fill and iteration, a bar a method.

    Dots are repeats and seeds, the band beside a bar holds those with permuted labels (least to greatest), and what
    ``table``, the ``leakage_table`` of ``means`` under this ``alpha``, finds to leak is red and says so.
    """
    chance = 100 * float(table["chance"].iloc[0])
    values = _values(means, list(METRICS))
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
    first = np.cumsum([0, *lines])  # an arm begins on a line of its own
    for arm, iterations, line in zip(arms, panels, first[:-1], strict=True):
        protocol, fill = arm["protocol"].iloc[0], arm["fill"].iloc[0]
        here = values[(values["protocol"] == protocol) & (values["fill"] == fill)]
        for axes, iteration in zip(grid[line:].flat, iterations, strict=False):
            axes.set_visible(True)
            of_panel = arm[arm["iteration"] == iteration].set_index("method")
            _panel(axes, methods, of_panel, here[here["iteration"] == iteration])
            axes.set_title(f"{named(protocol, fill)}, $D_{{{iteration}}}$", fontsize=9)
            axes.axvline(chance, **CHANCE)
    grid[0, 0].set_xlim(left=0)
    _say(figure, values, chance=chance, alpha=alpha)
    return figure


def _panel(axes: Axes, methods: Sequence[str], found: pd.DataFrame, values: pd.DataFrame) -> None:
    """A bar for each of ``methods`` from top to bottom, with dots, band and verdict."""
    for place, method in enumerate(methods):
        across = axes.get_yaxis_transform()
        if np.isnan(mean := float(found["accuracy"].get(method, np.nan))):
            axes.text(0.5, place, NO_SCORE, transform=across, ha="center", va="center", fontsize=8)
            continue
        of_method = values[values["method"] == method]
        row = found.loc[method]
        colour = VERMILION if row["leaks"] else SKY
        axes.barh(place, 100 * mean, 0.7, color=colour, edgecolor="none")
        single = 100 * of_method.loc[of_method["metric"] == "leakage", "score"].dropna()
        axes.plot(single, np.full(len(single), place), **VALUE)
        random = of_method.loc[of_method["metric"] == "leakage_random", "score"].dropna()
        if len(random):
            low, high = 100 * random.min(), 100 * random.max()
            axes.barh(place, high - low, 0.9, left=low, **BAND)
            axes.plot([100 * random.mean()] * 2, [place - 0.45, place + 0.45], color="black", linewidth=1)
        said = "leaks" if row["leaks"] else UNTESTED if row["reason"] else ""
        colour = VERMILION if row["leaks"] else BLUE
        axes.text(
            1.02, place, said, transform=across, va="center", color=colour, fontsize=8, fontweight="bold"
        )
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.set_yticks(range(len(methods)), [readable(method) for method in methods], fontsize=8)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.tick_params(axis="x", labelsize=8, labelbottom=True)
    axes.set_xlabel("test accuracy (%)", fontsize=8)


def _say(figure: Figure, values: pd.DataFrame, *, chance: float, alpha: float) -> None:
    """How many values stand behind a bar, and what the marks are."""
    counts = values.dropna(subset="score").groupby([*KEYS, "metric"], sort=False).size()
    drawn = {metric: span_text(of.tolist()) for metric, of in counts.groupby(level="metric")}
    seeds = values["seed"].nunique()
    said = (
        f"classifiers of masks alone: {drawn.get('leakage', 0)} a bar, {drawn.get('leakage_random', 0)} a band, "
        f"of {seeds} seed{'s' if seeds > 1 else ''}"
    )
    handles = [
        Patch(color=SKY, label="mean with the images' labels"),
        Patch(color=VERMILION, label=f"the same, leaks: corrected p < {alpha:g}"),
        Line2D([], [], label="one repeat of one seed", **VALUE),
        Patch(label="permuted labels: range, and mean (line)", **BAND),
        Line2D([], [], label=f"chance: {chance:.3g} %", **CHANCE),
    ]
    if any(text.get_text() == UNTESTED for axes in figure.axes for text in axes.texts):
        mark: dict[str, Any] = {"marker": f"${UNTESTED}$", "color": BLUE, "linestyle": "none"}
        handles.append(Line2D([], [], label="too few values to test", **mark))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=3 if figure.get_figwidth() > NARROW else 2,
        fontsize=9,
        title=said,
        title_fontsize=9,
    )

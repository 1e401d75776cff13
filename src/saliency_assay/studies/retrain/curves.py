"""Curves of the retrain study: accuracy against the occluded share, and overlap of masks by iteration."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.plotting.charts import LineChart, Panel, line_rows
from saliency_assay.plotting.palette import BLACK, GRAY, Look, looks
from saliency_assay.plotting.text import NO_SCORE, span_text
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.studies.retrain.retrain_tables import OVERLAPS, by_iteration, expected, named

CHANCE = Look(BLACK, (1, 3))
RANDOM = Look(GRAY, (1, 1))
MOST = Look(BLACK, (2, 2))
RANDOM_LABEL, MOST_LABEL = "expected of random masks", "no overlap: (i + 1)·k"
ACROSS = {
    "nominal": "nominally occluded, i·k / A (% of pixels)",
    "measured": "occluded in D_i (measured), mean CMA / A (% of pixels)",
}
MEANINGS = {
    "mmo": "MMO: overlap of mean masks i and i + 1\n(% of a mask's k pixels)",
    "mamo": "MAMO: mean masks 0 to i with i + 1\n(% of a mask's k pixels)",
    "cma": "CMA: area of mean masks 0 to i\n(% of the image's A pixels)",
}


def accuracy_curves(
    means: pd.DataFrame,
    *,
    area: int,
    occluded: int,
    iterations: int,
    classes: int,
    labels: Labels = UNLABELED,
) -> LineChart:
    """Plot test accuracy of f_i against the share of pixels occluded in D_i, one panel per protocol and fill.

    Lines are means over seeds, bands their range. The nominal share is i·k/A; where masks overlap, fewer pixels are
    occluded, and additional panels plot the accuracy against the measured share.

    ``means`` are the study's ``tables.means``; for the other arguments see ``tables.summary``.

    Raises:
        ValueError: see ``tables.by_iteration``.
    """
    rows_of_iterations = by_iteration(means, iterations)
    accuracy_rows = rows_of_iterations[rows_of_iterations["metric"] == "accuracy"]
    accuracy = accuracy_rows.assign(
        score=100 * accuracy_rows["score"], nominal=100 * accuracy_rows["iteration"] * occluded / area
    )
    accuracy["measured"] = _measured_shares(accuracy, rows_of_iterations, area)
    panels = [
        (across, str(protocol), str(fill))
        for protocol, protocol_rows in accuracy.groupby("protocol", sort=False)
        for across in ("nominal", "measured")
        if across == "nominal" or _shares_differ(protocol_rows)
        for fill in accuracy["fill"].unique()
    ]
    chance = f"chance: {100 / classes:.3g} %"
    upper = max(min(102.0, 1.06 * float(accuracy["score"].max())), 110 / classes)
    charts = []
    for across, protocol, fill in panels:
        panel_rows = accuracy[(accuracy["protocol"] == protocol) & (accuracy["fill"] == fill)]
        ends = np.array([0.0, 100 * iterations * occluded / area])
        rows = [_rows(panel_rows, labels, across), line_rows(chance, ends, np.full(2, 100 / classes))]
        title = f"{named(protocol, fill)}: {across} share"
        x_title = ACROSS[across] + (f"\n{NO_SCORE}" if panel_rows.empty else "")
        charts.append(Panel(title, x_title, "test accuracy of f_i (%)", pd.concat(rows), y_limits=(0, upper)))
    return _chart(
        charts,
        rows=accuracy_rows,
        methods=list(rows_of_iterations["method"].unique()),
        labels=labels,
        references={chance: CHANCE},
        columns=_column_count(len(panels), accuracy["fill"].nunique()),
        sizes=(area, occluded),
    )


def _measured_shares(accuracy: pd.DataFrame, rows: pd.DataFrame, area: int) -> Array:
    """Return, by row of ``accuracy``, the share of pixels (%) occluded in its seed's D_i: CMA of iteration i − 1."""
    keys = ["protocol", "fill", "method", "seed", "iteration"]
    occluded_areas = rows[rows["metric"] == "cma"].assign(iteration=lambda table: table["iteration"] + 1)
    areas = occluded_areas.set_index(keys)["score"].reindex(pd.MultiIndex.from_frame(accuracy[keys]))
    return np.where(accuracy["iteration"] == 0, 0.0, 100 * areas.to_numpy() / area)


def _shares_differ(accuracy: pd.DataFrame) -> bool:
    """Return True if nominal and measured shares differ by more than rounding."""
    shares = accuracy[["nominal", "measured"]].dropna()
    return not np.allclose(shares["nominal"], shares["measured"], rtol=0, atol=1e-6)


def overlap_curves(
    means: pd.DataFrame, *, area: int, occluded: int, iterations: int, labels: Labels = UNLABELED
) -> LineChart:
    """Plot MMO, MAMO and CMA by iteration, in columns, one row per protocol and fill.

    Lines are means over images and seeds, bands the range of seeds. The dotted gray line is the expectation for
    independent random masks; the dotted black line is (i + 1)·k, the CMA of disjoint masks, which ends at ρA.

    ``means`` are the study's ``tables.means``; for the other arguments see ``tables.summary``.

    Raises:
        ValueError: see ``tables.by_iteration``.
    """
    rows = by_iteration(means, iterations)
    rows = rows[rows["metric"].isin(OVERLAPS)]
    arms = rows[["protocol", "fill"]].drop_duplicates().itertuples(index=False, name=None)
    panels = [(protocol, fill, metric) for protocol, fill in arms for metric in OVERLAPS]
    limits = {metric: 1.06 * _largest(rows, metric, iterations, area, occluded) for metric in OVERLAPS}
    charts = []
    for protocol, fill, metric in panels:
        panel_rows = rows[
            (rows["protocol"] == protocol) & (rows["fill"] == fill) & (rows["metric"] == metric)
        ]
        denominator = area if metric == "cma" else occluded
        last = iterations - (1 if metric == "cma" else 2)
        references = _references(metric, last, area=area, occluded=occluded)
        lines = _rows(panel_rows.assign(score=100 * panel_rows["score"] / denominator), labels, "iteration")
        x_title = "iteration i" + (f"\n{NO_SCORE}" if panel_rows.empty else "")
        charts.append(
            Panel(
                named(protocol, fill),
                x_title,
                MEANINGS[metric],
                pd.concat([*references, lines]),
                ticks=[str(step) for step in range(max(last, 0) + 1)],
                y_limits=(0, limits[metric]),
            )
        )
    return _chart(
        charts,
        rows=rows,
        methods=list(means["method"].unique()),
        labels=labels,
        references={RANDOM_LABEL: RANDOM, MOST_LABEL: MOST},
        columns=len(OVERLAPS),
        sizes=(area, occluded),
    )


def _references(metric: str, last: int, *, area: int, occluded: int) -> list[pd.DataFrame]:
    """Return the expected values of random masks at iterations 0 … last, and for CMA the maximum, in percent."""
    denominator = area if metric == "cma" else occluded
    steps = np.arange(last + 1, dtype=float)
    random = np.array([expected(metric, int(i), area=area, occluded=occluded) for i in steps]) / denominator
    maximum = (steps + 1) * occluded / area
    if len(steps) == 1:  # a line of one point would be invisible
        steps, random, maximum = np.array([-0.4, 0.4]), random.repeat(2), maximum.repeat(2)
    lines = [line_rows(RANDOM_LABEL, steps, 100 * random)]
    if metric == "cma":
        lines.append(line_rows(MOST_LABEL, steps, 100 * maximum))
    return lines


def _largest(rows: pd.DataFrame, metric: str, iterations: int, area: int, occluded: int) -> float:
    """Return the largest value of a metric and its references in percent, at least 1."""
    denominator = area if metric == "cma" else occluded
    scores = 100 * rows.loc[rows["metric"] == metric, "score"] / denominator
    last = iterations - (1 if metric == "cma" else 2)
    lines = _references(metric, last, area=area, occluded=occluded)
    return float(np.nanmax([1.0, *scores, *(line["mean"].max() for line in lines if len(line))]))


def _column_count(panels: int, fills: int) -> int:
    return fills if fills > 1 else min(panels, 3)


def _rows(table: pd.DataFrame, labels: Labels, x_column: str) -> pd.DataFrame:
    """Return each method's mean ``score`` over seeds, by iteration, against the mean of the column ``x_column``."""
    methods = list(table["method"].unique())
    lines = []
    for index, method in enumerate(methods):
        method_rows = table[table["method"] == method].assign(at=lambda rows: rows[x_column])
        by_seed = method_rows.groupby("iteration").agg(
            x=("at", "mean"), mean=("score", "mean"), low=("score", "min"), high=("score", "max")
        )
        has_band = method_rows["seed"].nunique() > 1
        lines.append(
            line_rows(
                labels.method(method),
                by_seed["x"].to_numpy(),
                by_seed["mean"].to_numpy(),
                by_seed["low"].to_numpy() if has_band else None,
                by_seed["high"].to_numpy() if has_band else None,
                images=int(method_rows["images"].max()),
                offset=index / len(methods),
            )
        )
    return pd.concat(lines) if lines else line_rows(NO_SCORE, np.empty(0), np.empty(0))


def _chart(
    panels: Sequence[Panel],
    *,
    rows: pd.DataFrame,
    methods: Sequence[str],
    labels: Labels,
    references: Mapping[str, Look],
    columns: int,
    sizes: tuple[int, int],
) -> LineChart:
    """Return the chart; its legend has the methods, the references and the meaning of lines and bands."""
    method_looks = {labels.method(method): look for method, look in looks(methods, labels).items()}
    description = f"{panels[0].y_title.splitlines()[0]}, one line per method."
    title = _legend_title(rows, *sizes)
    return LineChart(panels, {**method_looks, **references}, description, columns=columns, legend_title=title)


def _legend_title(rows: pd.DataFrame, area: int, occluded: int) -> str:
    """Return the meaning of lines and bands, the number of images and seeds, and the size of a mask."""
    seeds = rows["seed"].nunique()
    spread = f"mean and range of {seeds} seeds" if seeds > 1 else "one seed (no band)"
    images = rows.loc[rows["images"] > 0, "images"].tolist()
    images_text = f"n = {span_text(images)} test images"
    return f"{spread}; {images_text}; masks of k = {occluded:,} of A = {area:,} pixels"

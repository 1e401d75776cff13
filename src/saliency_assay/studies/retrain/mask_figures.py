"""Masks of the retrain study: pairwise overlap, and one image under all masks."""

from collections.abc import Sequence
from textwrap import wrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy import ndarray as Array

from saliency_assay.plotting.gallery import bare
from saliency_assay.plotting.palette import ORANGE, PURPLE, SKY
from saliency_assay.plotting.style import WIDTH
from saliency_assay.plotting.text import data_set, seeds_text, span_text
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.studies.retrain.retrain_tables import named, split_variants

NARROW = 6.5
COLUMNS = 4
MOST_WRITTEN = 6
NAME_LETTERS = 14
MOST_CELL = 1.8  # inches
COLORMAP = "viridis"
DIAGONAL = "#D0D0D0"
NEW, EARLIER, AGAIN = ORANGE, SKY, PURPLE
TINT = 0.8


def overlap_matrices(
    means: pd.DataFrame,
    *,
    protocol: str,
    fill: str,
    area: int,
    occluded: int,
    iterations: int,
    labels: Labels = UNLABELED,
) -> Figure:
    """Plot the mean overlap ‖m̄_i ⊙ m̄_n‖₀ of all pairs of masks as a share of k, one matrix per method.

    Small matrices have their values as text. The line in the color bar is q = k/A, the expected overlap of independent
    random masks. With a single iteration, the figure is only a note that there are no pairs.

    Args:
        means: the study's ``tables.means``, with ``overlap``.
        protocol, fill: the plotted arms.
        area, occluded, iterations: see ``tables.summary``.
        labels: labels of methods.

    Raises:
        ValueError: no such arm; an iteration outside 0 … I − 1; or as in ``tables.split_variants``.
    """
    if iterations == 1:
        figure = Figure(figsize=(NARROW, 1))
        figure.text(0.5, 0.5, "one iteration: no pairs of masks", ha="center", va="center")
        return figure
    rows = split_variants(means, ["overlap"], "protocol/fill/first-second")
    rows = rows[(rows["protocol"] == protocol) & (rows["fill"] == fill)]
    if rows.empty:
        raise ValueError(f"scores: found no overlap of {protocol}/{fill}, expected some")
    if (last_iteration := int(rows[["first", "second"]].to_numpy().max())) >= iterations:
        raise ValueError(f"iteration: found {last_iteration}, expected below {iterations}")
    for name in ("score", "images_sd"):
        rows = rows.assign(**{name: 100 * rows[name] / occluded})
    matrices = {
        str(method): _matrix(method_rows, iterations)
        for method, method_rows in rows.groupby("method", sort=False)
    }
    q = 100 * occluded / area
    scale = Normalize(0, max(2 * q, *(float(np.nanmax(matrix)) for matrix in matrices.values())))
    columns = min(COLUMNS, len(matrices))
    lines = -(-len(matrices) // columns)
    # Wide enough for the text below, even for few methods.
    width = min(WIDTH, max(NARROW, 2.5 * columns + 1.6))
    figure = Figure(figsize=(width, 2.75 * lines + 0.6))
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat[len(matrices) :]:
        axes.set_visible(False)
    for axes, (method, matrix) in zip(grid.flat, matrices.items(), strict=False):
        _show_matrix(axes, matrix, scale)
        spread = _spread_text(rows[rows["method"] == method])
        axes.set_title(f"{labels.method(method)}\n{spread}", fontsize=9)
    bar = figure.colorbar(ScalarMappable(scale, COLORMAP), ax=grid, shrink=min(1, 1.6 / lines), aspect=25)
    bar.set_label("mean overlap (% of a mask's k pixels)", fontsize=9)
    bar.ax.axhline(q, color="white", linewidth=2)
    bar.ax.set_title(f"white line:\nq = {q:.3g} %", fontsize=8)
    figure.supxlabel(_counts_text(rows, protocol, fill), fontsize=9)
    return figure


def _matrix(rows: pd.DataFrame, iterations: int) -> Array:
    matrix = np.full((iterations, iterations), np.nan)
    means = rows.groupby(["first", "second"])["score"].mean().reset_index()
    for first, second, mean in means.itertuples(index=False):
        matrix[first, second] = matrix[second, first] = mean
    return matrix


def _spread_text(rows: pd.DataFrame) -> str:
    """Return a text with the range over pairs of the standard deviation of their overlap over images.

    Each image's overlap is its mean over seeds.
    """
    spreads = rows["images_sd"].dropna()
    return f"sd {span_text(round(value) for value in spreads)} %" if len(spreads) else "sd –"


def _counts_text(rows: pd.DataFrame, protocol: str, fill: str) -> str:
    images = rows.loc[rows["images"] > 0, "images"].tolist()
    counts_text = f"n = {span_text(images)} test images{seeds_text(rows['seed'].nunique())}"
    return f"{named(protocol, fill)}\nmeans of {counts_text}; sd over images: least and greatest of all pairs"


def _show_matrix(axes: Axes, matrix: Array, scale: Normalize) -> None:
    axes.set_facecolor(DIAGONAL)
    axes.imshow(matrix, cmap=COLORMAP, norm=scale)
    axes.grid(visible=False)
    count = len(matrix)
    ticks = range(0, count, max(1, count // 5))
    axes.set_xticks(ticks)
    axes.set_yticks(ticks)
    axes.tick_params(labelsize=8)
    axes.set_xlabel("iteration n", fontsize=8)
    axes.set_ylabel("iteration i", fontsize=8)
    if count > MOST_WRITTEN:
        return
    for (line, column), value in np.ndenumerate(matrix):
        if np.isfinite(value):
            color = "black" if scale(value) > 0.6 else "white"
            axes.text(column, line, f"{value:.0f}", ha="center", va="center", color=color, fontsize=8)


def iteration_images(images: Array, masks: Array, *, names: Sequence[str], title: str) -> Figure:
    """Plot one image over the iterations, one row per method: D_0 … D_I with occluded pixels tinted.

    Orange pixels are occluded by the last mask, blue by an earlier one, purple by the last and an earlier one. The
    number below each image is its share of occluded pixels, that above each column the largest possible share.

    Args:
        images: the image in D_0 … D_I, uint8 ``[methods, I + 1, C, H, W]`` with 1 or 3 channels.
        masks: m̄_0 … m̄_{I−1}, True where occluded, bool ``[methods, I, H, W]``.
        names: labels of the methods.
        title: names the image, protocol, fill and seed.
    """
    methods, iterations = masks.shape[:2]
    cell = min(MOST_CELL, (WIDTH - 1.2) / (iterations + 1))
    shape = images.shape[3] / images.shape[4]
    width = max(cell * (iterations + 1) + 1.2, NARROW)
    figure = Figure(figsize=(width, methods * (cell * shape + 0.14) + 1.3))
    grid = figure.subplots(methods, iterations + 1, squeeze=False)
    max_occluded = np.minimum(100 * masks.mean(axis=(2, 3)).cumsum(axis=1).max(axis=0), 100)
    for row, name in enumerate(names):
        occluded_until = masks[row].cumsum(axis=0) > 0  # after each mask
        for i, axes in enumerate(grid[row]):
            last = masks[row, i - 1] if i else np.zeros_like(occluded_until[0])
            earlier = occluded_until[i - 2] if i > 1 else np.zeros_like(last)
            axes.imshow(_tint(images[row, i], last, earlier))
            axes.set_xlabel(f"{100 * (last | earlier).mean():.3g} %", fontsize=7, labelpad=2)
            if row == 0:
                occluded_text = f"≤ {max_occluded[i - 1]:.3g} %" if i else "original"
                axes.set_title(f"{data_set(i)}\n{occluded_text}", fontsize=8)
        method_text = "\n".join(wrap(name, NAME_LETTERS, break_long_words=False))
        grid[row, 0].set_ylabel(method_text, rotation=0, ha="right", va="center", fontsize=8)
    handles = [
        Patch(color=NEW, label="occluded by the last mask"),
        Patch(color=EARLIER, label="by an earlier mask"),
        Patch(color=AGAIN, label="by the last and an earlier mask"),
    ]
    bare(figure)
    figure.suptitle(title, fontsize=10)
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9)
    return figure


def _tint(image: Array, last: Array, earlier: Array) -> Array:
    """Return an image ``[C, H, W]`` as RGB in 0–1 ``[H, W, 3]``, occluded pixels mixed with the color of their mask."""
    pixels: Array = np.broadcast_to(image, (3, *image.shape[1:])).transpose(1, 2, 0) / 255
    for region, color in ((last & ~earlier, NEW), (earlier & ~last, EARLIER), (last & earlier, AGAIN)):
        pixels = np.where(region[..., None], (1 - TINT) * pixels + TINT * np.array(to_rgb(color)), pixels)
    return pixels

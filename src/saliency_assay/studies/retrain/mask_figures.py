"""Masks of the retrain study: how far each two of them overlap, and one image under all of them."""

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
from saliency_assay.plotting.style import ORANGE, PURPLE, SKY
from saliency_assay.plotting.text import readable, seeds_text, span_text
from saliency_assay.studies.retrain.tables import named, split_variants

WIDTH = 10.4  # inches: the report's 1,000 pixels
NARROW = 6.5
COLUMNS = 4
MOST_WRITTEN = 6
NAME_LETTERS = 14
MOST_CELL = 1.8  # inches
COLOURS = "viridis"
DIAGONAL = "#D0D0D0"
NEW, EARLIER, AGAIN = ORANGE, SKY, PURPLE
TINT = 0.8


def overlap_matrices(
    means: pd.DataFrame, *, protocol: str, fill: str, area: int, occluded: int, iterations: int
) -> Figure:
    """Mean overlap of every two masks ‖m̄_i ⊙ m̄_n‖₀ as a share of k, a matrix for each method.

    Values are written in where there are few. The line in the colour bar is q = k/A, what independent random masks
    have on average. Of a single iteration the figure only says so.

    Args:
        means: the study's ``tables.means``, with ``overlap``.
        protocol, fill: the arms shown.
        area, occluded, iterations: see ``tables.summary``.

    Raises:
        ValueError: no such arm; an iteration that is none of 0 … I − 1; or see ``tables.split_variants``.
    """
    if iterations == 1:
        figure = Figure(figsize=(NARROW, 1))
        figure.text(0.5, 0.5, "one iteration: there are no two masks", ha="center", va="center")
        return figure
    rows = split_variants(means, ["overlap"], "protocol/fill/first-second")
    rows = rows[(rows["protocol"] == protocol) & (rows["fill"] == fill)]
    if rows.empty:
        raise ValueError(f"scores: found no overlap of {protocol}/{fill}, expected some")
    if (last := int(rows[["first", "second"]].to_numpy().max())) >= iterations:
        raise ValueError(f"iteration: found {last}, expected below {iterations}")
    for name in ("score", "images_sd"):
        rows = rows.assign(**{name: 100 * rows[name] / occluded})
    matrices = {str(method): _matrix(of, iterations) for method, of in rows.groupby("method", sort=False)}
    q = 100 * occluded / area
    scale = Normalize(0, max(2 * q, *(float(np.nanmax(matrix)) for matrix in matrices.values())))
    columns = min(COLUMNS, len(matrices))
    lines = -(-len(matrices) // columns)
    # Wide enough for what stands below, however few methods there are.
    width = min(WIDTH, max(NARROW, 2.5 * columns + 1.6))
    figure = Figure(figsize=(width, 2.75 * lines + 0.6))
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat[len(matrices) :]:
        axes.set_visible(False)
    for axes, (method, matrix) in zip(grid.flat, matrices.items(), strict=False):
        _show_matrix(axes, matrix, scale)
        spread = _spread(rows[rows["method"] == method])
        axes.set_title(f"{readable(method)}\n{spread}", fontsize=9)
    bar = figure.colorbar(ScalarMappable(scale, COLOURS), ax=grid, shrink=min(1, 1.6 / lines), aspect=25)
    bar.set_label("mean overlap (% of a mask's k pixels)", fontsize=9)
    bar.ax.axhline(q, color="white", linewidth=2)
    bar.ax.set_title(f"white line:\nq = {q:.3g} %", fontsize=8)
    figure.supxlabel(_counted(rows, protocol, fill), fontsize=9)
    return figure


def _matrix(rows: pd.DataFrame, iterations: int) -> Array:
    matrix = np.full((iterations, iterations), np.nan)
    means = rows.groupby(["first", "second"])["score"].mean().reset_index()
    for first, second, mean in means.itertuples(index=False):
        matrix[first, second] = matrix[second, first] = mean
    return matrix


def _spread(rows: pd.DataFrame) -> str:
    """Return the least and greatest standard deviation over images, of each image's mean over seeds, of two masks'
    overlap."""
    found = rows["images_sd"].dropna()
    return f"sd {span_text(round(value) for value in found)} %" if len(found) else "sd –"


def _counted(rows: pd.DataFrame, protocol: str, fill: str) -> str:
    images = rows.loc[rows["images"] > 0, "images"].tolist()
    counted = f"n = {span_text(images)} test images{seeds_text(rows['seed'].nunique())}"
    return f"{named(protocol, fill)}\nmeans of {counted}; sd over images: least and greatest of all pairs"


def _show_matrix(axes: Axes, matrix: Array, scale: Normalize) -> None:
    axes.set_facecolor(DIAGONAL)
    axes.imshow(matrix, cmap=COLOURS, norm=scale)
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
            colour = "black" if scale(value) > 0.6 else "white"
            axes.text(column, line, f"{value:.0f}", ha="center", va="center", color=colour, fontsize=8)


def iteration_images(images: Array, masks: Array, *, names: Sequence[str], title: str) -> Figure:
    """One image over the iterations, a row for each method: D_0 … D_I with what the masks occlude tinted.

    Orange is occluded by the last mask, blue by an earlier one, purple by the last and already by an earlier one. Under
    each image stands the share of pixels it lacks, above each column the most that can be lacking.

    Args:
        images: the image as D_0 … D_I hold it, uint8 ``[methods, I + 1, C, H, W]`` with 1 or 3 channels.
        masks: m̄_0 … m̄_{I−1}, True where occluded, bool ``[methods, I, H, W]``.
        names: the methods.
        title: what image, protocol, fill and seed it is.
    """
    methods, iterations = masks.shape[:2]
    cell = min(MOST_CELL, (WIDTH - 1.2) / (iterations + 1))
    shape = images.shape[3] / images.shape[4]
    width = max(cell * (iterations + 1) + 1.2, NARROW)
    figure = Figure(figsize=(width, methods * (cell * shape + 0.14) + 1.3))
    grid = figure.subplots(methods, iterations + 1, squeeze=False)
    most = np.minimum(100 * masks.mean(axis=(2, 3)).cumsum(axis=1).max(axis=0), 100)
    for row, name in enumerate(names):
        covered = masks[row].cumsum(axis=0) > 0  # after each mask
        for i, axes in enumerate(grid[row]):
            last = masks[row, i - 1] if i else np.zeros_like(covered[0])
            earlier = covered[i - 2] if i > 1 else np.zeros_like(last)
            axes.imshow(_tinted(images[row, i], last, earlier))
            axes.set_xlabel(f"{100 * (last | earlier).mean():.3g} %", fontsize=7, labelpad=2)
            if row == 0:
                above = f"≤ {most[i - 1]:.3g} %" if i else "whole"
                axes.set_title(f"$D_{{{i}}}$\n{above}", fontsize=8)
        label = "\n".join(wrap(readable(name), NAME_LETTERS, break_long_words=False))
        grid[row, 0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=8)
    handles = [
        Patch(color=NEW, label="occluded by the last mask"),
        Patch(color=EARLIER, label="by an earlier mask"),
        Patch(color=AGAIN, label="by the last, and already before"),
    ]
    bare(figure)
    figure.suptitle(title, fontsize=10)
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9)
    return figure


def _tinted(image: Array, last: Array, earlier: Array) -> Array:
    """RGB in 0–1 ``[H, W, 3]`` of an image ``[C, H, W]``, its occluded pixels mixed with the colour of their mask."""
    pixels: Array = np.broadcast_to(image, (3, *image.shape[1:])).transpose(1, 2, 0) / 255
    for where, colour in ((last & ~earlier, NEW), (earlier & ~last, EARLIER), (last & earlier, AGAIN)):
        pixels = np.where(where[..., None], (1 - TINT) * pixels + TINT * np.array(to_rgb(colour)), pixels)
    return pixels

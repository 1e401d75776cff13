"""Curves and pictures of changes of images that leave the output as it is (BAM's IIR)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy import ndarray as Array

from saliency_assay.plotting.gallery import bare, show_image
from saliency_assay.plotting.style import BLUE, GREY, ORANGE
from saliency_assay.studies.bam.input_independence_tables import SIMILAR, relative_change

LEAST_STEPS = 5
COLUMNS = ("x", "x with the object", "x + δ", "δ: grey is 0", "x + δ less the composite")


def convergence_curves(convergence: Array, output_norm: Array, *, seeds: int) -> Figure:
    """‖f(x + δ_t) − f(x)‖ / ‖f(x)‖ over the steps: median and quartiles; below, the share of images within 5 %.

    Args:
        convergence: ``[n, steps + 1]``, in logits, the images of all seeds.
        output_norm: ‖f(x)‖ ``[n]``.
        seeds: how many models the images are of.
    """
    relative = 100 * relative_change(convergence, output_norm)
    low, middle, high = np.nanpercentile(relative, [25, 50, 75], axis=0)
    steps = np.arange(convergence.shape[1])
    figure = Figure(figsize=(7.5, 5.6))
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    above.fill_between(steps, low, high, color=BLUE, alpha=0.25, linewidth=0, label="quartiles")
    above.plot(steps, middle, color=BLUE, label="median")
    above.axhline(100 * SIMILAR, color=GREY, linestyle="--", linewidth=1, label=f"{100 * SIMILAR:g} %")
    if np.nanmin(low) > 0:
        above.set_yscale("log")
    else:
        above.set_yscale("symlog", linthresh=0.01)
        above.set_ylim(bottom=0)
    above.set_ylabel("‖f(x + δ) − f(x)‖ / ‖f(x)‖ (%)\n← more similar")
    above.legend(loc="upper right")
    below.plot(steps, 100 * (relative <= 100 * SIMILAR).mean(axis=0), color=ORANGE)
    below.set_ylim(-3, 103)
    below.set_ylabel(f"images within\n{100 * SIMILAR:g} % (%)")
    counted = f"{len(relative)} images" + (f" of {seeds} seeds" if seeds > 1 else "")
    moves = np.flatnonzero((np.diff(convergence, axis=1) != 0).any(axis=0))
    last = int(moves[-1]) + 1 if len(moves) else 0
    below.set_xlim(0, max(last, LEAST_STEPS))
    below.set_xlabel(f"step (the last that changes an image is {last} of {steps[-1]}); {counted}")
    return figure


def delta_images(
    images: Array, composites: Array, changed: Array, masks: Array, *, notes: Sequence[str]
) -> Figure:
    """x, the composite, x + δ, δ, and what the descent made of the composite, an image a row.

    δ is shown as 128 + δ / 2. The last column is amplified so that 99 % of its values within the regions of all rows
    fit in; the factor, at least 1, stands above it. Blue is the outline of the region.

    Args:
        images: x, uint8 ``[n, C, H, W]``.
        composites: x with the object pasted, uint8 ``[n, C, H, W]``.
        changed: x + δ, uint8 ``[n, C, H, W]``.
        masks: bool ``[n, H, W]``.
        notes: what stands beside each row, ``n`` of them; see ``note``.
    """
    moved = changed.astype(np.float64) - composites
    within = np.abs(moved[np.broadcast_to(masks[:, None], moved.shape)])
    factor = max(1.0, 127.5 / max(float(np.percentile(within, 99)), 1.0)) if len(within) else 1.0
    delta = 127.5 + (changed.astype(np.float64) - images) / 2
    figure = Figure(figsize=(1.75 * len(COLUMNS) + 1.6, 1.8 * len(images) + 0.5))
    grid = figure.subplots(len(images), len(COLUMNS), squeeze=False)
    for row, cells in enumerate(grid):
        shown = (images[row], composites[row], changed[row], delta[row], 127.5 + factor * moved[row])
        for axes, picture in zip(cells, shown, strict=True):
            show_image(axes, np.rint(picture.clip(0, 255)).astype(np.uint8), masks[row])
        cells[0].set_ylabel(notes[row], rotation=0, ha="right", va="center", fontsize=8)
    for axes, name in zip(grid[0], (*COLUMNS[:-1], f"{COLUMNS[-1]},\n× {factor:.2g}"), strict=True):
        axes.set_title(name, fontsize=8)
    bare(figure)
    return figure


def note(
    name: str, output_norm: float, output_change: float, delta_norm: float, start_distance: float
) -> str:
    """Return the text beside an image: its ``name`` and numbers, one a line."""
    share = 100 * output_change / output_norm if output_norm > 0 else np.nan
    lines = [name, f"‖f(x)‖ = {output_norm:.3g}", f"‖Δf‖ = {output_change:.2g} ({share:.2g} %)"]
    return "\n".join([*lines, f"‖δ‖ = {delta_norm:.0f}", f"‖δ − δ₀‖ = {start_distance:.0f}"])

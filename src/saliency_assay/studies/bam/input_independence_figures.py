"""Convergence curves and examples of image changes that do not change the output (BAM's IIR)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy import ndarray as Array

from saliency_assay.plotting.gallery import bare, show_image
from saliency_assay.plotting.palette import BLUE, GRAY, ORANGE
from saliency_assay.plotting.style import set_logarithmic
from saliency_assay.studies.bam.input_independence_tables import SIMILAR, relative_change

LEAST_STEPS = 5
COLUMNS = ("x", "x with the object", "x + δ", "δ (gray: 0)", "x + δ minus the composite")


def convergence_curves(convergence: Array, output_norm: Array, *, seeds: int) -> Figure:
    """Plot ‖f(x + δ_t) − f(x)‖ / ‖f(x)‖ over the steps: median and quartiles; below, the share of images within 5 %.

    Args:
        convergence: ``[n, steps + 1]``, in logits, for the images of all seeds.
        output_norm: ‖f(x)‖ ``[n]``.
        seeds: number of models that the images come from.
    """
    relative = 100 * relative_change(convergence, output_norm)
    low, middle, high = np.nanpercentile(relative, [25, 50, 75], axis=0)
    steps = np.arange(convergence.shape[1])
    figure = Figure(figsize=(7.5, 5.6))
    change_axes, share_axes = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    change_axes.fill_between(steps, low, high, color=BLUE, alpha=0.25, linewidth=0, label="quartiles")
    change_axes.plot(steps, middle, color=BLUE, label="median")
    change_axes.axhline(100 * SIMILAR, color=GRAY, linestyle="--", linewidth=1, label=f"{100 * SIMILAR:g} %")
    if np.nanmin(low) > 0:
        set_logarithmic(change_axes, "y")
    else:
        set_logarithmic(change_axes, "y", linthresh=0.01)
        change_axes.set_ylim(bottom=0)
    change_axes.set_ylabel("‖f(x + δ) − f(x)‖ / ‖f(x)‖ (%)\n← more similar")
    change_axes.legend(loc="upper right")
    share_axes.plot(steps, 100 * (relative <= 100 * SIMILAR).mean(axis=0), color=ORANGE)
    share_axes.set_ylim(-3, 103)
    share_axes.set_ylabel(f"images within\n{100 * SIMILAR:g} % (%)")
    counted = f"{len(relative)} images" + (f" of {seeds} seeds" if seeds > 1 else "")
    changing_steps = np.flatnonzero((np.diff(convergence, axis=1) != 0).any(axis=0))
    last_change = int(changing_steps[-1]) + 1 if len(changing_steps) else 0
    share_axes.set_xlim(0, max(last_change, LEAST_STEPS))
    share_axes.set_xlabel(f"step (last change of an image at {last_change} of {steps[-1]}); {counted}")
    return figure


def delta_images(
    images: Array, composites: Array, changed: Array, masks: Array, *, notes: Sequence[str]
) -> Figure:
    """Plot x, the composite, x + δ, δ, and the change from the composite to x + δ, one image per row.

    δ is shown as 128 + δ / 2. The last column is amplified so that 99 % of its values within the regions of all rows
    are in range; its title has the factor, at least 1. The blue line is the outline of the region.

    Args:
        images: x, uint8 ``[n, C, H, W]``.
        composites: x with the object pasted, uint8 ``[n, C, H, W]``.
        changed: x + δ, uint8 ``[n, C, H, W]``.
        masks: bool ``[n, H, W]``.
        notes: text next to each row, ``n`` of them; see ``note``.
    """
    change = changed.astype(np.float64) - composites
    region_changes = np.abs(change[np.broadcast_to(masks[:, None], change.shape)])
    factor = (
        max(1.0, 127.5 / max(float(np.percentile(region_changes, 99)), 1.0)) if len(region_changes) else 1.0
    )
    delta = 127.5 + (changed.astype(np.float64) - images) / 2
    figure = Figure(figsize=(1.75 * len(COLUMNS) + 1.6, 1.8 * len(images) + 0.5))
    grid = figure.subplots(len(images), len(COLUMNS), squeeze=False)
    for row, cells in enumerate(grid):
        pictures = (images[row], composites[row], changed[row], delta[row], 127.5 + factor * change[row])
        for axes, picture in zip(cells, pictures, strict=True):
            show_image(axes, np.rint(picture.clip(0, 255)).astype(np.uint8), masks[row])
        cells[0].set_ylabel(notes[row], rotation=0, ha="right", va="center", fontsize=8)
    for axes, name in zip(grid[0], (*COLUMNS[:-1], f"{COLUMNS[-1]},\n× {factor:.2g}"), strict=True):
        axes.set_title(name, fontsize=8)
    bare(figure)
    return figure


def note(
    name: str, output_norm: float, output_change: float, delta_norm: float, start_distance: float
) -> str:
    """Return the text next to an image: its ``name`` and numbers, one per line."""
    share = 100 * output_change / output_norm if output_norm > 0 else np.nan
    lines = [name, f"‖f(x)‖ = {output_norm:.3g}", f"‖Δf‖ = {output_change:.2g} ({share:.2g} %)"]
    return "\n".join([*lines, f"‖δ‖ = {delta_norm:.0f}", f"‖δ − δ₀‖ = {start_distance:.0f}"])

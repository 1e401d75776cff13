"""Images, maps and outlines of objects in the axes of a figure."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray as Array

from saliency_assay.plotting.style import SKY


def show_image(axes: Axes, image: Array, mask: Array | None = None) -> None:
    """Show an image, uint8 ``[C, H, W]`` of one channel or three, and the outline of ``mask``, bool ``[H, W]``."""
    pixels = image.transpose(1, 2, 0)
    axes.imshow(pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels, cmap="gray", vmin=0, vmax=255)
    outline(axes, mask)


def show_map(axes: Axes, saliency: Array, mask: Array | None = None) -> None:
    """Show a map ``[H, W]`` in ``[0, 1]`` and the outline of ``mask``; a cross where the map holds NaN."""
    if np.isnan(saliency).any():
        axes.set_box_aspect(saliency.shape[0] / saliency.shape[1])
        axes.text(0.5, 0.5, "×", ha="center", va="center", transform=axes.transAxes, fontsize=18)
        return
    axes.imshow(saliency, cmap="inferno", vmin=0, vmax=1)
    outline(axes, mask)


def outline(axes: Axes, mask: Array | None) -> None:
    """Plot the outline of ``mask``, unless it has none."""
    if mask is not None and mask.any() and not mask.all():
        axes.contour(mask, levels=[0.5], colors=SKY, linewidths=0.8)


def bare(figure: Figure) -> None:
    """Take ticks, grid and frame away: pixels have no units."""
    for axes in figure.axes:
        axes.set_xticks([])
        axes.set_yticks([])
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)

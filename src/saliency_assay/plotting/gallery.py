"""Plots of images, maps and outlines, and the gallery of the same images under every method and model."""

from collections.abc import Mapping, Sequence
from textwrap import fill, wrap

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray as Array

from saliency_assay.plotting.palette import SKY
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.runtime.job import printable

COLORS = colormaps["inferno"]
"""Colors of maps, which are in [0, 1]."""


def show_image(axes: Axes, image: Array, mask: Array | None = None) -> None:
    """Plot an image ``[C, H, W]`` with one or three channels, and the outline of ``mask``, bool ``[H, W]``."""
    pixels = displayed(image).transpose(1, 2, 0)
    axes.imshow(pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels, cmap="gray", vmin=0, vmax=255)
    outline(axes, mask)


def displayed(image: Array) -> Array:
    """Return an image of uint8, or of floats in [0, 1], as uint8."""
    return image if image.dtype == np.uint8 else np.rint(255 * image).astype(np.uint8)


def show_map(axes: Axes, saliency: Array, mask: Array | None = None) -> None:
    """Plot a map ``[H, W]`` in ``[0, 1]`` and the outline of ``mask``, or a cross if the map contains NaN."""
    if np.isnan(saliency).any():
        axes.set_box_aspect(saliency.shape[0] / saliency.shape[1])
        axes.text(0.5, 0.5, "×", ha="center", va="center", transform=axes.transAxes, fontsize=18)
        return
    axes.imshow(saliency, cmap=COLORS, vmin=0, vmax=1)
    outline(axes, mask)


def outline(axes: Axes, mask: Array | None) -> None:
    """Plot the outline of ``mask``, unless it is empty or covers the image."""
    if mask is not None and mask.any() and not mask.all():
        axes.contour(mask, levels=[0.5], colors=SKY, linewidths=0.8)


def bare(figure: Figure) -> None:
    """Remove ticks, grid and frame from all axes of images."""
    for axes in figure.axes:
        axes.set_xticks([])
        axes.set_yticks([])
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)


MOST_COLUMNS = 12
CELL = 1.15  # inches
METHOD_LETTERS = 13


def class_text(name: str) -> str:
    """Return the name of a class as text; names of folders and categories have underscores for spaces."""
    return printable(name).replace("_", " ")


def titles(labels: Mapping[str, Array], classes: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names of each image's classes, such as "dog, bedroom"; see ``class_names``."""
    return [", ".join(names.values()) for names in class_names(labels, classes)]


def class_names(labels: Mapping[str, Array], classes: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Return for each image the name of its class by label, such as ``{"object": "dog", "scene": "bedroom"}``.

    Args:
        labels: ``label_NAME`` to class indices ``[N]``.
        classes: ``NAME`` to the names of its classes.
    """
    names = [key.removeprefix("label_") for key in labels]
    return [
        {name: class_text(classes[name][index]) for name, index in zip(names, row, strict=True)}
        for row in zip(*labels.values(), strict=True)
    ]


def gallery(
    images: Array,
    maps: Mapping[str, Mapping[str, Array]],
    *,
    titles: Sequence[str],
    masks: Array | None = None,
    labels: Labels = UNLABELED,
) -> Figure:
    """Plot images in rows and methods in columns, with one row per image and model.

    If one model has more methods than fit side by side, methods are in rows and images in columns.

    Args:
        images: ``[N, C, H, W]``, uint8 or floats in [0, 1].
        maps: for each model and method ``[N, H, W]`` in ``[0, 1]`` (the ``visual`` reduction); an undefined map is NaN
            and plotted as a cross.
        titles: titles of the ``N`` images.
        masks: ``[N, H, W]`` bool, pixels of the object, plotted as an outline.
        labels: labels of methods and models.
    """
    maps = {
        labels.model(model): {labels.method(method): of_method for method, of_method in of_model.items()}
        for model, of_model in maps.items()
    }
    models = list(maps)
    methods = list(maps[models[0]])
    if len(models) == 1 and len(methods) > MOST_COLUMNS:
        figure = _methods_in_rows(images, maps[models[0]], titles, masks)
    else:
        figure = _methods_in_columns(images, maps, titles, masks)
    bare(figure)
    return figure


def _methods_in_rows(
    images: Array, maps: Mapping[str, Array], titles: Sequence[str], masks: Array | None
) -> Figure:
    height = CELL * _aspect_ratio(images) + 0.03
    figure = Figure(figsize=(CELL * len(images) + 1.9, height * (len(maps) + 1) + 0.4))
    grid = figure.subplots(len(maps) + 1, len(images), squeeze=False)
    for column, title in enumerate(titles):
        outline = masks[column] if masks is not None else None
        show_image(grid[0, column], images[column], outline)
        grid[0, column].set_title(title.replace(", ", ",\n"), fontsize=7)
        for row, of_method in enumerate(maps.values(), start=1):
            show_map(grid[row, column], of_method[column], outline)
    for row, name in enumerate(["image", *maps]):
        label = "\n".join(wrap(name, 17, break_long_words=False))
        grid[row, 0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=8)
    return figure


def _methods_in_columns(
    images: Array, maps: Mapping[str, Mapping[str, Array]], titles: Sequence[str], masks: Array | None
) -> Figure:
    models = list(maps)
    methods = list(maps[models[0]])
    rows = len(images) * len(models)
    height = CELL * _aspect_ratio(images) + 0.05
    figure = Figure(figsize=(CELL * (len(methods) + 1) + 0.6, height * rows + 0.5))
    grid = figure.subplots(rows, len(methods) + 1, squeeze=False)
    for row in range(rows):
        item, model = divmod(row, len(models))
        outline = masks[item] if masks is not None else None
        show_image(grid[row, 0], images[item], outline)
        grid[row, 0].set_ylabel(models[model], rotation=0, ha="right", va="center")
        if model == 0:
            grid[row, 0].set_title(titles[item], fontsize=7)
        for column, method in enumerate(methods, start=1):
            show_map(grid[row, column], maps[models[model]][method][item], outline)
            if row == 0:
                grid[row, column].set_title(fill(method, METHOD_LETTERS, break_long_words=False), fontsize=8)
    return figure


def _aspect_ratio(images: Array) -> float:
    return float(images.shape[2] / images.shape[3])

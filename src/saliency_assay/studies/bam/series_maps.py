"""One image under every method and every f_k of a commonality series (Yang & Kim, 2019, Fig. 5)."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from saliency_assay.plotting.pictures import bare, show_image, show_map
from saliency_assay.plotting.style import readable
from saliency_assay.studies.bam.series_tables import SeriesModel

Array = npt.NDArray[Any]

CELL = 0.9  # inches
COMPOSITE = 1.7
NAMES = 1.4
NAME_LETTERS = 14


def chosen_image(
    predictions: pd.DataFrame, series: Sequence[SeriesModel], *, seed: int, images: Array
) -> tuple[int, list[bool]]:
    """The image that most f_k classify rightly, each on its own set, the lowest index of several; and which do.

    Args:
        predictions: rows model, seed, data, image, label and predicted.
        series: f_k in order of growing k.
        seed: of the models.
        images: indices ``[N]`` of those to choose from.

    Raises:
        ValueError: there are none, or a model says nothing of one of them.
    """
    if not len(images):
        raise ValueError("images: found none, expected at least one")
    candidates = np.sort(images)
    right = np.empty((len(series), len(images)), dtype=bool)
    for place, member in enumerate(series):
        of_model = predictions[
            (predictions["model"] == member.model)
            & (predictions["seed"] == seed)
            & (predictions["data"] == member.data)
        ]
        judged = (of_model["label"] == of_model["predicted"]).set_axis(of_model["image"])
        if len(lacking := candidates[~np.isin(candidates, judged.index)]):
            found = f"no row of image {lacking[0]} in {member.data}"
            raise ValueError(f"predictions: {member.model}, seed {seed}: found {found}, expected one")
        right[place] = judged.loc[candidates]
    best = int(right.sum(0).argmax())
    return int(candidates[best]), right[:, best].tolist()


def series_maps(
    image: Array,
    mask: Array,
    maps: Mapping[str, Array],
    *,
    ks: Sequence[float],
    right: Sequence[bool],
    title: str,
) -> Figure:
    """Maps of one image, methods in rows and k growing from left to right, beside the image.

    Args:
        image: the composite, uint8 ``[C, H, W]``.
        mask: the object's pixels, bool ``[H, W]``, drawn as an outline.
        maps: for each method ``[K, H, W]`` in ``[0, 1]`` (the ``visual`` reduction); a map that is not defined is NaN
            and drawn as a cross. Below each map stands its g_c, the mean within the outline.
        ks: k of each map.
        right: whether f_k classifies the image rightly.
        title: what image it is.
    """
    rows, columns = max(len(maps), 2), len(ks)
    figure = Figure(figsize=(COMPOSITE + NAMES + CELL * columns, (CELL + 0.17) * rows + 0.6))
    grid = figure.add_gridspec(rows, columns + 1, width_ratios=[COMPOSITE, *[CELL] * columns])
    shown = figure.add_subplot(grid[:2, 0])
    show_image(shown, image, mask)
    shown.set_title(title, fontsize=9)
    for row, (method, of_method) in enumerate(maps.items()):
        for column, saliency in enumerate(of_method):
            axes = figure.add_subplot(grid[row, column + 1])
            show_map(axes, saliency, mask)
            within = saliency[mask].mean() if mask.any() else np.nan
            axes.set_xlabel("–" if np.isnan(within) else f"{within:.2f}", fontsize=8, labelpad=2)
            if row == 0:
                said = "right" if right[column] else "wrong"
                axes.set_title(f"k = {ks[column]:.3g}\n{said}", fontsize=9)
            if column == 0:
                name = fill(readable(method), NAME_LETTERS, break_long_words=False)
                axes.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9)
    bare(figure)
    return figure

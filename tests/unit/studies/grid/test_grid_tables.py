"""Table and figures of grid studies."""

import numpy as np
import pandas as pd

from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.order_tables import Rule
from saliency_assay.reliability.variance import GROUPS
from saliency_assay.studies.grid.figures import aggregated_maps, localization_boxes
from saliency_assay.studies.grid.grid_tables import BINS, COLUMNS, localization_table

LABELS = Labels(
    methods={"one": "Method 1", "two": "Method 2"}, scores={"gridpg": "GridPG", "difull": "DiFull"}
)


def table() -> pd.DataFrame:
    rows = [
        {"metric": metric, "method": method, "image": image, "score": score}
        for metric, method, values in [
            ("gridpg", "one", [0, 0.25, 0.5, np.nan, 1]),
            ("gridpg", "two", [1, 1, 1, 1, 1]),
            ("difull", "two", [np.nan] * 5),
        ]
        for image, score in enumerate(values)
    ]
    constant = {"study": "s", "data": "d", "model": "m", "seed": 0, "variant": ""}
    scores = pd.DataFrame(rows).assign(**constant)
    clusters = {GROUPS: np.array([0, 0, 1, 1, 2])}
    return localization_table(scores, {"one": "layer1"}, [], clusters, Rule())


def test_a_row_has_the_ranks_the_quantiles_and_the_layer() -> None:
    result = table()
    assert result.columns.tolist() == COLUMNS
    assert result[["metric", "method", "layer"]].to_numpy().tolist() == [
        ["gridpg", "one", "layer1"],
        ["gridpg", "two", ""],
        ["difull", "two", ""],
    ]
    first = result.iloc[0]
    assert (
        first[["q05", "q25", "median", "q75", "q95"]].tolist()
        == np.percentile([0, 0.25, 0.5, 1], [5, 25, 50, 75, 95]).tolist()
    )
    assert (first["zero"], first["mean"], first["images"], first["rank_high"]) == (0.25, 0.4375, 4, 2)
    assert result.loc[2, ["median", "zero"]].isna().tolist() == [True, False]


def test_boxes_have_a_panel_for_each_setting_and_the_share_of_a_cell() -> None:
    figure = localization_boxes(table(), cells=3, labels=LABELS)
    gridpg, difull = figure.axes
    assert [axes.get_title() for axes in figure.axes] == ["GridPG", "DiFull"]
    assert [label.get_text() for label in gridpg.get_yticklabels()] == ["Method 1", "Method 2"]
    assert gridpg.lines[0].get_xdata()[0] == 1 / 9
    assert [text.get_text() for text in difull.texts] == ["×", "×"]


def test_aggregated_maps_have_one_scale_a_method_and_outline_the_first_cell() -> None:
    bins = np.linspace(0, 1, len(BINS) - 1)[:, None, None] * np.ones((1, 6, 6))
    figure = aggregated_maps({"one": bins, "two": np.full_like(bins, np.nan)}, 3, LABELS)
    first, last = figure.axes[0], figure.axes[len(BINS) - 2]
    assert (first.images[0].get_array().max(), last.images[0].get_array().min()) == (0, 1)
    [cell] = first.patches
    assert cell.get_bbox().bounds == (-0.5, -0.5, 2, 2)
    assert figure.axes[len(BINS) - 1].texts[0].get_text() == "×"

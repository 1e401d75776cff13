"""Figures of the criteria paper: the four criteria in one direction, and areas that can be worked out by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from spaced import SPACED

from saliency_assay.plotting.metric_results import MetricResults
from saliency_assay.storage.score_tables import COLUMNS
from saliency_assay.studies.fidelity.necessity_sufficiency_figures import (
    necessity_sufficiency_areas,
    necessity_sufficiency_boxes,
)

NAN = float("nan")
LABELS = {"n_ord": "N-Ord", "s_ord": "S-Ord", "tpn": "TPN", "tps": "TPS"}
DIRECTIONS = {"n_ord": "lower", "s_ord": "higher", "tpn": "lower", "tps": "lower"}
IMAGES = 3
Curves = Mapping[str, Mapping[str, np.ndarray]]


def metric_results(
    curves: Curves, scores: Mapping[str, Sequence[float]] | None = None, seeds: Sequence[int] = (0,)
) -> MetricResults:
    """``scores`` of images 10, 11, … are the same for all methods and seeds."""
    values = scores or dict.fromkeys(LABELS, [0.5] * IMAGES)
    rows = [
        ("s", "some_data", "net", seed, method, score, "entry", 10 + image, value)
        for method in curves
        for seed in seeds
        for score in LABELS
        for image, value in enumerate(values[score])
    ]
    return MetricResults(
        entry="entry",
        parameters={"output": "probability"},
        scores=pd.DataFrame(rows, columns=list(COLUMNS)),
        labels=LABELS,
        directions=DIRECTIONS,
        curves=curves,
        responses={},
        methods=list(curves),
        names=SPACED,
    )


def means(axes: Axes) -> list[tuple[float, float]]:
    drawn = [line for line in axes.lines if line.get_marker() == "D"]
    return [(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in drawn]


# --- boxes --------------------------------------------------------------------------------------------------


def test_all_four_criteria_have_their_direction() -> None:
    scores = {
        "n_ord": [0.1, 0.2, 0.3],
        "s_ord": [0.7, 0.8, NAN],
        "tpn": [0.01, 1, 100],
        "tps": [0, 0, 1, 599],
    }
    results = replace(metric_results({"gradient_x_input": {}, "b": {}}, scores), curves={})
    panels = necessity_sufficiency_boxes(results).axes
    labels = [axes.get_xlabel().split("\n") for axes in panels]
    assert [lines[0] for lines in labels] == ["N-Ord", "S-Ord", "TPN", "TPS"]
    lower = "← lower is better"
    assert [lines[1] for lines in labels] == [lower, "higher is better →", lower, lower]
    assert [lines[2] for lines in labels] == [f"n = {images} images" for images in (3, "2 of 3", 3, 4)]
    for axes, mean in zip(panels, (0.2, 0.75, 101.01 / 3, 150), strict=True):
        assert means(axes) == [pytest.approx((mean, 0)), pytest.approx((mean, 1))]
    assert [axes.get_xscale() for axes in panels] == ["linear", "linear", "log", "symlog"]
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["gradient x input", "b"]


def test_the_box_of_s_ord_is_that_of_its_scores() -> None:
    ladder = np.arange(101) / 100
    scores = dict.fromkeys(LABELS, ladder**2)
    axes = necessity_sufficiency_boxes(metric_results({"a": {}}, scores)).axes[1]
    x = axes.patches[0].get_path().vertices[:, 0]
    assert (x.min(), x.max()) == pytest.approx((0.25**2, 0.75**2))


# --- areas --------------------------------------------------------------------------------------------------

FALL, RISE = np.array([1, 0.5, 0]), np.array([0, 0.5, 1])
SUDDEN = np.array([1.0, 0, 0])


def rows(*curves: np.ndarray | None) -> np.ndarray:
    """Images below each other; None has no curve."""
    return np.stack([np.full(3, NAN) if curve is None else curve for curve in curves])


def some_curves() -> dict[str, dict[str, np.ndarray]]:
    """Image 1 is the first that both methods have all of; ``never`` has none of any."""
    return {
        "known": {
            "tpn_first": rows(FALL, SUDDEN, FALL),
            "tpn_last": rows(FALL, FALL, FALL),
            "tps_first": rows(RISE, RISE, RISE),
            "tps_last": rows(RISE, RISE, RISE),
        },
        "partly": {
            "tpn_first": rows(FALL, FALL, FALL),
            "tpn_last": rows(FALL, 1 - FALL, FALL),
            "tps_first": rows(RISE, RISE, RISE),
            "tps_last": rows(None, RISE**3, RISE),
        },
        "never_any": {
            name: rows(None, None, None) for name in ("tpn_first", "tpn_last", "tps_first", "tps_last")
        },
    }


def cells(figure: Figure, columns: int) -> np.ndarray:
    return np.array(figure.axes, dtype=object).reshape(-1, columns)


def curves_in(axes: Axes) -> list[tuple[list[float], list[float], str]]:
    return [
        (list(line.get_xdata()), list(line.get_ydata()), str(line.get_linestyle())) for line in axes.lines
    ]


def test_areas_are_those_between_the_curves_of_the_first_image_with_most_methods() -> None:
    figure = necessity_sufficiency_areas(metric_results(some_curves()))
    necessity, sufficiency = cells(figure, 3)
    share = [0, 50, 100]
    assert curves_in(necessity[0]) == [(share, [1, 0, 0], "-"), (share, [1, 0.5, 0], "--")]
    assert curves_in(necessity[1]) == [(share, [1, 0.5, 0], "-"), (share, [0, 0.5, 1], "--")]
    assert curves_in(sufficiency[0]) == [(share, [0, 0.5, 1], "-"), (share, [0, 0.5, 1], "--")]
    assert curves_in(sufficiency[1]) == [(share, [0, 0.5, 1], "-"), (share, [0, 0.125, 1], "--")]
    # a triangle of base 1 and height 0.5; two of base 0.5 and height 1; none; a triangle of height 0.375
    titles = [axes.get_title() for axes in necessity[:2]] + [axes.get_title() for axes in sufficiency[:2]]
    assert titles == ["known\narea 0.250", "partly\narea 0.500", "area 0.00", "area 0.188"]
    corners = np.concatenate([path.vertices for path in necessity[0].collections[0].get_paths()])
    assert {(x, y) for x, y in corners.tolist() if x == 50} == {(50, 0), (50, 0.5)}
    assert figure.legends[0].get_title().get_text() == "image 11 of some data"
    assert necessity[0].get_ylabel() == "necessity\noutput (probability)"


def test_an_image_of_the_second_seed_is_named_so() -> None:
    known = some_curves()["known"]
    late = {name: np.concatenate([rows(None, None, None), curve]) for name, curve in known.items()}
    figure = necessity_sufficiency_areas(metric_results({"a": late}, seeds=(4, 7)))
    assert figure.legends[0].get_title().get_text() == "image 10 of some data, seed 7"


# --- files --------------------------------------------------------------------------------------------------

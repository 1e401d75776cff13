"""Tables and figures of a study of designed networks, from scores whose order is known."""

import numpy as np
import pandas as pd
import pytest

from saliency_assay.registry.labels import Labels
from saliency_assay.studies.designed.designed_tables import (
    METHOD_TRUTH,
    METRIC_TRUTH,
    answer,
    method_truth_table,
    metric_truth_table,
)
from saliency_assay.studies.designed.figures import method_figure, metric_figure

IMAGES = 40
DIRECTIONS = {"truth_correlation": "higher", "up": "higher", "down": "lower", "none": "higher"}
CLOSENESS = {"truth": 1.0, "good": 0.8, "fair": 0.5, "poor": 0.1}
AGAINST = {"truth": -1.0, "good": 0.1, "fair": 0.2, "poor": 0.9}


def scores() -> pd.DataFrame:
    """Return scores of two networks with some noise: ``up`` follows the closeness, ``down`` contradicts it."""
    noise = np.random.default_rng(0).normal(0, 0.01, (2, 4, 4, IMAGES))
    values = {"truth_correlation": CLOSENESS, "up": CLOSENESS, "down": {m: -v for m, v in AGAINST.items()}}
    rows = [
        (
            "",
            "d",
            model,
            0,
            method,
            metric,
            {"truth_correlation": "agreement"}.get(metric, metric),
            image,
            score,
        )
        for i, model in enumerate(("one", "two"))
        for j, (metric, of_methods) in enumerate(values.items())
        for k, (method, value) in enumerate(of_methods.items())
        for image, score in enumerate(value + noise[i, j, k])
    ]
    undefined = [
        ("", "d", "one", 0, method, "none", "none", image, np.nan)
        for method in CLOSENESS
        for image in range(3)
    ]
    columns = ["study", "data", "model", "seed", "method", "metric", "variant", "image", "score"]
    return pd.DataFrame(rows + undefined, columns=columns)


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    measures = dict.fromkeys(DIRECTIONS, "faithfulness")
    methods = method_truth_table(scores(), DIRECTIONS, "agreement", ["poor"])
    return methods, metric_truth_table(scores(), DIRECTIONS, measures, truth="truth", agreement="agreement")


def test_methods_are_ranked_by_their_closeness_on_each_network(
    tables: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    table = tables[0]
    assert list(table) == METHOD_TRUTH
    assert table["model"].unique().tolist() == ["one", "two"]
    one = table[table["model"] == "one"].set_index("method")
    assert one["rank_low"].to_dict() == {"truth": 1, "good": 2, "fair": 3, "poor": 4}
    assert one["mean"].to_dict() == pytest.approx(CLOSENESS, abs=0.01)
    assert one["baseline"].tolist() == [False, False, False, True]


def test_metrics_that_follow_or_contradict_the_truth(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    table = tables[1].set_index(["model", "metric"])
    assert list(tables[1]) == METRIC_TRUTH
    up, down, none = (table.loc[("one", metric)] for metric in ("up", "down", "none"))
    assert (up["first"], up["rank_low"], up["rank_high"]) == (True, 1, 1)
    assert (up["rho"], up["rho_low"], up["rho_high"], up["methods"], up["images"]) == (1, 1, 1, 3, IMAGES)
    # Lower is better, so that the truth, with the greatest value, is last, and the order of the others is reversed.
    assert (down["first"], down["rank_low"], down["rho"]) == (False, 4, -1)
    assert none["first"] is None
    assert np.isnan([none["rank_low"], none["rho"]]).all()
    assert none["images"] == 0
    assert "truth_correlation" not in set(tables[1]["metric"])


def test_the_answer_names_exact_maps_the_closest_others_and_metrics_against_them(
    tables: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    lines = answer(dict(zip(("method_truth", "metric_truth"), tables, strict=True)))
    exact, closest, metrics = map(str, lines)
    assert exact == "truth is exact on all 2 networks."
    assert "good" in closest
    assert "0.80" in closest
    assert "down" in metrics
    assert "2 of 2" in metrics
    assert "up up" not in metrics


@pytest.mark.parametrize(("images", "low"), [(1, np.nan), (5, np.nan), (6, 1.0)])
def test_few_images_with_the_same_order_determine_no_interval(images: int, low: float) -> None:
    few = scores()[lambda table: table["image"] < images]
    measures = dict.fromkeys(DIRECTIONS, "faithfulness")
    table = metric_truth_table(few, DIRECTIONS, measures, truth="truth", agreement="agreement")
    up = table.set_index(["model", "metric"]).loc[("one", "up")]
    assert up["rho"] == 1
    assert [up["rho_low"], up["rho_high"]] == pytest.approx([low, low], nan_ok=True)


def test_figures_show_every_cell(tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    labels = Labels(methods={"good": "Good"}, models={"one": "One"})
    for figure, rows in ((method_figure(tables[0], labels), 4), (metric_figure(tables[1], labels), 3)):
        (axes,) = figure.axes
        names = [text.get_text() for text in (*axes.get_yticklabels(), *axes.get_xticklabels())]
        assert len(axes.get_yticks()) == rows
        assert "One" in names
    texts = {text.get_text() for text in method_figure(tables[0], labels).axes[0].texts}
    assert "1.00  (1)" in texts

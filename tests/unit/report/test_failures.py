"""Images on which the best method has its worst scores."""

import pandas as pd

from saliency_assay.registry.labels import Labels
from saliency_assay.report.pages.failures import failures, failures_content

METHODS = ["a", "b", "random"]


def scores(values: dict[str, dict[str, list[float]]]) -> pd.DataFrame:
    """Rows of metrics, methods and images."""
    rows = [
        {"metric": metric, "variant": metric, "data": "d", "model": "m", "seed": 0, "method": method}
        | {"image": 10 + place, "score": score}
        for metric, of_metric in values.items()
        for method, of_method in of_metric.items()
        for place, score in enumerate(of_method)
    ]
    return pd.DataFrame(rows)


def named(table: pd.DataFrame) -> set[tuple[str, str]]:
    """Metric and variant of all scores."""
    return set(table[["metric", "variant"]].itertuples(index=False, name=None))


def test_the_worst_images_are_those_of_the_method_with_the_most_best_means() -> None:
    table = scores(
        {
            "good": {
                "a": [0.9, 0.1, 0.8, 0.35, 0.2, 0.3],
                "b": [0.1, 0.9, 0.1, 0.9, 0.3, 0.1],
                "random": [1.0] * 6,
            },
            "error": {"a": [1.0] * 6, "b": [2.0] * 6, "random": [3.0] * 6},
        }
    )
    directions = {"good": "higher", "error": "lower"}
    worst = failures(table, METHODS, directions, shown=named(table), left_out=["random"])
    assert worst is not None
    assert (worst.method, worst.metric, worst.arrow, worst.total) == ("a", "good", "↑", 6)
    assert worst.images.tolist() == [11, 14, 15, 13]
    assert worst.scores == ["0.100", "0.200", "0.300", "0.350"]
    small = {
        "titles": list("pqrs"),
        "images": list("1234"),
        "maps": {"m": {"A": list("wxyz")}},
        "outlines": [],
    }
    predictions = {"m": [("cat", True, "90 %"), ("dog", False, "10 %"), None, ("cat", True, "60 %")]}
    content = failures_content(worst, small, [11, 14, 15, 13], predictions, Labels(methods={"a": "A"}))
    assert content["wrong"] == [[], ["predicted: dog"], [], []]
    assert content["title"] == "Where A fails: 4 worst of 6 images"
    assert content["titles"][0] == "image 11 (p)"
    assert content["maps"] == {"A": list("wxyz")}
    assert content["metric"] == "good ↑"


def test_no_failure_is_shown_without_an_order_or_a_score_below_another_methods_mean() -> None:
    table = scores({"good": {"a": [1.0, 0.6], "b": [0.5, 0.5], "random": [0.0, 1.0]}})
    directions = {"good": "higher"}
    assert failures(table, METHODS, directions, shown=named(table), left_out=["random"]) is None
    assert failures(table, METHODS, directions, shown=named(table), left_out=METHODS) is None
    table = scores({"good": {"a": [1.0, 0.4], "b": [0.5, 0.5]}})
    worst = failures(table, METHODS, directions, shown=named(table))
    assert worst is not None
    assert worst.images.tolist() == [11]
    assert failures(table, METHODS, directions, shown=[]) is None


def test_a_smaller_error_is_better() -> None:
    table = scores({"error": {"a": [1.0, 5.0, 4.0], "b": [1.0, 1.5, 9.0]}})
    worst = failures(table, METHODS, {"error": "lower"}, shown=named(table))
    assert worst is not None
    assert worst.images.tolist() == [11, 12]
    assert worst.scores == ["5.00", "4.00"]


def test_a_metric_whose_worst_images_are_tied_comes_last() -> None:
    hits = {"a": [0.0, 0.0, 0.0, 0.0, 0.0, 1.0], "b": [0.0] * 5 + [0.5]}
    shares = {"a": [0.9, 0.5, 0.8, 0.7, 0.6, 0.4], "b": [0.64] * 6}
    table = scores({"hit": hits, "share": shares})
    worst = failures(table, METHODS, {"hit": "higher", "share": "higher"}, shown=named(table))
    assert worst is not None
    assert (worst.metric, worst.images.tolist()) == ("share", [15, 11, 14])

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


def test_the_worst_images_are_those_of_the_method_with_the_most_best_means() -> None:
    table = scores(
        {
            "good": {
                "a": [0.9, 0.1, 0.8, 0.7, 0.2, 0.6],
                "b": [0.1, 0.2, 0.3, 0.1, 0.2, 0.1],
                "random": [1.0] * 6,
            },
            "error": {"a": [1.0] * 6, "b": [2.0] * 6, "random": [3.0] * 6},
        }
    )
    directions = {"good": "higher", "error": "lower"}
    worst = failures(table, METHODS, directions, left_out=["random"])
    assert worst is not None
    assert (worst.method, worst.metric, worst.arrow, worst.total) == ("a", "good", "↑", 6)
    assert worst.images.tolist() == [11, 14, 15, 13]
    assert worst.scores == ["0.100", "0.200", "0.600", "0.700"]
    small = {"titles": list("pqrs"), "images": list("1234"), "maps": {"m": {"A": list("wxyz")}}}
    content = failures_content(worst, small, [11, 14, 15, 13], Labels(methods={"a": "A"}))
    assert content["title"] == "Where A fails: 4 worst of 6 images"
    assert content["titles"][0] == "image 11 (p)"
    assert content["maps"] == {"A": list("wxyz")}
    assert content["metric"] == "good ↑"


def test_equal_scores_and_left_out_methods_show_no_failure() -> None:
    table = scores({"good": {"a": [1.0, 1.0], "random": [0.0, 1.0]}})
    assert failures(table, METHODS, {"good": "higher"}, left_out=["random"]) is None
    assert failures(table, METHODS, {"good": "higher"}, left_out=METHODS) is None


def test_a_smaller_error_is_better() -> None:
    table = scores({"error": {"a": [1.0, 5.0, 2.0], "b": [9.0, 9.0, 9.0]}})
    worst = failures(table, METHODS, {"error": "lower"})
    assert worst is not None
    assert worst.images.tolist() == [11, 12, 10]
    assert worst.scores == ["5.00", "2.00", "1.00"]


def test_a_metric_whose_worst_images_are_tied_comes_last() -> None:
    hits = {"a": [0.0, 0.0, 0.0, 0.0, 0.0, 1.0], "b": [0.0] * 6}
    shares = {"a": [0.9, 0.5, 0.8, 0.7, 0.6, 0.4], "b": [0.1] * 6}
    worst = failures(scores({"hit": hits, "share": shares}), METHODS, {"hit": "higher", "share": "higher"})
    assert worst is not None
    assert (worst.metric, worst.images.tolist()) == ("share", [15, 11, 14, 13])

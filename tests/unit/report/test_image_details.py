"""Predictions and scores of single images in a gallery."""

from itertools import product

import numpy as np
import pandas as pd

from saliency_assay.registry.labels import Labels
from saliency_assay.report.pages.image_details import image_predictions, image_scores

IMAGES = np.array([7, 2])
KEYS = ("seed", "method", "metric", "variant", "image")


def table(*rows: tuple[int, str, str, str, int, float]) -> pd.DataFrame:
    scores = pd.DataFrame(rows, columns=[*KEYS, "score"]).assign(study="s", data="d", model="m")
    return scores.astype(dict.fromkeys(("study", "data", "model", "method", "metric", "variant"), "category"))


def test_a_prediction_is_right_or_wrong_and_has_the_probability_of_the_true_class() -> None:
    predictions = pd.DataFrame(
        {
            "image": [1, 2, 7],
            "label": [0, 1, 1],
            "predicted": [0, 1, 0],
            "probability": [0.5, 0.9, 0.123],
        }
    )
    shown = image_predictions(predictions, np.array([7, 2, 5]), ["dog", "stop_sign"])
    assert shown == [("dog", False, "12\u00a0%"), ("stop sign", True, "90\u00a0%"), None]


def test_scores_and_ranks_are_those_of_the_image_and_the_method() -> None:
    scores = table(
        *((0, method, "aopc", "aopc", image, score) for method, image, score in (
            ("b", 2, 0.1), ("b", 7, 0.3), ("a", 2, 0.25), ("a", 7, 0.2), ("c", 2, 0.2), ("c", 7, 0.2),
        ))
    )  # fmt: skip
    [higher] = image_scores(scores, IMAGES, ["a", "b", "c"], {"aopc": "higher"})
    assert higher["values"] == [
        [("0.200", 2, 0.2), ("0.300", 1, 0.3), ("0.200", 2, 0.2)],  # equal scores share a rank
        [("0.250", 1, 0.25), ("0.100", 3, 0.1), ("0.200", 2, 0.2)],
    ]
    assert (higher["direction"], higher["seeds"]) == ("higher is better", 1)
    [lower] = image_scores(scores, IMAGES, ["a", "b", "c"], {"aopc": "lower"})
    assert lower["values"][1] == [("0.250", 3, -0.25), ("0.100", 1, -0.1), ("0.200", 2, -0.2)]


def test_scores_are_means_over_seeds_and_targets_count_by_distance() -> None:
    scores = table(
        *((seed, "a", "size", "size", 7, score) for seed, score in ((0, -4.0), (1, 4.0))),
        *((seed, "b", "size", "size", 7, score) for seed, score in ((0, 1.0), (1, 2.0))),
        *((seed, "c", "size", "size", 7, np.nan) for seed in (0, 1)),
    )
    [score] = image_scores(scores, IMAGES, ["a", "b", "c"], {"size": "target 0"})
    assert score["values"] == [[("0.00", 2, -4.0), ("1.50", 1, -1.5), None], [None, None, None]]
    assert (score["direction"], score["seeds"]) == ("closer to 0 is better", 2)


def test_only_named_scores_of_shown_images_are_listed() -> None:
    rows = product([0], ["a"], ["aopc"], ["aopc L=1", "aopc L=2"], [7], [0.5])
    others = [
        (0, "a", "iir", "iir", 3, 1.0),  # of another image
        (0, "a", "infinite", "infinite", 7, np.inf),
        (0, "a", "accuracy", "accuracy", -1, 1.0),  # of the whole set
    ]
    scores = table(*rows, *others)
    directions = dict.fromkeys(("aopc", "iir", "infinite", "accuracy"), "higher")
    labels = Labels(
        scores={"aopc": "AOPC"}, entry_scores={"aopc": {}}, sub_variants={"aopc": {"L=(.+)": "(L = {})"}}
    )
    main = image_scores(scores, IMAGES, ["a"], directions, labels=labels)
    assert [score["label"] for score in main] == ["AOPC (L = 2)"]
    of_models = image_scores(scores, IMAGES, ["a"], directions, labels=labels, variants="models")
    assert [score["label"] for score in of_models] == ["AOPC (L = 1)", "AOPC (L = 2)"]
    assert ([score["model"] for score in of_models], main[0]["model"]) == (["L=1", "L=2"], "")
    assert image_scores(scores[:0], IMAGES, ["a"], directions) == []
    assert image_scores([], IMAGES, ["a"], directions) == []

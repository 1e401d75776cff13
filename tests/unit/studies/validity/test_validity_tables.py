"""Tables of a validity study: baselines, pairs of settings, recommendations, and their page and figure."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_tables import order_rows, pair_rows, reliability_rows

from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.verdicts import (
    AT_CHANCE,
    CLEAR,
    KINDS,
    NOT_SEPARATED,
    RELIABLE,
    TOO_FEW,
    Verdict,
)
from saliency_assay.studies.validity.figures import validity_scatter
from saliency_assay.studies.validity.known_order import KNOWN_ORDER
from saliency_assay.studies.validity.meta_consistency import META_CONSISTENCY
from saliency_assay.studies.validity.page import in_words
from saliency_assay.studies.validity.validity_tables import (
    BASELINES,
    BLURRED,
    USABLE,
    baselines_table,
    is_usable,
    pairs_table,
    recommendation,
    recommendations_table,
)

DIRECTIONS = {"up": "higher", "down": "lower"}


def scores(values: dict[str, list[float]], metric: str = "up") -> pd.DataFrame:
    rows = [
        ("s", "d", "m", 0, method, metric, metric, image, score)
        for method, of_method in values.items()
        for image, score in enumerate(of_method)
    ]
    columns = ["study", "data", "model", "seed", "method", "metric", "variant", "image", "score"]
    return pd.DataFrame(rows, columns=columns)


def no_rescored() -> pd.DataFrame:
    return pd.DataFrame(columns=["metric", "variant", "test", "level", "image", "score", "seed", "method"])


@pytest.mark.parametrize(("metric", "sign"), [("up", 1), ("down", -1)])
def test_share_of_images_on_which_a_baseline_is_best(metric: str, sign: int) -> None:
    values = {"a": [1, 1, 1, 1], "b": [0, 2, 0, np.nan], "random": [0, 3, 1, 2], "edge": [2, 2, 2, 2]}
    table = scores({name: [sign * value for value in of_name] for name, of_name in values.items()}, metric)
    shares = baselines_table(table, no_rescored(), DIRECTIONS, ["random", "edge"]).set_index("baseline")
    assert shares["best"].to_dict() == {"random": 0.5, "edge": 0.75}  # a tie is not better
    assert shares["chance"].tolist() == [0.375, 0.375]  # a single method has a score on the last image
    assert shares["images"].tolist() == [4, 4]


def test_share_of_blurred_copies_that_are_better() -> None:
    rows = [
        ("up", "up", test, level, image, score, 0, "a")
        for test, level, of_test in (
            ("original", 0.0, [1, 1, 1, 1]),
            ("blur", 0.5, [2, 0, 2, 2]),
            ("blur", 1.0, [0, 0, 0, 0]),
        )
        for image, score in enumerate(of_test)
    ]
    rescored = pd.DataFrame(rows, columns=no_rescored().columns)
    shares = baselines_table(scores({"a": [1]}), rescored, DIRECTIONS, [])
    assert shares[["baseline", "images", "best", "chance"]].to_numpy().tolist() == [[BLURRED, 4, 0.75, 0.5]]


def test_pairs_that_differ_in_one_setting() -> None:
    columns = ["metric", "variant", "other_metric", "other_variant", "methods", "images", "correlation"]
    rows = [
        ("aopc_morf", "aopc L=20", "aopc_lerf", "aopc L=20", 5, 10, 0.4),
        ("aopc_morf", "aopc L=20", "aopc_lerf", "aopc L=40", 5, 10, 0.3),
        ("aopc_morf", "aopc L=20", "aopc_morf", "mean L=20", 5, 10, 0.2),
        ("aopc_morf", "aopc L=20", "aopc_lerf", "mean L=20", 5, 10, 0.1),
        ("deletion", "deletion", "insertion", "insertion", 5, 10, 0.0),
    ]
    rankings = pd.DataFrame(rows, columns=columns)
    pairs = pairs_table(rankings, [{"first": "mean", "second": "aopc", "setting": "fill"}])
    assert pairs[["setting", "correlation"]].to_numpy().tolist() == [["direction", 0.4], ["fill", 0.2]]


GOOD = {"measures": "faithfulness", "rho": 0.8, "rho_low": 0.7, "rho_high": 0.9, "baseline_best": 0.1}
SHOWN = Verdict(RELIABLE, ("images agree",))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, f"{USABLE}; reliable: images agree"),
        ({"rho": 1.0, "rho_low": 1.0, "rho_high": 1.0}, f"{USABLE}; reliable: images agree"),
        ({"rho": np.nan}, "not compared with a known order"),
        ({"rho": -0.3, "rho_low": -0.4, "rho_high": -0.2}, "prefers degraded maps"),
        ({"rho": 0.1, "rho_low": -0.1, "rho_high": 0.3}, "not shown to distinguish degraded maps"),
        ({"rho": 0.3, "rho_low": 0.2, "rho_high": 0.4}, "follows the known order weakly"),
        ({"measures": "robustness"}, "known orders and baselines do not test robustness"),
        ({"rho_low": np.nan, "rho_high": np.nan}, "too few images for an interval of ρ"),
    ],
)
def test_a_score_must_follow_the_known_order(changed: dict[str, Any], expected: str) -> None:
    assert recommendation(pd.Series({**GOOD, **changed}), SHOWN) == expected
    assert is_usable(expected) == expected.startswith(USABLE)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_the_methods_must_be_shown(kind: str) -> None:
    text = recommendation(pd.Series(GOOD), Verdict(kind, ("some reason",)))
    assert is_usable(text) == (kind in (CLEAR, RELIABLE))
    assert text.endswith(f"{kind}: some reason")


UP = order_rows({"a": (1, 1), "b": (2, 2), "random": (3, 3)})
RANDOM_BEST = order_rows({"random": (1, 1), "a": (2, 2), "b": (3, 3)}, above_baselines={"a": 0.0, "b": 0.0})


def recommended(
    up: pd.DataFrame = UP, measures: str = "robustness", *, baselines: bool = True, at_chance: bool = False
) -> pd.DataFrame:
    """Recommendations for two scores, of which ``down`` has no known order."""
    known = pd.DataFrame(
        [
            ("up", "up", "all", "all", 9, 0.0, 0.8, 0.7, 0.9, 1.0, 0.9, 1.0),
            ("up", "up", "a", "noise", 9, 0.0, 0.1, 0.0, 0.2, 0.0, 0.0, 0.0),
        ],
        columns=KNOWN_ORDER,
    )
    consistency = pd.DataFrame(
        [("up", "up", "model", 0, 0.6), ("up", "up", "model", 1, 0.8)], columns=META_CONSISTENCY[:5]
    )
    tied = order_rows({"a": (1, 2), "b": (1, 2)})
    order = pd.concat([up.assign(metric="up", variant="up"), tied.assign(metric="down", variant="down")])
    reliability = pd.concat(
        [
            reliability_rows((0.9, 0.8, 1.0), baselines=("with",), metric="up", variant="up"),
            reliability_rows(
                (0.3, 0.2, 0.4), (0.5, 0.4, 0.6), baselines=("without",), metric="up", variant="up"
            ),
            reliability_rows((0.1, -0.1, 0.2), metric="down", variant="down"),
        ]
    )
    rows = [
        ("up", "up", "random", 9, 0.1, 0.2),
        ("up", "up", "edge", 9, 0.15, 0.2),
        ("up", "up", BLURRED, 9, 0.9, 0.5),
    ]
    passes = pd.DataFrame(
        [("up", "up", 100.0), ("down", "down", 5.0)], columns=["metric", "variant", "passes"]
    )
    rated = {"order": order, "pairs": pair_rows(order), "reliability": reliability}
    shares = pd.DataFrame(rows if baselines else [], columns=BASELINES)
    measured = {"up": "faithfulness", "down": measures}
    return recommendations_table(known, consistency, rated, shares, passes, measured, at_chance=at_chance)


def test_recommendations_combine_all_tables() -> None:
    up, down = (row for _, row in recommended().iterrows())
    assert up[["rho", "macro", "mc_model", "alpha", "alpha_low"]].tolist() == pytest.approx(
        [0.8, 1, 0.7, 0.4, 0.3]
    )
    assert (up["best_baseline"], up["baseline_best"]) == ("edge", 0.15)
    # The outermost ends of both seeds, 0.2 and 0.6, are below the threshold.
    assert up["verdict"].startswith(f"{USABLE}; {CLEAR}: images rank methods differently")
    assert np.isnan(up["mc_input"])
    assert down["best_baseline"] == ""
    assert down["verdict"] == "known orders and baselines do not test robustness"
    localized = recommended(measures="localization")["verdict"][1]
    assert localized.startswith(f"not compared with a known order; {TOO_FEW}")


def test_a_score_that_prefers_random_to_every_method_is_not_usable() -> None:
    """Although Random is best on no more images than by chance, its win rate is significantly the highest."""
    text = recommended(RANDOM_BEST)["verdict"][0]
    assert text.startswith(NOT_SEPARATED)
    assert not is_usable(text)


def test_no_score_is_usable_without_baselines_or_with_a_model_at_chance() -> None:
    alone = order_rows({"a": (1, 1), "b": (2, 2)})
    assert recommended(alone, baselines=False)["verdict"][0] == "no baseline to compare with"
    assert recommended(at_chance=True)["verdict"][0].startswith(AT_CHANCE)


def test_words_and_figure() -> None:
    labels = Labels(methods={"edge": "Edge"})
    words = in_words(recommended(), labels)
    assert words["best_baseline"].tolist() == ["Edge", ""]
    assert words["verdict"][0].startswith("Usable on this set")
    assert words["verdict"][1].startswith("Not recommended on this set: known orders")
    figure = validity_scatter(recommended(), 0.999, labels)
    assert figure.axes[0].get_lines()[0].get_xydata().tolist() == [[0.4, 0.8]]


def test_a_figure_without_any_point() -> None:
    table = recommended().assign(rho=np.nan)
    assert len(validity_scatter(table, 0.999).axes) == 1

"""Agreement of the rankings of methods, against scipy and the range of compatible rankings."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from saliency_assay.reliability.comparison import rank_sets
from saliency_assay.reliability.orders import correlation_range
from saliency_assay.studies.retrain.rank_agreement import (
    MEAN,
    displayed_agreement,
    image_accuracies,
    rank_agreement,
)

METHODS = ("a", "b", "c", "d")
EVALUATIONS = list(itertools.product(("roar", "roar_lerf"), ("mean", "linear"), ("yes", "no")))
ITERATIONS, IMAGES = 3, 40


def accuracies(seed: int = 0) -> dict:
    """Return a random accuracy, 0 or 1, of each evaluation, method, iteration and image."""
    generator = np.random.default_rng(seed)
    return {
        (evaluation, method): generator.integers(0, 2, (ITERATIONS, IMAGES)).astype(np.uint8)
        for evaluation in EVALUATIONS
        for method in METHODS
    }


def test_each_pair_differs_in_one_setting() -> None:
    table = rank_agreement(accuracies())
    means = table[table["iteration"] == MEAN]
    assert len(means) == 12  # the edges of a cube
    assert means["setting"].value_counts().to_dict() == {"protocol": 4, "fill": 4, "retraining": 4}
    assert (table["methods"] == 4).all()
    assert (table["images"] == IMAGES).all()
    assert set(table["iteration"]) == {MEAN, "1", "2", "3"}


def test_coefficients_are_those_of_scipy() -> None:
    """With the least important pixels first, high accuracy is good, otherwise low accuracy."""
    values = accuracies()
    table = rank_agreement(values)
    of_protocols = table.query("setting == 'protocol' and fill == 'linear' and retraining == 'yes'")
    rho = of_protocols.set_index("iteration")["rho"]
    expected = []
    for step in range(ITERATIONS):
        first, second = (
            [values[(protocol, "linear", "yes"), method][step].sum() for method in METHODS]
            for protocol in ("roar", "roar_lerf")
        )
        expected.append(spearmanr(-np.array(first, dtype=int), second).statistic)
        assert rho[str(step + 1)] == pytest.approx(expected[-1])
    assert rho[MEAN] == pytest.approx(np.mean(expected))


def test_equal_evaluations_agree_and_opposite_ones_do_not() -> None:
    values = accuracies()
    steps = np.linspace(0.1, 0.7, len(METHODS))
    for (evaluation, method), correct in values.items():
        rate = steps[METHODS.index(method)] if evaluation[2] == "yes" else 0.8 - steps[METHODS.index(method)]
        correct[:] = np.arange(IMAGES) < round(rate * IMAGES)
    table = rank_agreement(values)
    expected = {"fill": 1, "retraining": -1, "protocol": -1}  # the same accuracies in both orders
    for setting, rho in expected.items():
        assert table.loc[table["setting"] == setting, "rho"].to_numpy() == pytest.approx(rho)


def random_correct(rates: dict[str, float], images: int, seed: int, iterations: int = 1) -> dict:
    """Return whether images are classified correctly with and without retraining, at the same rates."""
    generator = np.random.default_rng(seed)
    return {
        (("roar", "mean", retraining), method): (generator.random((iterations, images)) < rate).astype(
            np.uint8
        )
        for retraining in ("yes", "no")
        for method, rate in rates.items()
    }


@pytest.mark.parametrize("iterations", [1, 3])
def test_intervals_are_ranges_of_rankings_that_agree_with_significant_differences(iterations: int) -> None:
    values = random_correct(
        dict(zip(METHODS, (0.3, 0.4, 0.5, 0.6), strict=True)), 250, seed=1, iterations=iterations
    )
    table = rank_agreement(values).set_index("iteration")[["rho_low", "rho_high"]]
    expected: dict[int, list[tuple[float, float]]] = {1: [], iterations: []}
    for step, tests in itertools.product(range(iterations), expected):
        better = [
            rank_sets(
                -np.stack([values[("roar", "mean", retraining), name][step] for name in METHODS], 1).astype(
                    int
                ),
                level=1 - 0.05 / 2 / tests,
                by="means",
            ).better
            for retraining in ("yes", "no")
        ]
        expected[tests].append(correlation_range(*better))
    np.testing.assert_allclose(table.loc[MEAN], np.mean(expected[iterations], 0))
    np.testing.assert_allclose(table.loc["1"], expected[1][0])
    assert -1 < table.loc["1", "rho_low"] < 1


def test_few_images_have_no_interval() -> None:
    for images, has_interval in ((2, False), (4, False), (5, True)):
        values = {key: correct[:, :images] for key, correct in accuracies(seed=3).items()}
        table = rank_agreement(values)
        table = table[table["rho"].notna()]
        assert len(table)
        assert (table[["rho_low", "rho_high"]].notna() == has_interval).all(axis=None)


def test_methods_with_equal_accuracies_have_no_order() -> None:
    values = {key: np.ones_like(correct) for key, correct in accuracies().items()}
    table = rank_agreement(values)
    assert table[["rho", "rho_low", "rho_high"]].isna().all(axis=None)


def test_an_iteration_with_equal_accuracies_does_not_count() -> None:
    whole, values = accuracies(), accuracies()
    for correct in values.values():
        correct[..., 0, :] = True
    with_ties, all_defined = (rank_agreement(table) for table in (values, whole))
    is_first = with_ties["iteration"] == "1"
    assert with_ties.loc[is_first, "rho"].isna().all()
    expected = (
        all_defined[~all_defined["iteration"].isin(["1", "mean"])].groupby(["setting", "other"])["rho"].mean()
    )
    means = with_ties[with_ties["iteration"] == "mean"].groupby(["setting", "other"])["rho"].mean()
    np.testing.assert_allclose(means, expected)


def test_two_methods_have_no_ranking() -> None:
    values = {key: correct for key, correct in accuracies().items() if key[1] in ("a", "b")}
    table = rank_agreement(values)
    assert table.empty
    assert displayed_agreement(table).empty


def test_accuracies_count_seeds() -> None:
    rows = [
        ("accuracy", f"roar/mean/{step}", seed, image, float((step + seed + image) % 2))
        for step, seed, image in itertools.product(range(3), range(2), range(4))
    ]
    rows += [("accuracy_without_retraining", "roar/mean/1", 0, image, 1.0) for image in range(4)]
    table = pd.DataFrame(rows, columns=["metric", "variant", "seed", "image", "score"])
    table = table.assign(study="s", data="d", model="m", method="a")
    counts = image_accuracies(table)
    assert set(counts) == {(("roar", "mean", "yes"), "a"), (("roar", "mean", "no"), "a")}
    np.testing.assert_array_equal(counts[("roar", "mean", "yes"), "a"], np.full((2, 4), 1))
    np.testing.assert_array_equal(counts[("roar", "mean", "no"), "a"], np.ones((1, 4)))

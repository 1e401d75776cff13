"""Degraded maps, and metrics that ignore, guess or know their order."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy import ndarray as Array
from scipy.stats import spearmanr

from saliency_assay.studies.validity.degrade import DEGRADE, REMOVED, degrade
from saliency_assay.studies.validity.known_order import ALL, known_order_table, spearman_of_levels

LEVELS, IMAGES = 5, 40
DIRECTIONS = {"metric": "higher"}


def rescored(scores: Array, tests: tuple[str, ...] = ("noise", "blur")) -> pd.DataFrame:
    """Return the table of scores ``[images, levels]``, the same for all degradations."""
    rows = [
        ("metric", "metric", test, number / LEVELS, 0, True, image, score, 0, "gradient")
        for image, of_image in enumerate(scores)
        for number, score in enumerate(of_image)
        for test in (tests if number else ("original",))
    ]
    columns = ["metric", "variant", "test", "level", "sample", "kept", "image", "score", "seed", "method"]
    return pd.DataFrame(rows, columns=columns)


def overall(table: pd.DataFrame) -> "pd.Series":
    rows = table[table["degradation"] == ALL]
    assert len(rows) == 1
    return rows.iloc[0]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_metric_that_knows_the_order_or_its_reverse_scores_one_or_minus_one(sign: int) -> None:
    oracle = np.tile(sign * np.linspace(1, 0, LEVELS + 1), (IMAGES, 1))
    row = overall(known_order_table(rescored(oracle), DIRECTIONS, level=0.95))
    assert row["micro_low"] == row["micro"] == row["micro_high"] == row["macro"] == sign
    assert row["macro_low" if sign > 0 else "macro_high"] == sign


@pytest.mark.parametrize("noise", [0, 1e-16])
def test_equal_scores_up_to_rounding_have_no_order(noise: float) -> None:
    scores = 0.7 + noise * np.random.default_rng(3).integers(-1, 2, (IMAGES, LEVELS + 1))
    row = overall(known_order_table(rescored(scores), DIRECTIONS, level=0.95))
    assert row["micro"] == row["macro"] == row["undefined"] == 0
    assert (row["macro_low"], row["macro_high"]) == (-1, 1)


def test_few_images_or_clusters_have_no_interval_of_the_macro_average() -> None:
    oracle = np.tile(np.linspace(1, 0, LEVELS + 1), (IMAGES, 1))
    of_two, of_five = oracle.copy(), oracle.copy()
    of_two[2:, 1] = of_five[5:, 1] = np.nan
    row = overall(known_order_table(rescored(of_two), DIRECTIONS, level=0.95))
    assert (row["images"], row["macro"]) == (2, 1)
    assert np.isnan([row["macro_low"], row["macro_high"]]).all()
    # With five images, no p-value is small enough for a comparison of six levels.
    row = overall(known_order_table(rescored(of_five), DIRECTIONS, level=0.95))
    assert row[["images", "macro", "macro_low", "macro_high"]].tolist() == [5, 1, -1, 1]
    clusters = {"cut-outs": np.arange(IMAGES) % 4}
    row = overall(known_order_table(rescored(oracle), DIRECTIONS, level=0.95, clusters=clusters))
    assert row["macro"] == 1
    assert np.isnan([row["macro_low"], row["macro_high"]]).all()


def test_interval_of_an_average_is_the_average_of_simultaneous_intervals() -> None:
    generator = np.random.default_rng(5)
    columns = np.linspace(1, 0, LEVELS + 1)
    noisy = [
        rescored(columns + generator.normal(size=(100, LEVELS + 1)), (name,)) for name in ("noise", "blur")
    ]
    both = pd.concat([noisy[0], noisy[1][noisy[1]["test"] != "original"]])
    # The curves have the same original maps.
    alone = [both[both["test"].isin(["original", name])] for name in ("noise", "blur")]
    ends = ["macro", "macro_low", "macro_high"]
    expected = [
        known_order_table(of_one, DIRECTIONS, level=0.975).iloc[0][ends].astype(float) for of_one in alone
    ]
    interval = overall(known_order_table(both, DIRECTIONS, level=0.95))[ends].astype(float)
    np.testing.assert_allclose(interval, np.mean(expected, 0))
    assert interval["macro_low"] < 0.9


@pytest.mark.parametrize("skewed", [False, True])
def test_weak_signal_covers_its_true_order(skewed: bool) -> None:
    """A bootstrap of images has an interval below 1 in almost all of these studies."""
    generator = np.random.default_rng(6)
    intervals = []
    for _ in range(20):
        noise = generator.normal(size=(60, LEVELS + 1))
        scores = 0.05 * np.arange(LEVELS, -1, -1) + (np.exp(noise) if skewed else noise)
        row = known_order_table(rescored(scores, ("noise",)), DIRECTIONS, level=0.95).iloc[0]
        intervals.append((row["macro_low"], row["macro"], row["macro_high"]))
    low, rho, high = np.array(intervals).T
    assert (low <= rho).all()
    assert (rho <= high).all()
    assert np.mean(high == 1) > 0.85


@pytest.mark.parametrize(("direction", "sign"), [("higher", 1), ("lower", -1), ("target 0", -1)])
def test_direction_is_that_of_the_score(direction: str, sign: int) -> None:
    falling = np.tile(np.linspace(1, 0.1, LEVELS + 1), (IMAGES, 1))
    row = overall(known_order_table(rescored(falling), {"metric": direction}, level=0.95))
    assert row["micro"] == sign


def test_rho_is_spearmans() -> None:
    scores = np.random.default_rng(2).normal(size=(30, 6)).round(1)  # with ties
    expected = [spearmanr(row, -np.arange(6)).statistic for row in scores]
    np.testing.assert_allclose(spearman_of_levels(scores), expected, atol=1e-12)


def test_images_without_a_score_at_a_level_are_left_out() -> None:
    scores = np.tile(np.linspace(1, 0, LEVELS + 1), (IMAGES, 1))
    scores[:10, 3] = np.nan
    row = overall(known_order_table(rescored(scores, ("noise", "blur")), DIRECTIONS, level=0.95))
    assert row["images"] == IMAGES - 10
    assert row["undefined"] == pytest.approx(0.25)
    assert row["micro"] == row["macro"] == 1


def test_macro_orders_mean_scores() -> None:
    """One image with large scores in the right order decides the order of the means, not the mean of ρ."""
    scores = np.tile(np.linspace(0, 1, LEVELS + 1), (3, 1))
    scores[0] = np.linspace(100, 0, LEVELS + 1)
    row = overall(known_order_table(rescored(scores), DIRECTIONS, level=0.95))
    assert row["micro"] == pytest.approx(-1 / 3)
    assert row["macro"] == 1


def some_maps(channels: int = 1, height: int = 24, width: int = 20) -> torch.Tensor:
    return torch.randn(3, channels, height, width, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", DEGRADE)
def test_degradation_grows_with_the_level(name: str) -> None:
    maps = some_maps(3)
    assert torch.equal(degrade(maps, name, 0, seed=0), maps)
    changes = [
        (degrade(maps, name, level, seed=0) - maps).abs().mean().item() for level in (0.2, 0.4, 0.6, 0.8, 1)
    ]
    assert changes[0] > 0
    assert changes == sorted(changes)


@pytest.mark.parametrize("name", DEGRADE)
def test_degradation_depends_on_each_map_and_the_seed_alone(name: str) -> None:
    maps = some_maps()
    alone = torch.cat([degrade(one[None], name, 0.6, seed=3) for one in maps])
    torch.testing.assert_close(alone, degrade(maps, name, 0.6, seed=3))


def test_noise_permutes_the_values_at_the_highest_level() -> None:
    maps = some_maps()
    degraded = degrade(maps, "noise", 1, seed=0)
    assert torch.equal(degraded.flatten(1).sort().values, maps.flatten(1).sort().values)
    half = degrade(maps, "noise", 0.5, seed=0)
    torch.testing.assert_close(half, (maps + degraded) / 2)


def test_shuffle_moves_the_share_of_patches_and_keeps_all_values() -> None:
    maps = torch.arange(64.0).reshape(1, 1, 8, 8)  # patches of a single pixel
    for level in (0.25, 0.5, 1):
        degraded = degrade(maps, "shuffle", level, seed=0)
        assert (degraded != maps).sum() == round(64 * level)
        assert torch.equal(degraded.flatten().sort().values, maps.flatten())


def test_removal_moves_the_highest_pixels_to_the_lowest_value() -> None:
    maps = some_maps(1, 10, 10)
    degraded = degrade(maps, "removal", 0.4, seed=0)
    for one, after in zip(maps.flatten(1), degraded.flatten(1), strict=True):
        removed = round(100 * REMOVED * 0.4)
        threshold = one.sort(descending=True).values[removed - 1]
        assert torch.equal(after, torch.where(one >= threshold, one.min(), one))


def test_blur_keeps_the_mean_of_a_map_far_from_borders() -> None:
    maps = torch.zeros(1, 1, 33, 33)
    maps[0, 0, 16, 16] = 1
    degraded = degrade(maps, "blur", 0.2, seed=0)
    assert degraded.sum().item() == pytest.approx(1, abs=1e-5)
    spread = (torch.arange(33.0) - 16) ** 2
    assert (degraded[0, 0].sum(0) * spread).sum().item() ** 0.5 == pytest.approx(0.25 * 0.2 * 33, rel=0.02)


def test_intervals_cover_clusters() -> None:
    """Images of one cut-out agree with each other; the metric knows the order for a random half of the cut-outs."""
    generator = np.random.default_rng(4)
    cutouts, covered, ignored = np.repeat(np.arange(10), 12), [], []
    for _ in range(30):
        signs = generator.choice([-1, 1], 10)[cutouts][:, None]
        scores = signs * np.linspace(1, 0, LEVELS + 1) + generator.normal(0, 0.01, (120, 6))
        table = rescored(scores, ("noise",))
        for clusters, inside in (({"cut-outs": cutouts}, covered), ({}, ignored)):
            row = known_order_table(table, DIRECTIONS, level=0.95, clusters=clusters).iloc[0]
            inside.append(
                [row[f"{average}_low"] <= 0 <= row[f"{average}_high"] for average in ("micro", "macro")]
            )
    assert (np.mean(covered, 0) > 0.85).all()
    assert (np.mean(ignored, 0) < 0.8).all()


def test_intervals_cover_training_seeds() -> None:
    rising, falling = (
        rescored(np.tile(sign * np.linspace(1, 0, LEVELS + 1), (IMAGES, 1))).assign(seed=seed)
        for seed, sign in ((0, 1), (1, -1))
    )
    row = overall(known_order_table(pd.concat([rising, falling]), DIRECTIONS, level=0.95))
    assert row["micro"] == 0
    assert row["micro_high"] - row["micro_low"] > 1
    assert (row["macro_low"], row["macro"], row["macro_high"]) == (-1, 0, 1)

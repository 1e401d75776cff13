"""Scores of controls on both ends, and the share of their range that a method reaches."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from saliency_assay.reliability.controls import NOT_ABOVE, OPEN, Controls, controls_table

UPPER = Controls("random", {"iou": {"iou": ["mask"]}}, ["mask"])
IMAGES = 30


def scores_of(
    columns: Mapping[str, object], metric: str = "iou", variant: str = "iou", seed: int = 0
) -> pd.DataFrame:
    """A score table with the scores of each method, ``[IMAGES]`` or one for all."""
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "metric": metric,
                    "variant": variant,
                    "data": "set",
                    "model": "net",
                    "seed": seed,
                    "method": method,
                    "image": np.arange(IMAGES),
                    "score": np.broadcast_to(np.asarray(score, dtype=float), IMAGES),
                }
            )
            for method, score in columns.items()
        ],
        ignore_index=True,
    )


def rows_of(table: pd.DataFrame, direction: str = "higher", controls: Controls = UPPER) -> pd.DataFrame:
    return controls_table(table, {"iou": direction}, controls).set_index("method")


def noise(seed: int, scale: float = 0.05) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, scale, IMAGES)


def test_the_share_has_the_interval_of_fieller() -> None:
    """The roots of the quadratic equation; symmetric noise, which needs hardly any correction for skewness."""
    low = 0.2 + np.repeat([0.05, -0.05], IMAGES // 2)
    score = 0.6 + np.tile([0.06, -0.06, 0.02], IMAGES // 3)
    row = rows_of(scores_of({"gradient": score, "random": low, "mask": 1.0})).loc["gradient"]
    gain, span = score - low, 1 - low
    quantile = stats.t.ppf(0.975, IMAGES - 1)
    (v_gain, cov), (_, v_span) = np.cov(gain, span) / IMAGES
    roots = np.roots(
        [
            span.mean() ** 2 - quantile**2 * v_span,
            -2 * (gain.mean() * span.mean() - quantile**2 * cov),
            gain.mean() ** 2 - quantile**2 * v_gain,
        ]
    )
    assert row["share"] == pytest.approx(gain.mean() / span.mean())
    assert row[["share_low", "share_high"]].tolist() == pytest.approx(sorted(roots), abs=2e-3)
    assert row["share_low"] <= min(roots) + 1e-9
    assert row["share_high"] >= max(roots) - 1e-9
    assert row[["mean", "lower_mean", "upper_mean", "range"]].tolist() == pytest.approx(
        [0.6, 0.2, 1, 0.8], abs=0.01
    )
    assert (row["lower"], row["upper"], row["images"], row["reason"]) == ("random", "mask", IMAGES, "")


@pytest.mark.parametrize("direction", ["lower", "target 0"])
def test_the_share_of_scores_of_which_lower_is_better(direction: str) -> None:
    low = 0.8 + noise(1)
    rows = rows_of(scores_of({"gradient": low / 4, "random": low, "mask": 0.0}), direction)
    assert rows.loc["gradient", ["share", "share_low", "share_high"]].tolist() == pytest.approx([0.75] * 3)
    assert rows.loc["gradient", "range"] == pytest.approx(low.mean())


def test_shares_can_be_negative_or_exceed_1() -> None:
    low = noise(1) + 0.5
    rows = rows_of(
        scores_of({"worse": low - 0.25, "better": 1.1 + noise(2), "random": low, "mask": low + 0.5})
    )
    assert rows.loc["worse", "share"] == pytest.approx(-0.5)
    assert rows.loc["better", "share"] > 1


def test_controls_have_no_share() -> None:
    rows = rows_of(scores_of({"gradient": noise(1), "random": noise(2), "mask": 1 + noise(3)}))
    assert rows["control"].to_dict() == {"gradient": "", "random": "lower", "mask": "upper"}
    assert rows.loc[["random", "mask"], "share"].isna().all()


@pytest.mark.parametrize(
    ("upper", "reason"), [(0.3, NOT_ABOVE), (0.7, ""), (0.5 + noise(5, 0.1) + 0.01, OPEN)]
)
def test_a_range_that_is_not_above_0_has_no_share(upper: object, reason: str) -> None:
    rows = rows_of(scores_of({"gradient": 0.6 + noise(1), "random": 0.5 + noise(2), "mask": upper}))
    assert (rows["reason"] == reason).all()
    assert np.isnan(rows.loc["gradient", "share"]) == bool(reason)


@pytest.mark.parametrize("missing", ["random", "mask"])
def test_without_one_of_the_controls_the_other_one_stays(missing: str) -> None:
    columns = {"gradient": noise(1), "random": noise(2), "mask": 1 + noise(3)}
    del columns[missing]
    row = rows_of(scores_of(columns)).loc["gradient"]
    present, absent = ("upper", "lower") if missing == "random" else ("lower", "upper")
    assert row[absent] == ""
    assert np.isnan(row[[f"{absent}_mean", "range", "share"]].astype(float)).all()
    assert row[f"{present}_mean"] == pytest.approx(columns[row[present]].mean())
    assert row["reason"] == ""


def test_means_are_of_the_images_with_all_three_scores() -> None:
    low, score = noise(1), 0.5 + noise(2)
    low[:5], score[20:] = np.nan, np.nan
    row = rows_of(scores_of({"gradient": score, "random": low, "mask": 1.0})).loc["gradient"]
    assert row["images"] == 15
    assert row["mean"] == pytest.approx(score[5:20].mean())
    assert row["lower_mean"] == pytest.approx(low[5:20].mean())
    assert row["range"] == pytest.approx(1 - np.nanmean(low))


def test_equal_differences_of_enough_images_are_certain() -> None:
    """No variance, but a sign test of six images rejects 0 at 5 %; of five it does not."""
    table = scores_of({"gradient": 0.5, "random": 0.0, "mask": 1.0})
    row = rows_of(table[table["image"] < 6]).loc["gradient"]
    assert row[["share", "share_low", "share_high"]].tolist() == [0.5] * 3
    assert rows_of(table[table["image"] < 5]).loc["gradient", "reason"] == OPEN


def test_seeds_are_a_factor_and_one_seed_of_retrained_models_shows_nothing() -> None:
    columns = {"gradient": 0.5 + noise(1), "random": noise(2), "mask": 1.0}
    one = scores_of(columns)
    shifted = {
        name: np.asarray(score) + (0.3 if name == "gradient" else 0) for name, score in columns.items()
    }
    two = pd.concat([one, scores_of(shifted, seed=1)])
    narrow, wide = (rows_of(table).loc["gradient"] for table in (one, two))
    assert np.isnan(wide["share_high"]) or (
        wide["share_high"] - wide["share_low"] > 3 * (narrow["share_high"] - narrow["share_low"])
    )
    untested = controls_table(one, {"iou": "higher"}, UPPER, retrained=True)
    assert untested["share"].isna().all()


def test_upper_controls_are_not_ranked_where_they_are_the_best_map() -> None:
    controls = Controls("random", {"infidelity": {"squares": ["optimal"]}}, ["mask"])
    columns = {"gradient": 1.0, "optimal": 2.0, "mask": 3.0}
    table = pd.concat(
        scores_of(columns, metric, variant)
        for metric, variant in (("infidelity", "squares"), ("infidelity", "noise"), ("iou", "iou"))
    )
    ranked = controls.ranked(table).groupby("variant")["method"].unique().map(set).to_dict()
    assert ranked == {
        "squares": {"gradient"},
        "noise": {"gradient", "optimal"},
        "iou": {"gradient", "optimal"},
    }


def test_variants_that_are_models_have_the_upper_control_of_the_score() -> None:
    upper = {"infidelity": {"halves": ["optimal"]}}
    assert list(Controls("", upper, of_models=True).upper_of("infidelity", "net")) == ["optimal"]
    assert list(Controls("", upper).upper_of("infidelity", "net")) == []
    assert list(Controls("", upper).upper_of("infidelity", "halves n=3")) == ["optimal"]

"""Tables of reliability, from score tables."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
import pytest

from saliency_assay import reliability
from saliency_assay.report.reliability import (
    ORDERED,
    consistency_table,
    order_table,
    reliability_table,
    variance_table,
)

DIRECTIONS = {"aopc": "higher", "infidelity": "lower"}
METHODS = ("smooth", "gradcam", "edge")
RESAMPLES = 40


def score_table(
    *, images: int = 20, seeds: Iterable[int] = (0,), metrics: Iterable[str] = ("aopc", "infidelity")
) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    rows = [
        {
            **{"study": "s", "data": "d", "model": "m", "seed": seed, "method": method, "metric": metric},
            **{"variant": f"{metric} 1", "image": image, "score": place + generator.normal()},
        }
        for metric in metrics
        for seed in seeds
        for place, method in enumerate(METHODS)
        for image in range(images)
    ]
    return pd.DataFrame(rows)


def scored(table: pd.DataFrame, metric: str, seed: int = 0, methods: Iterable[str] = METHODS) -> np.ndarray:
    chosen = table[(table["metric"] == metric) & (table["seed"] == seed)]
    return chosen.pivot(index="image", columns="method", values="score")[list(methods)].to_numpy()


def test_reliability_is_with_and_without_controls_for_every_metric_and_seed() -> None:
    table = score_table(seeds=(0, 1))
    table.loc[(table["image"] == 3) & (table["method"] != "edge"), "score"] = np.nan
    found = reliability_table(table, ("edge", "random"), resamples=RESAMPLES, level=0.9)
    assert list(
        found.loc[:, ["metric", "seed", "controls", "methods"]].itertuples(index=False, name=None)
    ) == [
        (metric, seed, kind, methods)
        for metric in ("aopc", "infidelity")
        for seed in (0, 1)
        for kind, methods in (("with", 3), ("without", 2))
    ]
    assert set(found["images"]) == {19}
    row = found.iloc[7]
    values = scored(table, "infidelity", 1, METHODS[:2])
    alpha = reliability.alpha(values, resamples=RESAMPLES, level=0.9)
    assert (row["alpha"], row["alpha_low"], row["alpha_high"]) == (alpha.value, alpha.low, alpha.high)
    rho = reliability.mean_correlation(values, resamples=RESAMPLES, level=0.9)
    assert (row["correlation"], row["correlation_low"]) == (rho.value, rho.low)


def test_scores_of_whole_sets_and_studies_without_controls() -> None:
    table = score_table(metrics=["aopc"])
    whole = table[table["image"] == 0].assign(image=-1, metric="retrained")
    found = reliability_table(pd.concat([table, whole]), ("random",), resamples=RESAMPLES, level=0.9)
    assert list(found["controls"]) == ["none"]
    assert reliability_table(whole, (), resamples=RESAMPLES, level=0.9).empty
    assert consistency_table(whole, {}).empty
    assert order_table(whole, {}, resamples=RESAMPLES).empty
    assert variance_table(whole).empty


def test_consistency_has_every_pair_once_and_knows_which_way_is_better() -> None:
    table = score_table()
    table.loc[(table["image"] < 4) & (table["metric"] == "aopc"), "score"] = np.nan
    found = consistency_table(table, DIRECTIONS)
    assert list(found["method"]) == list(METHODS)
    for place, row in enumerate(found.itertuples()):
        both = np.stack([scored(table, metric)[4:, place] for metric in DIRECTIONS], axis=1)
        expected = reliability.correlations(both)[0, 1]
        assert row.correlation == pytest.approx(expected)
        assert row.agreement == -row.correlation
        assert (row.metric, row.other_metric, row.images) == ("aopc", "infidelity", 16)


def test_order_is_of_the_means_over_seeds_and_the_better_way_round() -> None:
    table = score_table(seeds=(0, 1))
    found = order_table(table, DIRECTIONS, ["edge", "random"], resamples=RESAMPLES)
    assert list(found.columns) == ORDERED
    assert (found["direction"] == found["metric"].map(DIRECTIONS)).all()
    assert (found["control"] == (found["method"] == "edge")).all()
    for metric, first in (("aopc", "edge"), ("infidelity", "smooth")):
        of_metric = found[found["metric"] == metric].set_index("method")
        assert list(of_metric.index) == list(METHODS)
        assert of_metric.loc[first, "rank"] == 1
        assert of_metric.loc[first, "best"] > 0.9
        assert of_metric["best"].sum() == pytest.approx(1)
        mean = (scored(table, metric, 0) + scored(table, metric, 1)) / 2
        np.testing.assert_allclose(of_metric["mean"], mean.mean(0))
        assert (of_metric["low"] < of_metric["mean"]).all()
        assert (of_metric["mean"] < of_metric["high"]).all()
        assert set(of_metric["images"]) == {20}


def test_variance_is_of_all_seeds_that_methods_share() -> None:
    table = score_table(seeds=(0, 1), metrics=["aopc"])
    table = table[~((table["seed"] == 1) & (table["method"] == "edge") & (table["image"] == 5))]
    found = variance_table(table).iloc[0]
    assert found["images"] == 19
    cube = np.stack([np.delete(scored(table, "aopc", seed), 5, axis=0) for seed in (0, 1)], axis=-1)
    expected = reliability.variance_shares(cube)
    assert found[list(expected)].to_dict() == pytest.approx(expected)
    single = variance_table(score_table(metrics=["aopc"]))
    assert "seed" not in single


def test_printed_alpha_stands_in_the_rows_of_its_controls() -> None:
    table = score_table(metrics=["aopc"], seeds=(0, 1))
    more = table.assign(variant="aopc 2")
    both = pd.concat([table, more], ignore_index=True)
    printed = {"aopc aopc 2": {"with": 0.3, "without": 0.1}, "aopc aopc 1": {"without": 0.2}}
    found = reliability_table(both, ["edge"], resamples=RESAMPLES, level=0.9, printed=printed)
    rows = found[["variant", "seed", "controls", "printed"]].itertuples(index=False, name=None)
    assert {row[:3]: row[3] for row in rows if row[3] == row[3]} == {
        **{("aopc 1", seed, "without"): 0.2 for seed in (0, 1)},
        **{
            ("aopc 2", seed, kind): value for seed in (0, 1) for kind, value in printed["aopc aopc 2"].items()
        },
    }
    found = reliability_table(both, (), resamples=RESAMPLES, level=0.9, printed=printed)
    assert list(found["printed"]) == [0.2, 0.2, 0.1, 0.1]
    assert reliability_table(both, (), resamples=RESAMPLES, level=0.9)["printed"].isna().all()
    with pytest.raises(ValueError, match=r"^printed_alpha: aopc has 2 scores, "):
        reliability_table(both, (), resamples=RESAMPLES, level=0.9, printed={"aopc": {"with": 0.3}})


def test_printed_correlation_is_of_a_pair_whichever_is_named_first() -> None:
    table = score_table()
    for one, other in (("aopc", "infidelity"), ("infidelity", "aopc")):
        found = consistency_table(table, DIRECTIONS, {one: {other: {"gradcam": -0.3, "edge": 0}}})
        np.testing.assert_array_equal(found["printed"], [np.nan, -0.3, 0])
    assert consistency_table(table, DIRECTIONS)["printed"].isna().all()
    wrong = {
        "same": ({"aopc": {"aopc aopc 1": {"edge": 1}}}, "found 'aopc aopc 1', the same score"),
        "unknown": ({"aopc": {"acop": {"edge": 1}}}, "unknown score 'acop'; did you mean 'aopc'"),
    }
    for printed, said in wrong.values():
        with pytest.raises(ValueError, match=rf"^printed_correlation\.aopc: {said}"):
            consistency_table(table, DIRECTIONS, printed)


def test_tables_of_nothing_have_their_columns() -> None:
    nothing = score_table().head(0)
    found = {
        "reliability": reliability_table(nothing, (), resamples=RESAMPLES, level=0.9),
        "order": order_table(nothing, {}, resamples=RESAMPLES),
        "consistency": consistency_table(nothing, {}),
        "variance": variance_table(nothing),
    }
    for table in found.values():
        assert table.empty
        assert "metric" in table

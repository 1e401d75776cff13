"""Agreement of tasks on the order of methods, and pairs of methods over tasks."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, rankdata, spearmanr

from saliency_assay.reliability.across import ALL, FLIPS, NEVER, Across, Orders, across_tasks, orders_by_task
from saliency_assay.reliability.comparison import RankedBy
from saliency_assay.reliability.order_tables import Rule, order_tables
from saliency_assay.reliability.variance import GROUPS

METHODS = "abcde"


def scores_of(
    means: Sequence[float] | dict[str, Sequence[float]],
    *,
    images: int = 40,
    methods: Sequence[str] = METHODS,
    model: str = "net",
    noise: float = 1.0,
    seed: int = 0,
) -> pd.DataFrame:
    """Return a score table of methods with these means, of one metric or of metrics by name."""
    generator = np.random.default_rng(seed)
    tables = []
    for metric, of_metric in (means if isinstance(means, dict) else {"good": means}).items():
        values = np.asarray(of_metric) + noise * generator.normal(size=(images, len(of_metric)))
        image, place = np.indices(values.shape)
        columns = {
            "study": "s",
            "data": "digits",
            "model": model,
            "seed": 0,
            "metric": metric,
            "variant": metric,
        }
        names = np.array(list(methods))[place.ravel()]
        tables.append(
            pd.DataFrame({**columns, "method": names, "image": image.ravel(), "score": values.ravel()})
        )
    return pd.concat(tables, ignore_index=True)


def orders(
    scores: pd.DataFrame, direction: str = "higher", baselines: Sequence[str] = (), by: RankedBy = "wins"
) -> Orders:
    directions = dict.fromkeys(scores["metric"].unique(), direction)
    return Orders(*order_tables(scores, directions, baselines, rule=Rule(by)))


def row(result: Across, task: str, other: str = "") -> "pd.Series[Any]":
    rows = result.agreement
    return rows[(rows["task"] == task) & (rows["other"] == other)].iloc[0]


@pytest.mark.parametrize("by", ["wins", "means"])
def test_rho_is_that_of_win_rates_or_means(by: RankedBy) -> None:
    tables = {
        name: scores_of([0, 0.1, 0.2, 0.3, 0.4], seed=seed) for seed, name in enumerate(["x", "y", "z"])
    }
    result = across_tasks({name: orders(table, by=by) for name, table in tables.items()})
    values = {}
    for name, table in tables.items():
        wide = table.pivot(index="image", columns="method", values="score").to_numpy()
        values[name] = (rankdata(wide, axis=1) if by == "wins" else wide).mean(0)
    expected = {
        pair: spearmanr(*(values[name] for name in pair)).statistic for pair in combinations(values, 2)
    }
    for pair, rho in expected.items():
        assert row(result, *pair)["correlation"] == pytest.approx(rho, abs=1e-12)
        assert row(result, *pair)["low"] <= rho <= row(result, *pair)["high"]
    mean = row(result, ALL)
    assert mean["correlation"] == pytest.approx(np.mean(list(expected.values())))
    assert (mean["tasks"], mean["methods"]) == (3, 5)
    assert mean["low"] == pytest.approx(result.agreement["low"][:3].mean())


def test_clear_orders_have_a_point_as_interval_and_noise_has_the_whole_range() -> None:
    clear, reverse = [0.0, 5, 10, 15, 20], [20.0, 15, 10, 5, 0]
    result = across_tasks({"x": orders(scores_of(clear)), "y": orders(scores_of(reverse, seed=1))})
    assert row(result, "x", "y")[["correlation", "low", "high"]].tolist() == [-1, -1, -1]
    equal = across_tasks({"x": orders(scores_of([0.0] * 5)), "y": orders(scores_of([0.0] * 5, seed=1))})
    assert row(equal, "x", "y")[["low", "high"]].tolist() == [-1, 1]


def test_lower_scores_can_be_better() -> None:
    tasks = {"x": orders(scores_of([0, 5, 10]), "lower"), "y": orders(scores_of([1, 2, 9], seed=1), "lower")}
    assert row(across_tasks(tasks), "x", "y")["correlation"] == 1
    pairs = across_tasks(tasks).pairs.set_index(["method", "other"])
    assert pairs.loc[("a", "c"), ["better", "worse", "result"]].tolist() == [2, 0, "better"]


def test_pairs_are_counted_over_tasks_in_either_order() -> None:
    """The second task lists its methods in reverse."""
    first = scores_of([0, 5, 5, 20], methods="abcd")
    second = scores_of([20, 5, 5, 10], methods="dcba", seed=1)
    third = scores_of([0, 5, 5, 5], methods="abcd", seed=2)
    tasks = {
        name: orders(table, baselines=["d"])
        for name, table in zip("xyz", (first, second, third), strict=True)
    }
    pairs = across_tasks(tasks).pairs.set_index(["method", "other"])
    assert pairs.loc[("a", "b")].tolist()[2:] == ["", 3, 1, 2, 0, "y", "x; z", FLIPS]
    assert pairs.loc[("b", "c")].tolist()[2:] == ["", 3, 0, 0, 3, "", "", NEVER]
    assert pairs.loc[("b", "d")].tolist()[2:] == ["d", 3, 0, 2, 1, "", "x; y", "worse"]
    assert (pairs["tasks"] == pairs["better"] + pairs["worse"] + pairs["neither"]).all()


def test_methods_and_metrics_that_a_task_lacks_are_not_compared() -> None:
    one = orders(
        scores_of({"good": [0, 5, 10, 15], "only": [0, 5, 10, 15]}, methods=["a", "b", "c", "random"]),
        baselines=["random"],
    )
    other = orders(scores_of([0, 5, 10, 15], methods=["random", "c", "b", "x"]), baselines=["random"])
    result = across_tasks({"one": one, "other": other})
    assert set(result.agreement["metric"]) == set(result.pairs["metric"]) == {"good"}
    assert result.agreement[["task", "methods"]].to_numpy().tolist() == [["one", 2]]
    assert result.agreement["correlation"].isna().all()
    assert set(zip(result.pairs["method"], result.pairs["other"], strict=True)) == {
        ("b", "c"),
        ("b", "random"),
        ("c", "random"),
    }
    assert across_tasks({"one": one}).agreement.empty
    assert across_tasks({}).pairs.empty


@pytest.mark.parametrize("by", ["wins", "means"])
def test_methods_that_one_task_lacks_do_not_change_the_correlation(by: RankedBy) -> None:
    # "a" beats "b" on more images, but "b" beats the copies of "c" on more images than "a" does.
    share = np.arange(40) / 40
    values = {
        "a": np.where(share < 0.7, 3.0, 0.0),
        "b": np.full(40, 1.0),
        "c": np.where(share < 0.2, 2.0, 0.5),
    }
    few = scores_of([0, 0, 0], methods="abc")
    few["score"] = few.apply(lambda each: values[each["method"]][each["image"]], axis=1)
    copies = [few[few["method"] == "c"].assign(method=f"c{number}") for number in range(8)]
    tasks = {"few": orders(few, by=by), "many": orders(pd.concat([few, *copies]), by=by)}
    if by == "wins":
        ranks = {name: each.order.set_index("method")["win_rate"].rank() for name, each in tasks.items()}
        assert not ranks["few"].equals(ranks["many"].loc[list("abc")].rank())
    found = row(across_tasks(tasks), "few", "many")
    assert (found["methods"], found["correlation"]) == (3, 1)


def test_missing_scores() -> None:
    table, complete = scores_of([0, 5, 10, 15, 20]), orders(scores_of([0, 5, 10, 15, 20], seed=1))
    some = table.assign(score=table["score"].mask((table["method"] == "b") & (table["image"] < 10)))
    assert row(across_tasks({"x": orders(some), "y": complete}), "x", "y")["correlation"] == 1
    lost = across_tasks(
        {"x": orders(table.assign(score=table["score"].mask(table["method"] == "b"))), "y": complete}
    )
    assert row(lost, "x", "y")["methods"] == 4
    assert "b" not in {*lost.pairs["method"], *lost.pairs["other"]}
    none = across_tasks({"x": orders(table.assign(score=np.nan)), "y": complete})
    assert none.agreement["correlation"].isna().all()


def test_a_task_with_one_image_is_left_out_by_name() -> None:
    tasks = {name: orders(scores_of([0, 5, 10], seed=seed)) for seed, name in enumerate("xy")}
    result = across_tasks({**tasks, "single": orders(scores_of([0, 5, 10], images=1))})
    assert set(result.agreement["task"]) == {"x", ALL}
    assert set(result.pairs["tasks"]) == {2}
    assert result.left_out[["metric", "task"]].to_numpy().tolist() == [["good", "single"]]
    assert "images: found 1" in result.left_out["reason"][0]


def test_few_groups_count_as_few_images() -> None:
    table = scores_of([0, 5, 10])
    grouped = order_tables(table, {"good": "higher"}, clusters={GROUPS: np.arange(40) % 3})
    result = across_tasks({"x": orders(table), "grouped": Orders(*grouped)})
    assert result.left_out["task"].tolist() == ["grouped"]
    assert "groups: found 3" in result.left_out["reason"][0]
    assert result.agreement.empty


def test_untested_tasks_have_no_interval() -> None:
    untested = order_tables(scores_of([0, 5, 10]), {"good": "higher"}, retrained=True)
    result = across_tasks({"x": orders(scores_of([0, 5, 10], seed=1)), "retrained": Orders(*untested)})
    assert row(result, "x", "retrained")["correlation"] == 1
    assert result.agreement[["low", "high"]].isna().all(axis=None)
    assert result.pairs.empty


def test_tasks_that_cannot_be_compared_are_refused() -> None:
    x, y = scores_of([0, 5, 10]), scores_of([0, 5, 10], seed=1)
    with pytest.raises(ValueError, match=r"good.*direction.*higher \(x\), lower \(y\)"):
        across_tasks({"x": orders(x), "y": orders(y, "lower")})
    with pytest.raises(ValueError, match=r"ranked_by.*wins \(x\), means \(y\)"):
        across_tasks({"x": orders(x), "y": orders(y, by="means")})
    both = orders(pd.concat([x, y.assign(model="other")]))
    with pytest.raises(ValueError, match=r"x: found net on digits, other on digits"):
        across_tasks({"x": both})
    with pytest.raises(ValueError, match="level"):
        across_tasks({}, level=1.5)


def test_studies_of_the_same_model_and_data_are_one_task() -> None:
    small, large = scores_of({"good": [0, 5, 10], "own": [0, 5, 10]}), scores_of([0, 5, 10, 15])
    tasks = orders_by_task([orders(small), orders(large), orders(scores_of([0, 5, 10], model="other"))])
    assert list(tasks) == [("digits", "net"), ("digits", "other")]
    counts = tasks["digits", "net"].order.groupby("metric")["method"].count()
    assert counts.to_dict() == {"good": 4, "own": 3}
    assert len(tasks["digits", "net"].pairs) == 6 + 3
    assert len(across_tasks({" ".join(task): each for task, each in tasks.items()}).agreement) == 2


def test_intervals_cover_the_true_agreement() -> None:
    """Means of two tasks whose true ρ is 0.5, with noise that leaves some comparisons open."""
    first, second, studies = [0, 1, 2, 3], [1, 0, 3, 2], 60
    truth = spearmanr(first, second).statistic
    covered, widths = 0, []
    for study in range(studies):
        tasks = {
            name: orders(scores_of(means, images=25, methods="abcd", noise=1.5, seed=2 * study + place))
            for place, (name, means) in enumerate({"x": first, "y": second}.items())
        }
        found = row(across_tasks(tasks), "x", "y")
        covered += found["low"] - 1e-9 <= truth <= found["high"] + 1e-9
        widths.append(found["high"] - found["low"])
    assert binomtest(covered, studies, 0.95, alternative="less").pvalue > 0.01
    assert 0.1 < np.mean(widths) < 1.5

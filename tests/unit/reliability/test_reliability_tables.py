"""Tables of reliability, from score tables."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from saliency_assay.reliability import comparison, statistics
from saliency_assay.reliability.comparison import win_rates
from saliency_assay.reliability.order_tables import ORDERED, Rule, order_tables
from saliency_assay.reliability.reliability_tables import (
    RANKINGS,
    consistency_table,
    rankings_table,
    reliability_table,
    variance_table,
)
from saliency_assay.reliability.variance import mean_of

NAN = float("nan")
DIRECTIONS = {"aopc": "higher", "infidelity": "lower", "likeness": "target 0"}
METHODS = ("smooth", "gradcam", "edge")
RESAMPLES = 40


def rows_of(
    scores: Mapping[str, object], *, metric: str = "aopc", seed: int = 0, images: Iterable[int] | None = None
) -> pd.DataFrame:
    """Score table of one metric and seed: the scores ``[N]`` of each method."""
    parts = []
    for method, values in scores.items():
        part = pd.DataFrame({"score": np.asarray(values, dtype=float)})
        part["image"] = np.arange(len(part)) if images is None else list(images)
        names = {"study": "s", "data": "d", "model": "m", "seed": seed, "method": method}
        parts.append(part.assign(**names, metric=metric, variant=f"{metric} 1"))
    return pd.concat(parts, ignore_index=True)


def score_table(
    *, images: int = 20, seeds: Iterable[int] = (0,), metrics: Iterable[str] = ("aopc", "infidelity")
) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    parts = [
        rows_of(
            {method: place + generator.normal(size=images) for place, method in enumerate(METHODS)},
            metric=metric,
            seed=seed,
        )
        for metric in metrics
        for seed in seeds
    ]
    return pd.concat(parts, ignore_index=True)


def scored(table: pd.DataFrame, metric: str, seed: int = 0, methods: Iterable[str] = METHODS) -> np.ndarray:
    chosen = table[(table["metric"] == metric) & (table["seed"] == seed)]
    return chosen.pivot(index="image", columns="method", values="score")[list(methods)].to_numpy()


def order_table(table: pd.DataFrame, *arguments: Any, **options: Any) -> pd.DataFrame:
    """Order of the methods."""
    return order_tables(table, *arguments, **options)[0]


def rank_sets(table: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Rank sets by method, of the order of one metric."""
    return {row.method: (row.rank_low, row.rank_high) for row in table.itertuples()}


# ---- reliability


def test_reliability_is_with_and_without_baselines_for_every_metric_and_seed() -> None:
    table = score_table(seeds=(0, 1))
    table.loc[(table["image"] == 3) & (table["method"] != "edge"), "score"] = np.nan
    rows = reliability_table(table, DIRECTIONS, ("edge", "random"), resamples=RESAMPLES, level=0.9)
    assert rows[["metric", "seed", "baselines", "methods"]].to_numpy().tolist() == [
        [metric, seed, kind, methods]
        for metric in ("aopc", "infidelity")
        for seed in (0, 1)
        for kind, methods in (("with", 3), ("without", 2))
    ]
    assert set(rows["images"]) == set(rows["correlation_images"]) == {19}
    row = rows.iloc[7]
    values = scored(table, "infidelity", 1, METHODS[:2])
    alpha = statistics.alpha(values, resamples=RESAMPLES, level=0.9)
    assert row["alpha"] == alpha.value
    # An image ranks the methods the other way round where lower is better, which changes no agreement.
    assert (row["alpha_low"], row["alpha_high"]) == pytest.approx((alpha.low, alpha.high))
    rho = statistics.mean_correlation(values, level=0.9)
    assert row[["correlation", "correlation_low", "correlation_high"]].to_list() == pytest.approx(
        [rho.value, rho.low, rho.high]
    )


def test_images_of_alpha_and_of_correlations_are_counted_apart() -> None:
    table = score_table(metrics=["aopc"])
    missing = {"edge": range(8), "smooth": range(6, 12)}
    for method, images in missing.items():
        table.loc[(table["method"] == method) & table["image"].isin(images), "score"] = np.nan
    rows = reliability_table(table, DIRECTIONS, ["edge"], resamples=0, level=0.9).set_index("baselines")
    # Images 6 and 7 have a score of gradcam alone; smooth and edge share images 12 to 19.
    assert rows.loc["with", ["images", "correlation_images"]].to_list() == [18, 8]
    assert rows.loc["without", ["images", "correlation_images"]].to_list() == [14, 14]


def test_alpha_of_a_target_compares_the_distances_from_it() -> None:
    signs = np.random.default_rng(0).choice([-1, 1], (3, 30))
    distances = np.array([[0.1], [0.5], [0.9]]) * np.linspace(0.8, 1, 30)
    table = rows_of(dict(zip("abc", signs * distances, strict=True)), metric="likeness")
    for directions, expected in ((DIRECTIONS, 1), ({"likeness": "higher"}, pytest.approx(0, abs=0.1))):
        [row] = reliability_table(table, directions, (), resamples=0, level=0.9).to_dict("records")
        assert row["alpha"] == expected


def test_clusters_widen_the_intervals_of_reliability() -> None:
    """Forty images in ten clusters of four copies hold no more than ten images."""
    generator = np.random.default_rng(0)
    cluster = np.arange(80) // 8
    copies = {method: place + generator.normal(size=10)[cluster[::2]] for place, method in enumerate(METHODS)}
    # Clusters are those of all 80 images of the set, of which the even ones have scores.
    table = rows_of(copies, images=range(0, 80, 2))
    of_clusters = {"cut-outs": cluster}
    options = {"resamples": 2000, "level": 0.9}
    [alone] = reliability_table(table, DIRECTIONS, (), **options).to_dict("records")
    [clustered] = reliability_table(table, DIRECTIONS, (), clusters=of_clusters, **options).to_dict("records")
    for name in ("alpha", "correlation"):
        assert clustered[name] == alone[name]
        widths = [row[f"{name}_high"] - row[f"{name}_low"] for row in (alone, clustered)]
        assert widths[1] > 1.4 * widths[0]
    few = {"cut-outs": cluster // 4}
    [few_clusters] = reliability_table(table, DIRECTIONS, (), clusters=few, **options).to_dict("records")
    assert few_clusters["alpha"] == alone["alpha"]
    assert np.isnan([few_clusters["alpha_low"], few_clusters["alpha_high"]]).all()


def test_scores_of_whole_sets_and_studies_without_baselines() -> None:
    table = score_table(metrics=["aopc"])
    whole = table[table["image"] == 0].assign(image=-1, metric="retrained")
    rows = reliability_table(
        pd.concat([table, whole]), DIRECTIONS, ("random",), resamples=RESAMPLES, level=0.9
    )
    assert list(rows["baselines"]) == ["none"]
    for nothing in (whole, whole.head(0)):
        for table in (
            reliability_table(nothing, {}, (), resamples=RESAMPLES, level=0.9),
            order_table(nothing, {}),
            consistency_table(nothing, {}),
            rankings_table(nothing, {}),
            variance_table(nothing),
        ):
            assert table.empty
            assert "metric" in table


def test_printed_alpha_stands_in_the_rows_of_its_baselines() -> None:
    table = score_table(metrics=["aopc"], seeds=(0, 1))
    more = table.assign(variant="aopc 2")
    both = pd.concat([table, more], ignore_index=True)
    printed = {"aopc aopc 2": {"with": 0.3, "without": 0.1}, "aopc aopc 1": {"without": 0.2}}
    options = {"resamples": RESAMPLES, "level": 0.9}
    of_edge = reliability_table(both, DIRECTIONS, ["edge"], **options, printed=printed)
    rows = of_edge[["variant", "seed", "baselines", "printed"]].dropna().itertuples(index=False, name=None)
    assert set(rows) == {
        (variant, seed, kind, alpha)
        for seed in (0, 1)
        for variant, kind, alpha in (
            ("aopc 1", "without", 0.2),
            ("aopc 2", "with", 0.3),
            ("aopc 2", "without", 0.1),
        )
    }
    of_none = reliability_table(both, DIRECTIONS, (), **options, printed=printed)
    assert list(of_none["printed"]) == [0.2, 0.2, 0.1, 0.1]
    assert reliability_table(both, DIRECTIONS, (), **options)["printed"].isna().all()
    with pytest.raises(ValueError, match=r"^printed_alpha: aopc has 2 scores, "):
        reliability_table(both, DIRECTIONS, (), **options, printed={"aopc": {"with": 0.3}})


# ---- consistency


def test_consistency_has_every_pair_once_and_knows_which_way_is_better() -> None:
    table = score_table()
    table.loc[(table["image"] < 4) & (table["metric"] == "aopc"), "score"] = np.nan
    rows = consistency_table(table, DIRECTIONS)
    assert list(rows["method"]) == list(METHODS)
    for place, row in enumerate(rows.itertuples()):
        pair = [scored(table, metric)[4:, place] for metric in ("aopc", "infidelity")]
        assert row.correlation == pytest.approx(spearmanr(*pair).statistic)
        assert row.agreement == pytest.approx(-row.correlation)
        assert (row.metric, row.other_metric, row.images) == ("aopc", "infidelity", 16)


def test_agreement_with_a_target_is_of_the_distance_from_it() -> None:
    scores = np.arange(-10, 11)
    table = pd.concat(
        [rows_of({"a": scores}, metric="likeness"), rows_of({"a": abs(scores)}, metric="infidelity")]
    )
    [row] = consistency_table(table, DIRECTIONS).to_dict("records")
    assert row["correlation"] == pytest.approx(0, abs=1e-12)
    assert row["agreement"] == pytest.approx(1)


def test_printed_correlation_is_of_a_pair_whichever_is_named_first() -> None:
    table = score_table()
    for one, other in (("aopc", "infidelity"), ("infidelity", "aopc")):
        rows = consistency_table(table, DIRECTIONS, {one: {other: {"gradcam": -0.3, "edge": 0}}})
        np.testing.assert_array_equal(rows["printed"], [np.nan, -0.3, 0])
    assert consistency_table(table, DIRECTIONS)["printed"].isna().all()
    full = " ".join(table.loc[table["metric"] == "infidelity", ["metric", "variant"]].iloc[0])
    for names in (("infidelity", full), (full, "infidelity")):  # the full name has precedence
        printed = {"aopc": {name: {"edge": 1 if name == full else 2} for name in names}}
        assert consistency_table(table, DIRECTIONS, printed)["printed"].max() == 1
    wrong = {
        "same": ({"aopc": {"aopc aopc 1": {"edge": 1}}}, "found 'aopc aopc 1', the same score"),
        "unknown": ({"aopc": {"acop": {"edge": 1}}}, "unknown score 'acop'; did you mean 'aopc'"),
    }
    for printed, message in wrong.values():
        with pytest.raises(ValueError, match=rf"^printed_correlation\.aopc: {message}"):
            consistency_table(table, DIRECTIONS, printed)


# ---- order


def test_order_has_intervals_and_ranks_the_better_way_round() -> None:
    table = score_table(images=60)
    rows = order_table(table, DIRECTIONS, ["edge", "random"], rule=Rule(level=0.9))
    assert list(rows.columns) == ORDERED
    assert (rows["direction"] == rows["metric"].map(DIRECTIONS)).all()
    assert (rows["baseline"] == (rows["method"] == "edge")).all()
    assert (rows[["seeds", "over", "images", "undefined"]] == [1, "images", 60, 0]).all(axis=None)
    for metric, order in (("aopc", METHODS[::-1]), ("infidelity", METHODS)):
        of_metric = rows[rows["metric"] == metric]
        assert list(of_metric["method"]) == list(METHODS)
        assert rank_sets(of_metric) == {method: (place, place) for place, method in enumerate(order, 1)}
        scores = scored(table, metric)
        expected = [(column.mean(), *mean_of(column).interval(0.9)) for column in scores.T]
        np.testing.assert_allclose(of_metric[["mean", "low", "high"]], expected, rtol=1e-12)
        rates = win_rates(scores if metric == "aopc" else -scores).mean(0)
        np.testing.assert_allclose(of_metric["win_rate"], rates)


def test_an_interval_over_clusters_of_equal_images_is_that_of_as_many_images() -> None:
    """The clusters are those of all images of the set, by their numbers."""
    half = np.random.default_rng(0).normal(size=(2, 8))
    values = np.concatenate([half, -half], axis=1)  # not skewed
    cluster = np.arange(128) // 8
    table = rows_of(dict(zip("ab", values[:, cluster[::2]], strict=True)), images=range(0, 128, 2))
    rows = order_table(table, DIRECTIONS, clusters={"cut-outs": cluster})
    of_clusters = order_table(rows_of(dict(zip("ab", values, strict=True))), DIRECTIONS)
    columns = ["mean", "low", "high", "rank_low", "rank_high"]
    # The degrees of freedom are Satterthwaite's, a little less than the number of clusters less 1.
    np.testing.assert_allclose(rows[columns], of_clusters[columns], rtol=0.01, atol=1e-12)
    assert set(rows["over"]) == {"cut-outs"}
    assert set(rows["images"]) == {64}


def test_training_noise_is_no_difference_of_methods_where_there_are_seeds() -> None:
    """Each of three trainings moves all scores of a method by a constant."""
    generator = np.random.default_rng(0)
    for effects, ranks in (((0, 0, 0), [(1, 3)] * 3), ((0, 20, 40), [(3, 3), (2, 2), (1, 1)])):
        trainings = [
            {
                name: effect + generator.normal() + generator.normal(size=200)
                for name, effect in zip("abc", effects, strict=True)
            }
            for _ in range(3)
        ]
        table = pd.concat([rows_of(scores, seed=seed) for seed, scores in enumerate(trainings)])
        rows = order_table(table, DIRECTIONS)
        assert (rows[["seeds", "over", "images"]] == [3, "images × seeds", 200]).all(axis=None)
        np.testing.assert_allclose(rows["mean"], table.groupby("method")["score"].mean())
        assert rank_sets(rows) == dict(zip("abc", ranks, strict=True))
    alone = order_table(table[table["seed"] == 0], DIRECTIONS)
    assert (alone[["seeds", "over"]] == [1, "images"]).all(axis=None)


def test_a_target_ranks_by_the_distance_from_it() -> None:
    """The signed scores of one have a mean of 0, and none of them is near 0."""
    generator = np.random.default_rng(0)
    signed, near = np.tile([1.0, -1.0], 20), 0.1 + 0.05 * generator.normal(size=40)
    rows = order_table(rows_of({"signed": signed, "near": near}, metric="likeness"), DIRECTIONS)
    assert rank_sets(rows) == {"signed": (2, 2), "near": (1, 1)}
    of_method = rows.set_index("method")
    assert of_method["mean"].to_dict() == pytest.approx({"signed": 0, "near": near.mean()})
    assert of_method["best_share"].to_dict() == {"signed": 0, "near": 1}
    assert set(rows["direction"]) == {"target 0"}
    other = order_table(rows_of({"one": [1, 1.1] * 9, "far": [3, 2.9] * 9}), {"aopc": "target 1"})
    assert rank_sets(other) == {"one": (1, 1), "far": (2, 2)}


def test_the_lead_is_the_paired_difference_from_the_best_other_method() -> None:
    """Lower is better. ``lead_p`` is the largest p-value of the comparisons with the others."""
    generator = np.random.default_rng(0)
    scores = {name: 0.4 * place + generator.normal(size=50) for place, name in enumerate("abc")}
    table = rows_of(scores, metric="infidelity")
    rows = order_table(table, DIRECTIONS, rule=Rule("means")).set_index("method")
    expected = {name: scores["b" if name == "a" else "a"] - scores[name] for name in "abc"}
    assert rows["lead"].to_dict() == pytest.approx({name: lead.mean() for name, lead in expected.items()})
    intervals = [mean_of(expected[name]).interval() for name in "abc"]
    np.testing.assert_allclose(rows[["lead_low", "lead_high"]], intervals)
    for by in ("wins", "means"):
        p = comparison.rank_sets(-np.stack(list(scores.values()), axis=1), by=by).p
        order = order_table(table, DIRECTIONS, rule=Rule(by))
        np.testing.assert_allclose(order["lead_p"], np.nanmax(p, axis=1))
        assert set(order["ranked_by"]) == {by}
    assert rows["lead_over"].to_dict() == {"a": "b", "b": "a", "c": "a"}
    alone = order_table(rows_of({"a": [1, 2, NAN, NAN], "b": [NAN, NAN, 1, 3]}), DIRECTIONS)
    assert alone[["lead", "lead_p"]].isna().all(axis=None)  # on different images


def test_wins_are_shares_of_the_images_that_a_method_has_in_common_with_another() -> None:
    """Lower is better; the methods are equal on the fifth image, and a is alone on the last two."""
    a = [1, 1, 1, 1, 2, 3, 3, 3, 3, 3, 0, 0]
    b = [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, NAN, NAN]
    table = rows_of({"a": a, "b": b, "none": [NAN] * 12}, metric="infidelity")
    rows = order_table(table, DIRECTIONS).set_index("method")
    shares = {"a": 0.45, "b": 0.55, "none": NAN}  # the tie is shared
    assert rows["best_share"].to_dict() == pytest.approx(shares, nan_ok=True)
    assert rows["images"].to_dict() == {"a": 12, "b": 10, "none": 0}
    assert rows["undefined"].to_dict() == pytest.approx({"a": 0, "b": 1 / 6, "none": 1})
    assert rows.loc["none", ["mean", "low", "high", "rank_low", "rank_high"]].isna().all()
    assert rows.loc["b", "rank_high"] == 2


def test_undefined_is_a_share_of_the_scores_of_all_seeds() -> None:
    table = score_table(seeds=(0, 1), metrics=["aopc"])
    table.loc[(table["seed"] == 1) & (table["method"] == "edge") & (table["image"] < 5), "score"] = np.nan
    rows = order_table(table, DIRECTIONS).set_index("method")
    assert rows["undefined"].to_dict() == {"smooth": 0, "gradcam": 0, "edge": 5 / 40}
    assert set(rows["images"]) == {20}


def test_a_method_is_above_the_baselines_if_it_is_better_than_each_of_them() -> None:
    noise = np.random.default_rng(0).normal(size=(6, 40)) / 10
    scores = dict(zip(("a", "b", "silent", "random", "edge", "constant"), noise, strict=True))
    for method, level in {"a": 3, "b": 1, "random": 0, "edge": 2}.items():
        scores[method] += level
    scores["silent"] = scores["constant"] = np.full(40, NAN)
    baselines = ["random", "edge", "constant"]

    def above(*methods: str) -> dict[str, float]:
        rows = order_table(rows_of({method: scores[method] for method in methods}), DIRECTIONS, baselines)
        return rows.set_index("method")["above_baselines"].to_dict()

    expected = {"a": 1, "b": 0, "silent": NAN, **dict.fromkeys(baselines, NAN)}
    assert above(*scores) == pytest.approx(expected, nan_ok=True)
    assert above("b", "random") == pytest.approx({"b": 1, "random": NAN}, nan_ok=True)
    for alone in (("a", "b"), ("a", "b", "constant")):
        assert all(np.isnan(value) for value in above(*alone).values())


def test_one_method_has_a_mean_and_no_rank() -> None:
    [row] = order_table(rows_of({"a": [1, 2, 3, 4]}), DIRECTIONS).to_dict("records")
    assert (row["mean"], row["images"]) == (2.5, 4)
    assert row["low"] < 2.5 < row["high"]
    assert np.isnan([row["rank_low"], row["rank_high"], row["best_share"]]).all()


# ---- rankings


def opposed(images: int = 30) -> pd.DataFrame:
    """Two metrics under which images differ alike, and that order four methods in opposite ways."""
    difficulty = 100 * np.random.default_rng(0).normal(size=images)
    levels = {"a": 0.0, "b": 1.0, "c": 2.0, "random": 3.0}
    first = rows_of({method: difficulty + level for method, level in levels.items()}, metric="aopc")
    second = rows_of({method: level - difficulty for method, level in levels.items()}, metric="infidelity")
    return pd.concat([first, second], ignore_index=True)


def test_metrics_of_opposite_conclusions_disagree_whatever_the_difficulty_of_images() -> None:
    table = opposed()
    assert (consistency_table(table, DIRECTIONS)["agreement"] > 0.999).all()
    rows = rankings_table(table, DIRECTIONS, ["random"])
    assert list(rows.columns) == RANKINGS
    [row] = rows.to_dict("records")
    assert row == {
        **{"data": "d", "model": "m", "metric": "aopc", "variant": "aopc 1"},
        **{"other_metric": "infidelity", "other_variant": "infidelity 1"},
        **{"images": 30, "methods": 3, "correlation": pytest.approx(-1)},
    }


def test_rankings_leave_baselines_out() -> None:
    """The metrics agree on the baseline alone, which both put last."""
    table = opposed()
    table.loc[(table["method"] == "random") & (table["metric"] == "aopc"), "score"] -= 50
    table.loc[(table["method"] == "random") & (table["metric"] == "infidelity"), "score"] += 50
    [without] = rankings_table(table, DIRECTIONS, ["random"])["correlation"]
    [with_it] = rankings_table(table, DIRECTIONS)["correlation"]
    # Ranks 4, 3, 2, 1 against 2, 3, 4, 1.
    assert (without, with_it) == (pytest.approx(-1), pytest.approx(0.2))


def test_rankings_count_the_images_on_which_both_metrics_rank_three_methods() -> None:
    table = opposed()
    missing = (table["metric"] == "aopc") & (table["method"] == "a") & (table["image"] < 12)
    table.loc[missing, "score"] = np.nan
    tied = (table["metric"] == "infidelity") & (table["image"] == 20)
    table.loc[tied, "score"] = 1.0
    later = table[(table["metric"] == "aopc") | (table["image"] < 25)].copy()
    [row] = rankings_table(later, DIRECTIONS, ["random"]).to_dict("records")
    assert (row["images"], row["methods"], row["correlation"]) == (12, 3, pytest.approx(-1))
    later.loc[(later["metric"] == "infidelity") & (later["method"] == "b"), "score"] = np.nan
    [of_three] = rankings_table(later, DIRECTIONS).to_dict("records")
    assert (of_three["images"], of_three["methods"], of_three["correlation"]) == (12, 3, pytest.approx(-1))
    [of_two] = rankings_table(table, DIRECTIONS, ["random", "c"]).to_dict("records")
    assert (of_two["images"], of_two["methods"]) == (0, 2)
    assert np.isnan(of_two["correlation"])


def test_rankings_are_of_means_over_seeds_and_of_every_two_metrics_of_a_model() -> None:
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(3, 2, 4, 10))
    metrics = ("aopc", "likeness", "infidelity")
    parts = [
        rows_of(dict(zip("abcd", scores[i, seed], strict=True)), metric=metric, seed=seed)
        for i, metric in enumerate(metrics)
        for seed in (0, 1)
    ]
    other_model = parts[0].assign(model="other")
    rows = rankings_table(pd.concat([*parts, other_model]), DIRECTIONS)
    better = np.stack([scores[0], -abs(scores[1]), -scores[2]]).mean(1)
    pairs = [(0, 1), (0, 2), (1, 2)]
    assert list(zip(rows["metric"], rows["other_metric"], strict=True)) == [
        (metrics[one], metrics[other]) for one, other in pairs
    ]
    assert set(rows["model"]) == {"m"}
    expected = [
        np.mean([spearmanr(better[one, :, i], better[other, :, i]).statistic for i in range(10)])
        for one, other in pairs
    ]
    np.testing.assert_allclose(rows["correlation"], expected)


# ---- variance


def test_variance_is_of_all_seeds_that_methods_share() -> None:
    table = score_table(seeds=(0, 1), metrics=["aopc"])
    table = table[~((table["seed"] == 1) & (table["method"] == "edge") & (table["image"] == 5))]
    row = variance_table(table).iloc[0]
    assert row["images"] == 19
    cube = np.stack([np.delete(scored(table, "aopc", seed), 5, axis=0) for seed in (0, 1)], axis=-1)
    expected = statistics.variance_shares(cube)
    assert row[list(expected)].to_dict() == pytest.approx(expected)
    # A method without any score under one seed is left out, and not all images.
    of_edge = (table["seed"] == 1) & (table["method"] == "edge")
    without = variance_table(table.assign(score=table["score"].mask(of_edge))).iloc[0]
    pd.testing.assert_series_equal(without, variance_table(table[table["method"] != "edge"]).iloc[0])
    single = variance_table(score_table(metrics=["aopc"]))
    assert "seed" not in single

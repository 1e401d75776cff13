"""Families: the split of the images, the selected members, ranks on the others, and orders under a metric's values."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from jobs import run_script
from scipy import stats

from saliency_assay.pipeline.studies import RATED_TABLES, SWEEP_TABLES
from saliency_assay.registry.sweeps import Family, values_text
from saliency_assay.reliability.metric_sweeps import metric_sweep_table
from saliency_assay.reliability.order_tables import Rule, order_tables
from saliency_assay.reliability.orders import concordance_range
from saliency_assay.reliability.rated_scores import RatedTable
from saliency_assay.reliability.sweep_figures import rank_sweep_figure, sweep_figure
from saliency_assay.reliability.sweeps import SelectedScores, Selection, select, split, sweep_table
from saliency_assay.report.pages.words import sweep_words
from saliency_assay.storage import WHOLE_SET, score_tables, text, zarr_store
from saliency_assay.studies import STUDY_KINDS

HIGHER = {"s": "higher"}
BY_WINS = Rule()
VALUES = (0.1, 0.2, 0.4)
FAMILY = Family("f", "F", {f"f_x_{value}": {"x": value} for value in VALUES})


def table_of(scores: Mapping[str, np.ndarray], variant: str = "s", seed: int = 0) -> pd.DataFrame:
    parts = [
        pd.DataFrame({"score": values, "image": np.arange(len(values)), "method": method})
        for method, values in scores.items()
    ]
    names = {"study": "t", "data": "d", "model": "m", "seed": seed, "metric": "s", "variant": variant}
    return pd.concat(parts, ignore_index=True).assign(**names)


def ranked(table: pd.DataFrame, rule: Rule = BY_WINS) -> tuple[Selection, pd.DataFrame, pd.DataFrame]:
    selection = select(table, HIGHER, [FAMILY], by=rule.by)
    return selection, *selection.annotated(*order_tables(selection.apply(table), HIGHER, rule=rule))


def noise(members: int, images: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(members, images))


def members(values: np.ndarray) -> dict[str, np.ndarray]:
    return dict(zip(FAMILY.members, values, strict=True))


def test_halves_are_disjoint_fixed_and_of_equal_size() -> None:
    images = np.arange(100, 131)
    first = split(images)
    assert first.sum() == 15
    assert np.array_equal(first, split(images))
    assert not np.array_equal(first, split(images, seed=1))


@pytest.mark.parametrize("name", ["groups", "cut-outs"])
def test_images_of_a_group_are_in_one_half(name: str) -> None:
    group = np.repeat(np.arange(10), [1, 2, 3, 4, 5, 1, 2, 3, 4, 5])
    chosen = split(np.arange(len(group)), {name: group})
    assert {len(set(chosen[group == each])) for each in range(10)} == {1}
    assert len(set(group[chosen])) == 5


@pytest.mark.parametrize("clusters", [{}, {"groups": np.array([0, 0, 1, 1, 2, 2, 2])}])
def test_too_few_images_are_refused_with_the_minimum(clusters: dict[str, np.ndarray]) -> None:
    count = 7 if clusters else 3
    with pytest.raises(ValueError, match=r"sweep: found 3 .*at least 4"):
        select(table_of(members(noise(3, count))), HIGHER, [FAMILY], clusters=clusters)


@pytest.mark.parametrize("by", ["wins", "means"])
def test_the_best_member_on_one_half_is_reported_on_the_other(by: str) -> None:
    values = noise(3, 41)
    values[1] += 0.1
    scores = {**members(values), "other": noise(1, 41, seed=1)[0]}
    selection, order, pairs = ranked(table_of(scores), Rule(by=by))  # type: ignore[arg-type]
    chosen = np.random.default_rng(0).permutation(41)[:20]
    held_out = np.setdiff1d(np.arange(41), chosen)
    if by == "wins":
        criterion = [
            np.mean(
                [(values[one, chosen] > values[other, chosen]).mean() for other in range(3) if other != one]
            )
            for one in range(3)
        ]
    else:
        criterion = values[:, chosen].mean(1) - values[:, chosen].mean()
    best = int(np.argmax(criterion))
    assert list(order["method"]) == ["f", "other"]
    assert list(order["selected"]) == [f"f_x_{VALUES[best]}", ""]
    assert list(order["selection_images"]) == [20, 20]
    assert list(order["images"]) == list(order["all_images"]) == [21, 21]
    assert order["mean"][0] == pytest.approx(values[best, held_out].mean())
    assert order["mean"][1] == pytest.approx(scores["other"][held_out].mean())
    assert pairs[["selected", "other_selected"]].to_numpy().tolist() == [[f"f_x_{VALUES[best]}", ""]]
    table = sweep_table(table_of(scores), HIGHER, selection, ranges={}, rule=Rule(by=by))  # type: ignore[arg-type]
    assert table["criterion_value"].to_numpy() == pytest.approx(np.array(criterion))
    assert table["mean"].to_numpy() == pytest.approx(values.mean(1))
    assert table["held_out_mean"].to_numpy() == pytest.approx(values[:, held_out].mean(1))
    assert [json.loads(text)["x"] for text in table["values"]] == list(VALUES)
    assert table["selected"].tolist() == [place == best for place in range(3)]
    assert not {"rank_low", "rank_high"} & set(table)


@pytest.mark.parametrize(("direction", "best"), [("higher", 2), ("lower", 0), ("target 1", 1)])
def test_the_best_member_depends_on_the_direction(direction: str, best: int) -> None:
    values = np.array([[0.0], [1.0], [2.0]]) + 0.1 * noise(3, 20)
    selection = select(table_of(members(values)), {"s": direction}, [FAMILY])
    assert list(selection.members.values()) == [f"f_x_{VALUES[best]}"]


def test_the_first_of_equal_members_is_selected() -> None:
    selection = select(table_of(members(np.zeros((3, 10)))), HIGHER, [FAMILY])
    assert list(selection.members.values()) == ["f_x_0.1"]


def test_a_member_without_scores_is_not_selected() -> None:
    values = noise(3, 20)
    values[2] = np.nan
    values[1] += 5
    table = table_of(members(values))
    for scores in (table, table[table["method"] != "f_x_0.4"]):
        assert list(select(scores, HIGHER, [FAMILY]).members.values()) == ["f_x_0.2"]


def test_selection_on_the_same_images_is_optimistic_and_ours_is_not() -> None:
    """Twelve members of equal quality, with the mean 0: the best of them on the images that report it is above."""
    family = Family("f", "F", {f"f_x_{value}": {"x": value} for value in range(12)})
    same, separate = [], []
    for seed in range(60):
        values = noise(12, 40, seed)
        table = table_of(dict(zip(family.members, values, strict=True)))
        selection = select(table, HIGHER, [family], by="means")
        order, _ = order_tables(selection.apply(table), HIGHER)
        same.append(values.mean(1).max())
        separate.append(order["mean"].item())
    assert stats.ttest_1samp(same, 0).statistic > 10
    assert abs(stats.ttest_1samp(separate, 0).statistic) < 2.5


def test_members_do_not_share_the_ranks_of_a_study() -> None:
    """Three nearly equal members are better than another method, which has rank 2, not rank 4."""
    quality = noise(1, 80)[0]
    values = quality + 1 + 1e-3 * noise(3, 80, seed=1)
    table = table_of({**members(values), "other": quality + 0.3 * noise(1, 80, seed=2)[0]})
    _, order, _ = ranked(table)
    assert order[["method", "rank_low", "rank_high"]].to_numpy().tolist() == [["f", 1, 1], ["other", 2, 2]]
    together, _ = order_tables(table, HIGHER)
    assert together.set_index("method").loc["other", "rank_low"] == 4


def test_each_metric_selects_its_own_member() -> None:
    values = np.array([[0.0], [1.0], [2.0]]) + 0.1 * noise(3, 20)
    table = pd.concat([table_of(members(values), "one"), table_of(members(-values), "two")])
    _, order, _ = ranked(table)
    assert dict(zip(order["variant"], order["selected"], strict=True)) == {"one": "f_x_0.4", "two": "f_x_0.1"}


def test_scores_of_whole_sets_and_studies_without_families_stay() -> None:
    table = table_of(members(noise(3, 8)))
    whole = table.assign(image=np.where(table["image"] == 0, WHOLE_SET, table["image"]))
    selected = select(whole, HIGHER, [FAMILY]).apply(whole)
    assert set(selected.loc[selected["image"] == WHOLE_SET, "method"]) == set(FAMILY.members)
    assert set(selected.loc[selected["image"] != WHOLE_SET, "method"]) == {"f"}
    assert select(table, HIGHER, []).apply(table) is table
    chunks = SelectedScores(RatedTable(whole), select(whole, HIGHER, [FAMILY])).chunks("metric", "variant")
    pd.testing.assert_frame_equal(pd.concat(chunks), selected)


def test_categorical_tables_and_seeds_are_read() -> None:
    """As the workflow passes them; an image has the same half under each seed."""
    parts = [table_of(members(noise(3, 20, seed)), seed=seed) for seed in range(2)]
    table = pd.concat(parts, ignore_index=True)
    text = ["study", "data", "model", "method", "metric", "variant"]
    compact = table.astype(dict.fromkeys(text, "category"))
    selected = select(compact, HIGHER, [FAMILY]).apply(compact)
    assert selected["image"].nunique() == 10
    assert len(selected) == 20


def test_a_family_of_baselines_is_a_baseline() -> None:
    selection = select(table_of(members(noise(3, 8))), HIGHER, [FAMILY])
    assert selection.baselines([*FAMILY.members, "random"])[-1] == "f"
    assert selection.baselines(["random"]) == ["random"]


def test_pages_say_on_how_many_images_ranks_rest() -> None:
    _, order, _ = ranked(table_of({**members(noise(3, 31)), "other": noise(1, 31)[0]}))
    (sentence,) = sweep_words(order.replace({"method": {"f": "Family"}}))
    assert "16 images" in sentence
    assert "15" in sentence
    assert "Family" in sentence
    plain, _ = order_tables(table_of({"other": noise(1, 31)[0]}), HIGHER)
    assert sweep_words(plain) == []


# ---- families of metrics

METRIC = Family("k", "K", {f"k_x_{value}": {"x": value} for value in VALUES})
METHODS = ("a", "b", "c", "d")


def orders_of(qualities: list[list[float]], images: int = 60) -> pd.DataFrame:
    return pd.concat(
        table_of(dict(zip(METHODS, np.array(quality)[:, None] + noise(4, images, seed), strict=True)), member)
        for seed, (member, quality) in enumerate(zip(METRIC.members, qualities, strict=True))
    )


@pytest.mark.parametrize("by", ["wins", "means"])
def test_orders_under_two_values_are_compared(by: str) -> None:
    scores = orders_of([[0, 2, 4, 6], [0, 2, 4, 6], [6, 2, 4, 0]])
    table = metric_sweep_table(scores, HIGHER, [METRIC], rule=Rule(by=by))  # type: ignore[arg-type]
    assert table[["member", "other"]].to_numpy().tolist() == [
        ["k_x_0.1", "k_x_0.2"], ["k_x_0.1", "k_x_0.4"], ["k_x_0.2", "k_x_0.4"]
    ]  # fmt: skip
    same, changed = table.iloc[0], table.iloc[1]
    expected = stats.spearmanr([0, 1, 2, 3], [3, 1, 2, 0]), stats.kendalltau([0, 1, 2, 3], [3, 1, 2, 0])
    assert (same["rho"], same["tau"], same["flips"], same["flipped"]) == (1, 1, 0, "")
    assert (changed["rho"], changed["tau"]) == pytest.approx([each.statistic for each in expected])
    assert (changed["distinguishable"], changed["flips"]) == (6, 5)
    assert set(changed["flipped"].split("; ")) == {"b > a", "c > a", "d > a", "d > b", "d > c"}
    # All comparisons are significant, so that both orders are certain.
    for name in ("rho", "tau"):
        assert changed[[f"{name}_low", f"{name}_high"]].tolist() == pytest.approx([changed[name]] * 2)


def test_scores_of_custom_metrics_are_compared() -> None:
    """Such a score has the name of its entry, so that it differs between members."""
    scores = orders_of([[0, 2, 4, 6]] * 3)
    scores = scores.assign(metric=scores["variant"])
    directions = dict.fromkeys(METRIC.members, "higher")
    table = metric_sweep_table(scores, directions, [METRIC], rule=BY_WINS)
    assert table["metric"].tolist() == ["k"] * 3
    assert table["rho"].tolist() == [1] * 3
    order, _ = order_tables(scores, directions)
    (axes,) = rank_sweep_figure(order, table, METRIC).axes
    assert len(axes.get_xticks()) == 3
    plt.close("all")


def test_uncertain_orders_have_wide_intervals() -> None:
    row = metric_sweep_table(orders_of([[0, 0, 0, 0]] * 3, images=20), HIGHER, [METRIC], rule=BY_WINS).iloc[0]
    assert (row["rho_low"], row["rho_high"], row["tau_low"], row["tau_high"]) == (-1, 1, -1, 1)
    assert (row["distinguishable"], row["flips"]) == (0, 0)


def test_intervals_contain_the_agreement_of_the_true_orders() -> None:
    truth, other = [0.0, 0.3, 0.6, 0.9], [0.6, 0.3, 0.0, 0.9]
    rho, tau = stats.spearmanr(truth, other).statistic, stats.kendalltau(truth, other).statistic
    covered = []
    for seed in range(25):
        values = [
            np.array(quality)[:, None] + noise(4, 60, 100 * seed + place)
            for place, quality in enumerate((truth, other))
        ]
        scores = pd.concat(
            table_of(dict(zip(METHODS, of_member, strict=True)), member)
            for member, of_member in zip(METRIC.members, values, strict=False)
        )
        (row,) = metric_sweep_table(scores, HIGHER, [METRIC], rule=BY_WINS).to_dict("records")
        covered.append(row["rho_low"] <= rho <= row["rho_high"] and row["tau_low"] <= tau <= row["tau_high"])
    assert sum(covered) >= 23


def test_few_images_or_methods_have_no_interval() -> None:
    few = metric_sweep_table(orders_of([[0, 2, 4, 6]] * 3, images=4), HIGHER, [METRIC], rule=BY_WINS)
    assert few["rho"].notna().all()
    assert few[["rho_low", "tau_high"]].isna().all(axis=None)
    scores = orders_of([[0, 2, 4, 6]] * 3)
    two = metric_sweep_table(scores[scores["method"].isin(["a", "b"])], HIGHER, [METRIC], rule=BY_WINS)
    assert two["methods"].eq(2).all()
    assert two[["rho", "tau"]].isna().all(axis=None)


def test_bounds_of_kendalls_tau_follow_from_certain_pairs() -> None:
    none, complete = np.zeros((3, 3), dtype=bool), ~np.tri(3, dtype=bool)
    assert concordance_range(none, complete) == (-1, 1)
    assert concordance_range(complete, complete) == (1, 1)
    assert concordance_range(complete, complete.T) == (-1, -1)
    one = none.copy()
    one[0, 1] = True
    assert concordance_range(one, complete) == pytest.approx((-1 / 3, 1))


def test_figures_show_each_value_and_mark_the_selected_one() -> None:
    values = np.array([[0.0], [1.0], [2.0]]) + 0.1 * noise(3, 20)
    table = table_of(members(values))
    selection = select(table, HIGHER, [FAMILY])
    sweeps = sweep_table(table, HIGHER, selection, ranges={}, rule=BY_WINS)
    (axes,) = sweep_figure(sweeps, FAMILY).axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.1", "0.2", "0.4"]
    ring = next(line for line in axes.lines if line.get_markersize() > 10).get_xydata()
    assert np.asarray(ring).tolist() == [[0.4, pytest.approx(values[2].mean())]]
    scores = orders_of([[0, 2, 4, 6], [0, 2, 4, 6], [6, 2, 4, 0]])
    order, _ = order_tables(scores, HIGHER)
    figure = rank_sweep_figure(order, metric_sweep_table(scores, HIGHER, [METRIC], rule=BY_WINS), METRIC)
    lines = {line.get_label(): np.asarray(line.get_ydata()).tolist() for line in figure.axes[0].lines}
    assert (lines["a"], lines["d"]) == ([4, 4, 1], [1, 1, 4])
    assert "5 of 6" in figure.axes[0].get_title()
    plt.close("all")


def test_the_jobs_write_all_tables_and_figures(tmp_path: Path) -> None:
    """With groups of images: the halves have no group in common, and all tables count groups."""
    names = [*FAMILY.members, "other", "third"]
    parts = [
        table_of(dict(zip(names, np.arange(5)[:, None] + noise(5, 40, seed), strict=True)), member)
        for seed, member in enumerate(METRIC.members)
    ]
    group = [f"patient {place // 2}" for place in range(40)]
    table = pd.concat(parts).assign(group=lambda rows: rows["image"].map(dict(enumerate(group))))
    score_tables.write(tmp_path / "scores.parquet", table)
    arrays = {"label_class": np.arange(40) % 2, "group": text.encode(group)}
    zarr_store.write(tmp_path / "data.zarr.zip", [arrays], kind="data", attributes={})
    settings = {"rated_scores": STUDY_KINDS["fidelity"].rated_scores, "data": "d", "models": ["m"]}
    settings |= {"directions": HIGHER, "ranges": {"s": [None, None]}, "retrained": False}
    settings |= {"rule": {"by": "wins", "margin": None, "margin_unit": "sd"}}
    families = {"methods": [asdict(FAMILY)], "metrics": [asdict(METRIC)]}
    output = {name: tmp_path / f"{name}.csv" for name in (*RATED_TABLES, *SWEEP_TABLES)}
    files = {"scores": [tmp_path / "scores.parquet"], "data": tmp_path / "data.zarr.zip"}
    printed = {"printed_alpha": {}, "printed_correlation": {}, "metrics": []}
    reliability = {
        "variants": "variants",
        "label": "class",
        "baselines": [],
        "controls": {},
        "resamples": 100,
        "level": 0.9,
    }
    more = {**settings, **printed, **reliability, "families": families["methods"]}
    run_script("tabulate_reliability", tmp_path, more, files, {name: output[name] for name in RATED_TABLES})
    sweeps = {name: output[name] for name in SWEEP_TABLES}
    run_script("tabulate_sweeps", tmp_path, {**settings, "families": families}, files, sweeps)
    order = pd.read_csv(output["order"])
    assert set(order["method"]) == {"f", "other", "third"}
    assert set(order["groups"]) == {10}
    assert set(pd.read_csv(output["sweeps"])["groups"]) == {20}
    assert set(pd.read_csv(output["metric_sweeps"])["groups"]) == {10}
    assert set(pd.read_csv(output["reliability"])["methods"]) == {3}
    for section in families:
        figure = tmp_path / f"{section}.svg"
        of_figure = {"family": families[section][0], "labels": {}}
        run_script(
            "plot_sweep", tmp_path, of_figure, {**sweeps, "order": output["order"]}, [figure], section=section
        )
        assert "</svg>" in figure.read_text()


def test_a_value_that_names_its_parameter_does_not_repeat_it() -> None:
    assert (
        values_text({"noise": 0.05, "layer": "layer1", "max_steps": 5.0}) == "noise 0.05, layer1, max steps 5"
    )
    assert values_text({"layer": "features.3"}) == "layer features.3"

"""Images in groups, such as patients: the workflow's tables and sentences, against ``assess`` and plain statistics."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from jobs import run_script
from scipy.stats import binomtest, wilcoxon

from saliency_assay import assess
from saliency_assay.reliability.agreement import agreement_table
from saliency_assay.reliability.chance import (
    balanced_accuracy_interval,
    chance_caution,
    is_above_chance,
    with_independent_counts,
)
from saliency_assay.reliability.comparison import Comparison
from saliency_assay.reliability.figures import reliability_figure
from saliency_assay.reliability.order_tables import order_tables
from saliency_assay.reliability.raters import halves
from saliency_assay.reliability.reliability_tables import rankings_table, reliability_table
from saliency_assay.reliability.variance import GROUPS
from saliency_assay.reliability.verdicts import alpha_row, verdict
from saliency_assay.report.export.export import score_floats, tidy_table
from saliency_assay.report.pages import words
from saliency_assay.report.pages.heat_map import heat_map
from saliency_assay.report.pages.models_page import accuracy_table
from saliency_assay.storage import GROUP, score_tables, text, zarr_store
from saliency_assay.studies import STUDY_KINDS
from saliency_assay.studies.fidelity.fidelity_tables import summary
from saliency_assay.studies.retrain.leakage_tables import p_above
from saliency_assay.studies.retrain.rank_agreement import rank_agreement
from saliency_assay.studies.validity.known_order import known_order_table
from saliency_assay.studies.validity.meta_consistency import intra
from saliency_assay.training.evaluation import accuracies

GENERATOR = np.random.default_rng(0)
IMAGES, METHODS = 60, ("edge", "gradcam", "gradient")
PATIENTS = [f"patient {place % 12}" for place in range(IMAGES)]
GROUP_OF = np.arange(IMAGES) % 12
CLUSTERS = {GROUPS: GROUP_OF}
HIGHER = {"auc": "higher"}
TABLES = ("reliability", "agreement", "order", "pairs", "consistency", "rankings", "variance", "controls")


def values(seed: int = 0, groups: int = 12) -> pd.DataFrame:
    """Return scores of images × methods that differ between groups more than within."""
    generator = np.random.default_rng(seed)
    group = generator.normal(size=(groups, 3))[np.arange(IMAGES) % groups]
    return pd.DataFrame(group + 0.3 * generator.normal(size=(IMAGES, 3)) + [0, 0.3, 1], columns=METHODS)


def rows_of(wide: pd.DataFrame, **columns: Any) -> pd.DataFrame:
    table = wide.rename_axis("image").melt(var_name="method", value_name="score", ignore_index=False)
    names = {"study": "s", "data": "d", "model": "m", "seed": 0, "metric": "auc", "variant": "auc"}
    return table.reset_index().assign(**{**names, **columns})


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    """Tables of the workflow's job, from a score table and a data set with groups; three scores are missing."""
    folder = tmp_path_factory.mktemp("groups")
    wide = values()
    wide.iloc[:3, 0] = np.nan
    table = rows_of(wide).assign(group=lambda rows: rows["image"].map(dict(enumerate(PATIENTS))))
    score_tables.write(folder / "scores.parquet", table)
    arrays = {"label_class": np.arange(IMAGES) % 2, "group": text.encode(PATIENTS)}
    zarr_store.write(folder / "data.zarr.zip", [arrays], kind="data", attributes={})
    settings = {"rated_scores": STUDY_KINDS["fidelity"].rated_scores, "variants": "variants", "data": "d"}
    settings |= {"models": ["m"], "label": "class", "baselines": ["edge"], "directions": HIGHER}
    settings |= {"resamples": 200, "level": 0.9, "printed_alpha": {}, "printed_correlation": {}}
    settings |= {"ranges": {"auc": [None, None]}, "metrics": [], "retrained": False}
    settings |= {"rule": {"by": "wins", "margin": None, "margin_unit": "sd"}, "families": []}
    settings |= {"controls": {}}
    output = {name: folder / f"{name}.csv" for name in TABLES}
    files = {"scores": [folder / "scores.parquet"], "data": folder / "data.zarr.zip"}
    run_script("tabulate_reliability", folder, settings, files, output)
    return {name: pd.read_csv(path, keep_default_na=False, na_values=[""]) for name, path in output.items()}


def test_numbers_are_those_of_assess(tables: dict[str, pd.DataFrame]) -> None:
    wide = values()
    wide.iloc[:3, 0] = np.nan
    expected = assess(wide, direction="higher", clusters={"patients": PATIENTS}, resamples=200, level=0.9)
    order = tables["order"].set_index("method").loc[list(METHODS)]
    columns = ["images", "mean", "low", "high", "win_rate", "rank_low", "rank_high"]
    pd.testing.assert_frame_equal(expected.order[columns], order[columns], check_dtype=False, rtol=1e-14)
    pairs = tables["pairs"]
    shared = [name for name in expected.pairs if name != "finding"]
    pd.testing.assert_frame_equal(expected.pairs[shared], pairs[shared], check_dtype=False, rtol=1e-14)
    row = tables["reliability"].set_index("baselines").loc["with"]
    for name in ("alpha", "correlation", "concordance"):
        estimate = getattr(expected, name)
        assert [estimate.value, estimate.low, estimate.high] == pytest.approx(
            [row[name], row[f"{name}_low"], row[f"{name}_high"]], rel=1e-14
        )


def test_tables_have_the_number_of_groups_beside_that_of_images(tables: dict[str, pd.DataFrame]) -> None:
    for name, table in tables.items():
        if name == "agreement":
            continue
        columns = list(table)
        assert columns[columns.index("images") + 1] == "groups", name
        assert (table["groups"] == 12).all()
    assert set(tables["order"]["over"]) == {"groups"}
    alone, pairs = order_tables(rows_of(values()), HIGHER)
    assert "groups" not in alone
    assert "groups" not in pairs
    # Intervals of dependent images are wider.
    grouped = tables["order"].set_index("method")
    alone = alone.set_index("method")
    assert (grouped["high"] - grouped["low"] > 1.3 * (alone["high"] - alone["low"])).all()
    few = rows_of(values()).query("image < 4")
    order, _ = order_tables(few, HIGHER, clusters=CLUSTERS)
    assert set(order["groups"]) == {4}


def test_sentences_state_the_number_of_groups(tables: dict[str, pd.DataFrame]) -> None:
    order, pairs = tables["order"], tables["pairs"]
    assert "on 57–60 images of 12 groups and account for variation over groups" in words.basis_words(order)
    alpha = alpha_row(tables["reliability"], "auc", "auc")
    assert alpha is not None
    assert "60 images of 12 groups" in words.reliability_words(alpha, 0.9)
    figure = reliability_figure(tables["reliability"], level=0.9)
    assert "60 images of 12 groups (α)" in figure.legends[0].get_title().get_text()
    heat = heat_map(order, tables["reliability"], {("auc", "auc"): "AUC"}, {}, title="", level=0.9)
    assert heat.columns[0].images == "57–60 (12 groups)"
    tidy = tidy_table("s", "fidelity", order, tables["reliability"])
    assert list(tidy["groups"]) == [12] * 3
    [latex] = score_floats(tidy, "s", level=0.9)
    assert "images of 12 groups, 1 training seed" in latex
    assert verdict(order, pairs, alpha).text.count("groups") <= 1


def test_few_groups_have_no_interval_of_agreement() -> None:
    """Sixty images of four patients are as few as four images."""
    wide, clusters = values(groups=4), {GROUPS: np.arange(IMAGES) % 4}
    table = rows_of(wide)
    reliability = reliability_table(table, HIGHER, (), resamples=100, level=0.9, clusters=clusters)
    assert reliability[["alpha_low", "alpha_high", "concordance_low"]].isna().all(axis=None)
    alpha = alpha_row(reliability, "auc", "auc")
    assert alpha is not None
    assert words.alpha_words(alpha) == "too few groups for a confidence interval"
    order, pairs = order_tables(table, HIGHER, clusters=clusters)
    text = verdict(order, pairs, alpha).text
    assert text.startswith("too few images to tell")
    assert text.endswith(" groups would do")
    one, _ = order_tables(table, HIGHER, clusters={GROUPS: np.zeros(IMAGES, int)})
    assert one[["low", "high"]].isna().all(axis=None)
    assert (one[["rank_low", "rank_high"]] == [1, 3]).all(axis=None)


def test_metrics_are_compared_if_they_rank_the_images_of_enough_groups() -> None:
    table = pd.concat([rows_of(values()), rows_of(values(), metric="aupc", variant="aupc")])
    names = {("auc", "auc"): "AUC", ("aupc", "aupc"): "AUPC"}
    directions = {**HIGHER, "aupc": "higher"}
    for clusters, compared in (({}, True), (CLUSTERS, False), ({GROUPS: np.arange(IMAGES) // 2}, True)):
        rankings = rankings_table(table, directions, (), clusters)
        assert bool(words.ranking_words(rankings, names)) is compared


def test_halves_have_no_group_in_common() -> None:
    """Methods that differ only between groups: halves of images would agree, those of groups do not."""
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(12, 6))[GROUP_OF]
    by_image, by_group = halves(scores, splits=200), halves(scores, groups=GROUP_OF, splits=200)
    assert by_image.correlation > 0.5 > by_group.correlation
    assert np.isnan(halves(scores, groups=np.arange(IMAGES) % 3).correlation)
    wide = pd.DataFrame(scores, columns=list("abcdef"))
    table = agreement_table(rows_of(wide), HIGHER, GROUP_OF % 2, splits=200, clusters=CLUSTERS)
    assert table.set_index("between").loc["halves", "correlation"] == by_group.correlation


# ---- accuracy


def predicted(correct: np.ndarray, label: np.ndarray, group: np.ndarray) -> pd.DataFrame:
    names = {"data": "d", "split": "test"}
    return pd.DataFrame({"label": label, "predicted": np.where(correct, label, 1 - label)}).assign(
        **names, group=[f"p{number}" for number in group]
    )


def evaluated(table: pd.DataFrame) -> dict[str, Any]:
    return with_independent_counts(accuracies(table, ["a", "b"])["d"]["test"], table)


def test_images_that_are_equal_within_a_group_count_as_one_image() -> None:
    """Of one class the interval is about that of Clopper and Pearson for the groups."""
    right = np.arange(30) < 24
    group = np.repeat(np.arange(30), 10)
    evaluation = evaluated(predicted(right[group], np.zeros(300, int), group))
    assert evaluation["groups"] == 30
    [count] = evaluation["counts"].values()
    # A little fewer than 30, because the variance between groups is estimated (Korn and Graubard, 1998).
    assert 24 < count["independent"] < 30
    interval, expected = balanced_accuracy_interval(evaluation), binomtest(24, 30).proportion_ci()
    assert interval == pytest.approx(tuple(expected), abs=0.03)
    assert interval[0] < expected.low
    perfect = evaluated(predicted(np.ones(300, bool), np.zeros(300, int), group))
    assert balanced_accuracy_interval(perfect)[0] == pytest.approx(binomtest(30, 30).proportion_ci().low)


def test_images_of_two_classes_in_one_group_contribute_together() -> None:
    group = np.repeat(np.arange(20), 2)
    perfect = evaluated(predicted(np.ones(40, bool), np.arange(40) % 2, group))
    assert [count["independent"] for count in perfect["counts"].values()] == [10, 10]
    right = np.arange(20) < 15
    together = evaluated(predicted(right[group], np.arange(40) % 2, group))
    assert all(count["independent"] < 10 for count in together["counts"].values())


def test_a_group_of_its_own_for_each_image_changes_nothing() -> None:
    generator = np.random.default_rng(0)
    table = predicted(generator.random(40) < 0.7, np.arange(40) % 2, np.arange(40))
    plain = accuracies(table, ["a", "b"])["d"]["test"]
    expected = balanced_accuracy_interval(plain)
    assert balanced_accuracy_interval(with_independent_counts(plain, table)) == pytest.approx(expected)


def test_a_model_that_is_right_for_a_few_patients_is_not_shown_to_be_better_than_chance() -> None:
    """Sixty images suffice, those of four patients do not."""
    group = np.repeat(np.arange(4), 15)
    table = predicted(group < 3, np.arange(60) % 2, group)
    plain = accuracies(table, ["a", "b"])["d"]["test"]
    assert is_above_chance(plain)
    evaluation = evaluated(table)
    assert "on 60 test images of 4 groups; chance" in chance_caution("M", [evaluation])
    one = evaluated(predicted(np.ones(60, bool), np.arange(60) % 2, np.zeros(60, int)))
    assert not is_above_chance(one)
    row = accuracy_table({("m", 0): {"d": {"test": evaluation}}}).iloc[0]
    assert (row["images"], row["groups"], row["better than chance"]) == (60, 4, "not shown")
    assert "groups" not in accuracy_table({("m", 0): {"d": {"test": plain}}})


# ---- other tables


def test_the_summary_counts_groups_of_scored_images() -> None:
    wide = values()
    wide.loc[GROUP_OF == 3, "edge"] = np.nan
    table = rows_of(wide).assign(group=lambda rows: rows["image"].map(dict(enumerate(PATIENTS))))
    rows = summary(table, {}).set_index("method")
    assert rows["groups"].to_dict() == {"edge": 11, "gradcam": 12, "gradient": 12}
    pd.testing.assert_frame_equal(
        summary(table.drop(columns=GROUP), {}), summary(table, {}).drop(columns="groups")
    )


def test_known_orders_have_groups() -> None:
    generator = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([range(IMAGES), range(3)], names=["image", "level"])
    table = index.to_frame(index=False).assign(
        metric="auc", variant="auc", seed=0, method="gradcam", score=generator.normal(size=3 * IMAGES)
    )
    table["test"] = np.where(table["level"] == 0, "original", "noise")
    assert list(known_order_table(table, HIGHER, level=0.95, clusters=CLUSTERS)["groups"]) == [12]


def test_consistency_within_images_tests_the_mean_differences_of_groups() -> None:
    generator = np.random.default_rng(0)
    before, after = generator.normal(size=(1, IMAGES)), generator.normal(0.5, 1, (1, 1, IMAGES))
    chosen = np.ones((1, IMAGES), bool)
    chosen[0, :5] = False
    difference = pd.Series((after[0, 0] - before[0])[5:]).groupby(GROUP_OF[5:]).mean()
    expected = wilcoxon(difference, method="exact").pvalue
    assert intra(before, after, chosen, GROUP_OF) == pytest.approx(expected)
    assert intra(before, after, chosen, np.arange(IMAGES)) == intra(before, after, chosen)


def test_rankings_with_retraining_are_tested_between_groups() -> None:
    """Accuracies that are equal within a group: ten groups of five images show less than fifty images."""
    generator = np.random.default_rng(0)
    group = np.repeat(np.arange(10), 5)
    of_method = {
        (("roar", "mean", retraining), method): (generator.random((1, 10)) < share)[:, group].astype(np.uint8)
        for retraining in ("yes", "no")
        for method, share in (("a", 0.1), ("b", 0.5), ("c", 0.9))
    }
    alone, grouped = (rank_agreement(of_method, clusters).iloc[0] for clusters in ({}, {GROUPS: group}))
    assert grouped["groups"] == 10
    assert "groups" not in alone
    assert grouped["rho"] == alone["rho"] == 1
    assert alone["rho_low"] > grouped["rho_low"]
    few = rank_agreement(of_method, {GROUPS: group % 4})
    assert few[["rho_low", "rho_high"]].isna().all(axis=None)


def test_leakage_has_the_sampling_error_of_groups() -> None:
    own, permuted = np.array([0.62, 0.63, 0.61]), np.array([0.5, 0.51, 0.49])
    alone, grouped = (p_above(own, permuted, images=count, chance=0.5) for count in (200, 20.0))
    assert alone < 0.01 < grouped


def test_as_many_groups_are_needed_as_the_smallest_p_value_requires() -> None:
    groups, methods = np.repeat(np.arange(8), 2), 7
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(len(groups), methods)) / 100
    scores[:, 0] += 1
    # 21 pairs: no p-value of m groups is below 2⁻ᵐ, so that 10 groups are needed, of two images each.
    comparison = Comparison(scores, {GROUPS: groups})
    assert comparison.error == 1 / 42
    assert comparison.images_needed(0, 1) == 20
    # The test of independent images, of which none prefers the other method, needs more than 10.
    assert Comparison(scores).images_needed(0, 1) == 13
    assert [Comparison(scores[:count]).adjusted_p[0, 1] <= 0.05 for count in (12, 13)] == [False, True]

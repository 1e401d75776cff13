"""Comparisons of two results folders, with values computed by NumPy, SciPy and statsmodels."""

from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from run_folders import CONFIGURATION, IMAGES, random_scores, write_run
from scipy import stats
from statsmodels.stats.multitest import multipletests

from saliency_assay.cli import main
from saliency_assay.reliability.order_tables import UNTESTED
from saliency_assay.runs.compare import RunComparison, compare
from saliency_assay.runs.text import WIDTH, comparison_text
from saliency_assay.runtime import failure
from saliency_assay.storage import WHOLE_SET, score_tables

SYMMETRIC = np.concatenate([np.arange(1, IMAGES // 2 + 1), -np.arange(1, IMAGES // 2 + 1)]) / 100
"""Differences without skewness, for which the test of a mean is Student's t."""


def rows_of(compared: RunComparison) -> dict[tuple[str, str], pd.Series]:
    rows = compared.scores.rows
    return {(row["metric"], row["method"]): row for _, row in rows.iterrows()}


def test_equal_runs_do_not_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    maps = {"gradient": np.random.default_rng(1).normal(size=(IMAGES, 1, 4, 4))}
    scores = random_scores()
    scores["infidelity"]["gradient"][3] = np.nan
    old, new = (write_run(tmp_path / name, scores, maps=maps) for name in ("old", "new"))
    compared = compare(old, new)
    assert compared.is_equal
    assert (compared.scores.equal, len(compared.scores.rows), compared.ranked, compared.stores) == (
        4,
        0,
        2,
        1,
    )
    assert main(["compare", str(old), str(new)]) == 0
    assert capsys.readouterr().out.startswith("Nothing differs")


def test_a_changed_configuration_alone_changes_no_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configurations = {
        "old": CONFIGURATION,
        "new": {**CONFIGURATION, "metrics": {"infidelity": {"largest": 3}}},
    }
    old, new = (
        write_run(tmp_path / name, random_scores(), configuration=configuration)
        for name, configuration in configurations.items()
    )
    assert main(["compare", str(old), str(new)]) == 1
    assert capsys.readouterr().out.startswith("No score, rank or map differs: 4 scores")


def test_differences_are_those_of_an_independent_computation(tmp_path: Path) -> None:
    old, new = random_scores(), random_scores()
    shifts = {"gradient": 0.06, "gradcam": 0.01}
    for method, shift in shifts.items():
        new["infidelity"][method] += SYMMETRIC + shift
    compared = compare(write_run(tmp_path / "old", old), write_run(tmp_path / "new", new))
    rows, tests = rows_of(compared), {}
    assert set(rows) == {("infidelity", method) for method in shifts}
    assert compared.scores.equal == 2
    for method in shifts:
        before, now, row = old["infidelity"][method], new["infidelity"][method], rows["infidelity", method]
        tests[method] = stats.ttest_rel(now, before)
        interval = tests[method].confidence_interval(0.95)
        assert row["difference"] == pytest.approx((now - before).mean())
        assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))
        assert (row["old"], row["new"]) == pytest.approx((before.mean(), now.mean()))
        assert row["effect"] == pytest.approx((now - before).mean() / np.std([before, now]))
        assert (row["images"], row["seeds"], row["test"]) == (IMAGES, 1, "means")
    _, expected, *_ = multipletests([test.pvalue for test in tests.values()], method="holm")
    assert [rows["infidelity", method]["p"] for method in shifts] == pytest.approx(expected)
    # Lower infidelity is better.
    assert [rows["infidelity", method]["verdict"] for method in shifts] == ["worse", ""]


def test_rates_are_compared_by_the_exact_sign_test(tmp_path: Path) -> None:
    old = {"faithfulness": {"gradient": np.zeros(IMAGES), "gradcam": np.ones(IMAGES)}}
    new = deepcopy(old)
    new["faithfulness"]["gradient"][:9] = 1
    new["faithfulness"]["gradcam"][0] = 0
    rows = rows_of(compare(write_run(tmp_path / "old", old), write_run(tmp_path / "new", new)))
    p = [stats.binomtest(changed, changed).pvalue for changed in (9, 1)]
    _, expected, *_ = multipletests(p, method="holm")
    assert [rows["faithfulness", method]["p"] for method in ("gradient", "gradcam")] == pytest.approx(
        expected
    )
    assert rows["faithfulness", "gradient"]["verdict"] == "better"


def test_skewed_scores_are_compared_by_their_signs(tmp_path: Path) -> None:
    old = {"infidelity": {"gradient": np.exp(np.linspace(0, 12, IMAGES)), "gradcam": np.arange(IMAGES)}}
    new = deepcopy(old)
    new["infidelity"]["gradient"] *= np.where(np.arange(IMAGES) < 20, 0.9, 1.1)
    [row] = rows_of(compare(write_run(tmp_path / "old", old), write_run(tmp_path / "new", new))).values()
    assert row["test"] == "signs"
    assert row["p"] == pytest.approx(stats.binomtest(4, IMAGES).pvalue)
    assert np.isnan(row["low"])


def test_images_of_a_group_are_not_independent(tmp_path: Path) -> None:
    groups = np.repeat(np.arange(6), IMAGES // 6)
    names = (
        np.array([f"patient {number}" for number in groups]).astype("S10").view(np.uint8).reshape(IMAGES, -1)
    )
    effects = np.array([-0.06, -0.02, 0.03, 0.05, 0.1, 0.14])
    old, new = random_scores(), random_scores()
    new["infidelity"]["gradcam"] += effects[groups]
    folders = [
        write_run(tmp_path / name, scores, group=names) for name, scores in (("old", old), ("new", new))
    ]
    [row] = rows_of(compare(*folders)).values()
    # With equal differences within a group, groups of equal size count as one value each.
    test = stats.ttest_1samp(effects, 0)
    assert row["p"] == pytest.approx(test.pvalue, rel=1e-6)
    interval = test.confidence_interval(0.95)
    assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))


def test_scores_of_several_seeds_are_paired_by_seed_and_image(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    old = {
        "infidelity": {"gradient": rng.uniform(size=(3, IMAGES)), "gradcam": rng.uniform(size=(3, IMAGES))}
    }
    new = deepcopy(old)
    new["infidelity"]["gradient"] += rng.normal(size=(3, IMAGES))
    [row] = rows_of(compare(write_run(tmp_path / "old", old), write_run(tmp_path / "new", new))).values()
    difference = new["infidelity"]["gradient"] - old["infidelity"]["gradient"]
    assert (row["images"], row["seeds"]) == (IMAGES, 3)
    assert row["difference"] == pytest.approx(difference.mean())


def test_values_of_whole_sets_and_of_retrained_models_are_not_tested(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / name, random_scores()) for name in ("old", "new")]
    for folder, shift in zip(folders, (0, 0.5), strict=True):
        file = folder / "scores/infidelity/net/seed0/set/gradient.parquet"
        table = score_tables.read([file]).assign(study="study")
        table["score"] += shift
        whole = table.iloc[:1].assign(image=WHOLE_SET, variant="of the set")
        score_tables.write(file, pd.concat([table, whole]))
        order = folder / "tables/study/order.csv"
        pd.read_csv(order).assign(over=UNTESTED).to_csv(order, index=False)
    rows = compare(*folders).scores.rows
    assert rows["difference"].tolist() == pytest.approx([0.5, 0.5])
    assert rows["p"].isna().all()
    assert rows["test"].tolist() == ["", ""]


def test_images_are_matched_by_their_pixels(tmp_path: Path) -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (IMAGES, 1, 4, 4), np.uint8)
    order = np.roll(np.arange(IMAGES), 1)
    scores, maps = random_scores(), {"gradient": np.random.default_rng(1).normal(size=(IMAGES, 1, 4, 4))}
    moved = {metric: {name: values[order] for name, values in of.items()} for metric, of in scores.items()}
    changed = pixels[order]
    changed[5] += 1
    old = write_run(tmp_path / "old", scores, pixels=pixels, maps=maps)
    new = write_run(
        tmp_path / "new", moved, pixels=changed, maps={name: values[order] for name, values in maps.items()}
    )
    compared = compare(old, new)
    assert (len(compared.scores.rows), compared.scores.equal, compared.maps) == (0, 4, [])
    assert compared.scores.images == {"set": (1, 1)}
    assert len(compared.causes["Data"]) == 1
    assert not compared.is_equal


def test_what_one_run_lacks_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = write_run(tmp_path / "old", random_scores())
    scores = random_scores(methods=("gradient", "gradcam", "occlusion"))
    del scores["faithfulness"]
    new = write_run(tmp_path / "new", scores, study="other")
    compared = compare(old, new)
    assert {(key[3], key[4]) for key in compared.scores.only_old} == {
        (method, "faithfulness") for method in ("gradient", "gradcam")
    }
    assert [key[3] for key in compared.scores.only_new] == ["occlusion"]
    assert compared.ranked == 0
    for name in ("study study", "study other", "occlusion"):
        assert any(name in line for line in compared.one_sided)
    assert main(["compare", str(old), str(new)]) == 1
    assert "occlusion" in capsys.readouterr().out


def test_ranks_and_orders(tmp_path: Path) -> None:
    old, new = random_scores(), random_scores()
    old["faithfulness"]["gradient"] = old["faithfulness"]["gradcam"] + 1
    new["faithfulness"]["gradient"] = new["faithfulness"]["gradcam"] - 1
    new["infidelity"]["gradient"] += 1e-9
    compared = compare(write_run(tmp_path / "old", old), write_run(tmp_path / "new", new))
    [change] = compared.ranks
    assert (change.study, change.metric, compared.ranked) == ("study", "faithfulness", 2)
    assert change.order == (["gradient", "gradcam"], ["gradcam", "gradient"])
    assert change.sets == {"gradient": ("1", "2"), "gradcam": ("2", "1")}


def test_distances_of_maps(tmp_path: Path) -> None:
    maps = np.random.default_rng(1).normal(size=(IMAGES, 1, 4, 4))
    maps[2] = np.nan
    changed = maps.copy()
    changed[7], changed[9] = -maps[7], maps[9] / 2
    scores = random_scores()
    folders = [
        write_run(tmp_path / name, scores, maps={"gradcam": of_run, "gradient": maps})
        for name, of_run in (("old", maps), ("new", changed))
    ]
    compared = compare(*folders)
    [change] = compared.maps
    assert (change.method, change.images, change.changed, compared.stores) == ("gradcam", IMAGES, 2, 2)
    assert [(each.image, each.distance) for each in change.examples] == [
        (7, pytest.approx(2)),
        (9, pytest.approx(0.5)),
    ]
    assert (change.median, change.largest) == pytest.approx((1.25, 2))


def test_changed_keys_and_the_page(tmp_path: Path) -> None:
    configuration = deepcopy(CONFIGURATION) | {"results": "elsewhere"}
    configuration["metrics"]["infidelity"]["largest"] = 3
    maps = {"gradcam": np.random.default_rng(1).normal(size=(IMAGES, 1, 4, 4))}
    old = write_run(tmp_path / "old", random_scores(), maps=maps)
    scores = random_scores()
    scores["infidelity"]["gradient"] += SYMMETRIC + 0.1
    new = write_run(tmp_path / "new", scores, maps={"gradcam": -maps["gradcam"]}, configuration=configuration)
    compared = compare(old, new)
    assert compared.causes == {"Configuration": ["metrics.infidelity.largest: 2 → 3"]}
    file = tmp_path / "page.html"
    assert main(["compare", str(old), str(new), "--html", str(file)]) == 1
    page = file.read_text()
    assert page.count("data:image/png;base64") == 4 * 3  # four images, each with its old and new map
    assert "metrics.infidelity.largest: 2 → 3" in page
    assert "<script src" not in page
    assert "<link" not in page


def test_lines_fit_into_a_terminal(tmp_path: Path) -> None:
    methods = tuple(f"a_method_with_a_long_name_{number}" for number in range(20))
    old, new = random_scores(methods=methods), random_scores(seed=1, methods=methods)
    text = comparison_text(compare(write_run(tmp_path / "old", old), write_run(tmp_path / "new", new)))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "and 28 more" in text


@pytest.mark.parametrize("damage", ["nothing", "empty", "file", "table", "store", "version", "order", "yaml"])
def test_a_folder_that_cannot_be_compared(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    maps = {"gradient": np.zeros((IMAGES, 1, 4, 4))}
    old, new = (write_run(tmp_path / name, random_scores(), maps=maps) for name in ("old", "new"))
    score, order = new / "scores/infidelity/net/seed0/set/gradient.parquet", new / "tables/study/order.csv"
    match damage:
        case "nothing":
            new, named = tmp_path / "absent", "absent"
        case "empty":
            new = named = tmp_path / "empty"
            new.mkdir()
        case "file":
            new = named = score
        case "table":
            score.write_bytes(score.read_bytes()[:100])
            named = score
        case "store":
            named = new / "maps/net/seed0/set/gradient.zarr.zip"
            named.write_bytes(b"PK")
        case "version":
            table = pd.read_parquet(score)
            table.to_parquet(score)  # without the version of the format
            named = score
        case "order":
            pd.read_csv(order).drop(columns="rank_low").to_csv(order, index=False)
            named = order
        case "yaml":
            named = new / "configuration.yaml"
            named.write_text("results: [")
    assert main(["compare", str(old), str(new)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert str(named) in line


def test_a_run_without_report_and_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = (write_run(tmp_path / name, random_scores()) for name in ("old", "new"))
    (new / "configuration.yaml").unlink()
    compared = compare(old, new)
    assert compared.is_equal
    assert len(compared.unknown) == 1
    (new / "tables/study/order.csv").unlink()
    assert not compare(old, new).is_equal


def test_a_failure_in_one_run(tmp_path: Path) -> None:
    old, new = (write_run(tmp_path / name, random_scores()) for name in ("old", "new"))
    file = new / "scores/infidelity/net/seed0/set/gradient.parquet"
    failure.write([file], failure.Failure("score", reason="ValueError: no such layer"), {})
    compared = compare(old, new)
    assert any("no such layer" in line for line in compared.one_sided)
    assert len(compared.scores.only_old) == 1

"""The input files of rules."""

from copy import deepcopy
from pathlib import Path

import pytest
from pipelines import RETRAIN, TINY, inputs

ARM = {"study": "retrain", "method": "gradient", "seed": "3"}
MODEL = "results/models/digits/seed3"


def masks(protocol: str, fill: str, iteration: int) -> list[str]:
    folder = f"results/remask/retrain/{protocol}/gradient/{fill}/seed3/iteration{iteration}"
    return [f"{folder}/masks.part{part}of2.zarr.zip" for part in (1, 2)]


def test_a_score_takes_responses_only_where_its_metric_does() -> None:
    at = {"model": "digits", "seed": "0", "data": "digits", "method": "gradient", "part": ""}
    tiny = inputs(TINY)
    assert tiny.score({**at, "metric": "sensitivity"}) == {}
    probe = "results/probes/faithfulness/digits/seed0/digits.zarr.zip"
    assert tiny.score({**at, "metric": "faithfulness"}) == {"probe": probe}


def test_files_of_a_study_are_whole_or_in_parts() -> None:
    of = inputs(RETRAIN)
    assert of.all_parts("{data}{part}", "digits") == ["digits.part1of2", "digits.part2of2"]
    assert of.parts("bam_delta_seed0") == [""]


def test_scores_of_a_study_come_metric_by_metric_then_method_by_method() -> None:
    scores = inputs(TINY).study_scores({"study": "captions"})
    assert scores == [
        f"results/scores/{metric}/{model}/seed0/captioned_both/{method}.parquet"
        for metric in ("infidelity_halves", "block_attribution")
        for method in ("gradient", "halves")
        for model in ("f_picture", "f_caption")
    ]


def test_bam_compares_two_models_on_sets_with_and_without_objects() -> None:
    files = inputs(TINY).of_kind("bam").score_bam({"study": "bam", "seed": "0", "method": "edge"})
    assert files["maps_s_0s"] == ["results/maps/f_s/seed0/bam_0s/edge.zarr.zip"]
    assert files["predictions_o"] == "results/models/f_o/seed0/predictions.parquet"
    assert files["variant_maps_o"] == ["results/maps/f_o/seed0/bam_os_scale/edge.zarr.zip"]
    assert files["data_without"] == "results/data/bam_0s.zarr.zip"


def test_a_series_has_each_models_maps_of_its_own_set() -> None:
    files = inputs(TINY).of_kind("bam").score_series({"study": "bam", "seed": "0", "method": "edge"})
    assert files["maps"] == [f"results/maps/f_{k}/seed0/bam_os_{k}/edge.zarr.zip" for k in ("k01", "k10")]
    assert files["data"] == "results/data/bam_os_k10.zarr.zip"


def test_input_independence_is_measured_on_the_set_of_its_seed() -> None:
    files = inputs(TINY).of_kind("bam").score_independence({"study": "bam", "seed": "0", "method": "edge"})
    assert files["maps"] == ["results/maps/f_s/seed0/bam_delta_seed0/edge.zarr.zip"]
    assert files["data"] == "results/data/bam_delta_seed0.zarr.zip"


@pytest.mark.parametrize("protocol", ["roar", "iteroar"])
def test_masks_of_the_first_model_serve_every_fill(protocol: str) -> None:
    of = inputs(RETRAIN).of_kind("retrain")
    arm = {**ARM, "protocol": protocol, "fill": "mean"}
    assert of.remask({**arm, "iteration": "0"}) == {
        "weights": f"{MODEL}/weights.pt",
        "data": "results/data/digits.zarr.zip",
        "masks": [],
    }
    assert of.retrain({**arm, "iteration": "1"})["masks"] == masks(protocol, "shared", 0)


def test_roar_has_all_masks_in_the_first_store_and_iteroar_one_an_iteration() -> None:
    of = inputs(RETRAIN).of_kind("retrain")
    at = {**ARM, "fill": "mean", "iteration": "3"}
    assert of.retrain({**at, "protocol": "roar"})["masks"] == masks("roar", "shared", 0)
    expected = [*masks("iteroar", "shared", 0), *masks("iteroar", "mean", 1), *masks("iteroar", "mean", 2)]
    assert of.retrain({**at, "protocol": "iteroar"})["masks"] == expected


def test_an_arm_has_the_predictions_of_every_model_and_leakage_where_measured() -> None:
    files = inputs(RETRAIN).of_kind("retrain").score_retrain({**ARM, "protocol": "roar", "fill": "zero"})
    folder = "results/remask/retrain/roar/gradient/zero/seed3"
    retrained = [f"{folder}/iteration{step}/predictions.parquet" for step in (1, 2, 3)]
    assert files["predictions"] == [f"{MODEL}/predictions.parquet", *retrained]
    assert files["leakage"] == [f"{folder}/iteration{step}/leakage.csv" for step in (1, 3)]


def test_leakage_is_of_what_a_training_starts_without() -> None:
    at = {**ARM, "protocol": "roar", "fill": "zero", "iteration": "1"}
    assert list(inputs(RETRAIN).of_kind("retrain").leak(at)) == ["data", "masks"]


def test_tables_are_of_every_arm_methods_in_their_order_and_their_seeds_together() -> None:
    scores = inputs(RETRAIN).of_kind("retrain").tabulate_retrain({"study": "retrain"})["scores"]
    assert len(scores) == 2 * 2 * 2 * 2
    assert [path.removeprefix("results/scores/retrain/retrain/") for path in scores[:4]] == [
        "roar/gradient/zero/seed0.parquet",
        "roar/gradient/zero/seed3.parquet",
        "roar/random/zero/seed0.parquet",
        "roar/random/zero/seed3.parquet",
    ]


def test_dates_of_weights_count_only_if_a_job_of_the_run_may_write_them(tmp_path: Path) -> None:
    configuration = deepcopy(TINY)
    outside, made = tmp_path / "outside.pt", tmp_path / "results/models/digits/seed0/weights.pt"
    for path in (outside, made):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for name, path in (("with_outside", outside), ("with_made", made)):
        configuration["models"][name] = {**TINY["models"]["digits"], "weights": str(path)}
    of = inputs(configuration, tmp_path / "results")
    assert of.train({"model": "with_outside"})["weights"] == f"ancient {outside}"
    assert of.train({"model": "with_made"})["weights"] == str(made)
    assert "weights" not in of.train({"model": "digits"})


def test_a_model_that_is_searched_for_waits_for_all_trials() -> None:
    tiny = inputs(TINY)
    assert tiny.train({"model": "searched"})["chosen"] == "results/search/searched/chosen.json"
    assert tiny.choose({"model": "searched"}) == [f"results/search/searched/trial{n}.csv" for n in (0, 1)]
    assert list(tiny.trial({"model": "searched"})) == ["data"]


def test_a_study_is_rated_by_the_scores_of_its_kind() -> None:
    tiny = inputs(TINY)
    rated = {study: tiny.tabulate_reliability({"study": study}) for study in tiny.studies.rated}
    assert rated["digits"]["scores"] == ["results/tables/digits/scores.parquet"]
    assert rated["bam"]["data"] == "results/data/bam_os.zarr.zip"
    assert [path.split("/")[2] for path in rated["bam"]["scores"]] == ["bam"] * 3 + ["independence"] * 3
    assert {path.split("/")[2] for path in rated["captions"]["scores"]} == {"infidelity_halves"}


def test_the_report_begins_with_the_overview_and_ends_with_provenance() -> None:
    pages = inputs(TINY).report()
    assert pages[0] == "results/figures/overview.html"
    assert pages[1] == "results/figures/bam/study.html"
    assert [Path(page).name for page in pages[-5:]] == [
        "methods.html", "metrics.html", "training.svg", "accuracy.html", "provenance.html",
    ]  # fmt: skip
    assert len(pages) == len(set(pages))


def test_without_studies_the_report_shows_data_and_models() -> None:
    files = inputs({**RETRAIN, "studies": {}}).overview()
    assert files["data"] == ["results/data/digits.zarr.zip"]
    assert files["figures"] == ["results/figures/training.svg", "results/figures/accuracy.html"]
    assert inputs(RETRAIN).overview()["data"] == []


def test_provenance_reads_what_records_packages_of_every_model_and_score() -> None:
    files = inputs(RETRAIN).provenance()
    arms, iterations, seeds = 2 * 2 * 2, 3, 2
    assert len(files["predictions"]) == seeds + arms * iterations * seeds
    assert len(files["scores"]) == arms * seeds


def test_the_export_has_a_copy_of_every_table() -> None:
    tiny = inputs(TINY)
    tables = tiny.table()["tables"]
    assert tables[0] == "results/tables/bam/premise.csv"
    assert [path.replace("/tables/", "/export/") for path in tables] == tiny.exported_tables()

"""The input files of rules."""

from copy import deepcopy
from pathlib import Path

import pytest
from pipelines import RETRAIN, TINY, inputs, params

ARM = {"study": "retrain", "method": "gradient", "seed": "3"}
MODEL = "results/models/digits/seed3"


def masks(protocol: str, fill: str, iteration: int) -> list[str]:
    folder = f"results/remask/retrain/{protocol}/gradient/{fill}/seed3/iteration{iteration}"
    return [f"{folder}/masks.shard{shard}of2.zarr.zip" for shard in (1, 2)]


def test_a_score_takes_responses_only_where_its_metric_does() -> None:
    at = {"model": "digits", "seed": "0", "data": "digits", "method": "gradient", "shard": ""}
    tiny = inputs(TINY)
    assert tiny.responses({**at, "metric": "sensitivity"}) == []
    responses = "results/responses/faithfulness/digits/seed0/digits.zarr.zip"
    assert tiny.responses({**at, "metric": "faithfulness"}) == responses


def test_image_pairs_are_never_split() -> None:
    assert inputs(RETRAIN).shard_suffixes("bam_delta_seed0") == [""]


def test_scores_of_a_study_come_metric_by_metric_then_method_by_method() -> None:
    scores = inputs(TINY).of_kind("caption").study_scores({"study": "captions"})
    assert scores == [
        f"results/scores/{metric}/{model}/seed0/captioned_both/{method}.parquet"
        for metric in ("infidelity_halves", "block_attribution")
        for method in ("gradient", "optimal_halves")
        for model in ("f_picture", "f_caption")
    ]


def test_bam_compares_two_models_on_sets_with_and_without_objects() -> None:
    bam, at = inputs(TINY).of_kind("bam"), {"study": "bam", "seed": "0", "method": "edge"}
    assert bam.maps_o_os(at) == ["results/maps/f_o/seed0/bam_os/edge.zarr.zip"]
    assert bam.maps_s_os(at) == ["results/maps/f_s/seed0/bam_os/edge.zarr.zip"]
    assert bam.maps_s_0s(at) == ["results/maps/f_s/seed0/bam_0s/edge.zarr.zip"]
    assert bam.variant_data(at) == ["results/data/bam_os_scale.zarr.zip"]
    assert bam.variant_maps_o(at) == ["results/maps/f_o/seed0/bam_os_scale/edge.zarr.zip"]
    assert bam.variant_maps_s(at) == ["results/maps/f_s/seed0/bam_os_scale/edge.zarr.zip"]
    assert bam.predictions_o(at) == "results/models/f_o/seed0/predictions.parquet"
    assert bam.predictions_s(at) == "results/models/f_s/seed0/predictions.parquet"
    assert bam.data_os(at) == "results/data/bam_os.zarr.zip"
    assert bam.data_0s(at) == "results/data/bam_0s.zarr.zip"


def test_a_series_has_each_models_maps_of_its_own_set() -> None:
    bam, at = inputs(TINY).of_kind("bam"), {"study": "bam", "seed": "0", "method": "edge"}
    maps = [f"results/maps/f_{k}/seed0/bam_os_{k}/edge.zarr.zip" for k in ("k01", "k10")]
    assert bam.series_maps(at) == maps
    assert [path for path in bam.first_series_maps({"study": "bam"}) if "edge" in path] == maps
    assert bam.last_series_data(at) == "results/data/bam_os_k10.zarr.zip"


def test_predictions_of_a_series_are_of_a_jobs_seed_or_of_all() -> None:
    bam = inputs({**TINY, "seeds": [0, 3]}).of_kind("bam")
    of = {
        seed: [f"results/models/f_{k}/seed{seed}/predictions.parquet" for k in ("k01", "k10")]
        for seed in (0, 3)
    }
    assert bam.series_predictions({"study": "bam", "seed": "3"}) == of[3]
    assert bam.first_series_predictions({"study": "bam"}) == of[0]
    every = bam.series_predictions({"study": "bam"})
    assert every == [path for both in zip(*of.values(), strict=True) for path in both]


def test_input_independence_is_measured_on_the_set_of_its_seed() -> None:
    bam, at = inputs(TINY).of_kind("bam"), {"study": "bam", "seed": "0", "method": "edge"}
    maps = ["results/maps/f_s/seed0/bam_delta_seed0/edge.zarr.zip"]
    assert bam.delta_maps(at) == maps
    assert [path for path in bam.first_delta_maps({"study": "bam"}) if "edge" in path] == maps
    assert bam.deltas({"study": "bam"}) == [bam.first_delta({"study": "bam"})]
    assert bam.first_delta(at) == "results/data/bam_delta_seed0.zarr.zip"
    assert bam.independence_weights(at) == "results/models/f_s/seed0/weights.pt"


@pytest.mark.parametrize("protocol", ["roar", "iteroar"])
def test_masks_of_the_first_model_serve_every_fill(protocol: str) -> None:
    of = inputs(RETRAIN).of_kind("retrain")
    arm = {**ARM, "protocol": protocol, "fill": "mean"}
    assert of.weights({**arm, "iteration": "0"}) == f"{MODEL}/weights.pt"
    assert of.masks_before({**arm, "iteration": "0"}) == []
    assert of.masks_before({**arm, "iteration": "1"}) == masks(protocol, "shared", 0)


def test_roar_has_all_masks_in_the_first_store_and_iteroar_one_an_iteration() -> None:
    of = inputs(RETRAIN).of_kind("retrain")
    at = {**ARM, "fill": "mean", "iteration": "3"}
    assert of.masks_before({**at, "protocol": "roar"}) == masks("roar", "shared", 0)
    expected = [*masks("iteroar", "shared", 0), *masks("iteroar", "mean", 1), *masks("iteroar", "mean", 2)]
    assert of.masks_before({**at, "protocol": "iteroar"}) == expected


def test_an_arm_has_the_predictions_of_every_model_and_leakage_where_measured() -> None:
    of, arm = inputs(RETRAIN).of_kind("retrain"), {**ARM, "protocol": "roar", "fill": "zero"}
    folder = "results/remask/retrain/roar/gradient/zero/seed3"
    retrained = [f"{folder}/iteration{step}/predictions.parquet" for step in (1, 2, 3)]
    assert of.arm_predictions(arm) == [f"{MODEL}/predictions.parquet", *retrained]
    assert of.arm_leakage(arm) == [f"{folder}/iteration{step}/leakage.csv" for step in (1, 3)]


def test_figures_of_an_arm_show_the_masks_of_every_method_with_the_first_seed() -> None:
    at = {"study": "retrain", "protocol": "roar", "fill": "zero"}
    folders = [path.split("/")[4:7] for path in inputs(RETRAIN).of_kind("retrain").first_masks(at)]
    assert folders == [[method, "shared", "seed0"] for method in ("gradient", "random") for _ in (1, 2)]


def test_tables_are_of_every_arm_methods_in_their_order_and_their_seeds_together() -> None:
    scores = inputs(RETRAIN).of_kind("retrain").study_scores({"study": "retrain"})
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
    assert of.initial_weights({"model": "with_outside"}) == {}
    assert of.initial_weights({"model": "with_made"}) == {"weights": str(made)}
    assert of.initial_weights({"model": "digits"}) == {}


def test_a_model_that_is_searched_for_waits_for_all_trials() -> None:
    tiny = inputs(TINY)
    assert tiny.hyperparameters({"model": "searched"}) == {
        "hyperparameters": "results/search/searched/hyperparameters.json"
    }
    assert tiny.hyperparameters({"model": "digits"}) == {}
    assert tiny.trials({"model": "searched"}) == [f"results/search/searched/trial{n}.csv" for n in (0, 1)]


def test_a_study_is_rated_by_the_scores_of_its_kind() -> None:
    tiny = inputs(TINY)
    rated = {study: tiny.rated_scores({"study": study}) for study in tiny.studies.rated}
    assert rated["digits"] == ["results/tables/digits/scores.parquet"]
    assert tiny.rated_data({"study": "bam"}) == "results/data/bam_os.zarr.zip"
    assert [path.split("/")[2] for path in rated["bam"]] == ["bam"] * 3 + ["independence"] * 3
    assert {path.split("/")[2] for path in rated["captions"]} == {"infidelity_halves"}
    exported = [path.split("/")[2] for path in tiny.exported_scores()]
    assert exported == [study for study in rated if study != "retrain"]


def test_a_gallery_has_the_predictions_of_its_maps_and_the_scores_of_its_images() -> None:
    raw = {**deepcopy(TINY), "seeds": [3, 0]}
    raw["studies"]["look"] = {"kind": "gallery", "model": "digits", "methods": ["random"]}
    of = inputs(raw)
    assert of.gallery_predictions({"study": "bam"}) == [
        f"results/models/{model}/seed3/predictions.parquet" for model in ("f_o", "f_s")
    ]
    assert of.gallery_scores({"study": "look"}) == []  # no method is rated
    for study in of.studies.rated:
        assert of.gallery_scores({"study": study}) == of.rated_scores({"study": study})


def test_a_gallery_has_no_scores_of_other_images(monkeypatch: pytest.MonkeyPatch) -> None:
    of = inputs(TINY)
    monkeypatch.setattr(of, "rated_data", lambda wildcards: "results/data/other.zarr.zip")
    assert of.gallery_scores({"study": "digits"}) == []


def test_scores_that_rate_a_bam_study_follow_its_methods_and_then_seeds() -> None:
    paths = inputs({**deepcopy(TINY), "seeds": [0, 1]}).rated_scores({"study": "bam"})
    of_mcs = [(Path(path).stem, Path(path).parent.name) for path in paths if path.split("/")[2] == "bam"]
    methods = dict.fromkeys(method for method, _ in of_mcs)
    assert of_mcs == [(method, seed) for method in methods for seed in ("seed0", "seed1")]


def test_the_report_begins_with_the_overview_and_ends_with_provenance() -> None:
    pages = inputs(TINY).pages()
    assert pages[:2] == ["results/figures/overview.html", "results/figures/trust.html"]
    assert pages[2] == "results/figures/bam/study.html"
    assert [Path(page).name for page in pages[-5:]] == [
        "methods.html", "metrics.html", "training.svg", "accuracy.html", "provenance.html",
    ]  # fmt: skip
    assert len(pages) == len(set(pages))


def test_without_studies_the_report_shows_models() -> None:
    figures = inputs({**RETRAIN, "studies": {}}).all_figures()
    assert figures == ["results/figures/training.svg", "results/figures/accuracy.html"]


def test_models_that_are_not_trained_have_no_training_curves() -> None:
    models = {
        name: model | {"weights": __file__, "training": {"epochs": 0}}
        for name, model in RETRAIN["models"].items()
    }
    figures = inputs({**RETRAIN, "models": models, "studies": {}}).all_figures()
    assert figures == ["results/figures/accuracy.html"]


def test_without_metrics_the_report_has_no_page_on_trust() -> None:
    studies = {"maps": {"kind": "gallery", "model": "digits", "methods": ["gradient"]}}
    pages = inputs({**deepcopy(TINY), "studies": studies}).pages()
    assert "results/figures/maps/study.html" in pages
    assert "results/figures/trust.html" not in pages


def test_provenance_reads_what_records_packages_of_every_model_and_score() -> None:
    of, arms, iterations, seeds = inputs(RETRAIN), 2 * 2 * 2, 3, 2
    assert len(of.all_predictions()) == seeds + arms * iterations * seeds
    assert len(of.all_scores()) == arms * seeds


def test_the_export_has_a_copy_of_every_table() -> None:
    tiny = inputs(TINY)
    tables = tiny.all_tables()
    assert tables[0] == "results/tables/bam/premise.csv"
    assert [path.replace("/tables/", "/export/") for path in tables] == tiny.exported_tables()


def test_a_study_shows_whether_any_of_its_models_is_at_chance() -> None:
    """Also those of a series."""
    tiny = params(TINY)
    models = list(tiny.descriptions.study("bam")["models"])
    assert {"f_o", "f_s", "f_k01", "f_k10"} <= set(models)
    assert list(tiny.inputs.evaluations("bam")) == models


@pytest.mark.parametrize(("epochs", "trains"), [(0, False), (1, True)])
def test_seeds_of_weights_from_a_file_are_no_trainings(epochs: int, trains: bool, tmp_path: Path) -> None:
    raw = deepcopy(TINY)
    weights = tmp_path / "w.pt"
    weights.touch()
    raw["models"]["digits"] |= {"weights": str(weights), "training": {"epochs": epochs}}
    [name] = (name for name, study in raw["studies"].items() if study["kind"] == "fidelity")
    assert params(raw).descriptions.study(name)["trains"] == trains

"""The settings of rules: what decides a job's results, and nothing else."""

from copy import deepcopy
from pathlib import Path

import pytest
from pipelines import RETRAIN, TINY, params

from saliency_assay.pipeline.descriptions import range_text
from saliency_assay.pipeline.params import paths_digest, read_by, select

ATTRIBUTE = {"model": "f_s", "seed": "0", "data": "bam_os", "method": "gradcam", "shard": ""}
ARM = {
    "study": "retrain",
    "protocol": "roar",
    "method": "gradient",
    "fill": "mean",
    "seed": "3",
    "iteration": "1",
}


def test_maps_depend_on_the_model_the_images_and_the_method() -> None:
    settings = params(TINY).attribute(ATTRIBUTE)
    assert settings["model"]["cam_layer"] == "layer3"
    assert settings["explained"]["limit"] == 30
    assert settings["function"] == "saliency_assay.methods.cam:gradcam"
    assert (settings["seed"], settings["pairs"], settings["registered"]) == (0, False, True)
    assert {"base", "background"}.isdisjoint(settings)


def test_a_model_has_a_cam_layer_only_for_methods_that_need_one() -> None:
    assert "cam_layer" not in params(TINY).attribute({**ATTRIBUTE, "method": "edge"})["model"]


def test_a_smoothed_method_has_the_method_that_it_smooths() -> None:
    settings = params(TINY).attribute({**ATTRIBUTE, "method": "smooth", "model": "digits", "data": "digits"})
    assert settings["base"]["function"] == "saliency_assay.methods.cam:gradcam"


@pytest.mark.parametrize(
    ("model", "data", "explained"),
    [
        ("f_s", "bam_delta_seed0", {"limit": 16, "order": "first", "where": {}}),
        ("f_k01", "bam_os_k01", {"limit": 30, "order": "balanced", "where": {"label_scene": 0}}),
        ("f_picture", "captioned_both", {"limit": 10, "order": "balanced", "where": {"aligned": 1}}),
        ("digits", "digits", {"limit": 20, "order": "balanced", "where": {}}),
    ],
)
def test_which_images_are_explained_is_decided_by_their_set(
    model: str, data: str, explained: dict[str, object]
) -> None:
    settings = params(TINY).attribute({**ATTRIBUTE, "method": "edge", "model": model, "data": data})
    assert select(settings["explained"], *explained) == explained
    assert settings["pairs"] == data.startswith("bam_delta")


def test_explained_classes_restrict_the_explained_images_alone() -> None:
    configuration = deepcopy(TINY)
    configuration["data"]["digits"]["explained_classes"] = ["3"]
    changed, tiny = params(configuration), params(TINY)
    at = {**ATTRIBUTE, "method": "edge", "model": "digits", "data": "digits"}
    assert changed.attribute(at)["explained"]["where"] == {"label_class": ["3"]}
    assert changed.build_data(at) == tiny.build_data(at)
    configuration["data"]["captioned"]["explained_classes"] = [
        configuration["data"]["captioned"]["classes"][0]
    ]
    at = {**at, "model": "f_picture", "data": "captioned_both"}
    assert set(params(configuration).attribute(at)["explained"]["where"]) == {"aligned", "label_class"}


def test_a_score_has_the_method_only_where_its_metric_computes_maps() -> None:
    at = {"model": "digits", "seed": "0", "data": "digits", "method": "gradient", "shard": ""}
    tiny = params(TINY)
    with_method, without = (tiny.score({**at, "metric": metric}) for metric in ("sensitivity", "infidelity"))
    assert with_method["method"]["function"] == "saliency_assay.methods.gradient:gradient"
    assert "method" not in without
    assert without["parameters"]["largest"] == 2


def test_a_trial_trains_with_its_combination_and_the_first_seed() -> None:
    tiny = params(TINY)
    trials = [tiny.trial({"model": "searched", "trial": trial}) for trial in "01"]
    assert [trial["training"]["learning_rate"] for trial in trials] == [0.05, 0.1]
    assert trials[1]["state"] == "results/.state/trial/searched/trial1.pt"
    assert trials[1]["seed"] == 0


def test_weights_from_outside_the_results_count_by_content(tmp_path: Path) -> None:
    configuration, weights = deepcopy(TINY), tmp_path / "weights.pt"
    configuration["models"]["digits"]["weights"] = str(weights)
    digests = []
    for content in (b"one", b"two"):
        weights.write_bytes(content)
        settings = params(configuration, tmp_path / "results").train({"model": "digits", "seed": "0"})
        digests.append(settings["files"])
    assert digests[0][0][0] == digests[1][0][0] == "weights.pt"
    assert digests[0] != digests[1]


def test_maps_from_another_program_count_by_content_where_they_are_read(tmp_path: Path) -> None:
    maps = tmp_path / "digits_digits_3.npy"
    configuration = deepcopy(RETRAIN)
    configuration["methods"]["theirs"] = {"maps": f"{tmp_path}/{{model}}_{{data}}_{{seed}}.npy"}
    configuration["studies"] = {"look": {"kind": "gallery", "model": "digits", "methods": ["theirs"]}}
    configuration |= {"seeds": [3], "metrics": {"sensitivity_max": {}, "complexity": {}}}
    at = {"model": "digits", "seed": "3", "data": "digits", "method": "theirs", "shard": ""}
    jobs = []
    for content in ("one", "two"):
        maps.write_text(content)
        of = params(configuration, tmp_path / "results")
        metrics = [of.score({**at, "metric": metric}) for metric in configuration["metrics"]]
        jobs.append([of.attribute(at), *metrics, of.attribute({**at, "method": "gradient"})])
    (first, *others), (second, *others_again) = jobs
    assert others == others_again
    assert first["maps"] == second["maps"] == str(maps)
    assert [name for name, _ in first["files"]] == [maps.name]
    assert first["files"] != second["files"]
    assert not any("files" in job for job in others)


CUSTOM = """
def build(*, classes, channels, generator): ...
def bright(model, images, targets, *, generator): ...
def plain(predict, images, targets, maps, *, generator): ...
def again(predict, images, targets, maps, *, generator, explain): ...
"""


def test_files_of_custom_functions_count_where_the_function_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "customs.py").write_text(CUSTOM)
    configuration = deepcopy(RETRAIN)
    model = configuration["models"]["digits"]
    del model["architecture"]
    entries = {"net": model, "map": {}, "metric": {"direction": "higher"}, "again": {"direction": "higher"}}
    for (name, entry), function in zip(entries.items(), ("build", "bright", "plain", "again"), strict=True):
        (tmp_path / f"{name}.npy").write_text("1")
        entry |= {"function": f"customs:{function}", "files": [str(tmp_path / f"{name}.npy")]}
    smoothed = {"method": "smoothgrad", "base": "map"}
    configuration |= {
        "methods": {"map": entries["map"], "smoothed": smoothed, "gradient": {}},
        "metrics": {"metric": entries["metric"], "again": entries["again"]},
    }
    configuration["studies"]["retrain"] |= {"methods": ["map", "gradient"]}
    configuration["studies"]["compare"] = {"kind": "fidelity", "model": "digits"}
    of = params(configuration, tmp_path / "results")
    retrain = of.of_kind("retrain")
    at = {"model": "digits", "seed": "0", "data": "digits", "method": "map", "shard": ""}
    jobs = {
        "net": [
            of.train(at),
            of.evaluate(at),
            of.attribute({**at, "method": "gradient"}),
            retrain.retrain(ARM),
            retrain.measure_mask_leakage(ARM),
        ],
        "net map": [
            of.attribute(at),
            of.attribute({**at, "method": "smoothed"}),
            retrain.remask({**ARM, "method": "map", "shard": ""}),
        ],
        "net metric": [of.score({**at, "metric": "metric"})],
        "net again": [of.score({**at, "metric": "again", "method": "gradient"})],
        "net again map": [of.score({**at, "metric": "again"})],
    }
    for names, settings in jobs.items():
        for job in settings:
            assert [name for name, _ in job["files"]] == [f"{name}.npy" for name in names.split()]
    assert "files" not in of.build_data({"data": "digits"})
    (tmp_path / "map.npy").write_text("22")
    changed = params(configuration, tmp_path / "results")
    assert changed.attribute(at)["files"] != of.attribute(at)["files"]
    assert changed.attribute({**at, "method": "gradient"}) == of.attribute({**at, "method": "gradient"})


def test_roar_makes_all_masks_at_once_and_iteroar_one() -> None:
    of = params(RETRAIN).of_kind("retrain")
    settings = [of.remask({**ARM, "shard": "", "protocol": protocol}) for protocol in ("roar", "iteroar")]
    assert [each["masks"] for each in settings] == [3, 1]
    assert settings[0]["state"] == "results/.state/remask/retrain/roar/gradient/mean/seed3/iteration1"


def test_a_set_depends_only_on_parameters_that_it_is_composed_by() -> None:
    tiny = params(TINY)
    plain, scaled, common = (
        tiny.compose_bam({"data": data}) for data in ("bam_os", "bam_os_scale", "bam_os_k01")
    )
    assert set(scaled["parameters"]) - set(plain["parameters"]) == {"variant_smallest", "variant_largest"}
    assert set(common["parameters"]) - set(plain["parameters"]) == {"images_per_scene"}
    assert (plain["common_object"], common["common_object"]) == ("", "dog")


def test_patches_do_not_depend_on_what_only_scores_are_made_with() -> None:
    settings = params(TINY).of_kind("bam").optimize_patch({"study": "bam", "seed": "0"})
    assert settings["parameters"]["steps"] == 5
    assert {"threshold", "samples", "sample_size"}.isdisjoint(settings["parameters"])


def test_k_is_the_share_of_scene_classes() -> None:
    settings = params(TINY).of_kind("bam").score_series({"study": "bam", "seed": "0", "method": "edge"})
    assert settings["k"] == [0.1, 1.0]
    assert settings["sets"] == ["bam_os_k01", "bam_os_k10"]


def test_plans_count_masks_and_classifiers_of_retrain_studies_alone() -> None:
    (plan,) = params(RETRAIN).study_workloads()
    assert plan["mask_stores"] == [[4, 3], [4 + 4 * 2 * 2, 1]]
    once = dict.fromkeys(("train", "trial", "finetune", "retrain"), 1)
    assert plan["models_each"] == {**once, "measure_mask_leakage": 6}
    assert plan["timed_as"]["remask"] == [["remask/retrain", 0.5]]
    others = [each for each in params(TINY).study_workloads() if each["name"] != "retrain"]
    assert all(
        each["mask_stores"] == [] and "measure_mask_leakage" not in each["timed_as"] for each in others
    )


def test_a_training_keeps_images_by_the_limit_of_its_set() -> None:
    configuration = deepcopy(RETRAIN)
    configuration["data"]["digits"]["resident_limit"] = 0.5
    of = params(configuration)
    assert of.resident_limit_of_model({"model": "digits"}) == 500
    assert of.resident_limit_of_study({"study": "retrain"}) == 500


def test_cautions_are_of_methods_that_are_fitted_to_a_metric() -> None:
    tiny = params(TINY)
    (caution,) = tiny.summarize({"study": "captions"})["study"]["references"]
    assert caution.startswith("Optimal (halves) is the best possible map under INFD (halves)")
    assert tiny.summarize({"study": "digits"})["study"]["references"] == []


def test_upper_controls_are_those_of_the_metrics_of_a_study() -> None:
    raw = deepcopy(TINY)
    raw["methods"]["optimal"] = {"method": "optimal_square", "largest": 2}
    raw["methods"]["other"] = {"method": "optimal_square", "largest": 3}
    raw["studies"]["digits"]["methods"] += ["optimal", "other", "random"]
    controls = params(raw).tabulate_reliability({"study": "digits"})["controls"]
    assert controls == {
        "lower": "random",
        "upper": {"infidelity": {"infidelity": ["optimal"]}},
        "unranked": [],
        "of_models": False,
    }
    captions = params(raw).tabulate_reliability({"study": "captions"})["controls"]
    upper = {"infidelity": {"infidelity_halves": ["optimal_halves"]}}
    assert captions == {"lower": "", "upper": upper, "unranked": [], "of_models": True}


def test_a_study_names_the_colors_that_stand_for_absence() -> None:
    raw = deepcopy(TINY)
    raw["methods"] |= {"hidden": {"method": "occlusion"}, "rise": {"samples": 2, "baseline": "mean"}}
    raw["methods"] |= {"mask": {"method": "extremal_perturbation", "steps": 1}}  # blurs
    raw["studies"]["digits"]["methods"] += ["hidden", "rise", "mask"]
    assert params(raw).summarize({"study": "digits"})["study"]["reference_colors"] == {
        "hidden": "gray",
        "rise": "mean",
    }


def test_papers_know_methods_by_what_they_smooth_and_what_their_maps_are() -> None:
    configuration = deepcopy(TINY)
    configuration["methods"]["integrated"] = {"method": "integrated_gradients", "times_input": False}
    configuration["methods"]["plain"] = {"method": "smoothgrad"}
    facts = params(configuration).descriptions
    assert facts.paper_method("smooth") == "smoothgrad of gradcam"
    assert facts.paper_method("plain") == "smoothgrad"
    configuration["studies"]["captions"]["methods"] = ["optimal_halves", "gradient", "integrated"]
    settings = params(configuration).of_kind("caption").plot_caption({"study": "captions"})
    assert settings["methods"] == {
        "optimal_halves": "optimal_halves",
        "gradient": "gradient, local",
        "integrated": "integrated_gradients, local",
    }


def test_parameters_are_those_that_a_function_reads() -> None:
    function = "saliency_assay.methods.smoothing:smoothgrad"
    assert read_by(function, {"samples": 3, "color": 1}) == {"samples": 3}


def test_annotations_count_by_their_paths(tmp_path: Path) -> None:
    (tmp_path / "scene").mkdir()
    (tmp_path / "scene/one.xml").write_text("a")
    before = paths_digest(tmp_path)
    (tmp_path / "scene/one.xml").write_text("b")
    assert paths_digest(tmp_path) == before
    (tmp_path / "scene/two.xml").touch()
    assert paths_digest(tmp_path) != before


@pytest.mark.parametrize(
    ("low", "high", "text"), [(0, 1, "[0, 1]"), (-1, float("inf"), "[-1, ∞)"), (0.5, 2e6, "[0.5, 2e+06]")]
)
def test_a_range_is_open_at_infinity(low: float, high: float, text: str) -> None:
    assert range_text(low, high) == text

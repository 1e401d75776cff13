"""The studies of a configuration by kind, and what each of them has."""

from copy import deepcopy

from pipelines import RETRAIN, TINY, inputs, studies

from saliency_assay.studies.fidelity import FIDELITY


def test_studies_are_listed_by_kind_and_by_option() -> None:
    tiny = studies(TINY)
    assert tiny.all == ["bam", "captions", "digits", "retrain"]
    assert tiny.rated == tiny.all
    assert tiny.of_kind("caption") == ["captions"]
    options = {"bam": ["series", "independence", "concepts"], "retrain": ["leakage"], "fidelity": ["scatter"]}
    for kind, requested in options.items():
        assert all(tiny.of_kind(kind, option) == tiny.of_kind(kind) for option in requested)
    assert tiny.of_kind("bam", "leakage") == []
    assert tiny.pair_sets == {"bam_delta_seed0": 8}


def test_a_bam_study_has_only_its_options() -> None:
    configuration = deepcopy(TINY)
    for key in ("series", "independence", "concepts", "robustness"):
        del configuration["studies"]["bam"][key]
    plain = studies(configuration)
    study = plain.study("bam")
    assert (study.options, study.all_models, plain.pair_sets) == ((), ("f_o", "f_s"), {})
    assert study.evaluated["f_s"] == ("bam_os", "bam_0s", "bam_og")
    claims = inputs(configuration).of_kind("bam").check_claims({"study": "bam"})
    assert list(claims) == ["premise", "metrics"]


def test_galleries_are_rated_by_nothing() -> None:
    configuration = deepcopy(RETRAIN)
    configuration["studies"]["look"] = {"kind": "gallery", "model": "digits", "methods": ["random"]}
    both = studies(configuration)
    assert both.rated == ["retrain"]
    assert both.figures("look") == ["study.html", "gallery.html"]
    assert both.tables("look") == both.summary_tables("look") == []


def test_models_are_evaluated_on_their_own_set_and_those_they_are_compared_on() -> None:
    tiny = studies(TINY)
    assert tiny.evaluated_sets("f_s") == ["bam_os", "bam_0s", "bam_og", "bam_os_scale"]
    assert tiny.evaluated_sets("f_k01") == ["bam_os_k01", "bam_0s_k"]
    assert tiny.evaluated_sets("f_picture") == ["captioned_both", "captioned_image", "captioned_caption"]
    assert tiny.evaluated_sets("digits") == ["digits"]


def test_directions_and_questions_are_of_the_scores_that_rate_methods() -> None:
    tiny = studies(TINY)
    assert (
        set(tiny.directions("bam")) == set(tiny.questions("bam")) == {"mcs", "idr", "iir", "iir_difference"}
    )
    assert tiny.directions("retrain") == {"accuracy": "lower", "accuracy_lerf": "higher"}
    assert tiny.directions("digits")["faithfulness"] == "higher"
    assert tiny.class_label("bam") == "scene"
    assert tiny.class_label("digits") == "class"
    assert tiny.baselines("bam") == ["random", "edge"]


def test_a_study_is_of_localization_if_all_its_metrics_take_the_mask() -> None:
    configuration = deepcopy(TINY)
    configuration["metrics"]["pointing_game"] = {}
    located = {"kind": "fidelity", "model": "f_o", "methods": ["gradient"], "metrics": ["pointing_game"]}
    configuration["studies"]["objects"] = located
    assert studies(configuration).study_question("objects") == FIDELITY.mask_question
    located["metrics"].append("sensitivity")
    assert studies(configuration).study_question("objects") == FIDELITY.mixed_question


def test_mask_figures_are_of_every_protocol_and_fill() -> None:
    shown = [name for name in studies(RETRAIN).figures("retrain") if "/" in name]
    arms = [f"{protocol}_{fill}" for protocol in ("roar", "iteroar") for fill in ("zero", "mean")]
    assert shown == [f"{arm}/{name}" for name in ("matrices.svg", "images.html") for arm in arms]


def test_galleries_show_each_method_once_for_each_model() -> None:
    configuration = deepcopy(TINY)
    configuration["studies"]["again"] = configuration["studies"]["digits"]
    maps = studies(configuration).gallery_maps
    assert maps == studies(TINY).gallery_maps
    assert maps[0] == {"model": "f_o", "data": "bam_os", "method": "gradcam", "seed": 0}
    assert studies(TINY).gallery_sets == ["bam_os", "captioned_both", "digits"]


def test_without_studies_all_models_and_sets_are_shown() -> None:
    none = studies({**RETRAIN, "studies": {}})
    assert (none.models, none.gallery_sets, none.gallery_maps) == (["digits"], ["digits"], [])

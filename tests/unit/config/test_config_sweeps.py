"""The key ``sweep``: names and labels of the members of a family, families in studies, and what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import Configuration, read
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.labels import labels_of
from saliency_assay.pipeline.studies import Studies

STUDY = """
data: {digits: {kind: digits}}
models: {net: {architecture: resnet8, data: digits, trained_on: class}}
methods: {gradient: {}, smoothgrad: {samples: 4, sweep: {noise: [0.05, 0.1]}}, random: {}}
metrics: {deletion: {sweep: {fill: [black, mean]}}, complexity: {}}
studies: {one: {kind: fidelity, model: net}}
"""
NOISE = ("smoothgrad_noise_0.05", "smoothgrad_noise_0.1")
FILL = ("deletion_fill_black", "deletion_fill_mean")

Change = Callable[[Any], None]


def configured(change: Change = lambda raw: None) -> Configuration:
    raw = yaml.safe_load(STUDY)
    change(raw)
    return read(raw, catalog=CATALOG, source="study.yaml")


def setting(place: str, value: Any) -> Change:
    """Return a change of one entry of the configuration."""

    def change(raw: Any) -> None:
        *steps, last = place.split(".")
        for step in steps:
            raw = raw[step]
        raw[last] = value

    return change


def message(change: Change) -> str:
    with pytest.raises(ConfigError) as error:
        configured(change)
    return str(error.value)


def test_a_family_becomes_one_entry_for_each_value() -> None:
    config = configured()
    assert list(config.methods) == ["gradient", *NOISE, "random"]
    assert [config.methods[name].label for name in NOISE] == [
        "SmoothGrad (noise 0.05)",
        "SmoothGrad (noise 0.1)",
    ]
    for name, noise in zip(NOISE, (0.05, 0.1), strict=True):
        method = config.methods[name]
        assert (method.method, method.noise_group) == ("smoothgrad", "smoothgrad")
        assert (method.parameters["noise"], method.parameters["samples"]) == (noise, 4)
    assert config.studies["one"].methods == ("gradient", *NOISE, "random")
    assert config.studies["one"].metrics == (*FILL, "complexity")
    assert config.metrics["deletion_fill_mean"].label == "Deletion (fill mean)"


def test_several_parameters_are_combined_in_alphabetical_order() -> None:
    """So that the order of keys in a file changes no name and reruns no job."""
    orders = [{"noise": [0.1, 1.0], "samples": [2, 30]}, {"samples": [2, 30], "noise": [0.1, 1.0]}]
    names = [list(configured(setting("methods.smoothgrad", {"sweep": order})).methods) for order in orders]
    values = ["noise_0.1_samples_2", "noise_0.1_samples_30", "noise_1_samples_2", "noise_1_samples_30"]
    assert names == [["gradient", *(f"smoothgrad_{value}" for value in values), "random"]] * 2


def test_a_study_lists_families_or_members() -> None:
    assert configured(setting("studies.one.methods", ["smoothgrad"])).studies["one"].methods == NOISE
    assert configured(setting("studies.one.metrics", ["deletion"])).studies["one"].metrics == FILL
    config = configured(setting("studies.one.methods", ["gradient", NOISE[1]]))
    assert config.studies["one"].methods == ("gradient", NOISE[1])
    assert Studies(config, CATALOG.study_kinds).families("one")["methods"] == []
    both = message(setting("studies.one.methods", ["smoothgrad", NOISE[1]]))
    assert "studies.one.methods" in both
    assert NOISE[1] in both


def test_other_lists_and_other_kinds_of_entries_take_families(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "swept_functions.py").write_text(
        "def compute(model, images, targets, *, generator, share=0.5):\n    return images\n"
    )

    def change(raw: Any) -> None:
        raw["methods"]["own"] = {"function": "swept_functions:compute", "sweep": {"share": [0.1, 1]}}
        raw["methods"]["captums"] = {"captum": "GradientShap", "sweep": {"n_samples": [5, 10]}}
        raw["studies"]["one"] = {"kind": "validity", "model": "net", "degraded_methods": ["smoothgrad"]}

    config = configured(change)
    assert config.studies["one"].degraded_methods == NOISE  # type: ignore[attr-defined]  # of this kind
    assert [config.methods[f"own_share_{value}"].parameters for value in ("0.1", "1")] == [
        {"share": 0.1},
        {"share": 1},
    ]
    assert config.methods["captums_n_samples_5"].parameters == {"n_samples": 5}


def test_families_have_labels_figures_and_tables() -> None:
    config = configured(setting("methods.smoothgrad.label", "SG"))
    studies = Studies(config, CATALOG.study_kinds)
    (methods,), (metrics,) = studies.families("one").values()
    assert (methods.label, dict(methods.members)) == (
        "SG",
        {NOISE[0]: {"noise": 0.05}, NOISE[1]: {"noise": 0.1}},
    )
    assert dict(metrics.members) == {FILL[0]: {"fill": "black"}, FILL[1]: {"fill": "mean"}}
    assert labels_of(config).methods["smoothgrad"] == "SG"
    assert {"methods_sweep_smoothgrad.svg", "metrics_sweep_deletion.svg"} <= set(studies.figures("one"))
    assert {"sweeps", "metric_sweeps"} <= set(studies.tables("one"))


def test_a_study_without_families_has_no_figures_or_tables_of_sweeps() -> None:
    config = configured(
        setting(
            "studies.one",
            {"kind": "fidelity", "model": "net", "methods": ["gradient"], "metrics": ["complexity"]},
        )
    )
    studies = Studies(config, CATALOG.study_kinds)
    assert studies.swept == []
    assert not {"sweeps", "metric_sweeps"} & set(studies.tables("one"))


def test_a_member_can_be_smoothed_but_not_its_family() -> None:
    def smoothed(base: str) -> Change:
        def change(raw: Any) -> None:
            raw["methods"]["integrated_gradients"] = {"sweep": {"steps": [5, 9]}}
            raw["methods"]["smoothgrad"] = {"base": base}

        return change

    base = configured(smoothed("integrated_gradients_steps_9")).methods["smoothgrad"].smoothed
    assert base is not None
    assert base.parameters["steps"] == 9
    refused = message(smoothed("integrated_gradients"))
    assert "methods.smoothgrad.base" in refused
    assert "integrated_gradients_steps_5" in refused


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        ("methods.smoothgrad.sweep", {}, ["methods.smoothgrad.sweep", "{}"]),
        ("methods.smoothgrad.sweep", {"noise": 0.1}, ["methods.smoothgrad.sweep.noise", "0.1", "list"]),
        ("methods.smoothgrad.sweep", {"noise": []}, ["methods.smoothgrad.sweep.noise", "0 values"]),
        ("methods.smoothgrad.sweep", {"noise": [0.1]}, ["methods.smoothgrad.sweep.noise", "1 value"]),
        ("methods.smoothgrad.sweep", {"noise": [1, 1.0]}, ["methods.smoothgrad.sweep.noise", "[1, 1.0]", "equal"]),
        ("methods.smoothgrad.sweep", {"nois": [1, 2]}, ["methods.smoothgrad.sweep", "'nois'", "'noise'"]),
        ("methods.smoothgrad.sweep", {"noise": [-1, 2]}, ["methods.smoothgrad.sweep.noise", "-1", "at least 0"]),
        ("methods.smoothgrad.sweep", {"samples": [5, 9]}, ["sweep.samples", "methods.smoothgrad.samples"]),
        ("methods.smoothgrad.sweep", {"base": ["gradient", "gradcam"]}, ["methods.smoothgrad.sweep.base"]),
        ("methods.smoothgrad.sweep", {"noise": ["a/b", "c"]}, ["methods.smoothgrad.sweep.noise", "'a/b'"]),
        ("methods.smoothgrad.sweep", {"noise": [[1], [2]]}, ["methods.smoothgrad.sweep.noise", "[1]"]),
        ("methods.smoothgrad.samples", 0, ["methods.smoothgrad.samples", "at least"]),
        ("metrics.deletion.sweep", {"fill": ["black", "pink"]}, ["metrics.deletion.sweep.fill", "'pink'"]),
        ("metrics.mcs", {"sweep": {"samples": [1, 2]}}, ["metrics.mcs.sweep"]),
        ("data.digits.max_explained_images", 3, ["data.digits.max_explained_images", "3", "at least 4", "studies.one"]),
    ],
)  # fmt: skip
def test_faults_name_the_key_in_the_file(place: str, value: Any, expected: list[str]) -> None:
    text = message(setting(place, value))
    assert all(part in text for part in expected), text
    assert "smoothgrad_noise" not in text


def test_a_member_with_the_name_of_another_entry_is_refused() -> None:
    def change(raw: Any) -> None:
        raw["methods"]["smooth"] = {"method": "smoothgrad", "sweep": {"noise": [1, 2]}}
        raw["methods"]["smooth_noise_1"] = {"method": "gradient"}

    text = message(change)
    assert "methods.smooth.sweep" in text
    assert "smooth_noise_1" in text

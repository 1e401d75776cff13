"""The configuration: what is read, what defaults give, and that schema, registries and files agree."""

import sys
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from configurations import FOLDER, bam_folders, base, changed, fault, reading

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import configuration_of, read
from saliency_assay.config.data import (
    BamData,
    CaptionData,
    FolderData,
    ImageFolderData,
    PlainData,
    SyntheticData,
)
from saliency_assay.config.fields import Entry
from saliency_assay.config.methods import CustomMethod, RegisteredMethod
from saliency_assay.config.metrics import CustomMetric, RegisteredMetric
from saliency_assay.config.models import CustomModel, RegisteredModel
from saliency_assay.data.bam.classes import OBJECTS, SCENES

TRAINING = {"epochs": 10, "learning_rate": 0.1, "validation_share": 0.0}
FILES = sorted(path for path in FOLDER.glob("*.yaml") if path.name != "schema.yaml")


# --- what is read -------------------------------------------------------------------------------------------

CONFIGURATION = configuration_of(tuple(CATALOG.study_kinds.values()))


def shape(raw: Any) -> dict[str, Any]:
    """The sections of ``raw`` with all defaults, but without empty ones, which stand for an absent key."""
    return _filled(CONFIGURATION.model_validate(raw).model_dump(exclude_none=True, warnings=False))


def _filled(values: dict[str, Any]) -> dict[str, Any]:
    filled = {key: _filled(value) if isinstance(value, dict) else value for key, value in values.items()}
    return {key: value for key, value in filled.items() if value not in ("", (), {})}


def test_defaults_of_all_keys() -> None:
    assert shape(base()) == {
        "results": "results",
        "device": "auto",
        "seeds": (0,),
        "data": {
            name: {
                "kind": name, "max_explained_images": 1000, "explanation_order": "balanced", "shards": 1,
                "resident_limit": 8, **more,
            }
            for name, more in (
                ("bam", {"kind": "synthetic", "common_object": "dog"}),
                ("digits", {}),
            )
        },
        "models": {
            name: {
                "architecture": architecture, "data": data, "trained_on": label, "target": "label", "batch_size": 64,
            }
            for name, architecture, data, label in (
                ("f_o", "resnet", "bam_os", "object"),
                ("f_s", "resnet", "bam_os", "scene"),
                ("d", "mlp", "digits", "class"),
            )
        },
        "methods": {
            "gradient": {"background": 100},
            "gradcam": {"background": 100},
            "smooth": {"method": "smoothgrad", "background": 100},
        },
        "studies": {
            "bam": {
                "kind": "bam", "data": "bam", "object_model": "f_o", "scene_model": "f_s", "concepts": False,
            },
            "digits": {"kind": "gallery", "model": "d", "methods": ("gradient",)},
        },
        "reliability": {"resamples": 10000, "level": 0.999, "ranks": "wins", "margin_unit": "sd"},
        "report": {"gallery_images": 6},
    }  # fmt: skip


def test_defaults_never_share_state() -> None:
    one, two = (CONFIGURATION.model_validate(base()) for _ in range(2))
    one.metrics["mcs"] = RegisteredMetric()
    one.models["d"].training["epochs"] = 1
    assert (two.metrics, two.models["d"].training) == ({}, {})


def test_numbers_are_kept_as_they_are_written() -> None:
    """They become parameters of jobs, which run again where 8 becomes 8.0."""
    raw = changed("data.digits.resident_limit", 2)
    raw["reliability"] = {"level": 0.5}
    raw["data"]["bam"]["commonality"] = [1]
    found = CONFIGURATION.model_validate(raw)
    assert [type(entry.resident_limit) for entry in found.data.values()] == [int, int]
    assert type(found.reliability.level) is float
    assert repr(shape(raw)["data"]["bam"]["commonality"]) == "(1,)"


def test_what_is_given_is_left_alone() -> None:
    raw = base()
    before = deepcopy(raw)
    reading(raw)
    assert raw == before


def test_records_of_a_configuration() -> None:
    found = reading(base())
    assert (found.results, found.device, found.seeds, found.report.gallery_images) == (
        "results",
        "auto",
        (0,),
        6,
    )
    assert (found.reliability.resamples, found.reliability.level) == (10_000, 0.999)
    bam = found.data["bam"]
    assert (bam.kind, bam.function, bam.max_explained_images) == ("synthetic", "package.synthetic:make", 1000)
    assert (bam.explanation_order, bam.has_masks, found.data["digits"].has_masks) == ("balanced", True, False)
    assert (bam.shards, bam.resident_limit) == (1, 8)
    assert bam.parameters == {"size": 32, "smallest": 0.25, "largest": 0.5}
    assert {name: entry.name for name, entry in found.sets.items()} == {
        "bam_os": "bam",
        "bam_0s": "bam",
        "bam_og": "bam",
        "digits": "digits",
    }
    f_o = found.models["f_o"]
    assert (f_o.architecture, f_o.function, f_o.cam_layer) == ("resnet", "package.resnet:resnet", "last")
    assert (f_o.concept_layers, f_o.parameters, f_o.weights) == (("one", "two"), {"width": 16}, "")
    assert (f_o.batch_size, f_o.training, f_o.trials) == (64, TRAINING, ())
    assert f_o.target == "label"
    smooth = found.methods["smooth"]
    assert (smooth.name, smooth.label, smooth.method) == ("smooth", "Smooth", "smoothgrad")
    assert (smooth.function, smooth.noise_group) == ("package.smoothgrad:smoothgrad", "smoothgrad")
    assert smooth.parameters == {"samples": 25, "noise": 0.15, "statistic": "mean"}
    assert (smooth.needs, smooth.background, smooth.smoothed) == (("gradients",), 0, None)
    assert {name: metric.parameters for name, metric in found.metrics.items()} == {
        "mcs": {"samples": 10},
        "idr": {},
    }
    assert not any(metric.scores_single_maps for metric in found.metrics.values())
    bam, digits = found.studies.values()
    assert (bam.name, bam.kind, bam.data, bam.models) == ("bam", "bam", "bam", ("f_o", "f_s"))
    assert bam.methods == ("gradient", "gradcam", "smooth")
    assert (bam.options, bam.metrics, bam.pair_sets) == ((), ("mcs", "idr", "iir"), {})
    assert (digits.kind, digits.data, digits.models, digits.methods) == (
        "gallery",
        "digits",
        ("d",),
        ("gradient",),
    )


def test_parameters_are_taken_where_they_belong() -> None:
    raw = changed("models.f_o", {
        "architecture": "resnet", "width": 24, "data": "bam_os", "trained_on": "object", "batch_size": 8,
        "target": "predicted", "training": {"epochs": 3},
    })  # fmt: skip
    raw["data"]["digits"] |= {"size": 16, "explanation_order": "first", "shards": 4, "resident_limit": 0.5}
    raw["methods"]["smooth"]["noise"] = 1
    raw["metrics"] = {"mcs": {"samples": 4}}
    raw |= {"results": "out/", "seeds": [3, 1], "device": "cpu", "report": {"gallery_images": 2}}
    found = reading(raw)
    assert found.models["f_o"].parameters == {"width": 24}
    assert (found.models["f_o"].batch_size, found.models["f_o"].target) == (8, "predicted")
    assert found.models["f_o"].training == {**TRAINING, "epochs": 3}
    digits = found.data["digits"]
    assert (digits.parameters, digits.explanation_order, digits.resident_limit) == (
        {"size": 16},
        "first",
        0.5,
    )
    assert digits.shards == 4
    assert found.methods["smooth"].parameters["noise"] == 1
    assert found.metrics["mcs"].parameters == {"samples": 4}
    assert (found.results, found.seeds, found.device, found.report.gallery_images) == (
        "out",
        (3, 1),
        "cpu",
        2,
    )


@pytest.mark.parametrize("module", ["reader", "package.reader", "package"])
def test_files_of_custom_functions_are_in_the_folder_of_the_import(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("package", "reader", "package.reader"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "package").mkdir()
    for path in ("reader.py", "package/reader.py", "package/__init__.py"):
        (tmp_path / path).write_text("def scores(predict, images, targets, maps, *, generator): ...\n")
    entry = {"function": f"{module}:scores", "direction": "higher", "files": ["tables/a.npy"]}
    raw, table = changed("metrics.mine", entry), tmp_path / "tables/a.npy"
    assert fault(raw) == f"metrics.mine.files: found '{table}', expected a file that exists"
    table.parent.mkdir()
    table.touch()
    assert reading(raw).metrics["mine"].files == (str(table),)


# --- schema, registries and files agree ---------------------------------------------------------------------


def test_bams_classes_are_the_defaults() -> None:
    fields = BamData.model_fields
    assert (fields["objects"].default, fields["scenes"].default) == (OBJECTS, SCENES)


@pytest.mark.parametrize(
    ("records", "models"),
    [
        (CATALOG.data_kinds, (BamData, SyntheticData, CaptionData, FolderData, ImageFolderData, PlainData)),
        (CATALOG.architectures, (RegisteredModel, CustomModel)),
        (CATALOG.methods, (RegisteredMethod, CustomMethod)),
        (CATALOG.metrics, (RegisteredMetric, CustomMetric)),
    ],
    ids=["data", "models", "methods", "metrics"],
)
def test_no_parameter_is_hidden_by_a_key_of_the_configuration(
    records: Mapping[str, Any], models: tuple[type[Entry], ...]
) -> None:
    keys = {key for model in models for key in model.own_keys()} | {"parameters"}
    hidden = {name: keys & set(record.parameters) for name, record in records.items()}
    assert hidden == {name: set() for name in records}


def test_defaults_of_all_registries_are_valid() -> None:
    sections = (CATALOG.data_kinds, CATALOG.architectures, CATALOG.methods, CATALOG.metrics)
    tables = {"training": CATALOG.training}
    tables |= {name: record.parameters for records in sections for name, record in records.items()}
    assert len(tables) > 15
    problems = {
        f"{name}.{key}": parameter.problem(parameter.default)
        for name, table in tables.items()
        for key, parameter in table.items()
    }
    assert {place: problem for place, problem in problems.items() if problem} == {}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_configurations_that_are_shipped_are_valid(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(path.parent)  # of custom methods
    coco, miniplaces = bam_folders(tmp_path)
    raw = yaml.safe_load(path.read_text())
    for entry in raw["data"].values():
        if entry["kind"] == "bam":
            entry |= {"coco": str(coco), "miniplaces": str(miniplaces)}
        entry |= dict.fromkeys(CATALOG.data_kinds[entry["kind"]].sources, str(tmp_path))  # any folder
        entry |= {"masks": str(coco)} if "masks" in entry else {}
    for entry in raw["models"].values():
        if "weights" in entry:
            entry["weights"] = str(coco / "annotations/instances_val2017.json")  # any file that exists
    found = read(raw, catalog=CATALOG, source=path.name)
    assert set(found.studies) == set(raw["studies"])
    assert {model.data for model in found.models.values()} <= set(found.sets)


def test_a_method_that_smooths_another_takes_its_parameters_and_needs() -> None:
    raw = changed("methods.smooth.base", "gradcam")
    raw["methods"]["gradcam"] = {"relu": False}
    smooth = reading(raw).methods["smooth"]
    assert smooth.smoothed == reading(raw).methods["gradcam"]
    assert smooth.smoothed.parameters == {"relu": False}
    assert smooth.needs == ("gradients", "cam_layer")
    del raw["methods"]["gradcam"]  # then the registered one, with its defaults
    raw["studies"]["bam"]["methods"] = ["gradient"]
    smooth = reading(raw).methods["smooth"]
    assert smooth.smoothed is not None
    assert (smooth.smoothed.method, smooth.smoothed.parameters) == ("gradcam", {"relu": True})


def test_a_background_has_a_default_and_a_size() -> None:
    assert reading(changed("methods.shap", {})).methods["shap"].background == 100
    assert reading(changed("methods.shap", {"background": 7})).methods["shap"].background == 7
    assert reading(base()).methods["gradient"].background == 0


def test_a_function_of_ones_own_is_a_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_module.py").write_text("def f(model, images, targets, *, generator, level=1): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    method = reading(changed("methods.mine", {"function": "own_module:f", "level": 2})).methods["mine"]
    assert (method.name, method.label, method.method) == ("mine", "Mine", "")
    assert (method.function, method.noise_group) == ("own_module:f", "own_module:f")
    assert method.parameters == {"level": 2}
    assert fault(changed("methods.mine", {"function": "own_module:f", "levl": 2})) == (
        "methods.mine.levl: unknown parameter 'levl'; did you mean 'level'? valid: level"
    )

"""The configuration: what is read, what defaults give, and that schema, registries and files agree."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from configurations import FOLDER, agrees, bam_folders, base, changed, fault, reading

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
                "output": "logits", "multi_label": False,
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


def test_numbers_are_kept_as_they_are_written() -> None:
    """They become parameters of jobs, which run again where 8 becomes 8.0."""
    raw = changed("data.digits.resident_limit", 2)
    raw["reliability"] = {"level": 0.5}
    raw["data"]["bam"]["commonality"] = [1]
    configuration = CONFIGURATION.model_validate(raw)
    assert [type(entry.resident_limit) for entry in configuration.data.values()] == [int, int]
    assert type(configuration.reliability.level) is float
    assert repr(shape(raw)["data"]["bam"]["commonality"]) == "(1,)"


def test_records_of_a_configuration() -> None:
    raw = base()
    configuration = reading(raw)
    assert raw == base()  # reading leaves it as it was
    bam = configuration.data["bam"]
    assert (bam.kind, bam.function, bam.max_explained_images) == ("synthetic", "package.synthetic:make", 1000)
    assert (bam.explanation_order, bam.has_masks, configuration.data["digits"].has_masks) == (
        "balanced",
        True,
        False,
    )
    assert bam.parameters == {"size": 32, "smallest": 0.25, "largest": 0.5}
    assert {name: entry.name for name, entry in configuration.sets.items()} == {
        **dict.fromkeys(("bam_os", "bam_0s", "bam_og"), "bam"),
        "digits": "digits",
    }
    f_o = configuration.models["f_o"]
    assert (f_o.architecture, f_o.function, f_o.cam_layer) == ("resnet", "package.resnet:resnet", "last")
    assert (f_o.concept_layers, f_o.parameters, f_o.weights) == (("one", "two"), {"width": 16}, "")
    assert (f_o.training, f_o.trials) == (TRAINING, ())
    smooth = configuration.methods["smooth"]
    assert (smooth.name, smooth.label, smooth.method) == ("smooth", "Smooth", "smoothgrad")
    assert (smooth.function, smooth.noise_group) == ("package.smoothgrad:smoothgrad", "smoothgrad")
    assert smooth.parameters == {"samples": 25, "noise": 0.15, "statistic": "mean"}
    assert (smooth.needs, smooth.background, smooth.smoothed) == (("gradients",), 0, None)
    metrics = configuration.metrics
    assert {name: metric.parameters for name, metric in metrics.items()} == {
        "mcs": {"samples": 10},
        "idr": {},
    }
    assert not any(metric.scores_single_maps for metric in metrics.values())
    bam, digits = configuration.studies.values()
    assert (bam.name, bam.kind, bam.data, bam.models) == ("bam", "bam", "bam", ("f_o", "f_s"))
    assert bam.methods == ("gradient", "gradcam", "smooth")
    assert (bam.options, bam.metrics, bam.pair_sets) == ((), ("mcs", "idr", "iir"), {})
    assert (digits.kind, digits.data, digits.models) == ("gallery", "digits", ("d",))
    assert digits.methods == ("gradient",)


def test_parameters_are_taken_where_they_belong() -> None:
    raw = changed("models.f_o", {
        "architecture": "resnet", "width": 24, "data": "bam_os", "trained_on": "object", "batch_size": 8,
        "target": "predicted", "training": {"epochs": 3},
    })  # fmt: skip
    raw["data"]["digits"] |= {"size": 16, "explanation_order": "first", "shards": 4, "resident_limit": 0.5}
    raw["methods"]["smooth"]["noise"] = 1
    raw["metrics"] = {"mcs": {"samples": 4}}
    raw |= {"results": "out/", "seeds": [3, 1], "device": "cpu", "report": {"gallery_images": 2}}
    configuration = reading(raw)
    model, digits = configuration.models["f_o"], configuration.data["digits"]
    assert (model.parameters, model.batch_size, model.target) == ({"width": 24}, 8, "predicted")
    assert model.training == {**TRAINING, "epochs": 3}
    assert (digits.parameters, digits.explanation_order) == ({"size": 16}, "first")
    assert (digits.resident_limit, digits.shards) == (0.5, 4)
    assert configuration.methods["smooth"].parameters["noise"] == 1
    assert configuration.metrics["mcs"].parameters == {"samples": 4}
    assert (configuration.results, configuration.seeds, configuration.device) == ("out", (3, 1), "cpu")
    assert configuration.report.gallery_images == 2


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
    assert agrees(fault(raw), f"metrics.mine.files: found '{table}' … a file that exists")
    table.parent.mkdir()
    table.touch()
    assert [source.path for source in reading(raw).metrics["mine"].sources] == [str(table)]


# --- schema, registries and files agree ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "models"),
    [
        (
            {name: kind for name, kind in CATALOG.data_kinds.items() if name != "folder"},
            (BamData, SyntheticData, CaptionData, FolderData, PlainData),
        ),
        ({"folder": CATALOG.data_kinds["folder"]}, (ImageFolderData,)),
        (CATALOG.architectures, (RegisteredModel, CustomModel)),
        (CATALOG.methods, (RegisteredMethod, CustomMethod)),
        (CATALOG.metrics, (RegisteredMetric, CustomMetric)),
    ],
    ids=["data", "folder", "models", "methods", "metrics"],
)
def test_no_parameter_is_hidden_by_a_key_of_the_configuration(
    records: Mapping[str, Any], models: tuple[type[Entry], ...]
) -> None:
    # ``size`` is a key of image files, whose records have no such parameter.
    keys = {key for model in models for key in model.own_keys()} - {"size"} | {"parameters"}
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
        entry |= dict.fromkeys(CATALOG.data_kinds[entry["kind"]].sources, str(tmp_path))  # any folder
        if entry["kind"] in ("bam", "coco"):
            entry["coco"] = str(coco)
        if entry["kind"] == "bam":
            entry["miniplaces"] = str(miniplaces)
        entry |= {"masks": str(coco)} if "masks" in entry else {}
    for entry in raw["models"].values():
        if "weights" in entry:
            entry["weights"] = str(coco / "annotations/instances_val2017.json")  # any file that exists
    configuration = read(raw, catalog=CATALOG, source=path.name)
    assert set(configuration.studies) == set(raw["studies"])
    assert {model.data for model in configuration.models.values()} <= set(configuration.sets)


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
    for keys, background in (({}, 100), ({"background": 7}, 7)):
        assert reading(changed("methods.shap", keys)).methods["shap"].background == background
    assert reading(base()).methods["gradient"].background == 0


def test_a_custom_function_is_a_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_module.py").write_text("def f(model, images, targets, *, generator, level=1): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    method = reading(changed("methods.mine", {"function": "own_module:f", "level": 2})).methods["mine"]
    assert (method.name, method.label, method.method) == ("mine", "Mine", "")
    assert (method.function, method.noise_group) == ("own_module:f", "own_module:f")
    assert method.parameters == {"level": 2}
    message = fault(changed("methods.mine", {"function": "own_module:f", "levl": 2}))
    assert agrees(message, "methods.mine.levl: unknown parameter 'levl' … 'level'")

import inspect
from pathlib import Path

import pytest

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import Configuration, read
from saliency_assay.config.data import FOLDERS, DataEntry, FolderData
from saliency_assay.config.errors import ConfigError
from saliency_assay.data import DATA_KINDS, DataKind
from saliency_assay.data.bam.classes import OBJECTS, SCENES
from saliency_assay.data.bam.compose import SETS
from saliency_assay.data.bam.members import VARIANTS, plan_common, rescaled
from saliency_assay.data.bam.placement import plan
from saliency_assay.data.synthetic.shapes import SILHOUETTES
from saliency_assay.data.synthetic.sources import write_sources
from saliency_assay.data.synthetic.textures import TEXTURES
from saliency_assay.registry.records import record_of, resolve


@pytest.mark.parametrize("kind", DATA_KINDS, ids=lambda kind: kind.name)
def test_records_are_sound(kind: DataKind) -> None:
    assert callable(resolve(kind.function))
    assert kind.labels
    for name, parameter in kind.parameters.items():
        assert parameter.problem(parameter.default) is None, name


def test_the_sets_are_those_that_can_be_composed() -> None:
    for name in ("bam", "synthetic"):
        assert record_of(DATA_KINDS, name, "data").sets == (*SETS, *VARIANTS)


def names(function: object) -> set[str]:
    return set(inspect.signature(function).parameters)


def test_parameters_of_bam_are_those_of_its_steps() -> None:
    for kind in DATA_KINDS:
        if kind.sets == (*SETS, *VARIANTS):
            steps = names(plan) | names(plan_common) | names(write_sources) | {"min_object_area", "seed"}
            assert set(kind.parameters) <= steps | names(rescaled)
    planned = names(plan) - {"collection", "generator"}
    assert planned <= set(record_of(DATA_KINDS, "bam", "data").parameters)


@pytest.mark.parametrize("kind", [kind for kind in DATA_KINDS if kind.sources], ids=lambda kind: kind.name)
def test_sources_are_keys_of_the_configuration(kind: DataKind) -> None:
    assert set(kind.sources) == set(FolderData.own_keys()) - set(DataEntry.own_keys())
    assert kind.name in FOLDERS


@pytest.mark.parametrize("kind", ["folder", "mnist", "cifar10", "stl10"])
def test_kinds_that_read_files_are_given_their_path(kind: str, tmp_path: Path) -> None:
    def configured(entry: dict[str, object]) -> Configuration:
        raw = {
            "data": {"some": {"kind": kind, **entry}},
            "models": {"m": {"architecture": "resnet8", "data": "some", "trained_on": "class"}},
            "methods": {"gradient": {}},
            "studies": {"s": {"kind": "gallery", "model": "m"}},
        }
        return read(raw, catalog=CATALOG, source="my.yaml")

    parameters = configured({"path": str(tmp_path)}).data["some"].parameters
    assert parameters["path"] == str(tmp_path)
    assert set(parameters) == {*record_of(DATA_KINDS, kind, "data").parameters, "path"}
    for entry, line in (
        ({}, "data.some: key 'path' is missing; required: kind, path"),
        ({"path": ""}, "data.some.path: found '', expected 1 or more characters"),
        ({"path": "no/where"}, "data.some.path: found 'no/where', expected a folder that exists"),
    ):
        with pytest.raises(ConfigError) as error:
            configured(entry)
        assert str(error.value) == f"my.yaml: {line}"


def test_every_class_of_bam_can_be_drawn() -> None:
    assert set(SILHOUETTES) == set(OBJECTS)
    assert set(TEXTURES) == set(SCENES)
    assert len(OBJECTS) == len(SCENES) == 10

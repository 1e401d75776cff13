from pathlib import Path

import pytest

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import Configuration, read
from saliency_assay.config.errors import ConfigError
from saliency_assay.data import DATA_KINDS
from saliency_assay.data.bam.classes import OBJECTS, SCENES
from saliency_assay.data.synthetic.shapes import SILHOUETTES
from saliency_assay.data.synthetic.textures import TEXTURES
from saliency_assay.registry.records import record_of


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
    of_record = {*record_of(DATA_KINDS, kind, "data").parameters, "path"}
    assert set(parameters) == of_record | ({"size"} if kind == "folder" else set())
    for entry, message in (
        ({}, r"data\.some: key 'path' is missing"),
        ({"path": ""}, r"data\.some\.path: found ''"),
        ({"path": "no/where"}, r"data\.some\.path: found 'no/where', expected a folder"),
    ):
        with pytest.raises(ConfigError, match=rf"^my\.yaml: {message}"):
            configured(entry)


def test_every_class_of_bam_can_be_drawn() -> None:
    assert set(SILHOUETTES) == set(OBJECTS)
    assert set(TEXTURES) == set(SCENES)
    assert len(OBJECTS) == len(SCENES) == 10

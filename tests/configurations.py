"""A small configuration that is valid, a small catalog that it is valid against, and changes to it."""

import re
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from saliency_assay.config.checks import Catalog
from saliency_assay.config.configuration import Configuration, read
from saliency_assay.config.errors import ConfigError
from saliency_assay.data import DataKind
from saliency_assay.methods import Method
from saliency_assay.metrics import Metric, Score
from saliency_assay.models import Architecture
from saliency_assay.registry.records import Parameter
from saliency_assay.runtime.provenance import SOURCE
from saliency_assay.studies import STUDY_KINDS

R = TypeVar("R")

FOLDER = SOURCE.parent / "config"
FILE = "some.yaml"

BASE = """
data:
  bam: {kind: synthetic}
  digits: {kind: digits}
models:
  f_o: {architecture: resnet, data: bam_os, trained_on: object}
  f_s: {architecture: resnet, data: bam_os, trained_on: scene}
  d: {architecture: mlp, data: digits, trained_on: class}
methods:
  gradient: {}
  gradcam: {}
  smooth: {method: smoothgrad}
studies:
  bam: {kind: bam, data: bam, object_model: f_o, scene_model: f_s}
  digits: {kind: gallery, model: d, methods: [gradient]}
"""

SIZE = {"size": Parameter(32, minimum=8, maximum=64)}
SCALE = {
    "smallest": Parameter(0.25, minimum=0, maximum=1),
    "largest": Parameter(0.5, minimum=0, maximum=1),
}


def by_name(*records: Any) -> dict[str, Any]:
    return {record.name: record for record in records}


def with_parameters(record: R, **parameters: Parameter) -> R:
    """Give a record parameters although its function does not exist: the cached property's value is set."""
    vars(record)["parameters"] = parameters
    return record


def bam_kind(name: str) -> DataKind:
    labels, sets = ("object", "scene"), {"os": "objects", "0s": "no objects", "og": "gray"}
    return DataKind(
        name,
        f"the data {name}",
        f"package.{name}:make",
        "",
        "",
        labels,
        tuple(sets),
        sets,
        table={**SIZE, **SCALE},
    )


def method(
    name: str, *needs: str, takes: tuple[str, ...] = (), stochastic: bool = False, **parameters: Parameter
) -> Method:
    record = Method(
        name,
        f"the method {name}",
        f"package.{name}:{name}",
        "",
        "",
        needs=needs,
        takes=takes,
        stochastic=stochastic,
    )
    return with_parameters(record, **parameters)


def metric(name: str, *takes: str, scores_single_maps: bool = True, **parameters: Parameter) -> Metric:
    record = Metric(
        name,
        f"the metric {name}",
        f"package.{name}:{name}",
        "",
        f"what {name} is",
        (Score(f"{name}_score", "higher", (0, 1), f"the {name}"),),
        "faithfulness",
        "sum",
        scores_single_maps,
        takes,
        responses=f"package.{name}:responses" if scores_single_maps else "",
    )
    return with_parameters(record, **parameters)


# Not the registries' own: what is registered later shall not change the names that messages list.
CATALOG = Catalog(
    data_kinds=by_name(
        bam_kind("bam"),
        bam_kind("synthetic"),
        DataKind("digits", "Digits", "package.digits:make", "", "", table=SIZE),
        with_parameters(DataKind("mnist", "MNIST", "package.mnist:make", "", "", sources=("path",))),
    ),
    architectures=by_name(
        with_parameters(
            Architecture("resnet", "ResNet", "package.resnet:resnet", "", "", "last", ("one", "two"), True),
            width=Parameter(16, minimum=1),
        ),
        with_parameters(Architecture("mlp", "MLP", "package.mlp:mlp", "", "", "", (), False)),
        with_parameters(Architecture("vgg", "VGG", "package.vgg:vgg", "", "", "last", (), False)),
    ),
    methods=by_name(
        method("gradient", "gradients"),
        method("gradcam", "gradients", "cam_layer", relu=Parameter(True)),
        method("cam", "cam_layer", "pool_linear_head"),
        method(
            "smoothgrad", "gradients", samples=Parameter(25, minimum=1), noise=Parameter(0.15, minimum=0),
            statistic=Parameter("mean", choices=("mean", "squared")),
            takes=("base",),
        ),
        method("shap", "gradients", takes=("background",)),
        method("noise", stochastic=True),
    ),
    metrics=by_name(
        metric("mcs", scores_single_maps=False, samples=Parameter(10, minimum=2)),
        metric("idr", scores_single_maps=False),
        metric(
            "deletion", "mean", steps=Parameter(100, minimum=1, words=("exact",)),
            fill=Parameter("black", choices=("black", "mean")),
        ),
        metric("pointing_game", "mask"),
    ),
    training={
        "epochs": Parameter(10, minimum=0),
        "learning_rate": Parameter(0.1, minimum=0),
        "validation_share": Parameter(0.0, minimum=0, maximum=0.5),
    },
    study_kinds=STUDY_KINDS,
)  # fmt: skip


def base() -> Any:
    return yaml.safe_load(BASE)


def replaced(raw: Any, place: str, value: object) -> Any:
    """Return ``raw`` itself, with ``value`` at ``place``, whose keys are joined by dots."""
    *parents, last = place.split(".")
    inner = raw
    for key in parents:
        inner = inner.setdefault(key, {})
    inner[last] = value
    return raw


def changed(place: str, value: object) -> Any:
    """BASE with ``value`` at ``place``."""
    return replaced(base(), place, value)


def without(place: str) -> Any:
    """BASE without the key at ``place``."""
    raw = base()
    *parents, last = place.split(".")
    inner = raw
    for key in parents:
        inner = inner[key]
    del inner[last]
    return raw


def reading(raw: Any) -> Configuration:
    return read(raw, catalog=CATALOG, source=FILE)


def bam_folders(root: Path) -> tuple[Path, Path]:
    """Folders as COCO and MiniPlaces have them, with nothing to read in them."""
    coco, miniplaces = root / "coco", root / "miniplaces"
    for name in ("train2017", "val2017"):
        (coco / name).mkdir(parents=True)
        (coco / "annotations").mkdir(exist_ok=True)
        (coco / f"annotations/instances_{name}.json").write_text("{}")
    miniplaces.mkdir()
    return coco, miniplaces


def with_bam(root: Path, **changes: object) -> Any:
    """BASE with data from such folders."""
    coco, miniplaces = bam_folders(root)
    return changed("data.bam", {"kind": "bam", "coco": str(coco), "miniplaces": str(miniplaces), **changes})


def fault(raw: Any, catalog: Catalog = CATALOG) -> str:
    """The message for ``raw``, one line, without the file that it starts with."""
    with pytest.raises(ConfigError) as error:
        read(raw, catalog=catalog, source=FILE)
    message = str(error.value)
    assert message.splitlines() == [message]
    assert message.startswith(f"{FILE}: ")
    return message.removeprefix(f"{FILE}: ")


def cases(text: str) -> list[tuple[str, str]]:
    """Change and expected message of each line; the message may stand on a line of its own that begins with ``=>``."""
    lines = re.sub(r"\n +=>", " =>", text.strip()).splitlines()
    return [(change, message) for change, _, message in (line.partition(" => ") for line in lines)]


def agrees(message: str, expected: str) -> bool:
    """Return whether a message begins with the first part of what is expected and has the others, in order.

    Parts are separated by an ellipsis, and each of them ends where a word or a number ends.
    """
    parts = [re.escape(part.strip()) for part in expected.split("…")]
    return re.match("".join(rf".*?{part}(?!\.?\w)" for part in parts)[3:], message) is not None

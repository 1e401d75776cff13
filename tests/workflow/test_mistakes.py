"""Mistakes with models are reported before any training, all of them at once, and valid models are not refused."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from checkout import PROJECT
from mistakes import BASE, MISTAKES, Mistake, custom, write_weights
from PIL import Image

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import read
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.methods import unsupported
from saliency_assay.methods import METHODS, Method
from saliency_assay.methods.model_check import check_of, problems
from saliency_assay.models import ARCHITECTURES, Architecture
from saliency_assay.pipeline.inputs import Inputs
from saliency_assay.pipeline.job_settings import JobSettings
from saliency_assay.pipeline.model_checks import ModelChecks
from saliency_assay.pipeline.params import Params
from saliency_assay.pipeline.paths import Paths
from saliency_assay.pipeline.studies import Studies
from saliency_assay.registry.records import record_of

CPU = torch.device("cpu")
SMALL = {"heads": 2, "width": 4, "hidden": 8, "pooled": 1}
"""Parameters of a small network."""
QUICK = ("lenet", "reliability_cnn", "resnet8", "vit")
"""Architectures that differ in the methods that support them."""


def checks_of(configuration: dict[str, Any]) -> ModelChecks:
    """The checks of a configuration's models."""
    config = read(configuration, catalog=CATALOG, source="study.yaml")
    inputs = Inputs(config, Paths(config.results), Studies(config, CATALOG.study_kinds))
    return ModelChecks(Params(inputs, CATALOG, JobSettings(PROJECT / "workflow/scripts"), configuration))


def lines_of(configuration: dict[str, Any]) -> list[str]:
    """The lines about a configuration: the first error that its reader finds, or all of its models."""
    try:
        settings = json.loads(json.dumps(checks_of(configuration).settings()))
    except ConfigError as error:
        return [str(error).removeprefix("study.yaml: ")]
    return [
        line
        for entry in settings["models"]
        for line in problems(check_of(entry), settings["alternatives"], CPU)
    ]


def with_models(**models: dict[str, Any]) -> dict[str, Any]:
    """A configuration with a study of each model."""
    complete = {
        name: {"data": "digits", "trained_on": "class", "training": {"epochs": 1}, **model}
        for name, model in models.items()
    }
    studies = {f"of_{name}": {"kind": "gallery", "model": name} for name in models}
    return {**BASE, "models": complete, "studies": studies}


def write_gray_images(root: Path) -> None:
    """Seven classes, as in the weights ``classes.pt``, of one image each."""
    for number in range(7):
        (root / str(number)).mkdir(parents=True)
        Image.new("L", (16, 16)).save(root / str(number) / "0.png")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the weights files; the networks are importable as those beside a configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(PROJECT / "tests"))
    write_weights(tmp_path)
    return tmp_path


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_a_mistake_is_one_line(mistake: Mistake) -> None:
    lines = lines_of(mistake.configuration)
    matching = [line for line in lines if line.startswith(mistake.line)]
    assert len(matching) == 1, lines
    assert all("\n" not in line for line in lines)


def test_mistakes_of_several_models_are_reported_together(folder: Path) -> None:
    """Equal models have the same lines; a builder that exits has its own, and none takes those of others away."""
    models = {
        "one": custom("thousand_classes"),
        "two": custom("plain", concept_layers=["conv3", "act3"]),
        "three": custom("plain"),
        "four": custom("thousand_classes"),
        "five": custom("leaving"),
    }
    with pytest.raises(ValueError, match="check_models") as error:
        checks_of(with_models(**models)).run()
    lines = [line.removeprefix("check_models: models.") for line in str(error.value).splitlines()]
    places = ("one: ", "two.concept_layers: ", "two.concept_layers: ", "four: ", "five: ")
    assert len(lines) == len(places)
    assert all(line.startswith(place) for line, place in zip(lines, places, strict=True))
    assert lines[3] == lines[0].replace("one", "four", 1)
    assert lines[4].startswith("five: cannot be built: calls exit; ")
    # The log has the traceback of the network's own code.
    assert "expected [N, 10]" in (folder / "results/logs/check_models.log").read_text()


def test_a_passed_check_is_not_repeated_until_something_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    model = custom("plain")
    checks_of(with_models(mine=model)).run()
    started: list[list[str]] = []

    def start(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        started.append(command)
        return subprocess.CompletedProcess(command, 0, stdout="")

    monkeypatch.setattr(subprocess, "run", start)
    checks_of(with_models(mine=model)).run()
    assert not started
    checks_of(with_models(mine={**model, "cam_layer": "act2"})).run()
    assert len(started) == 1


def test_a_network_that_needs_values_while_it_is_built_is_not_refused() -> None:
    """PyTorch's device ``meta`` has none, so the check is that of the CPU."""
    lines = lines_of(
        {**with_models(mine=custom("functional_network", cam_layer="conv1")), "methods": {"gradcam": {}}}
    )
    assert lines == []


def test_gray_test_images_alone_need_a_normalization(folder: Path) -> None:
    """There are no published values for one channel; weights of this project's own state theirs."""
    write_gray_images(folder / "images")
    data = {"photos": {"kind": "folder", "path": "images", "split": "test", "gray": True, "size": 16}}
    model = {"architecture": "resnet8", "width": 4, "weights": "classes.pt", "training": {"epochs": 0}}
    model |= {"data": "photos"}
    configuration = {**with_models(mine=model), "data": data}
    (line,) = lines_of(configuration)
    assert line.startswith("models.mine.normalization: missing; expected mean and std for 1 channels")
    normalization = {"mean": [0.5], "std": [0.2]}
    assert lines_of({**with_models(mine={**model, "normalization": normalization}), "data": data}) == []


def test_a_layer_is_checked_though_the_head_begins_with_zeros() -> None:
    """As in torchvision's vision transformers, whose gradients are then zero in every layer."""
    assert (
        lines_of({**with_models(mine=custom("zero_head", cam_layer="blocks.0")), "methods": {"gradcam": {}}})
        == []
    )
    (line,) = lines_of(
        {**with_models(mine=custom("zero_head", cam_layer="blocks.1")), "methods": {"gradcam": {}}}
    )
    assert "of the output of 'blocks.1', the logits depend only on tokens that are not in the grid" in line
    assert "gradient, " in line.partition("methods for this model: ")[2]
    assert "gradcam" not in line.partition("methods for this model: ")[2]


@pytest.mark.parametrize(
    "architecture",
    [
        pytest.param(record, id=record.name, marks=() if record.name in QUICK else pytest.mark.slow)
        for record in ARCHITECTURES
    ],
)
def test_no_registered_architecture_is_refused_for_a_method_that_supports_it(
    architecture: Architecture,
) -> None:
    model = {"architecture": architecture.name}
    model |= {key: value for key, value in SMALL.items() if key in architecture.parameters}
    methods: dict[str, Any] = {
        method.name: {"background": 4} if "background" in method.takes else {}
        for method in METHODS
        if not unsupported(method.needs, architecture) and "mask" not in method.takes
    }
    data = {"digits": {**BASE["data"]["digits"], "size": 32}}
    raw = {**with_models(mine=model), "methods": methods, "data": data}
    if architecture.is_designed:
        label = architecture.name.partition("/")[2]
        raw["data"] = {"images": {"kind": "designed"}}
        raw["models"] = {"mine": {**model, "data": "images", "trained_on": label}}
    assert lines_of(raw) == []


@pytest.mark.parametrize("method", METHODS, ids=lambda record: record.name)
def test_a_method_that_takes_long_is_checked_as_one_with_its_needs(method: Method) -> None:
    checked = record_of(METHODS, method.checked_as, "method") if method.checked_as else method
    assert set(checked.needs) - {"gradients"} <= set(method.needs) <= set(checked.needs)
    assert isinstance(checked.passes, int) or not method.needs


def test_documented_messages_are_those_of_mistakes() -> None:
    page = (PROJECT / "docs/troubleshooting.md").read_text()
    section = page.partition("\n## Models that cannot be used\n")[2].partition("\n## ")[0]
    messages = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert len(messages) > 10
    assert [text for text in messages if not any(text in mistake.line for mistake in MISTAKES)] == []

"""What the project writes of any network, it reads again; or it says so before the training."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import generator, small_resnet8
from unit.models import own_networks

from saliency_assay.models import weights
from saliency_assay.models.classifier import Blueprint, Classifier, build, digest, unwrapped
from saliency_assay.training.task import RuntimeOptions, TrainingTask, fit

SAVED = ["module", "orig_mod", "parallel", "compiled", "averaged", "waves", "extra", "prototypes"]
CLASSES = 3


def blueprint(name: str) -> Blueprint:
    function = f"{own_networks.__name__}:{name}"
    return Blueprint(function, function, {})


def built(name: str) -> Any:
    return build(blueprint(name), classes=CLASSES, mean=[0.5] * 3, std=[0.5] * 3, generator=generator(1))


def fitted(name: str, folder: Path, **training: Any) -> Any:
    count = 24
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (count, 3, 8, 8), dtype=np.uint8)
    split = (np.arange(count) < 6).astype(np.uint8)
    task = TrainingTask(images, np.arange(count) % CLASSES, split, CLASSES, "x")
    runtime = RuntimeOptions(torch.device("cpu"), folder / "state.pt", save_seconds=60, resident_limit=10**9)
    return fit(task, vars(blueprint(name)), {"batch_size": 6, "epochs": 1, **training}, runtime, seed=0)


@pytest.mark.parametrize("name", SAVED)
def test_a_trained_network_is_read_again(name: str, tmp_path: Path) -> None:
    classifier, curve = fitted(name, tmp_path)
    assert len(curve) == 1
    weights.save(tmp_path / "weights.pt", classifier, blueprint(name))
    loaded = weights.load_classifier(tmp_path / "weights.pt", blueprint(name))
    assert digest(loaded.network.state_dict()) == digest(classifier.network.state_dict())
    images = torch.rand(2, 3, 8, 8, generator=generator())
    torch.testing.assert_close(loaded(images), classifier.eval()(images), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("growing", "seen"),
        ("opaque", "_extra_state"),
        ("over_images", "other images"),
        ("permuted", "returns other logits"),
        ("lazy", "lazy layers"),
    ],
)
def test_what_would_fail_later_is_refused_before_the_training(name: str, place: str, tmp_path: Path) -> None:
    for epochs in (0, 10**6):
        with pytest.raises(ValueError, match=place):
            fitted(name, tmp_path, epochs=epochs)


def test_another_class_count_than_the_file_can_have(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    weights.save(path, built("prototypes"), blueprint("prototypes"))
    content = weights.read(path)
    content["classifier"]["classes"] = 10**9
    weights.write(path, content)
    with pytest.raises(ValueError, match="found 1000000000 classes"):
        weights.load_classifier(path, blueprint("prototypes"))


def state(seed: int = 4) -> dict[str, Any]:
    return dict(small_resnet8(seed=seed).network.state_dict())


CHECKPOINTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"student": state(), "teacher": state(), "epoch": 3}, ["student", "teacher"]),
    ({"state_dict": state(), "ema": {"module": state(), "decay": 0.99}}, ["state_dict", "ema.module"]),
    (
        {"state_dict": state(), "ema": {"shadow_params": list(state().values()), "decay": 0.99}},
        ["state_dict", "ema.shadow_params"],
    ),
    ({"nets": [state(), state()]}, ["nets.0", "nets.1"]),
    ({"state_dict": state(), "ema_params": torch.zeros(9)}, ["state_dict", "ema_params"]),
    ({"state_dict": state(), "emaParams": [torch.zeros(9)]}, ["state_dict", "emaParams"]),
    ({"state_dict": state(), "EMA": {"conv1weight": torch.zeros(9)}}, ["state_dict", "EMA"]),
    (
        {"state_dict": state(), "callbacks": {"EMACallback": {"weights": [torch.zeros(9)]}}},
        ["state_dict", "callbacks.EMACallback.weights"],
    ),
]


@pytest.mark.parametrize(("content", "places"), CHECKPOINTS, ids=lambda value: str([*value]))
def test_weights_of_several_networks_are_not_chosen_from(
    content: dict[str, Any], places: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "checkpoint.pt"
    torch.save(content, path)
    with pytest.raises(ValueError, match=rf"weights of several networks.*\({', '.join(places)}\)"):
        weights.load_initial(small_resnet8(), path, "resnet8")


@pytest.mark.parametrize(
    "beside",
    [
        {"metrics": {"accuracy": torch.tensor(0.9)}},
        {"normalization": {"mean": torch.zeros(3), "std": torch.ones(3)}},
        {"teacher": {"blocks.0.weight": torch.zeros(3)}},
        {"ema": None},
        {"ema": {"decay": 0.99, "updates": torch.tensor(7)}},
        {"optimizer": {"state": {0: {"square_avg": torch.zeros(3), "step": 1}}, "param_groups": []}},
        {"optimizer": {"state": {0: {"exp_avg": torch.zeros(3), "step": 1}}, "param_groups": [{"lr": 0.1}]}},
    ],
    ids=lambda beside: next(iter(beside)),
)
def test_other_tensors_in_a_checkpoint_are_no_weights(beside: dict[str, Any], tmp_path: Path) -> None:
    for content in ({"net": state(), "epoch": 3, "args": {"lr": 0.1}}, {"checkpoint": {"model": state()}}):
        torch.save({**content, **beside}, tmp_path / "checkpoint.pt")
        target = small_resnet8(seed=5)
        weights.load_initial(target, tmp_path / "checkpoint.pt", "resnet8")
        assert digest(target.network.state_dict()) == digest(state())


@pytest.mark.parametrize(
    "wrap",
    [
        torch.optim.swa_utils.AveragedModel,
        lambda network: torch.nn.DataParallel(torch.compile(network, backend="eager")),
    ],
    ids=["averaged", "compiled in parallel"],
)
@pytest.mark.parametrize("saved", ["plain", "wrapped"])
def test_plain_weights_are_loaded_into_a_wrapped_network(
    wrap: Callable[[torch.nn.Module], torch.nn.Module], saved: str, tmp_path: Path
) -> None:
    target, source = small_resnet8(seed=5), small_resnet8(seed=4).network
    target.network = wrap(target.network)
    torch.save((source if saved == "plain" else wrap(source)).state_dict(), tmp_path / "weights.pt")
    weights.load_initial(target, tmp_path / "weights.pt", "resnet8")
    assert digest(unwrapped(target.network).state_dict()) == digest(state())


def test_the_head_is_the_last_linear_layer_with_an_output_per_class(tmp_path: Path) -> None:
    """A network with an auxiliary layer that is registered after its head."""

    def network(classes: int) -> Classifier:
        widths = {"body": (12, 7), "head": (7, classes), "aux": (7, 2)}
        layers = torch.nn.ModuleDict({name: torch.nn.Linear(*width) for name, width in widths.items()})
        parts = {"mean": [0.0], "std": [1.0], "cam_layer": "", "concept_layers": []}
        return Classifier(layers, classes=classes, **parts)

    source, target = network(9), network(4)
    head = target.layer("head").weight.detach().clone()
    torch.save(source.network.state_dict(), tmp_path / "weights.pt")
    weights.load_initial(target, tmp_path / "weights.pt", "mine")
    assert torch.equal(target.layer("head").weight, head)
    for layer in ("body", "aux"):
        assert torch.equal(target.layer(layer).weight, source.layer(layer).weight)

"""What the project writes of any network, it reads again; or it says so before the training."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import generator, small_resnet8
from unit.models import own_networks

from saliency_assay.models import weights
from saliency_assay.models.classifier import Blueprint, build, digest
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
    task = TrainingTask(
        images, np.arange(count) % CLASSES, (np.arange(count) < 6).astype(np.uint8), CLASSES, "x"
    )
    runtime = RuntimeOptions(torch.device("cpu"), folder / "state.pt", save_seconds=60, resident_limit=10**9)
    return fit(task, vars(blueprint(name)), {"batch_size": 6, "epochs": 1, **training}, runtime, seed=0)


@pytest.mark.parametrize("name", SAVED)
def test_saved_weights_are_read_again(name: str, tmp_path: Path) -> None:
    classifier, path = built(name), tmp_path / "weights.pt"
    weights.save(path, classifier, blueprint(name))
    loaded = weights.load_classifier(path, blueprint(name))
    assert digest(loaded.network.state_dict()) == digest(classifier.network.state_dict())
    images = torch.rand(2, 3, 8, 8, generator=generator())
    torch.testing.assert_close(loaded(images), classifier.eval()(images), rtol=0, atol=0)


@pytest.mark.parametrize("name", SAVED)
def test_a_trained_network_is_read_again(name: str, tmp_path: Path) -> None:
    classifier, curve = fitted(name, tmp_path)
    assert len(curve) == 1
    weights.save(tmp_path / "weights.pt", classifier, blueprint(name))
    loaded = weights.load_classifier(tmp_path / "weights.pt", blueprint(name))
    assert digest(loaded.network.state_dict()) == digest(classifier.network.state_dict())


@pytest.mark.parametrize(
    ("name", "place"), [("growing", "seen"), ("opaque", "_extra_state"), ("over_images", "other images")]
)
@pytest.mark.parametrize("epochs", [0, 10**6])
def test_what_would_fail_later_is_refused_before_the_training(
    name: str, place: str, epochs: int, tmp_path: Path
) -> None:
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


@pytest.mark.parametrize(
    "content",
    [
        {"state_dict": 1, "state_dict_ema": 2, "epoch": 3},
        {"model": 1, "model_ema": 2},
        {"student": 1, "teacher": 2},
    ],
    ids=" and ".join,
)
def test_weights_of_several_networks_are_not_chosen_from(content: dict[str, int], tmp_path: Path) -> None:
    path, state = tmp_path / "checkpoint.pt", small_resnet8().network.state_dict()
    names = [name for name in content if name != "epoch"]
    torch.save({**content, **dict.fromkeys(names, state)}, path)
    with pytest.raises(ValueError, match="weights of several networks") as refused:
        weights.read_state(path)
    assert all(repr(name) in str(refused.value) for name in names)


@pytest.mark.parametrize("key", ["net", "weights", "state_dict"])
def test_the_only_weights_in_a_checkpoint_are_used(key: str, tmp_path: Path) -> None:
    source, path = small_resnet8(seed=4), tmp_path / "checkpoint.pt"
    optimizer = torch.optim.SGD(source.parameters(), lr=0.1).state_dict()
    torch.save(
        {key: source.network.state_dict(), "optimizer": optimizer, "epoch": 3, "args": {"lr": 0.1}}, path
    )
    target = small_resnet8(seed=5)
    weights.load_initial(target, path, "resnet8")
    assert digest(target.network.state_dict()) == digest(source.network.state_dict())


@pytest.mark.parametrize("prefix", ["model.", "module.model.", "_orig_mod.module."])
def test_a_prefix_of_all_names_is_removed(prefix: str, tmp_path: Path) -> None:
    source, path, target = small_resnet8(seed=4), tmp_path / "weights.pt", small_resnet8(seed=5)
    state = {f"{prefix}{name}": value for name, value in source.network.state_dict().items()}
    torch.save({**state, "n_averaged": torch.tensor(3)}, path)
    weights.load_initial(target, path, "resnet8")
    assert digest(target.network.state_dict()) == digest(source.network.state_dict())

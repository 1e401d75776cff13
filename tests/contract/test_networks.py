"""Networks as users have them, explained, scored and trained in one process and in two."""

from typing import Any

import networks
import numpy as np
import parallel
import pytest
import torch
from networks import CLASSES, KINDS, Kind

import saliency_assay
from saliency_assay.models.classifier import Classifier

TARGETS = [1, 2]
METHODS: dict[str, dict[str, Any]] = {
    "gradient": {},
    "integrated_gradients": {"steps": 3},
    "guided_backprop": {},
    "gradcam": {},
}
NAMED = [pytest.param(name, kind, id=name) for name, kind in KINDS.items()]


@pytest.fixture(scope="module")
def built() -> dict[str, Classifier]:
    """Each network, wrapped."""
    parts = {"classes": CLASSES, "mean": [0.5] * 3, "std": [0.25] * 3}
    return {
        name: saliency_assay.wrap(networks.network(name), cam_layer=kind.cam_layer, **parts)
        for name, kind in KINDS.items()
    }


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Train in this process."""
    return networks.train_networks(tmp_path_factory.mktemp("alone"))


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Train in two processes and return the result of each."""
    ended = parallel.run(networks.train_networks, tmp_path_factory.mktemp("together"), 2)
    assert (ended.status, ended.output) == (0, "")
    return ended.results


def refusal(method: str, kind: Kind) -> str:
    """The one line of a method that does not apply to a network; empty where it does."""
    if method == "guided_backprop" and kind.activations != "ReLU":
        return f"^guided_backprop: found {kind.activations} in .*use gradient$"
    return ""


@pytest.mark.parametrize(("name", "kind"), NAMED)
def test_attribute(name: str, kind: Kind, built: dict[str, Classifier]) -> None:
    model, images = built[name], networks.images(2)
    if not kind.repeats:
        with pytest.raises(ValueError, match="second pass of the same image"):
            saliency_assay.attribute("gradient", model, images, TARGETS)
        return
    for method, parameters in METHODS.items():
        if line := refusal(method, kind):
            with pytest.raises(ValueError, match=line):
                saliency_assay.attribute(method, model, images, TARGETS, batch_size=1, **parameters)
            continue
        maps = saliency_assay.attribute(method, model, images, TARGETS, batch_size=1, **parameters)
        assert isinstance(maps, torch.Tensor)
        assert maps.shape[2:] == images.shape[2:]
        assert bool(maps.isfinite().all())
        if method == "gradient":
            assert bool((maps != 0).any())


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.repeats])
def test_gradient_is_that_of_plain_torch(name: str, built: dict[str, Classifier]) -> None:
    network, pixels = networks.network(name), networks.images(2) / 255
    pixels.requires_grad_()
    logits = network((pixels - 0.5) / 0.25)
    expected = torch.autograd.grad(logits[[0, 1], TARGETS].sum(), pixels)[0]
    maps = saliency_assay.attribute("gradient", built[name], networks.images(2), TARGETS)
    assert float((maps - expected).norm() / expected.norm()) < 1e-2  # a ReLU at 0 may turn


def test_a_randomized_network_gets_the_memory_format_of_the_explained_one() -> None:
    images = networks.images(2)
    maps = np.random.default_rng(0).normal(size=(2, 3, networks.SIZE, networks.SIZE))
    inputs = {
        "method": "gradient",
        "randomized_model": saliency_assay.randomize(networks.network("view"), seed=1),
    }
    scores = saliency_assay.score("emprt", networks.network("view"), images, TARGETS, maps, **inputs)
    assert all(values.shape == (2,) for values in scores.values())


@pytest.mark.parametrize("name", KINDS)
def test_train(name: str, alone: dict[str, Any]) -> None:
    before, after = networks.marks(networks.network(name)), alone[name]["marks"]
    changed = {
        key for key, values in before.items() if after[f"network.{key}"] != pytest.approx(values, rel=1e-7)
    }
    parameters = {key for key, value in networks.network(name).named_parameters() if value.requires_grad}
    still = {key for key in parameters if key.startswith(("aux", "second.", "idle."))}
    assert changed & parameters >= {key for key in parameters - still if key.endswith("weight")}
    assert not changed & still
    assert np.isfinite(alone[name]["loss"])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", KINDS)
def test_two_processes_train_as_one(name: str, alone: dict[str, Any], together: list[dict[str, Any]]) -> None:
    expected = alone[name]
    for result in (process[name] for process in together):
        assert result["marks"].keys() == expected["marks"].keys()
        for key, values in expected["marks"].items():
            assert result["marks"][key] == pytest.approx(values, rel=1e-7, abs=1e-9), key
        assert result["loss"] == pytest.approx(expected["loss"], rel=1e-6)
    assert together[0][name] == together[1][name]


def test_what_a_step_does_to_buffers(alone: dict[str, Any]) -> None:
    counted = alone["buffers of integers"]["marks"]
    assert counted["network.written"][0] == 2
    assert counted["network.replaced"][0] == 2 * 2 * 2
    frozen = alone["frozen BatchNorm"]["marks"]
    assert frozen["network.features.1.running_mean"][0] == 4 * 0.5
    assert frozen["network.features.1.num_batches_tracked"][0] == 0
